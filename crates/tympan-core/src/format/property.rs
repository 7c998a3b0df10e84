//! Parses the declarations of inputs, outputs and parameters.

use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;

use super::fields::{self, Fields, text, wrong};
use super::report::{LEGACY_KEY, Report, invalid};
use super::yaml::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, guess};
use crate::spec::schema::{Property, PropertyKind};
use crate::text::source::Span;

/// The keys of a property.
const KEYS: [&str; 17] = [
    "kind",
    "type",
    "description",
    "required",
    "default",
    "example",
    "sample",
    "enumValues",
    "enum",
    "items",
    "properties",
    "trusted",
    "strict",
    "name",
    "oneOf",
    "anyOf",
    "nullable",
];

/// The keys that are unlikely to occur in an object that is meant as a default value.
const TELLING_KEYS: [&str; 10] =
    ["description", "required", "default", "example", "sample", "enumValues", "enum", "oneOf", "anyOf", "nullable"];

/// The keys of a JSON Schema that wraps properties.
const SCHEMA_KEYS: [&str; 10] = [
    "type",
    "kind",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "strict",
    "$schema",
    "title",
    "examples",
];

/// The names that other formats use for our kinds.
const KIND_ALIASES: [(&str, PropertyKind); 14] = [
    ("str", PropertyKind::String),
    ("text", PropertyKind::String),
    ("int", PropertyKind::Integer),
    ("long", PropertyKind::Integer),
    ("number", PropertyKind::Float),
    ("double", PropertyKind::Float),
    ("decimal", PropertyKind::Float),
    ("bool", PropertyKind::Boolean),
    ("list", PropertyKind::Array),
    ("tuple", PropertyKind::Array),
    ("dict", PropertyKind::Object),
    ("map", PropertyKind::Object),
    ("dictionary", PropertyKind::Object),
    ("json", PropertyKind::Object),
];

/// The expected spelling of keys. Other spellings are reported.
#[derive(Clone, Copy, PartialEq)]
enum Style {
    /// `kind`, `example`, `enumValues`.
    Prompt,
    /// `type`, `enum`: a JSON Schema, as is common in tool descriptions.
    Schema,
}

/// Reads properties from a list, a map or a JSON Schema. `what` is the word for one of them in messages.
pub(super) fn read_properties(node: Node<'_>, what: &str, report: &mut Report) -> Vec<Property> {
    read_styled(node, what, Style::Prompt, report)
}

fn read_styled(node: Node<'_>, what: &str, style: Style, report: &mut Report) -> Vec<Property> {
    let properties = match node.value {
        Value::Null => Vec::new(),
        Value::List(items) => items.into_iter().filter_map(|item| read_item(item, what, style, report)).collect(),
        Value::Map(entries) if is_schema(&entries) => {
            return read_schema(Fields::new(entries, node.span), what, report);
        }
        Value::Map(entries) => entries
            .into_iter()
            .map(|entry| read_named(entry.key.into_owned(), entry.key_span, entry.value, style, report))
            .collect(),
        _ => {
            report.push(wrong(&node, plural(what), "a list or a map"));
            Vec::new()
        }
    };
    report_duplicates(&properties, what, report);
    properties
}

/// Returns the key that contains several of them.
fn plural(what: &str) -> &str {
    match what {
        "input" => "inputs",
        "output" => "outputs",
        "parameter" => "parameters",
        _ => "properties",
    }
}

/// Reads an item of a list: a map with a name, or only a name.
fn read_item(node: Node<'_>, what: &str, style: Style, report: &mut Report) -> Option<Property> {
    let span = node.span;
    if let Value::String(name) = node.value {
        return Some(Property { span: Some(span), ..Property::new(name, PropertyKind::String) });
    }
    let mut fields = Fields::of(node, what, report)?;
    let Some(name) = fields.take("name") else {
        report.push(
            invalid(span, format_args!("this {what} has no name")).with_help("add a `name`, as in `- name: question`"),
        );
        return None;
    };
    let place = name.value.span;
    let name = fields::string(name.value, "name", report)?;
    Some(read_fields(name, place, fields, style, report))
}

