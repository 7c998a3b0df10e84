//! `[models]` in `tympan.toml`: prices and context windows that a project adds or overrides.
//!
//! They only affect estimates and warnings, so a project may set them.

use toml::de::{DeTable, DeValue};
use tympan_core::text::source::SourceFile;
use tympan_core::wire::catalog::{Catalog, ModelOverride};

use crate::settings::{Section, Settings, SettingsError, syntax_error};

impl Settings {
    /// Reads only `[models]` of a settings file, for commands that need nothing else of it. Mistakes in other sections
    /// are ignored.
    ///
    /// # Errors
    /// Returns every mistake in the section, or the syntax error of the file.
    pub fn parse_models(source: &SourceFile) -> Result<Catalog, Vec<SettingsError>> {
        let table = DeTable::parse(source.text()).map_err(|error| vec![syntax_error(&error)])?;
        let mut errors = Vec::new();
        let models = Section::new("", table.get_ref(), &mut errors).table("models");
        let catalog = models.map_or_else(Catalog::default, |table| read(table, &mut errors));
        errors.sort_by_key(|error| error.span.start);
        if errors.is_empty() { Ok(catalog) } else { Err(errors) }
    }
}

/// Reads the section.
pub(crate) fn read(table: &DeTable<'_>, errors: &mut Vec<SettingsError>) -> Catalog {
    let mut catalog = Catalog::default();
    for (name, value) in table.iter() {
        let (model, span) = (name.get_ref().as_ref(), name.span().into());
        let mut section = Section::new("models", table, errors);
        if model.trim().is_empty() {
            section.error(span, "`models`: the name of a model is empty", None);
            continue;
        }
        let Some(fields) = value.get_ref().as_table() else {
            section.expected(model, value.span().into(), "a table", value.get_ref());
            continue;
        };
        let before = errors.len();
        let mut section = Section::new(format!("models.{model:?}"), fields, errors);
        let row = section.model_row();
        section.finish();
        let is_valid = errors.len() == before;
        catalog.set(model, row);
        // A price that is known only in part would be ignored.
        let is_priced = row.input.or(row.output).or(row.cached_input).or(row.cache_write).is_some();
        if is_valid && is_priced && catalog.get(model).price.is_none() {
            let missing = if row.input.is_none() { "input" } else { "output" };
            let help = format!("set both `input` and `output`, in US dollars per million tokens, for `{model}`");
            let mut section = Section::new("models", table, errors);
            section.error(span, format!("missing `{missing}` in `[models.{model:?}]`"), Some(help));
        }
    }
    catalog
}

impl Section<'_, '_> {
    fn model_row(&mut self) -> ModelOverride {
        ModelOverride {
            input: self.price("input"),
            output: self.price("output"),
            cached_input: self.price("cached-input"),
            cache_write: self.price("cache-write"),
            context: self.tokens("context"),
            max_output: self.tokens("max-output"),
        }
    }

    /// Returns a price in US dollars per million tokens.
    fn price(&mut self, key: &'static str) -> Option<f64> {
        let is_price = |price: &f64| price.is_finite() && *price >= 0.0;
        self.number(key, "a price in US dollars per million tokens", |text, radix| match radix {
            10 => text.parse().ok().filter(is_price),
            _ => None,
        })
    }

    /// Returns a number of tokens.
    fn tokens(&mut self, key: &'static str) -> Option<u64> {
        let parse = |text: &str, radix| u64::from_str_radix(text, radix).ok().filter(|tokens| *tokens > 0);
        self.number(key, "a positive number of tokens", parse)
    }

    fn number<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        parse: impl FnOnce(&str, u32) -> Option<T>,
    ) -> Option<T> {
        let (value, span) = self.get(key)?;
        let (text, radix) = match value {
            DeValue::Integer(number) => (number.as_str(), number.radix()),
            DeValue::Float(number) => (number.as_str(), 10),
            _ => {
                self.expected(key, span, expected, value);
                return None;
            }
        };
        let number = parse(text, radix);
        if number.is_none() {
            self.error(span, format!("`{key}`: expected {expected}, found `{text}`"), None);
        }
        number
    }
}
