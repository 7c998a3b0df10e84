//! Checks that a document has the shape that a schema defines.
//!
//! The rules come from the schemas alone and are not repeated here. Only the keywords that our schemas use are
//! supported; a test fails if one of them starts to use another one.

use std::fmt;

use serde_json::Value as Json;

use super::report::{Report, error};
use super::yaml::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, guess, short};
use crate::error::Kind;
use crate::spec::test_suite::Fraction;
use crate::text::source::Span;

/// A schema, compiled for fast checks: looking up keywords by name for each value would dominate the running time.
#[derive(Debug, Default)]
pub(super) struct Shape {
    kind: Option<Type>,
    any_of: Vec<Shape>,
    allowed: Vec<String>,
    /// Whether a text has to be a percentage, which is the only format that our schemas have.
    is_percentage: bool,
    min_length: usize,
    min_items: usize,
    /// The least and the greatest number.
    bounds: (Option<f64>, Option<f64>),
    /// The least and the greatest number of entries.
    sizes: (usize, Option<usize>),
    items: Option<Box<Shape>>,
    required: Vec<String>,
    properties: Vec<(String, Shape)>,
    others: Others,
    refused_name: Option<String>,
    description: Option<String>,
}

/// The bounds of a share.
const SHARE: (Option<f64>, Option<f64>) = (Some(0.0), Some(1.0));

/// A schema, and the kind of error that documents have if they do not match it.
pub(super) struct DocumentShape {
    shape: Shape,
    kind: Kind,
}

impl DocumentShape {
    /// Compiles a schema, which is part of this crate. The schema must not be recursive: references are expanded in place.
    pub(super) fn new(schema: &str, kind: Kind) -> Self {
        let schema: Json = serde_json::from_str(schema).expect("the schema in the source is JSON");
        Self { shape: Shape::of(&schema, &schema), kind }
    }

    /// Reports everything in a document that does not match.
    pub(super) fn check(&self, root: &Node<'_>, report: &mut Report) {
        self.check_value(&self.shape, root, "", report);
    }

    /// Reports everything that does not match in the value of a key, which is a document, or the value of one of its
    /// properties if that is a list.
    pub(super) fn check_embedded(&self, key: &str, property: &str, value: &Node<'_>, report: &mut Report) {
        match (&value.value, self.shape.property(property)) {
            (Value::List(_), Some(list)) => self.check_value(list, value, key, report),
            (Value::Map(_), _) => self.check_value(&self.shape, value, key, report),
            _ => Checker { report, kind: self.kind }.wrong(None, value, &Path::root(key), "a list or a map"),
        }
    }

    fn check_value(&self, shape: &Shape, node: &Node<'_>, name: &str, report: &mut Report) {
        Checker { report, kind: self.kind }.check(shape, node, &Path::root(name));
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Type {
    Text,
    Bool,
    Integer,
    Number,
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
    fn of(schema: &Json, root: &Json) -> Self {
        // A description beside a reference says more than that of its target.
        let description = schema["description"].as_str();
        let reference = schema["$ref"].as_str().and_then(|target| target.strip_prefix('#'));
        let schema = reference.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema);
        let texts =
            |key: &str| schema[key].as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned);
        let size = |key: &str| schema[key].as_u64().and_then(|size| usize::try_from(size).ok());
        let properties = schema["properties"].as_object().into_iter().flatten();
        Self {
            kind: schema["type"].as_str().and_then(Type::from_name),
            any_of: schema["anyOf"].as_array().into_iter().flatten().map(|branch| Self::of(branch, root)).collect(),
            allowed: texts("enum").collect(),
            is_percentage: schema["format"] == "percentage",
            min_length: size("minLength").unwrap_or_default(),
            min_items: size("minItems").unwrap_or_default(),
            bounds: (schema["minimum"].as_f64(), schema["maximum"].as_f64()),
            sizes: (size("minProperties").unwrap_or_default(), size("maxProperties")),
            items: schema.get("items").map(|items| Box::new(Self::of(items, root))),
            required: texts("required").collect(),
            properties: properties.map(|(name, property)| (name.clone(), Self::of(property, root))).collect(),
            others: match &schema["additionalProperties"] {
                Json::Bool(false) => Others::None,
                Json::Object(_) => Others::Of(Box::new(Self::of(&schema["additionalProperties"], root))),
                _ => Others::Any,
            },
            refused_name: schema["propertyNames"]["not"]["const"].as_str().map(str::to_owned),
            description: description.or(schema["description"].as_str()).map(str::to_owned),
        }
    }

