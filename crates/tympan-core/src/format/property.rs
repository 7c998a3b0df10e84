//! Parses the declarations of inputs, outputs and parameters.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::fields::{self, Fields, text, wrong};
use super::report::{LEGACY_KEY, Report, invalid};
use super::yaml::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, guess};
use crate::spec::flow::Speaker;
use crate::spec::json_schema::{self, COMBINING, KEYS, Notation, SchemaReader, Shape};
use crate::spec::schema::{Property, PropertyKind};
use crate::text::source::Span;

/// The keys of a schema that wraps properties, beside the keywords of JSON Schema.
const WRAPPER_KEYS: [&str; 2] = ["kind", "strict"];

/// The kind of a value that matches one of several declarations.
const UNION: &str = "union";

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
    let span = node.span;
    let schema = written_schema(&node);
    let mut properties = read_styled(node, what, Style::Prompt, report);
    if let Some(schema) = schema {
        attach(&mut properties, schema, what, span);
    }
    properties
}

/// Returns the JSON Schema of declarations that say more than properties can express.
fn written_schema(node: &Node<'_>) -> Option<Arc<Json>> {
    let notation = match &node.value {
        Value::Map(entries) if is_schema(entries) => Notation::Schema,
        _ if has_keyword(node) => Notation::Properties,
        _ => return None,
    };
    json_schema::written(node.clone().into_json(), notation)
}

/// Returns whether any key is a keyword of JSON Schema that properties cannot express.
fn has_keyword(node: &Node<'_>) -> bool {
    match &node.value {
        Value::List(items) => items.iter().any(has_keyword),
        Value::Map(entries) => {
            entries.iter().any(|entry| json_schema::is_restricting(&entry.key) || has_keyword(&entry.value))
        }
        _ => false,
    }
}

/// Adds what a JSON Schema says beyond the properties that were read from it.
fn attach(properties: &mut Vec<Property>, schema: Arc<Json>, what: &str, span: Span) {
    let mut reader = SchemaReader::new(&schema);
    properties.iter_mut().for_each(|property| reader.refine(property));
    let mut names: HashSet<String> = properties.iter().map(|property| property.name.clone()).collect();
    for found in reader.properties() {
        if names.insert(found.name.clone()) {
            properties.push(Property { span: Some(span), ..found });
        }
    }
    if properties.is_empty() && what != "input" && !json_schema::is_understood(&schema) {
        properties.push(Property { span: Some(span), ..Property::new("", PropertyKind::Object) });
    }
    properties.iter_mut().for_each(|property| property.schema = Some(Arc::clone(&schema)));
}

