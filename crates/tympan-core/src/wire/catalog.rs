//! The catalog of models: prices, context windows and output limits.
//!
//! Prices are in US dollars per million tokens, from public price lists on [`PRICES_DATE`]. They have not been compared
//! with an actual bill, and exclude discounts and taxes. Costs that are computed from them are estimates. What a batch
//! costs is a share of them, which [`batch_share`] returns.
//!
//! ```
//! use tympan_core::wire::catalog::{Catalog, ModelOverride};
//! use tympan_core::wire::response::Usage;
//!
//! let mut catalog = Catalog::default();
//! assert_eq!(catalog.get("openai/gpt-4o-2024-08-06").context, Some(128_000));
//!
//! let price = ModelOverride { input: Some(0.5), output: Some(2.0), ..ModelOverride::default() };
//! catalog.set("my-model", price);
//! let usage = Usage { input_tokens: 2_000_000, output_tokens: 1_000_000, ..Usage::default() };
//! assert_eq!(catalog.cost("my-model", &usage), Some(3.0));
//! assert_eq!(catalog.cost("another-model", &usage), None);
//! ```

use super::response::Usage;

/// The date of the price lists.
pub const PRICES_DATE: &str = "2026-11-15";

/// The prices of the batch APIs of providers, as a share of their direct prices.
const BATCH_SHARES: [(&str, f64); 3] = [("openai", 0.5), ("azure", 0.5), ("anthropic", 0.5)];

/// Returns the price of a provider's batch API as a share of its direct price, or `None` if the provider has no batch
/// API, or its price is not known.
///
/// ```
/// use tympan_core::wire::catalog::batch_share;
///
/// assert_eq!(batch_share("openai"), Some(0.5));
/// assert_eq!(batch_share("ollama"), None);
/// ```
pub fn batch_share(provider: &str) -> Option<f64> {
    BATCH_SHARES.iter().find(|(name, _)| *name == provider).map(|(_, share)| *share)
}

/// The price of a model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Price {
    /// The price of input.
    pub input: f64,
    /// The price of output.
    pub output: f64,
    /// The price of input that is read from the provider's cache.
    pub cached_input: f64,
    /// The price of input that is written to the provider's cache.
    pub cache_write: f64,
}

impl Price {
    /// Estimates the cost of this usage in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let (cached, written) = (usage.cached_input_tokens, usage.cache_write_tokens);
        let fresh = usage.input_tokens.saturating_sub(cached.saturating_add(written));
        let input =
            dollars(fresh, self.input) + dollars(cached, self.cached_input) + dollars(written, self.cache_write);
        input + dollars(usage.output_tokens, self.output)
    }
}

/// Returns the cost of tokens at a price per million.
#[expect(clippy::cast_precision_loss, reason = "nobody uses so many tokens")]
fn dollars(tokens: u64, price: f64) -> f64 {
    tokens as f64 * price / 1e6
}

/// What is known about a model. Fields that are `None` are unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ModelData {
    /// The price.
    pub price: Option<Price>,
    /// The size of the context window, in tokens.
    pub context: Option<u64>,
    /// The maximum size of an answer, in tokens.
    pub max_output: Option<u64>,
}

/// A row that adds to the catalog or overrides it. Fields that are `None` change nothing. Prices are in US dollars per
/// million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ModelOverride {
    /// The price of input.
    pub input: Option<f64>,
    /// The price of output.
    pub output: Option<f64>,
    /// The price of input that is read from the provider's cache.
    pub cached_input: Option<f64>,
    /// The price of input that is written to the provider's cache.
    pub cache_write: Option<f64>,
    /// The size of the context window, in tokens.
    pub context: Option<u64>,
    /// The maximum size of an answer, in tokens.
    pub max_output: Option<u64>,
}

impl ModelOverride {
    fn over(&self, data: ModelData) -> ModelData {
        ModelData {
            price: self.price_over(data.price),
            context: self.context.or(data.context),
            max_output: self.max_output.or(data.max_output),
        }
    }