    fn fits_type(&self, node: &Node<'_>) -> bool {
        match self.kind {
            None => true,
            Some(Type::Text) => matches!(node.value, Value::String(_)),
            Some(Type::Bool) => matches!(node.value, Value::Bool(_)),
            Some(Type::Integer) => matches!(&node.value, Value::Number(number) if !number.is_f64()),
            Some(Type::Number) => matches!(node.value, Value::Number(_)),
            Some(Type::List) => matches!(node.value, Value::List(_)),
            Some(Type::Map) => matches!(node.value, Value::Map(_)),
        }
    }

    fn property(&self, name: &str) -> Option<&Self> {
        self.properties.iter().find(|(key, _)| key == name).map(|(_, shape)| shape)
    }

    /// Returns whether a map of this shape can have a key.
    fn has_key(&self, name: &str) -> bool {
        self.property(name).is_some() || self.any_of.iter().any(|branch| branch.has_key(name))
    }

    /// Returns the names of the properties.
    fn names(&self) -> Vec<String> {
        self.properties.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Returns the properties whose values can have a key.
    fn owners(&self, key: &str) -> Vec<String> {
        self.properties.iter().filter(|(_, shape)| shape.has_key(key)).map(|(name, _)| name.clone()).collect()
    }
}

impl Type {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "string" => Self::Text,
            "boolean" => Self::Bool,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "array" => Self::List,
            "object" => Self::Map,
            _ => return None,
        })
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Text => "a string",
            Self::Bool => "true or false",
            Self::Integer => "an integer",
            Self::Number => "a number",
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
    /// The key of the document in its file, or nothing if it is the whole file.
    Root(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Path<'a> {
    fn root(name: &'a str) -> Self {
        Self { parent: None, step: Step::Root(name) }
    }

    fn is_empty(&self) -> bool {
        matches!(self.step, Step::Root(""))
    }

    fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root(name) => f.write_str(name),
            Step::Key(key) if self.parent.is_none_or(Path::is_empty) => f.write_str(&short(key)),
            Step::Key(key) => write!(f, ".{}", short(key)),
            Step::Index(index) => write!(f, "[{index}]"),
        }
    }
}

struct Checker<'a> {
    report: &'a mut Report,
    kind: Kind,
}

