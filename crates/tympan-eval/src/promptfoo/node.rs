//! Values of a configuration, each with its position.

use std::sync::Arc;

use serde_json::{Number, Value as Json};
use tympan_core::format::definition::Syntax;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::text::source::SourceFile;
use tympan_core::{JsonMap, Kind, Result};

/// The file and the line of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) file: Arc<str>,
    pub(super) line: usize,
}

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) place: Place,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The position of the key.
    pub(super) place: Place,
    pub(super) value: Node,
}

impl Node {
    /// Parses a YAML or JSON document.
    ///
    /// # Errors
    /// Returns an error with the mistakes of the document.
    pub(super) fn parse(source: &SourceFile, syntax: Syntax) -> Result<Self> {
        let outline = Outline::parse(source, syntax, Kind::InvalidTests)?;
        let file = Arc::from(source.name());
        let null = Self { value: Value::Null, place: Place { file: Arc::clone(&file), line: 1 } };
        Ok(outline.get(&[]).map_or(null, |root| Self::of(root, source, &file)))
    }

    fn of(field: Field<'_>, source: &SourceFile, file: &Arc<str>) -> Self {
        let place = |offset| Place { file: Arc::clone(file), line: source.line_column(offset).line };
        let list: Vec<_> = field.items().map(|item| Self::of(item, source, file)).collect();
        let map = field.entries().map(|entry| Entry {
            key: entry.key.unwrap_or_default().to_owned(),
            place: place(entry.key_span.start),
            value: Self::of(entry, source, file),
        });
        let map: Vec<_> = map.collect();
        let value = match field.text() {
            Some(text) => Value::Text(text.to_owned()),
            None if !list.is_empty() => Value::List(list),
            None if !map.is_empty() => Value::Map(map),
            None => match field.to_json() {
                Json::Bool(value) => Value::Bool(value),
                Json::Number(number) => Value::Number(number),
                Json::Array(_) => Value::List(Vec::new()),
                Json::Object(_) => Value::Map(Vec::new()),
                _ => Value::Null,
            },
        };
        Self { value, place: place(field.span.start) }
    }

    /// Creates a text.
    pub(super) fn of_text(text: impl Into<String>, place: Place) -> Self {
        Self { value: Value::Text(text.into()), place }
    }

    /// Creates a map.
    pub(super) fn of_map(entries: impl IntoIterator<Item = (String, Self)>, place: Place) -> Self {
        let entry = |(key, value)| Entry { key, place: place.clone(), value };
        Self { value: Value::Map(entries.into_iter().map(entry).collect()), place: place.clone() }
    }

    /// Returns the value of a key, if this is a map that has it. A null counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|entry| entry.key == key).map(|entry| &entry.value).filter(|node| !node.is_null())
    }

    /// Sets the value of a key, if this is a map.
    pub(super) fn set(&mut self, key: &str, value: Self) {
        let Value::Map(entries) = &mut self.value else { return };
        match entries.iter_mut().find(|entry| entry.key == key) {
            Some(entry) => entry.value = value,
            None => entries.push(Entry { key: key.to_owned(), place: value.place.clone(), value }),
        }
    }

    /// Returns the number of values in this one.
    pub(super) fn size(&self) -> usize {
        let items = self.items().iter().map(Self::size);
        1 + items.chain(self.entries().iter().map(|entry| entry.value.size())).sum::<usize>()
    }

    pub(super) fn entries(&self) -> &[Entry] {
        if let Value::Map(entries) = &self.value { entries } else { &[] }
    }

    pub(super) fn items(&self) -> &[Self] {
        if let Value::List(items) = &self.value { items } else { &[] }
    }

    /// Returns the items of a list, or the value itself.
    pub(super) fn one_or_many(&self) -> &[Self] {
        if let Value::List(items) = &self.value { items } else { std::slice::from_ref(self) }
    }

    pub(super) fn text(&self) -> Option<&str> {
        if let Value::Text(text) = &self.value { Some(text) } else { None }
    }

    pub(super) fn number(&self) -> Option<f64> {
        if let Value::Number(number) = &self.value { number.as_f64() } else { None }
    }

    pub(super) fn is_null(&self) -> bool {
        self.value == Value::Null
    }

    pub(super) fn is_true(&self) -> bool {
        self.value == Value::Bool(true)
    }

    pub(super) fn is_map(&self) -> bool {
        matches!(self.value, Value::Map(_))
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.value, Value::List(_))
    }

    /// Returns the value as JSON.
    pub(super) fn json(&self) -> Json {
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => items.iter().map(Self::json).collect(),
            Value::Map(entries) => {
                let map: JsonMap = entries.iter().map(|entry| (entry.key.clone(), entry.value.json())).collect();
                Json::Object(map)
            }
        }
    }

    /// Returns the text that JavaScript converts the value to, if it is one that people write in templates: a text, a
    /// boolean, an integer, a short decimal number, or a list of these.
    pub(super) fn script_text(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Number(number) => script_number(number),
            Value::List(items) => {
                let texts: Option<Vec<_>> = items.iter().map(Self::script_text).collect();
                Some(texts?.join(","))
            }
            Value::Null | Value::Map(_) => None,
        }
    }

    /// Describes the type of the value.
    pub(super) fn describe(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}

/// Numbers of this size and above are written with an exponent by JavaScript, or lose digits.
const MAX_SAFE: f64 = 9_007_199_254_740_992.0;

/// Returns the text of a number in JavaScript, unless it is written with an exponent.
fn script_number(number: &Number) -> Option<String> {
    let value = number.as_f64().filter(|value| value.abs() < MAX_SAFE)?;
    match value {
        0.0 => Some("0".to_owned()),
        _ if value.abs() < 1e-6 => None,
        _ => Some(value.to_string()),
    }
}

impl Node {
    /// Parses a line of JSON. Everything in it has the same position.
    ///
    /// # Errors
    /// Returns the reason if the line is not JSON.
    pub(super) fn parse_json_line(line: &str, place: &Place) -> serde_json::Result<Self> {
        serde_json::from_str(line).map(|json| Self::of_json(json, place))
    }

    fn of_json(json: Json, place: &Place) -> Self {
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => Value::Number(number),
            Json::String(text) => Value::Text(text),
            Json::Array(items) => Value::List(items.into_iter().map(|item| Self::of_json(item, place)).collect()),
            Json::Object(map) => {
                let entry = |(key, value)| Entry { key, place: place.clone(), value: Self::of_json(value, place) };
                Value::Map(map.into_iter().map(entry).collect())
            }
        };
        Self { value, place: place.clone() }
    }
}