fn read_styled(node: Node<'_>, what: &str, style: Style, report: &mut Report) -> Vec<Property> {
    let properties = match node.value {
        Value::Null => Vec::new(),
        Value::List(items) => items.into_iter().filter_map(|item| read_item(item, what, style, report)).collect(),
        // In a JSON Schema, the names of properties may be anything, including `properties`.
        Value::Map(entries) if style == Style::Prompt && is_schema(&entries) => {
            return read_schema(Fields::new(entries, node.span), what, report);
        }
        Value::Map(entries) => entries
            .into_iter()
            .map(|entry| read_named(entry.key.into_owned(), entry.key_span, entry.value, style, report))
            .collect(),
        _ => {
            report.push_about_text(wrong(&node, plural(what), "a list or a map"));
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
        // In JSON Schema, `true` allows any value.
        Value::Bool(_) if style == Style::Schema => {
            Property { span: Some(span), ..Property::new(name, PropertyKind::String) }
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
    if let Some(kind) = PropertyKind::from_name(word).or_else(|| PropertyKind::from_alias(word)) {
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
    let kind = match is_union(&fields) {
        true => check_union(&mut fields, span, style, report),
        false => read_kind(&mut fields, style, report),
    };
    let mut property = Property { name, span: Some(span), ..Property::default() };
    property.nullable = fields.boolean("nullable", report).unwrap_or_default();
    property.description = fields.string("description", report);
    property.default = fields.value("default").map(Node::into_json);
    property.example = take_styled(&mut fields, "example", "sample", Style::Prompt, report).map(Node::into_json);
    property.enum_values =
        take_styled(&mut fields, "enumValues", "enum", style, report).and_then(|node| read_enum(node, report));
    property.properties = read_nested(&mut fields, style, report);
    property.required = read_required(&mut fields, &mut property.properties, report);
    property.items = fields.value("items").and_then(|node| read_items(node, style, report)).map(Box::new);
    property.flow.trusted_only =
        fields.boolean("trusted_only", report).or_else(|| fields.boolean("trustedOnly", report));
    property.flow.destination = fields.boolean("destination", report);
    if style == Style::Prompt {
        property.confidential = fields.boolean("confidential", report).unwrap_or_default();
        property.speaker = fields.value("speaker").and_then(|node| read_speaker(&node, report));
        property.trusted = fields.boolean("trusted", report).unwrap_or_default();
        property.strict = fields.boolean("strict", report).unwrap_or_default();
        warn_misspelt(&fields, &KEYS, report);
    }
    property.kind = kind.unwrap_or_else(|| infer_missing(&property));
    property.extra = fields.rest();
    property
}

fn read_speaker(node: &Node<'_>, report: &mut Report) -> Option<Speaker> {
    if text(node) == Some("user") {
        return Some(Speaker::User);
    }
    report.push(
        invalid(node.span, format_args!("unknown speaker `{}`", node.quote()))
            .with_help("write `user`, or remove the key"),
    );
    None
}

fn is_union(fields: &Fields<'_>) -> bool {
    fields.get("kind").or_else(|| fields.get("type")).is_some_and(|entry| text(&entry.value) == Some(UNION))
}

/// Reports mistakes in the branches of a union. What they allow is part of the JSON Schema of the declaration, which
/// also determines the kind.
fn check_union(fields: &mut Fields<'_>, span: Span, style: Style, report: &mut Report) -> Option<PropertyKind> {
    let _ = fields.take("kind").or_else(|| fields.take("type"));
    let (any_of, one_of) = (fields.get("anyOf"), fields.get("oneOf"));
    if any_of.is_some() && one_of.is_some() {
        report.push(invalid(span, "a union has both `anyOf` and `oneOf`").with_help("keep one of the two"));
    }
    let branches = any_of.or(one_of).map(|entry| (entry.key.to_string(), entry.value.clone()));
    let count = branches.map_or(0, |(key, node)| check_branches(&key, node, style, report));
    if count == 0 {
        report.push(
            invalid(span, "a union without branches")
                .with_help("list the branches, as in `anyOf: [{kind: string}, {kind: boolean}]`"),
        );
    }
    None
}

/// Reports mistakes in a list of branches, and returns how many there are.
fn check_branches(key: &str, node: Node<'_>, style: Style, report: &mut Report) -> usize {
    let Value::List(items) = node.value else {
        report.push(wrong(&node, key, "a list"));
        return 0;
    };
    let count = items.len();
    for item in items {
        match &item.value {
            Value::Null => {}
            Value::String(kind) if kind == "null" => {}
            Value::Map(entries) if entries.iter().any(names_null) => {}
            Value::String(_) | Value::Map(_) => drop(read_items(item, style, report)),
            _ => report.push(wrong(&item, key, "a list of declarations")),
        }
    }
    count
}

fn names_null(entry: &Entry<'_>) -> bool {
    matches!(entry.key.as_ref(), "kind" | "type") && text(&entry.value) == Some("null")
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
        Value::String(name) if style == Style::Schema && name == "null" => None,
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
    if let Some(kind) = PropertyKind::from_alias(&lower).or_else(|| PropertyKind::from_name(&lower)) {
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

fn read_enum(node: Node<'_>, report: &mut Report) -> Option<Vec<Json>> {
    match node.value {
        Value::List(items) => Some(items.into_iter().map(Node::into_json).collect()),
        _ => {
            report.push_about_text(wrong(&node, "enumValues", "a list"));
            None
        }
    }
}

fn read_nested(fields: &mut Fields<'_>, style: Style, report: &mut Report) -> Vec<Property> {
    fields.value("properties").map_or_else(Vec::new, |node| read_styled(node, "property", style, report))
}

fn read_items(node: Node<'_>, style: Style, report: &mut Report) -> Option<Property> {
    let span = node.span;
    // JSON Schema also knows `true`, and a list of schemas.
    if style == Style::Schema && matches!(node.value, Value::Bool(_) | Value::List(_)) {
        return None;
    }
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
    let is_open = fields.entries().iter().any(|entry| match entry.key.as_ref() {
        "additionalProperties" => entry.value.value != Value::Bool(false),
        key => COMBINING.contains(&key),
    });
    let mut indexes = HashMap::new();
    for (index, property) in properties.iter().enumerate() {
        indexes.entry(property.name.clone()).or_insert(index);
    }
    for name in fields::strings(node, "required", report).unwrap_or_default() {
        match indexes.get(&name) {
            Some(index) => properties[*index].required = Some(true),
            // The property may be declared by a schema that this one refers to.
            None if is_open => {}
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

/// Returns whether a map is the JSON Schema of an object, and not a map of properties.
fn is_schema(entries: &[Entry<'_>]) -> bool {
    let is_sound = |entry: &Entry<'_>| match (entry.key.as_ref(), &entry.value.value) {
        ("type" | "kind" | "description" | "title" | "$schema" | "$ref", Value::Map(_)) => false,
        ("required", value) => !matches!(value, Value::Map(_)),
        _ => true,
    };
    if !entries.iter().all(is_sound) {
        return false;
    }
    let holds_properties =
        |entry: &Entry<'_>| entry.key == "properties" && matches!(entry.value.value, Value::Map(_) | Value::List(_));
    let is_known = |entry: &Entry<'_>| {
        let key = entry.key.as_ref();
        json_schema::is_keyword(key) || WRAPPER_KEYS.contains(&key)
    };
    let names_object = entries.iter().any(names_object);
    let holds_properties = entries.iter().any(holds_properties);
    (names_object && holds_properties)
        || (entries.iter().all(is_known) && (names_object || holds_properties || entries.iter().any(combines)))
}

fn names_object(entry: &Entry<'_>) -> bool {
    matches!(entry.key.as_ref(), "type" | "kind")
        && match &entry.value.value {
            Value::List(names) => names.iter().any(|name| text(name) == Some("object")),
            _ => text(&entry.value) == Some("object"),
        }
}

/// Returns whether an entry refers to other schemas.
fn combines(entry: &Entry<'_>) -> bool {
    match (entry.key.as_ref(), &entry.value.value) {
        ("$ref", Value::String(name)) => name.starts_with('#'),
        ("allOf" | "anyOf" | "oneOf", Value::List(schemas)) => {
            !schemas.is_empty() && schemas.iter().all(|schema| matches!(schema.value, Value::Map(_)))
        }
        _ => false,
    }
}

/// Returns whether a map declares a property. Otherwise it is an object that serves as a default value.
fn is_property(entries: &[Entry<'_>]) -> bool {
    json_schema::is_declaration(entries.iter().map(|entry| {
        let shape = match &entry.value.value {
            Value::List(_) => Shape::List,
            _ if text(&entry.value).is_some() => Shape::Text,
            _ => Shape::Other,
        };
        (entry.key.as_ref(), shape)
    }))
}

/// Infers the kind from a value.
pub(super) fn infer(value: &Json) -> PropertyKind {
    PropertyKind::of_value(value)
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
    for Entry { key, key_span, .. } in fields.entries().iter().filter(|entry| !known.contains(&entry.key.as_ref())) {
        let Some(meant) = guess(key, known.iter().copied()) else { continue };
        report.push(
            Diagnostic::warning("misspelt_key", *key_span, format!("unknown key `{key}`"))
                .with_help(format!("did you mean `{meant}`?"))
                .with_fix(meant),
        );
    }
}