/// Reads an entry of a map: the declaration of a property, or its default value.
fn read_named(name: String, span: Span, node: Node<'_>, style: Style, report: &mut Report) -> Property {
    match node.value {
        Value::Null => Property { span: Some(span), ..Property::new(name, PropertyKind::String) },
        Value::Map(entries) if style == Style::Schema || is_property(&entries) => {
            read_fields(name, span, Fields::new(entries, node.span), style, report)
        }
        _ => {
            warn_about_kind_as_default(&name, &node, report);
            let default = node.into_json();
            Property {
                kind: infer(&default),
                default: Some(default),
                span: Some(span),
                ..Property::new(name, PropertyKind::String)
            }
        }
    }
}

/// Warns about a default that is the name of a kind: `question: string` sets the default to the word "string", which is
/// rarely intended.
fn warn_about_kind_as_default(name: &str, node: &Node<'_>, report: &mut Report) {
    let word = text(node).unwrap_or_default();
    if let Some(kind) = PropertyKind::from_name(word).or_else(|| kind_alias(word)) {
        let kind = kind.as_str();
        report.push(
            Diagnostic::warning(
                "kind_as_default",
                node.span,
                format!("the string `{word}` becomes the default of `{name}`"),
            )
            .with_help(format!("to declare its kind, write `{name}: {{kind: {kind}}}`"))
            .with_fix(format!("{{kind: {kind}}}")),
        );
    }
}

fn read_fields(name: String, span: Span, mut fields: Fields<'_>, style: Style, report: &mut Report) -> Property {
    let mut property = Property { name, span: Some(span), ..Property::default() };
    let kind = if is_union(&fields) {
        Some(read_union(&mut fields, &mut property, style, report))
    } else {
        read_kind(&mut fields, style, report)
    };
    property.nullable |= fields.boolean("nullable", report).unwrap_or_default();
    property.description = fields.string("description", report);
    property.default = fields.value("default").map(Node::into_json);
    property.example = take_styled(&mut fields, "example", "sample", Style::Prompt, report).map(Node::into_json);
    property.enum_values =
        take_styled(&mut fields, "enumValues", "enum", style, report).and_then(|node| read_enum(node, report));
    property.properties = read_nested(&mut fields, style, report);
    property.required = read_required(&mut fields, &mut property.properties, report);
    property.items = fields.value("items").and_then(|node| read_items(node, style, report)).map(Box::new);
    if style == Style::Prompt {
        property.trusted = fields.boolean("trusted", report).unwrap_or_default();
        property.strict = fields.boolean("strict", report).unwrap_or_default();
        warn_misspelt(&fields, &KEYS, report);
    }
    property.kind = kind.unwrap_or_else(|| infer_missing(&property));
    property.extra = fields.rest();
    property
}

/// Returns whether a property is a union of others: of kind `union`, or with branches and without a kind.
fn is_union(fields: &Fields<'_>) -> bool {
    match fields.get("kind").or_else(|| fields.get("type")) {
        Some(entry) => text(&entry.value) == Some("union"),
        None => fields.has("anyOf") || fields.has("oneOf"),
    }
}

/// Reads the branches of a union. Returns the kind of the first one.
fn read_union(fields: &mut Fields<'_>, property: &mut Property, style: Style, report: &mut Report) -> PropertyKind {
    let span = property.span.unwrap_or(fields.span);
    let _ = fields.take("kind").or_else(|| fields.take("type"));
    let mut read = |key: &'static str, fields: &mut Fields<'_>| {
        let node = fields.value(key)?;
        if let Value::List(items) = node.value {
            Some(read_branches(items, key, property, style, report))
        } else {
            report.push(wrong(&node, key, "a list"));
            None
        }
    };
    let (any_of, one_of) = (read("anyOf", fields), read("oneOf", fields));
    if any_of.is_some() && one_of.is_some() {
        report.push(invalid(span, "a union has both `anyOf` and `oneOf`").with_help("keep one of the two"));
    }
    property.any_of = any_of.unwrap_or_default();
    property.one_of = one_of.unwrap_or_default();
    if property.branches().is_empty() {
        report.push(
            invalid(span, "a union without branches")
                .with_help("list the branches, as in `anyOf: [{kind: string}, {kind: boolean}]`"),
        );
    }
    let mut kinds: Vec<PropertyKind> = Vec::new();
    for branch in property.branches() {
        let of_branch = if branch.kinds.is_empty() { std::slice::from_ref(&branch.kind) } else { &branch.kinds };
        for kind in of_branch {
            if !kinds.contains(kind) {
                kinds.push(*kind);
            }
        }
    }
    let first = kinds.first().copied().unwrap_or_default();
    property.kinds = kinds;
    first
}

