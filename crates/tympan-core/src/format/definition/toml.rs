//! Parses TOML into the same tree as YAML, with positions.

use std::borrow::Cow;

use serde_json::Number;
use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, de::Error};

use super::super::yaml::{Entry, MAX_NODES, Node, Problem, Value, too_many};
use crate::text::source::Span;

/// Parses a TOML document.
pub(super) fn parse(text: &str) -> (Option<Node<'_>>, Vec<Problem>) {
    // Check the size before parsing: the number of separators limits how many values there can be.
    let values = text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b'=')).count();
    if values > 4 * MAX_NODES {
        return (None, vec![too_many(Span::default(), "")]);
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    let problems: Vec<_> = errors.iter().map(problem).collect();
    let span = Span::from(table.span());
    // After an error, the recovered table may be incomplete.
    let root = problems.is_empty().then(|| Node { value: map(table.into_inner()), span });
    (root, problems)
}

fn problem(error: &Error) -> Problem {
    let span = error.span().map_or_else(Span::default, Span::from);
    Problem { span, message: error.message().to_owned(), help: None }
}

fn map(table: DeTable<'_>) -> Value<'_> {
    let entries = table.into_iter().map(|(key, value)| {
        let key_span = Span::from(key.span());
        Entry { key: key.into_inner(), key_span, value: node(value) }
    });
    Value::Map(entries.collect())
}

fn list(array: DeArray<'_>) -> Value<'_> {
    Value::List(array.into_iter().map(node).collect())
}

fn node(value: Spanned<DeValue<'_>>) -> Node<'_> {
    let span = Span::from(value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => Value::String(text),
        DeValue::Boolean(value) => Value::Bool(value),
        DeValue::Array(array) => list(array),
        DeValue::Table(table) => map(table),
        // JSON has no dates, so use their text.
        DeValue::Datetime(date) => Value::String(Cow::Owned(date.to_string())),
        DeValue::Integer(integer) => number(i64::from_str_radix(integer.as_str(), integer.radix()), integer.as_str()),
        DeValue::Float(float) => match float.as_str().parse().ok().and_then(Number::from_f64) {
            Some(number) => Value::Number(number),
            None => Value::String(Cow::Owned(float.as_str().to_owned())),
        },
    };
    Node { value, span }
}

/// Converts an integer. One that does not fit in 64 bits becomes a string, as in YAML.
fn number<'s>(parsed: Result<i64, std::num::ParseIntError>, text: &str) -> Value<'s> {
    match parsed {
        Ok(value) => Value::Number(value.into()),
        Err(_) => Value::String(Cow::Owned(text.to_owned())),
    }
}