    /// Returns the price, if both input and output have one. The prices of the cache that are not set are the same
    /// share of the price of input as before.
    fn price_over(&self, price: Option<Price>) -> Option<Price> {
        let input = self.input.or(price.map(|price| price.input))?;
        let output = self.output.or(price.map(|price| price.output))?;
        let share = |of: fn(&Price) -> f64| match &price {
            Some(price) if price.input > 0.0 => input * (of(price) / price.input),
            _ => input,
        };
        let cached_input = self.cached_input.unwrap_or_else(|| share(|price| price.cached_input));
        let cache_write = self.cache_write.unwrap_or_else(|| share(|price| price.cache_write));
        Some(Price { input, output, cached_input, cache_write })
    }
}

/// The built-in table of models, with rows that a project adds or overrides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    overrides: Vec<(String, ModelOverride)>,
}

impl Catalog {
    /// Adds or overrides the row of a model. A row for `gpt-4o` also counts for `openai/gpt-4o` and
    /// `gpt-4o-2024-08-06`, unless these have rows of their own.
    pub fn set(&mut self, model: impl Into<String>, row: ModelOverride) {
        let model = model.into();
        self.overrides.retain(|(name, _)| *name != model);
        self.overrides.push((model, row));
    }

    /// Returns what is known about a model. The vendor in front of its name and the date at its end do not matter.
    pub fn get(&self, model: &str) -> ModelData {
        let without_vendor = model.rsplit('/').next().unwrap_or(model);
        let plain = without_date(without_vendor);
        let mut names = vec![plain, without_vendor, model];
        names.dedup();
        names.into_iter().fold(built_in(plain), |data, name| {
            let row = self.overrides.iter().find(|(own, _)| own == name);
            row.map_or(data, |(_, row)| row.over(data))
        })
    }

    /// Estimates the cost of this usage in US dollars. Returns `None` if the price of the model is unknown.
    pub fn cost(&self, model: &str, usage: &Usage) -> Option<f64> {
        self.get(model).price.map(|price| price.cost(usage))
    }

    /// Returns the names of all models whose price is known, and of those that were added.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        let added = self.overrides.iter().map(|(name, _)| name.as_str());
        let is_new = |name: &&str| !ROWS.iter().any(|row| row.name == *name && row.data.price.is_some());
        let built_in = ROWS.iter().filter(|row| row.data.price.is_some()).map(|row| row.name);
        built_in.chain(added.filter(is_new))
    }
}

/// A row of the built-in table.
struct Row {
    /// The name of a model or of a family, without a vendor and a date.
    name: &'static str,
    data: ModelData,
}

const fn row(name: &'static str) -> Row {
    Row { name, data: ModelData { price: None, context: None, max_output: None } }
}

impl Row {
    /// Sets the price. Cached input costs as much as other input if no lower price could be confirmed, so estimates are
    /// then too high, never too low.
    const fn price(mut self, input: f64, output: f64) -> Self {
        self.data.price = Some(Price { input, output, cached_input: input, cache_write: input });
        self
    }

    /// Sets the price and the relative price of input from the cache, as OpenAI has them.
    const fn openai(self, input: f64, output: f64, cached: f64) -> Self {
        self.with_cache(input, output, cached, 1.0)
    }

    /// Sets the price. The prices of the cache are the same share of it for all of Anthropic's models.
    const fn anthropic(self, input: f64, output: f64) -> Self {
        self.with_cache(input, output, 0.1, 1.25)
    }

    const fn with_cache(mut self, input: f64, output: f64, cached: f64, written: f64) -> Self {
        let (cached_input, cache_write) = (input * cached, input * written);
        self.data.price = Some(Price { input, output, cached_input, cache_write });
        self
    }

    /// Sets the context window of a model and of all models whose names start like this, unless they have their own.
    const fn context(mut self, tokens: u64) -> Self {
        self.data.context = Some(tokens);
        self
    }

    /// Sets the maximum size of an answer.
    const fn max_output(mut self, tokens: u64) -> Self {
        self.data.max_output = Some(tokens);
        self
    }
}

