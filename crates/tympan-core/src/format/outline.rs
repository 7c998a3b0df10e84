//! The declarations of a prompt file as they are written, with the position of every key and value.
//!
//! A spec says what a prompt declares, and an outline says where. References such as `${env:NAME}` are not resolved.

use serde_json::Value as Json;

use super::definition::{self, Syntax};
use super::yaml::{self, Entry, Node, Value};
use super::{Format, frontmatter};
use crate::error::{Error, Kind, Result};
use crate::text::source::{SourceFile, Span};

/// The keys and values of a prompt file or a test file.
#[derive(Clone, Debug, Default)]
pub struct Outline<'s> {
    root: Option<Node<'s>>,
}

/// A value of a prompt file.
#[derive(Clone, Copy, Debug)]
pub struct Field<'o> {
    /// The key, or `None` for an item of a list.
    pub key: Option<&'o str>,
    /// The position of the key. For an item of a list, that of the item.
    pub key_span: Span,
    /// The position of the value.
    pub span: Span,
    node: &'o Node<'o>,
}

impl<'s> Outline<'s> {
    /// Parses the front matter of a `.prompty` file, a prompt definition, or a test file. The outline of a directive, and
    /// that of a file that does not parse, is empty.
    pub fn new(source: &'s SourceFile, format: Format) -> Self {
        let text = source.text();
        let root = match format {
            Format::Prompty => {
                let split = frontmatter::split(text).ok();
                split
                    .and_then(|split| split.front_matter)
                    .and_then(|span| yaml::parse(source.slice(span), span.start).0)
            }
            Format::Definition(syntax) | Format::Tests(syntax) => definition::read(text, syntax).0,
            Format::Directive => None,
        };
        Self { root }
    }

    /// Parses a YAML, JSON or TOML document of any shape.
    ///
    /// # Errors
    /// Returns an error of this kind if the document does not parse.
    pub fn parse(source: &'s SourceFile, syntax: Syntax, kind: Kind) -> Result<Self> {
        let (root, problems) = definition::read(source.text(), syntax);
        if problems.is_empty() {
            return Ok(Self { root });
        }
        let diagnostics = problems.into_iter().map(|problem| definition::unreadable(kind, problem)).collect();
        Err(Error::from_parser(diagnostics, source, kind))
    }

    /// Creates the outline of a file that has been parsed.
    pub(crate) fn of(root: Option<Node<'s>>) -> Self {
        Self { root }
    }

    /// Returns the value at a path of keys, such as `["model", "provider"]`.
    pub fn get(&self, path: &[&str]) -> Option<Field<'_>> {
        let root = self.root.as_ref()?;
        let mut field = Field { key: None, key_span: root.span, span: root.span, node: root };
        for key in path {
            field = field.get(key)?;
        }
        Some(field)
    }
}

impl<'o> Field<'o> {
    fn of_entry(entry: &'o Entry<'o>) -> Self {
        Self { key: Some(&entry.key), key_span: entry.key_span, span: entry.value.span, node: &entry.value }
    }

    /// Returns the value of a key, if this is a map.
    pub fn get(self, key: &str) -> Option<Self> {
        self.entries().find(|entry| entry.key == Some(key))
    }

    /// Returns the entries, if this is a map.
    pub fn entries(self) -> impl Iterator<Item = Self> {
        let entries: &'o [Entry<'o>] = if let Value::Map(entries) = &self.node.value { entries } else { &[] };
        entries.iter().map(Self::of_entry)
    }

    /// Returns the items, if this is a list.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let items: &'o [Node<'o>] = if let Value::List(items) = &self.node.value { items } else { &[] };
        items.iter().map(|node| Self { key: None, key_span: node.span, span: node.span, node })
    }

    /// Returns the text, if this is a string.
    pub fn text(self) -> Option<&'o str> {
        if let Value::String(text) = &self.node.value { Some(text) } else { None }
    }

    /// Returns the value as JSON.
    pub fn to_json(self) -> Json {
        self.node.clone().into_json()
    }

    /// Returns the declarations in a list or map, with their names: the items that have a `name`, or the entries.
    pub fn declarations(self) -> impl Iterator<Item = (&'o str, Self)> {
        // The map of a JSON Schema has its declarations one level deeper.
        let nested =
            self.get("properties").filter(|nested| matches!(nested.node.value, Value::List(_) | Value::Map(_)));
        [Some(self), nested].into_iter().flatten().flat_map(|section| {
            let items = section.items().filter_map(|item| Some((item.get("name")?.text()?, item)));
            items.chain(section.entries().filter_map(|entry| Some((entry.key?, entry))))
        })
    }
}