impl Checker<'_> {
    fn invalid(&self, span: Span, details: impl fmt::Display) -> Diagnostic {
        error(self.kind, span, details)
    }

    fn check(&mut self, shape: &Shape, node: &Node<'_>, path: &Path<'_>) {
        if !shape.any_of.is_empty() {
            return self.check_any(shape, node, path);
        }
        if !shape.fits_type(node) {
            let expected = shape.kind.map(Type::in_words).unwrap_or_default();
            // YAML reads `[string, null]` as a string and nothing, where the name of a type is meant.
            let is_unquoted =
                matches!(node.value, Value::Null) && shape.allowed.iter().any(|allowed| allowed == "null");
            return match is_unquoted {
                true => self.unquoted_null(node, path, expected),
                false => self.wrong(Some(shape), node, path, expected),
            };
        }
        match &node.value {
            Value::String(text) if text.len() < shape.min_length => {
                let finding = self.invalid(node.span, format_args!("`{path}`: expected a non-empty string"));
                self.report.push(finding.with_help("give it a value"));
            }
            Value::String(text) => self.check_enum(shape, "", text, node, path),
            Value::Number(number) => self.check_number(shape, number.as_f64().unwrap_or_default(), node, path),
            Value::List(items) => self.check_list(shape, items, node.span, path),
            Value::Map(entries) => self.check_map(shape, entries, node.span, path),
            _ => {}
        }
    }

    /// Checks a value that may have one of several shapes. The shape whose type matches determines the findings.
    fn check_any(&mut self, shape: &Shape, node: &Node<'_>, path: &Path<'_>) {
        let others = |matching: Option<usize>| {
            let others = shape.any_of.iter().enumerate().filter(|(index, _)| Some(*index) != matching);
            others.filter_map(|(_, branch)| branch.kind).map(Type::in_words).collect::<Vec<_>>().join(" or ")
        };
        let found = shape.any_of.iter().enumerate().find(|(_, branch)| branch.fits_type(node));
        match (found, &node.value) {
            (Some((_, branch)), Value::String(text)) if branch.is_percentage => {
                self.check_percentage(shape, text, node, path);
            }
            (Some((index, branch)), Value::String(text)) if !branch.allowed.is_empty() => {
                self.check_enum(branch, &format!(", or {}", others(Some(index))), text, node, path);
            }
            (Some((_, branch)), _) => self.check(branch, node, path),
            (None, _) => self.wrong(None, node, path, &others(None)),
        }
    }

    /// Checks a text that has to be a percentage. The description of the shape says what is expected.
    fn check_percentage(&mut self, shape: &Shape, text: &str, node: &Node<'_>, path: &Path<'_>) {
        if Fraction::from_percentage(text).is_some() {
            return;
        }
        let expected = shape.description.as_deref().unwrap_or_default();
        let expected = first_lower(expected.strip_suffix('.').unwrap_or(expected));
        let message = format_args!("`{path}`: expected {expected}, found `{}`", short(node.quote()));
        self.report.push(self.invalid(node.span, message));
    }

    /// Checks a text that may have to be one of several. `others` says what else the value can be.
    fn check_enum(&mut self, shape: &Shape, others: &str, text: &str, node: &Node<'_>, path: &Path<'_>) {
        if shape.allowed.is_empty() || shape.allowed.iter().any(|allowed| allowed == text) {
            return;
        }
        let found = self.invalid(node.span, format_args!("`{path}`: unexpected value `{}`", node.quote()));
        let one_of = if shape.allowed.len() > 1 { "one of " } else { "" };
        let expected = format!("expected {one_of}{}{others}", quoted(&shape.allowed));
        self.report.push(match guess(text, shape.allowed.iter().map(String::as_str)) {
            Some(meant) => {
                let help = format!("did you mean `{meant}`? {expected}");
                found.with_help(help).with_fix(written(meant, text, node.span))
            }
            None => found.with_help(expected),
        });
    }

    fn check_number(&mut self, shape: &Shape, number: f64, node: &Node<'_>, path: &Path<'_>) {
        let (least, greatest) = shape.bounds;
        if least.is_some_and(|least| number < least) || greatest.is_some_and(|greatest| number > greatest) {
            let expected = match (least, greatest) {
                (Some(least), Some(greatest)) => format!("a number from {least} to {greatest}"),
                (Some(least), None) => format!("at least {least}"),
                (_, greatest) => format!("at most {}", greatest.unwrap_or_default()),
            };
            let finding = self.invalid(node.span, format_args!("`{path}`: expected {expected}, found {number}"));
            let is_percentage = shape.bounds == SHARE && number > 1.0 && number <= 100.0;
            self.report.push(match is_percentage {
                true => finding.with_help(format!("write {number} % as {}", number / 100.0)),
                false => finding,
            });
        }
    }

    fn check_list(&mut self, shape: &Shape, items: &[Node<'_>], span: Span, path: &Path<'_>) {
        if items.len() < shape.min_items {
            self.report.push(
                self.invalid(span, format_args!("`{path}`: expected at least one item, found an empty list"))
                    .with_help("add an item"),
            );
        }
        let Some(inner) = &shape.items else { return };
        for (index, item) in items.iter().enumerate() {
            self.check(inner, item, &Path { parent: Some(path), step: Step::Index(index) });
        }
    }

    fn check_map(&mut self, shape: &Shape, entries: &[Entry<'_>], span: Span, path: &Path<'_>) {
        if let Some((owner, inner)) = misplaced(shape, entries) {
            return self.beside(owner, inner, path);
        }
        self.check_size(shape, entries, span, path);
        for required in &shape.required {
            if !entries.iter().any(|entry| entry.key == *required) {
                self.missing(shape.property(required), &path.key(required), span);
            }
        }
        for entry in entries {
            let path = path.key(&entry.key);
            if shape.refused_name.as_deref() == Some(&entry.key) {
                let finding = self.invalid(entry.key_span, format_args!("`{path}` is a reserved name"));
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

    /// Checks the number of keys. Unknown keys have findings of their own, so only known ones can be too many.
    fn check_size(&mut self, shape: &Shape, entries: &[Entry<'_>], span: Span, path: &Path<'_>) {
        let (least, greatest) = shape.sizes;
        if entries.len() < least {
            let finding = self.invalid(span, format_args!("`{path}`: expected a key, found an empty map"));
            return self.report.push(finding.with_help(format!("known keys: {}", quoted(&shape.names()))));
        }
        let known: Vec<_> = entries.iter().filter(|entry| shape.property(&entry.key).is_some()).collect();
        if let Some(second) = greatest.and_then(|greatest| known.get(greatest)) {
            let keys: Vec<_> = known.iter().map(|entry| entry.key.to_string()).collect();
            let message = format_args!("`{path}`: expected one key, found {}: {}", keys.len(), quoted(&keys));
            let finding = self.invalid(second.key_span, message);
            self.report.push(finding.with_help("write a separate item of the list for each key"));
        }
    }

    fn beside(&mut self, owner: &Entry<'_>, inner: &Entry<'_>, path: &Path<'_>) {
        let path = path.key(&owner.key);
        let message = format_args!("`{path}` has no value, and `{}` is beside it", inner.key);
        let help = format!("`{}` is a key of `{}`: write it one level deeper", inner.key, owner.key);
        self.report.push(self.invalid(inner.key_span, message).with_help(help));
    }

    fn missing(&mut self, shape: Option<&Shape>, path: &Path<'_>, span: Span) {
        let finding = self.invalid(Span::new(span.start, span.start), format_args!("`{path}` is missing"));
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
        let known = shape.names();
        let finding = self.invalid(entry.key_span, format_args!("unknown key `{path}`"));
        let owners = shape.owners(&entry.key);
        self.report.push(match guess(&entry.key, known.iter().map(String::as_str)) {
            Some(meant) => {
                let fix = written(meant, &entry.key, entry.key_span);
                finding.with_help(format!("did you mean `{meant}`?")).with_fix(fix)
            }
            None if !owners.is_empty() => {
                let (key, first) = (&entry.key, &owners[0]);
                let owners = quoted(&owners);
                finding.with_help(format!("`{key}` is a key of {owners}: write `{first}: {{{key}: …}}`"))
            }
            None if known.iter().any(|name| name == "metadata") => {
                finding.with_help(format!("known keys: {}; `metadata` accepts any others", quoted(&known)))
            }
            None => finding.with_help(format!("known keys: {}", quoted(&known))),
        });
    }

    fn unquoted_null(&mut self, node: &Node<'_>, path: &Path<'_>, expected: &str) {
        let finding = self.invalid(node.span, format_args!("`{path}`: expected {expected}, found {}", node.describe()));
        self.report.push(finding.with_help("put it in quotes: `\"null\"`"));
    }

    /// Reports a value of the wrong type. The shape is given if there is only one that the value can have.
    fn wrong(&mut self, shape: Option<&Shape>, node: &Node<'_>, path: &Path<'_>, expected: &str) {
        let what = if path.is_empty() { "top level".to_owned() } else { format!("`{path}`") };
        let found = match &node.value {
            Value::Number(number) if number.is_f64() && expected == Type::Integer.in_words() => number.to_string(),
            // A number that JSON does not have is a text: `.nan`, or one with too many digits.
            Value::String(text) if is_other_number(text) => format!("`{}`", short(node.quote())),
            _ => node.describe().to_owned(),
        };
        let finding = self.invalid(node.span, format_args!("{what}: expected {expected}, found {found}"));
        if let Some(number) = shape.and_then(|shape| number_in(shape, node)) {
            return self.report.push(finding.with_help(format!("write it as a number: {number}")).with_fix(number));
        }
        let list = shape.and_then(list_in).filter(|_| path.is_empty());
        self.report.push(match (&node.value, shape.and_then(|shape| shape.kind), list) {
            (Value::Null, _, Some(key)) => finding.with_help(format!("write `{key}` and a list")),
            (Value::Null, ..) => finding.with_help("give it a value, or remove it"),
            (Value::Number(_) | Value::Bool(_), Some(Type::Text), _) => finding.with_help("put it in quotes"),
            (Value::String(text), Some(Type::Bool), _) => match boolean_in(text) {
                Some(meant) => finding.with_help(format!("write `{meant}`")).with_fix(meant),
                None => finding,
            },
            (Value::Map(_), Some(Type::List), _) => {
                finding.with_help("write a list; in YAML, each item starts with `- `")
            }
            (Value::List(_), Some(Type::Map), Some(key)) => {
                finding.with_help(format!("the list is the value of `{key}`"))
            }
            _ => finding,
        });
    }
}

/// Returns an entry without a value and the entry after it, if that one belongs to the value of the first one. In YAML,
/// this is the result of a line that is not indented far enough.
fn misplaced<'n, 's>(shape: &Shape, entries: &'n [Entry<'s>]) -> Option<(&'n Entry<'s>, &'n Entry<'s>)> {
    if !matches!(shape.others, Others::None) {
        return None;
    }
    let pair = entries.windows(2).find(|pair| {
        let inner = shape.property(&pair[0].key);
        matches!(pair[0].value.value, Value::Null)
            && shape.property(&pair[1].key).is_none()
            && inner.is_some_and(|inner| inner.has_key(&pair[1].key))
    })?;
    Some((&pair[0], &pair[1]))
}

/// Returns the number that a text means where a number is expected, such as 0.8 for `80%`.
fn number_in(shape: &Shape, node: &Node<'_>) -> Option<String> {
    let (Some(Type::Integer | Type::Number), Value::String(text)) = (shape.kind, &node.value) else { return None };
    let number = match text.strip_suffix('%') {
        Some(percent) if shape.bounds == SHARE => percent.trim().parse::<f64>().ok()? / 100.0,
        _ => text.trim().parse().ok()?,
    };
    let (least, greatest) = shape.bounds;
    let fits = least.is_none_or(|least| number >= least) && greatest.is_none_or(|greatest| number <= greatest);
    let is_integer = number.fract() == 0.0;
    (number.is_finite() && fits && (is_integer || shape.kind == Some(Type::Number))).then(|| number.to_string())
}

/// Returns whether a text is a number in YAML that JSON does not have.
fn is_other_number(text: &str) -> bool {
    let plain = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_too_long = plain.len() > 15 && plain.bytes().all(|byte| byte.is_ascii_digit());
    is_too_long || matches!(plain.to_ascii_lowercase().as_str(), ".nan" | ".inf")
}

/// Returns the value that a text has in YAML 1.1, and in the mind of many authors.
fn boolean_in(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "on" | "true" => Some("true"),
        "no" | "off" | "false" => Some("false"),
        _ => None,
    }
}

/// Returns a word in quotes if the text at a position has quotes, which are necessary in JSON.
fn written(word: &str, text: &str, span: Span) -> String {
    if span.range().len() == text.len() { word.to_owned() } else { format!("\"{word}\"") }
}

/// Returns the only key that a map needs, if its value is a list.
fn list_in(shape: &Shape) -> Option<&str> {
    let [key] = &shape.required[..] else { return None };
    (shape.property(key)?.kind == Some(Type::List)).then_some(key)
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

    /// Keywords that are informational only. The pattern says the same as the format.
    const NOTES: [&str; 7] = ["$schema", "$id", "title", "description", "default", "pattern", "$defs"];
    const KNOWN: [&str; 18] = [
        "minimum",
        "maximum",
        "minProperties",
        "maxProperties",
        "minLength",
        "format",
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
    fn every_keyword_of_the_schemas_is_known_here() {
        let mut found = Vec::new();
        for text in [super::super::definition::SCHEMA, super::super::test_file::SCHEMA] {
            let schema: Json = serde_json::from_str(text).expect("the schema is JSON");
            keywords(&schema, &mut found);
        }
        found.retain(|keyword| !KNOWN.contains(&keyword.as_str()) && !NOTES.contains(&keyword.as_str()));
        assert_eq!(found, Vec::<String>::new());
    }
}
