//! Prices of well-known models.
//!
//! Prices are in US dollars per million tokens, from public price lists on 2026-11-15. They have not been compared with
//! an actual bill, and exclude discounts, batch pricing and taxes. Costs that are shown are estimates.

use tympan::wire::response::Usage;

/// The price of a model per million tokens.
struct Price {
    model: &'static str,
    input: f64,
    output: f64,
    /// The price of input read from the provider's cache, relative to the price of input.
    cached: f64,
    /// The price of input written to the provider's cache, relative to the price of input.
    written: f64,
}

/// Returns the names of the models.
#[cfg(feature = "lsp")]
pub(crate) fn models() -> impl Iterator<Item = &'static str> {
    PRICES.iter().map(|price| price.model)
}

/// The relative price of cached input if no lower price could be confirmed. Estimates are then too high, never too low.
const FULL: f64 = 1.0;

const fn openai(model: &'static str, input: f64, output: f64, cached: f64) -> Price {
    Price { model, input, output, cached, written: 1.0 }
}

const fn anthropic(model: &'static str, input: f64, output: f64) -> Price {
    Price { model, input, output, cached: 0.1, written: 1.25 }
}

const PRICES: [Price; 31] = [
    openai("gpt-4o", 2.5, 10.0, 0.5),
    openai("gpt-4o-mini", 0.15, 0.6, 0.5),
    openai("gpt-4.1", 2.0, 8.0, FULL),
    openai("gpt-4.1-mini", 0.4, 1.6, FULL),
    openai("gpt-4.1-nano", 0.1, 0.4, FULL),
    openai("gpt-5", 1.25, 10.0, FULL),
    openai("gpt-5-mini", 0.25, 2.0, FULL),
    openai("gpt-5-nano", 0.05, 0.4, FULL),
    openai("gpt-5.1", 1.25, 10.0, 0.1),
    openai("gpt-5.2", 1.75, 14.0, 0.1),
    openai("gpt-5.4", 2.5, 15.0, 0.1),
    openai("gpt-5.4-mini", 0.75, 4.5, 0.1),
    openai("gpt-5.4-nano", 0.2, 1.25, 0.1),
    openai("gpt-5.5", 5.0, 30.0, 0.1),
    openai("o3", 2.0, 8.0, FULL),
    openai("o3-mini", 1.1, 4.4, FULL),
    openai("o4-mini", 1.1, 4.4, FULL),
    openai("text-embedding-3-small", 0.02, 0.0, FULL),
    openai("text-embedding-3-large", 0.13, 0.0, FULL),
    anthropic("claude-3-5-haiku", 0.8, 4.0),
    anthropic("claude-3-5-sonnet", 3.0, 15.0),
    anthropic("claude-3-7-sonnet", 3.0, 15.0),
    anthropic("claude-sonnet-4", 3.0, 15.0),
    anthropic("claude-sonnet-4-5", 3.0, 15.0),
    anthropic("claude-haiku-4-5", 1.0, 5.0),
    anthropic("claude-opus-4", 15.0, 75.0),
    anthropic("claude-opus-4-1", 15.0, 75.0),
    anthropic("claude-opus-4-5", 5.0, 25.0),
    anthropic("claude-opus-4-6", 5.0, 25.0),
    anthropic("claude-opus-4-7", 5.0, 25.0),
    anthropic("claude-sonnet-5", 2.0, 10.0),
];

/// Estimates the cost of this usage in US dollars. Returns `None` if the price of the model is unknown.
pub(crate) fn cost(model: &str, usage: &Usage) -> Option<f64> {
    let name = plain_name(model);
    let price = PRICES.iter().find(|price| price.model == name)?;
    let (cached, written) = (usage.cached_input_tokens, usage.cache_write_tokens);
    let fresh = usage.input_tokens.saturating_sub(cached.saturating_add(written));
    #[expect(clippy::cast_precision_loss, reason = "nobody uses so many tokens")]
    let input = fresh as f64 + cached as f64 * price.cached + written as f64 * price.written;
    #[expect(clippy::cast_precision_loss, reason = "nobody uses so many tokens")]
    let output = usage.output_tokens as f64;
    Some((input * price.input + output * price.output) / 1e6)
}

/// Formats a cost for people. Small amounts get more digits.
pub(crate) fn shown(cost: f64) -> String {
    if cost == 0.0 || cost >= 0.01 { format!("${cost:.2}") } else { format!("${cost:.6}") }
}

/// Strips a router's prefix and a date from a model name: `openai/gpt-4o-2024-08-06` becomes `gpt-4o`.
fn plain_name(model: &str) -> &str {
    let name = model.rsplit('/').next().unwrap_or(model);
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

    #[test]
    fn models_are_known_with_and_without_a_date() {
        let usage = Usage { input_tokens: 1_000_000, output_tokens: 100_000, ..Usage::default() };
        for name in ["gpt-4o", "gpt-4o-2024-08-06", "openai/gpt-4o"] {
            assert_eq!(cost(name, &usage), Some(3.5), "{name}");
        }
        assert_eq!(cost("claude-sonnet-4-5-20250929", &usage), Some(4.5));
        assert_eq!(cost("gpt-4o-of-somebody", &usage), None);
        let cached = Usage { cached_input_tokens: 500_000, cache_write_tokens: 100_000, ..usage };
        let expected = (0.4 + 0.05 + 0.125) * 3.0 + 1.5;
        assert!((cost("claude-sonnet-4-5", &cached).expect("a price") - expected).abs() < 1e-9);
    }

    #[test]
    fn every_model_has_one_price() {
        for price in &PRICES {
            assert_eq!(PRICES.iter().filter(|other| other.model == price.model).count(), 1, "{}", price.model);
            assert_eq!(plain_name(price.model), price.model);
        }
    }
}
