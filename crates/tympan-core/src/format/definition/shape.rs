//! Checks that a document has the shape that the schema defines.
//!
//! The rules come from the schema alone and are not repeated here. Only the keywords that the schema uses are
//! supported; a test fails if it starts to use another one.

use std::fmt;

use serde_json::Value as Json;

use super::super::report::{Report, error};
use super::super::yaml::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, guess, short};
use crate::error::Kind;
use crate::text::source::Span;

/// A schema, compiled for fast checks: looking up keywords by name for each value would dominate the running time.
#[derive(Debug, Default)]
pub(super) struct Shape {
    kind: Option<Type>,
    any_of: Vec<Shape>,
    allowed: Vec<String>,
    min_length: usize,
    min_items: usize,
    items: Option<Box<Shape>>,
    required: Vec<String>,
    properties: Vec<(String, Shape)>,
    others: Others,
    refused_name: Option<String>,
    description: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Text,
    Bool,
    List,
    Map,
}

/// The entries that a map may contain besides its properties.
#[derive(Debug, Default)]
enum Others {
    #[default]
    Any,
    None,
    Of(Box<Shape>),
}

impl Shape {
    /// Compiles a schema. The schema must not be recursive: references are expanded in place.
    pub(super) fn new(root: &Json) -> Self {
        Self::of(root, root)
    }

    fn of(schema: &Json, root: &Json) -> Self {
        let reference = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        let schema = reference.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema);
        let texts =
            |key: &str| schema[key].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned);
        let properties = schema["properties"].as_object().into_iter().flatten();
        Self {
            kind: schema["type"].as_str().and_then(Type::from_name),
            any_of: schema["anyOf"].as_array().into_iter().flatten().map(|branch| Self::of(branch, root)).collect(),
            allowed: texts("enum").collect(),
            min_length: schema["minLength"].as_u64().and_then(|least| usize::try_from(least).ok()).unwrap_or_default(),
            min_items: schema["minItems"].as_u64().and_then(|least| usize::try_from(least).ok()).unwrap_or_default(),
            items: schema.get("items").map(|items| Box::new(Self::of(items, root))),
            required: texts("required").collect(),
            properties: properties.map(|(name, property)| (name.clone(), Self::of(property, root))).collect(),
            others: match &schema["additionalProperties"] {
                Json::Bool(false) => Others::None,
                Json::Object(_) => Others::Of(Box::new(Self::of(&schema["additionalProperties"], root))),
                _ => Others::Any,
            },
            refused_name: schema["propertyNames"]["not"]["const"].as_str().map(str::to_owned),
            description: schema["description"].as_str().map(str::to_owned),
        }
    }

    /// Reports everything in a document that does not match.
    pub(super) fn check(&self, root: &Node<'_>, report: &mut Report) {
        Checker { report }.check(self, root, &Path::ROOT);
    }

    fn fits_type(&self, node: &Node<'_>) -> bool {
        match self.kind {
            None => true,
            Some(Type::Text) => matches!(node.value, Value::String(_)),
            Some(Type::Bool) => matches!(node.value, Value::Bool(_)),
            Some(Type::List) => matches!(node.value, Value::List(_)),
            Some(Type::Map) => matches!(node.value, Value::Map(_)),
        }
    }

    fn property(&self, name: &str) -> Option<&Self> {
        self.properties.iter().find(|(key, _)| key == name).map(|(_, shape)| shape)
    }
}

impl Type {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::Text,
            "boolean" => Self::Bool,
            "array" => Self::List,
            "object" => Self::Map,
            _ => return None,
        })
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Bool => "true or false",
            Self::List => "a list",
            Self::Map => "a map",
        }
    }
}