/// The built-in table. A price and the size of an answer belong to exactly one model. A context window belongs to a
/// family as well.
const ROWS: [Row; 50] = [
    row("gpt-3.5-turbo").context(16_385),
    row("gpt-35-turbo").context(16_385),
    row("gpt-4").context(8_192),
    row("gpt-4-32k").context(32_768),
    row("gpt-4-turbo").context(128_000),
    row("gpt-4-1106").context(128_000),
    row("gpt-4-0125").context(128_000),
    row("gpt-4o").openai(2.5, 10.0, 0.5).context(128_000).max_output(16_384),
    row("gpt-4o-mini").openai(0.15, 0.6, 0.5).max_output(16_384),
    row("gpt-4.1").price(2.0, 8.0).context(1_047_576).max_output(32_768),
    row("gpt-4.1-mini").price(0.4, 1.6).max_output(32_768),
    row("gpt-4.1-nano").price(0.1, 0.4).max_output(32_768),
    row("gpt-4.5").context(128_000),
    row("gpt-5").price(1.25, 10.0).context(400_000).max_output(128_000),
    row("gpt-5-mini").price(0.25, 2.0).max_output(128_000),
    row("gpt-5-nano").price(0.05, 0.4).max_output(128_000),
    row("gpt-5.1").openai(1.25, 10.0, 0.1).max_output(128_000),
    row("gpt-5.2").openai(1.75, 14.0, 0.1).max_output(128_000),
    row("gpt-5.4").openai(2.5, 15.0, 0.1).context(1_050_000).max_output(128_000),
    row("gpt-5.4-mini").openai(0.75, 4.5, 0.1).context(400_000).max_output(128_000),
    row("gpt-5.4-nano").openai(0.2, 1.25, 0.1).context(400_000).max_output(128_000),
    row("gpt-5.5").openai(5.0, 30.0, 0.1).context(1_050_000).max_output(128_000),
    row("o1").context(200_000),
    row("o1-mini").context(128_000),
    row("o1-preview").context(128_000),
    row("o3").price(2.0, 8.0).context(200_000).max_output(100_000),
    row("o3-mini").price(1.1, 4.4).max_output(100_000),
    row("o4-mini").price(1.1, 4.4).context(200_000).max_output(100_000),
    row("text-embedding-3-small").price(0.02, 0.0),
    row("text-embedding-3-large").price(0.13, 0.0),
    row("claude-2.0").context(100_000),
    row("claude-3").context(200_000),
    row("claude-3-5-haiku").anthropic(0.8, 4.0),
    row("claude-3-5-sonnet").anthropic(3.0, 15.0),
    row("claude-3-7-sonnet").anthropic(3.0, 15.0),
    row("claude-sonnet-4").anthropic(3.0, 15.0),
    row("claude-sonnet-4-5").anthropic(3.0, 15.0),
    row("claude-haiku-4-5").anthropic(1.0, 5.0),
    row("claude-opus-4").anthropic(15.0, 75.0),
    row("claude-opus-4-1").anthropic(15.0, 75.0),
    row("claude-opus-4-5").anthropic(5.0, 25.0),
    row("claude-opus-4-6").anthropic(5.0, 25.0),
    row("claude-opus-4-7").anthropic(5.0, 25.0),
    row("claude-sonnet-5").anthropic(2.0, 10.0),
    row("gemini-1.5-flash").context(1_048_576),
    row("gemini-2").context(1_048_576),
    row("mistral-large").context(131_072),
    row("llama-3.1").context(131_072),
    row("llama-3.3").context(131_072),
    row("deepseek-chat").context(131_072),
];

/// Returns what the built-in table knows about a model, by its plain name.
fn built_in(name: &str) -> ModelData {
    let own = ROWS.iter().find(|row| row.name == name).map(|row| row.data).unwrap_or_default();
    let families = ROWS.iter().filter(|row| row.data.context.is_some() && starts_with(name, row.name));
    let family = families.max_by_key(|row| row.name.len());
    ModelData { context: own.context.or(family.and_then(|row| row.data.context)), ..own }
}

/// Returns whether a model belongs to a family: `o3` is not the beginning of `o3x`, but of `o3-mini`.
fn starts_with(name: &str, family: &str) -> bool {
    name.strip_prefix(family).is_some_and(|rest| !rest.starts_with(|char: char| char.is_ascii_alphabetic()))
}

/// Strips the date or `-latest` at the end of a name: `gpt-4o-2024-08-06` becomes `gpt-4o`.
fn without_date(name: &str) -> &str {
    let name = name.strip_suffix("-latest").unwrap_or(name);
    let is_date = |tail: &str| tail.bytes().filter(u8::is_ascii_digit).count() == 8 && tail.bytes().all(is_date_byte);
    [11, 9]
        .into_iter()
        .filter_map(|length| name.split_at_checked(name.len().checked_sub(length)?))
        .find(|(_, tail)| tail.starts_with('-') && is_date(tail))
        .map_or(name, |(name, _)| name)
}

