//! Takes the fields of a map one by one, so that the remaining ones can be preserved.

use std::borrow::Cow;

use serde_json::Number;

use super::report::{Report, invalid};
use super::yaml::scalar;
use super::yaml::{Entry, Node, Value, into_json_map};
use crate::diagnostic::Diagnostic;
use crate::json::JsonMap;
use crate::text::source::Span;

/// The fields of a map that have not been taken yet.
pub(super) struct Fields<'s> {
    entries: Vec<Entry<'s>>,
    /// The position of the map.
    pub(super) span: Span,
}

impl<'s> Fields<'s> {
    pub(super) fn new(entries: Vec<Entry<'s>>, span: Span) -> Self {
        Self { entries, span }
    }

    /// Returns the fields of a value that has to be a map. Null counts as absent; anything else is reported.
    pub(super) fn of(node: Node<'s>, what: &str, report: &mut Report) -> Option<Self> {
        match node.value {
            Value::Map(entries) => Some(Self::new(entries, node.span)),
            Value::Null => None,
            _ => {
                report.push_about_text(wrong(&node, what, "a map"));
                None
            }
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&Entry<'s>> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn entries(&self) -> &[Entry<'s>] {
        &self.entries
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.key.as_ref())
    }

    pub(super) fn take(&mut self, key: &str) -> Option<Entry<'s>> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Takes a value of any type. Null counts as absent.
    pub(super) fn value(&mut self, key: &str) -> Option<Node<'s>> {
        self.take(key).map(|entry| entry.value).filter(|node| node.value != Value::Null)
    }

    /// Takes a field by its name or by an older name, which is reported.
    pub(super) fn take_renamed(
        &mut self,
        key: &str,
        old: &[&str],
        path: &str,
        report: &mut Report,
    ) -> Option<Entry<'s>> {
        let mut found = self.take(key);
        for name in old {
            if found.is_none()
                && let Some(entry) = self.take(name)
            {
                report.renamed(entry.key_span, &format!("{path}{name}"), &format!("{path}{key}"));
                found = Some(entry);
            }
        }
        found
    }

    pub(super) fn string(&mut self, key: &str, report: &mut Report) -> Option<String> {
        let node = self.value(key)?;
        string(node, key, report)
    }

    pub(super) fn boolean(&mut self, key: &str, report: &mut Report) -> Option<bool> {
        let node = self.value(key)?;
        boolean(&node, key, report)
    }

    /// Returns the remaining fields, in the order in which they were written.
    pub(super) fn rest(self) -> JsonMap {
        into_json_map(self.entries)
    }

    pub(super) fn into_entries(self) -> Vec<Entry<'s>> {
        self.entries
    }
}

/// Reads a string. An unquoted number or boolean is accepted with a warning.
pub(super) fn string(node: Node<'_>, what: &str, report: &mut Report) -> Option<String> {
    let text = match node.value {
        Value::String(text) => return Some(text.into_owned()),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        _ => {
            report.push(wrong(&node, what, "a string"));
            return None;
        }
    };
    report.push(
        Diagnostic::warning(
            "unquoted_text",
            node.span,
            format!("`{what}`: expected a string, but YAML reads this as another type"),
        )
        .with_help("put it in quotes")
        .with_fix(format!("\"{text}\"")),
    );
    Some(text)
}

pub(super) fn boolean(node: &Node<'_>, what: &str, report: &mut Report) -> Option<bool> {
    match &node.value {
        Value::Bool(value) => Some(*value),
        // The value may come from an environment variable, which is always a string.
        Value::String(text) if text == "true" || text == "false" => Some(text == "true"),
        _ => {
            report.push(wrong(node, what, "true or false"));
            None
        }
    }
}

pub(super) fn number(node: &Node<'_>, what: &str, report: &mut Report) -> Option<Number> {
    let found = match &node.value {
        Value::Number(number) => Some(number.clone()),
        // The value may come from an environment variable, which is always a string.
        Value::String(text) => scalar::number(text.trim()),
        _ => None,
    };
    if found.is_none() {
        report.push(wrong(node, what, "a number"));
    }
    found
}

pub(super) fn integer(node: &Node<'_>, what: &str, report: &mut Report) -> Option<i64> {
    let number = number(node, what, report)?;
    let whole = number.as_i64().or_else(|| {
        let value = number.as_f64()?;
        (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64)
    });
    if whole.is_none() {
        report.push(invalid(node.span, format_args!("`{what}`: expected an integer")));
    }
    whole
}

/// Reads a list of strings. A single string counts as a list of one.
pub(super) fn strings(node: Node<'_>, what: &str, report: &mut Report) -> Option<Vec<String>> {
    match node.value {
        Value::List(items) => Some(items.into_iter().filter_map(|item| string(item, what, report)).collect()),
        Value::String(text) => Some(vec![text.into_owned()]),
        _ => {
            report.push(wrong(&node, what, "a list of strings"));
            None
        }
    }
}

/// Returns the text if the value is a string.
pub(super) fn text<'n>(node: &'n Node<'_>) -> Option<&'n str> {
    match &node.value {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Creates a string value at a position, for what a shorthand expands to.
pub(super) fn text_node(text: &'static str, span: Span) -> Node<'static> {
    Node { value: Value::String(Cow::Borrowed(text)), span }
}

/// Creates the diagnostic for a value of the wrong type.
pub(super) fn wrong(node: &Node<'_>, what: &str, expected: &str) -> Diagnostic {
    invalid(node.span, format_args!("`{what}`: expected {expected}, found {}", node.describe()))
}