/// Reads the branches of a union. A branch for null makes the property nullable.
fn read_branches(
    items: Vec<Node<'_>>,
    key: &str,
    property: &mut Property,
    style: Style,
    report: &mut Report,
) -> Vec<Property> {
    let mut branches = Vec::new();
    for item in items {
        let is_null = match &item.value {
            Value::Null => true,
            Value::String(kind) => kind == "null",
            Value::Map(entries) => entries
                .iter()
                .any(|entry| matches!(entry.key.as_ref(), "kind" | "type") && text(&entry.value) == Some("null")),
            _ => false,
        };
        if is_null {
            property.nullable = true;
        } else if matches!(item.value, Value::String(_) | Value::Map(_)) {
            branches.extend(read_items(item, style, report));
        } else {
            report.push(wrong(&item, key, "a list of declarations"));
        }
    }
    branches
}

/// Takes a field by its name or by an older name, which is reported unless the style expects it.
fn take_styled<'s>(
    fields: &mut Fields<'s>,
    key: &'static str,
    old: &'static str,
    style: Style,
    report: &mut Report,
) -> Option<Node<'s>> {
    let entry = match style {
        Style::Prompt => fields.take_renamed(key, &[old], "", report),
        Style::Schema => fields.take(key).or_else(|| fields.take(old)),
    };
    entry.map(|entry| entry.value).filter(|node| node.value != Value::Null)
}

fn read_kind(fields: &mut Fields<'_>, style: Style, report: &mut Report) -> Option<PropertyKind> {
    let node = take_styled(fields, "kind", "type", style, report)?;
    match &node.value {
        Value::String(name) => Some(parse_kind(name, node.quote(), node.span, style, report)),
        // In JSON Schema, a list of types that includes "null" means that the value may be null.
        Value::List(items) if style == Style::Schema => {
            let mut names = items.iter().filter_map(text).filter(|name| *name != "null");
            names.next().map(|name| parse_kind(name, "…", node.span, style, report))
        }
        _ => {
            report.push(wrong(&node, "kind", "a string"));
            None
        }
    }
}

/// Returns the kind with this name. `quote` is the name as messages may show it.
fn parse_kind(name: &str, quote: &str, span: Span, style: Style, report: &mut Report) -> PropertyKind {
    if let Some(kind) = PropertyKind::from_name(name) {
        return kind;
    }
    let lower = name.to_ascii_lowercase();
    if let Some(kind) = kind_alias(&lower).or_else(|| PropertyKind::from_name(&lower)) {
        if style == Style::Prompt {
            let meant = kind.as_str();
            report.push(
                Diagnostic::warning(
                    LEGACY_KEY,
                    span,
                    format!(
                        "`{quote}` is the name that another format uses for \
                    `{meant}`"
                    ),
                )
                .with_help(format!("write `{meant}` instead"))
                .with_fix(meant),
            );
        }
        return kind;
    }
    let names = PropertyKind::ALL.map(PropertyKind::as_str);
    let known = names.join(", ");
    report.push(invalid(span, format_args!("unknown kind `{quote}`")).with_help(match guess(name, names) {
        Some(meant) => format!("did you mean `{meant}`? Known kinds: {known}"),
        None => format!("known kinds: {known}"),
    }));
    PropertyKind::default()
}

fn kind_alias(name: &str) -> Option<PropertyKind> {
    KIND_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, kind)| *kind)
}

fn read_enum(node: Node<'_>, report: &mut Report) -> Option<Vec<Json>> {
    match node.value {
        Value::List(items) => Some(items.into_iter().map(Node::into_json).collect()),
        _ => {
            report.push(wrong(&node, "enumValues", "a list"));
            None
        }
    }
}

fn read_nested(fields: &mut Fields<'_>, style: Style, report: &mut Report) -> Vec<Property> {
    fields.value("properties").map_or_else(Vec::new, |node| read_styled(node, "property", style, report))
}

fn read_items(node: Node<'_>, style: Style, report: &mut Report) -> Option<Property> {
    let span = node.span;
    if let Value::String(kind) = &node.value {
        let kind = parse_kind(kind, node.quote(), span, style, report);
        return Some(Property { span: Some(span), ..Property::new("", kind) });
    }
    let mut fields = Fields::of(node, "items", report)?;
    let name = fields.string("name", report).unwrap_or_default();
    Some(read_fields(name, span, fields, style, report))
}