/// The path of a value, such as `variables.name.type[1]`. It is formatted only for messages.
struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    const ROOT: Self = Self { parent: None, step: Step::Root };

    fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(parent) = self.parent else { return Ok(()) };
        parent.fmt(f)?;
        match self.step {
            Step::Root => Ok(()),
            Step::Key(key) if parent.parent.is_none() => f.write_str(&short(key)),
            Step::Key(key) => write!(f, ".{}", short(key)),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

struct Checker<'a> {
    report: &'a mut Report,
}

impl Checker<'_> {
    fn check(&mut self, shape: &Shape, node: &Node<'_>, path: &Path<'_>) {
        if !shape.any_of.is_empty() {
            return self.check_any(&shape.any_of, node, path);
        }
        if !shape.fits_type(node) {
            let expected = shape.kind.map(Type::in_words).unwrap_or_default();
            // YAML reads `[string, null]` as a string and nothing, where the name of a type is meant.
            let is_unquoted =
                matches!(node.value, Value::Null) && shape.allowed.iter().any(|allowed| allowed == "null");
            return match is_unquoted {
                true => self.unquoted_null(node, path, expected),
                false => self.wrong(node, path, expected),
            };
        }
        match &node.value {
            Value::String(text) if text.len() < shape.min_length => {
                let finding = invalid(node.span, format_args!("`{path}`: expected a non-empty string"));
                self.report.push(finding.with_help("give it a value"));
            }
            Value::String(text) => self.check_enum(shape, text, node, path),
            Value::List(items) => self.check_list(shape, items, node.span, path),
            Value::Map(entries) => self.check_map(shape, entries, node.span, path),
            _ => {}
        }
    }

    /// Checks a value that may have one of several shapes. The shape whose type matches determines the findings.
    fn check_any(&mut self, branches: &[Shape], node: &Node<'_>, path: &Path<'_>) {
        match branches.iter().find(|branch| branch.fits_type(node)) {
            Some(branch) => self.check(branch, node, path),
            None => {
                let expected: Vec<_> = branches.iter().filter_map(|branch| branch.kind).map(Type::in_words).collect();
                self.wrong(node, path, &expected.join(" or "));
            }
        }
    }

    fn check_enum(&mut self, shape: &Shape, text: &str, node: &Node<'_>, path: &Path<'_>) {
        if shape.allowed.is_empty() || shape.allowed.iter().any(|allowed| allowed == text) {
            return;
        }
        let found = invalid(node.span, format_args!("`{path}`: unexpected value `{}`", node.quote()));
        let found = found.with_help(format!("expected one of {}", quoted(&shape.allowed)));
        self.report.push(match guess(text, shape.allowed.iter().map(String::as_str)) {
            Some(meant) => found.with_fix(meant),
            None => found,
        });
    }

    fn check_list(&mut self, shape: &Shape, items: &[Node<'_>], span: Span, path: &Path<'_>) {
        if items.len() < shape.min_items {
            self.report.push(
                invalid(span, format_args!("`{path}`: expected at least one item, found an empty list"))
                    .with_help("add an item"),
            );
        }
        let Some(inner) = &shape.items else { return };
        for (index, item) in items.iter().enumerate() {
            self.check(inner, item, &Path { parent: Some(path), step: Step::Index(index) });
        }
    }

    fn check_map(&mut self, shape: &Shape, entries: &[Entry<'_>], span: Span, path: &Path<'_>) {
        for required in &shape.required {
            if !entries.iter().any(|entry| entry.key == *required) {
                self.missing(shape.property(required), &path.key(required), span);
            }
        }
        for entry in entries {
            let path = path.key(&entry.key);
            if shape.refused_name.as_deref() == Some(&entry.key) {
                let finding = invalid(entry.key_span, format_args!("`{path}` is a reserved name"));
                self.report.push(finding.with_help("the top-level body is the default variant; rename this one"));
            }
            match (shape.property(&entry.key), &shape.others) {
                (Some(inner), _) => self.check(inner, &entry.value, &path),
                (None, Others::Of(inner)) => self.check(inner, &entry.value, &path),
                (None, Others::None) => self.unknown(shape, entry, &path),
                (None, Others::Any) => {}
            }
        }
    }

    fn missing(&mut self, shape: Option<&Shape>, path: &Path<'_>, span: Span) {
        let finding = invalid(Span::new(span.start, span.start), format_args!("`{path}` is missing"));
        let description = shape.and_then(|shape| shape.description.as_deref());
        let help = description.map(|description| format!("add it: {}", first_lower(description)));
        let allowed = shape.map_or(&[][..], |shape| &shape.allowed);
        self.report.push(match help {
            Some(help) if !allowed.is_empty() => {
                finding.with_help(format!("{help} Expected one of {}", quoted(allowed)))
            }
            Some(help) => finding.with_help(help),
            None => finding,
        });
    }

    fn unknown(&mut self, shape: &Shape, entry: &Entry<'_>, path: &Path<'_>) {
        let known: Vec<_> = shape.properties.iter().map(|(name, _)| name.clone()).collect();
        let finding = invalid(entry.key_span, format_args!("unknown key `{path}`"));
        self.report.push(match guess(&entry.key, known.iter().map(String::as_str)) {
            Some(meant) => finding.with_help(format!("did you mean `{meant}`?")).with_fix(meant),
            None if known.iter().any(|name| name == "metadata") => {
                finding.with_help(format!("known keys: {}; `metadata` accepts any others", quoted(&known)))
            }
            None => finding.with_help(format!("known keys: {}", quoted(&known))),
        });
    }

    fn unquoted_null(&mut self, node: &Node<'_>, path: &Path<'_>, expected: &str) {
        let finding = invalid(node.span, format_args!("`{path}`: expected {expected}, found {}", node.describe()));
        self.report.push(finding.with_help("put it in quotes: `\"null\"`"));
    }

    fn wrong(&mut self, node: &Node<'_>, path: &Path<'_>, expected: &str) {
        let what = if path.parent.is_none() { "top level".to_owned() } else { format!("`{path}`") };
        let finding = invalid(node.span, format_args!("{what}: expected {expected}, found {}", node.describe()));
        self.report.push(match node.value {
            Value::Null => finding.with_help("give it a value, or remove it"),
            Value::Number(_) | Value::Bool(_) if expected == "a string" => finding.with_help("put it in quotes"),
            _ => finding,
        });
    }
}

fn invalid(span: Span, details: impl fmt::Display) -> Diagnostic {
    error(Kind::InvalidDefinition, span, details)
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn first_lower(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keywords that are informational only.
    const NOTES: [&str; 6] = ["$schema", "$id", "title", "description", "default", "$defs"];
    const KNOWN: [&str; 13] = [
        "minLength",
        "$ref",
        "anyOf",
        "type",
        "enum",
        "items",
        "minItems",
        "required",
        "properties",
        "additionalProperties",
        "propertyNames",
        "not",
        "const",
    ];

    fn keywords(schema: &Json, found: &mut Vec<String>) {
        let Json::Object(map) = schema else { return };
        for (key, value) in map {
            found.push(key.clone());
            match (key.as_str(), value) {
                ("properties" | "$defs", Json::Object(named)) => {
                    named.values().for_each(|schema| keywords(schema, found));
                }
                ("default", _) => {}
                (_, Json::Array(items)) => items.iter().for_each(|schema| keywords(schema, found)),
                _ => keywords(value, found),
            }
        }
    }

    #[test]
    fn every_keyword_of_the_schema_is_known_here() {
        let schema: Json = serde_json::from_str(super::super::SCHEMA).expect("the schema is JSON");
        let mut found = Vec::new();
        keywords(&schema, &mut found);
        found.retain(|keyword| !KNOWN.contains(&keyword.as_str()) && !NOTES.contains(&keyword.as_str()));
        assert_eq!(found, Vec::<String>::new());
    }
}