fn is_date_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || byte == b'-'
}

#[cfg(test)]
mod tests {
    use super::*;

    const USAGE: fn() -> Usage = || Usage { input_tokens: 1_000_000, output_tokens: 100_000, ..Usage::default() };

    #[test]
    fn models_are_known_with_and_without_a_vendor_and_a_date() {
        let catalog = Catalog::default();
        for name in ["gpt-4o", "gpt-4o-2024-08-06", "openai/gpt-4o", "gpt-4o-latest", "a/b/gpt-4o-20240806"] {
            assert_eq!(catalog.cost(name, &USAGE()), Some(3.5), "{name}");
            assert_eq!(catalog.get(name).context, Some(128_000), "{name}");
        }
        assert_eq!(catalog.cost("claude-sonnet-4-5-20250929", &USAGE()), Some(4.5));
        assert_eq!(catalog.cost("gpt-4o-of-somebody", &USAGE()), None);
        let cached = Usage { cached_input_tokens: 500_000, cache_write_tokens: 100_000, ..USAGE() };
        let expected = (0.4 + 0.05 + 0.125) * 3.0 + 1.5;
        assert!((catalog.cost("claude-sonnet-4-5", &cached).expect("a price") - expected).abs() < 1e-9);
    }

    #[test]
    fn the_longest_family_decides_about_the_context() {
        let context = |name: &str| Catalog::default().get(name).context;
        assert_eq!(context("gpt-4-0613"), Some(8_192));
        assert_eq!(context("gpt-4-turbo-2024-04-09"), Some(128_000));
        assert_eq!(context("gpt-4.1-mini"), Some(1_047_576));
        assert_eq!(context("o3-mini"), Some(200_000));
        assert_eq!(context("claude-3-5-haiku"), Some(200_000));
        for unknown in ["o3x", "gpt-4x", "", "claude-sonnet-4-5", "my-gpt-4o"] {
            assert_eq!(context(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn every_model_has_one_row() {
        for row in &ROWS {
            assert_eq!(ROWS.iter().filter(|other| other.name == row.name).count(), 1, "{}", row.name);
            assert_eq!(without_date(row.name), row.name);
            assert_ne!(row.data, ModelData::default(), "{}", row.name);
        }
    }

    #[test]
    fn rows_that_are_added_override_field_by_field() {
        let mut catalog = Catalog::default();
        catalog.set("gpt-4o", ModelOverride { input: Some(5.0), ..ModelOverride::default() });
        let price = catalog.get("openai/gpt-4o-2024-08-06").price.expect("a price");
        // Cached input stays at half of the price.
        assert_eq!((price.input, price.output, price.cached_input, price.cache_write), (5.0, 10.0, 2.5, 5.0));
        assert_eq!(catalog.get("gpt-4o").context, Some(128_000));
        catalog.set("azure/gpt-4o", ModelOverride { context: Some(1000), ..ModelOverride::default() });
        assert_eq!(catalog.get("azure/gpt-4o").context, Some(1000));
        assert_eq!(catalog.get("azure/gpt-4o").price.map(|price| price.input), Some(5.0));
        assert_eq!(catalog.get("gpt-4o").context, Some(128_000));
        catalog.set("gpt-4o", ModelOverride::default());
        assert_eq!(catalog.get("gpt-4o"), Catalog::default().get("gpt-4o"));
    }

    #[test]
    fn half_a_price_is_unknown() {
        let mut catalog = Catalog::default();
        catalog.set("mine", ModelOverride { input: Some(1.0), max_output: Some(8), ..ModelOverride::default() });
        assert_eq!(catalog.get("mine").price, None);
        assert_eq!(catalog.get("mine").max_output, Some(8));
        catalog.set("local", ModelOverride { input: Some(0.0), output: Some(0.0), ..ModelOverride::default() });
        assert_eq!(catalog.cost("local", &USAGE()), Some(0.0));
    }

    #[test]
    fn models_are_listed_once() {
        let mut catalog = Catalog::default();
        catalog.set("gpt-4o", ModelOverride::default());
        catalog.set("mine", ModelOverride::default());
        let models: Vec<_> = catalog.models().collect();
        assert_eq!(models.iter().filter(|model| **model == "gpt-4o").count(), 1);
        assert_eq!(models.last(), Some(&"mine"));
        assert!(!models.contains(&"claude-3"));
    }
}