/// Reads `required`: a boolean, or JSON Schema's list of the nested properties that are required.
fn read_required(fields: &mut Fields<'_>, properties: &mut [Property], report: &mut Report) -> Option<bool> {
    let node = fields.value("required")?;
    if !matches!(node.value, Value::List(_)) {
        return fields::boolean(&node, "required", report);
    }
    let span = node.span;
    let mut indexes = HashMap::new();
    for (index, property) in properties.iter().enumerate() {
        indexes.entry(property.name.clone()).or_insert(index);
    }
    for name in fields::strings(node, "required", report).unwrap_or_default() {
        match indexes.get(&name) {
            Some(index) => properties[*index].required = Some(true),
            None => report.push(invalid(span, format_args!("`{name}` is listed under `required` but not declared"))),
        }
    }
    None
}

/// Reads the properties of a JSON Schema. Its other keywords have no counterpart in a prompt.
fn read_schema(mut fields: Fields<'_>, what: &str, report: &mut Report) -> Vec<Property> {
    let style = match fields.get("properties") {
        // A list of properties is written in the style of prompt files, and a map in the style of JSON Schema.
        Some(Entry { value: Node { value: Value::List(_), .. }, .. }) => Style::Prompt,
        _ => Style::Schema,
    };
    let mut properties = match fields.value("properties") {
        Some(node) => read_styled(node, what, style, report),
        None => Vec::new(),
    };
    read_required(&mut fields, &mut properties, report);
    properties
}

fn is_schema(entries: &[Entry<'_>]) -> bool {
    let holds_properties =
        |entry: &Entry<'_>| entry.key == "properties" && matches!(entry.value.value, Value::Map(_) | Value::List(_));
    let names_object =
        |entry: &Entry<'_>| matches!(entry.key.as_ref(), "type" | "kind") && text(&entry.value) == Some("object");
    entries.iter().all(|entry| SCHEMA_KEYS.contains(&entry.key.as_ref()))
        && entries.iter().any(|entry| holds_properties(entry) || names_object(entry))
}

/// Returns whether a map declares a property. Otherwise it is an object that serves as a default value.
fn is_property(entries: &[Entry<'_>]) -> bool {
    let is_known = |entry: &Entry<'_>| KEYS.contains(&entry.key.as_ref());
    let is_telling = |entry: &Entry<'_>| TELLING_KEYS.contains(&entry.key.as_ref());
    let names_kind = |entry: &Entry<'_>| entry.key == "kind" || (entry.key == "type" && text(&entry.value).is_some());
    entries.iter().any(names_kind) || (entries.iter().any(is_telling) && entries.iter().all(is_known))
}

/// Infers the kind from a value.
pub(super) fn infer(value: &Json) -> PropertyKind {
    match value {
        Json::Number(number) if number.is_f64() => PropertyKind::Float,
        Json::Number(_) => PropertyKind::Integer,
        Json::Bool(_) => PropertyKind::Boolean,
        Json::Array(_) => PropertyKind::Array,
        Json::Object(_) => PropertyKind::Object,
        Json::Null | Json::String(_) => PropertyKind::String,
    }
}

fn infer_missing(property: &Property) -> PropertyKind {
    if let Some(value) = property.default.as_ref().or(property.example.as_ref()) {
        return infer(value);
    }
    match property {
        Property { items: Some(_), .. } => PropertyKind::Array,
        Property { properties, .. } if !properties.is_empty() => PropertyKind::Object,
        _ => PropertyKind::String,
    }
}

fn report_duplicates(properties: &[Property], what: &str, report: &mut Report) {
    let mut seen = HashSet::new();
    for property in properties {
        if !seen.insert(property.name.as_str()) {
            let span = property.span.unwrap_or_default();
            report.push(
                invalid(span, format_args!("{what} `{}` is declared twice", property.name))
                    .with_help("rename or remove one of the two"),
            );
        }
    }
}

/// Warns about remaining keys that are probably misspellings of known ones.
pub(super) fn warn_misspelt(fields: &Fields<'_>, known: &[&'static str], report: &mut Report) {
    for Entry { key, key_span, .. } in fields.entries() {
        let Some(meant) = guess(key, known.iter().copied()) else { continue };
        report.push(
            Diagnostic::warning("misspelt_key", *key_span, format!("unknown key `{key}`"))
                .with_help(format!("did you mean `{meant}`?"))
                .with_fix(meant),
        );
    }
}
