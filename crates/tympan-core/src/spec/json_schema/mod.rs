//! JSON Schemas that authors write: converts declarations to them, and answers questions about them.

mod convert;
mod keywords;
mod reader;
mod remove;

use std::collections::BTreeSet;

use serde_json::Value as Json;

pub(crate) use convert::{KEYS, Notation, Shape, is_declaration, nullable, written};
pub(crate) use keywords::{COMBINING, is_keyword, is_restricting};
use keywords::{NAMED, ONE, RESTRICTING, SEVERAL, UNCHECKED};
pub(crate) use reader::SchemaReader;
#[cfg(feature = "wire")]
pub(crate) use reader::schema_requires;
#[cfg(feature = "wire")]
pub(crate) use remove::without;
pub(crate) use remove::without_bound;

#[cfg(feature = "wire")]
use crate::json::JsonMap;
use crate::spec::schema::{Property, PropertyKind, written_schema};

/// The maximum number of references to follow from one schema to the next, and of combinations within each other.
const MAX_HOPS: usize = 16;

/// Returns the JSON Schema type of a kind. Images, audio and files are strings: a URL or base64 data.
pub(crate) const fn json_type(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::Float => "number",
        PropertyKind::Thread => "array",
        PropertyKind::Image | PropertyKind::File | PropertyKind::Audio => "string",
        kind => kind.as_str(),
    }
}

/// Returns the target of the reference that a schema consists of, if it is within the root.
pub(crate) fn reference<'s>(schema: &Json, root: &'s Json) -> Option<&'s Json> {
    target(schema.get("$ref")?.as_str()?, root)
}

/// Returns the target of a reference within the root.
pub(crate) fn target<'s>(name: &str, root: &'s Json) -> Option<&'s Json> {
    let pointer = name.strip_prefix('#')?;
    root.pointer(pointer).or_else(|| root.pointer(&percent_decoded(pointer)?))
}

/// Decodes percent-encoding, which references to names such as `List[int]` have.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        bytes.push(if byte == b'%' { digit(rest.next())? * 16 + digit(rest.next())? } else { byte });
    }
    String::from_utf8(bytes).ok()
}

/// Returns the schemas directly within a schema.
pub(crate) fn within(schema: &Json) -> impl Iterator<Item = &Json> {
    schema.as_object().into_iter().flatten().flat_map(schemas_at)
}

/// Returns the schemas directly at a keyword.
fn schemas_at<'s>((key, value): (&'s String, &'s Json)) -> Vec<&'s Json> {
    let key = key.as_str();
    match value {
        Json::Object(map) if NAMED.contains(&key) => map.values().collect(),
        Json::Array(list) if SEVERAL.contains(&key) || key == "items" => list.iter().collect(),
        value if ONE.contains(&key) => vec![value],
        _ => Vec::new(),
    }
}

/// Returns whether all restrictions of a schema are also in the [`Property`] that is read from it. Hashes then do not
/// need the schema itself.
pub(crate) fn is_understood(schema: &Json) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let is_one_type = match map.get("type") {
        Some(Json::Array(names)) => names.iter().filter(|name| **name != "null").count() == 1,
        Some(name) => name != "null",
        None => true,
    };
    is_one_type
        && !map.keys().any(|key| RESTRICTING.contains(&key.as_str()))
        && map.get("additionalProperties").is_none_or(Json::is_boolean)
        && within(schema).filter(|inner| !inner.is_boolean()).all(is_understood)
}

/// Returns the JSON Schema that declares these properties, if it restricts values in ways that their other fields do
/// not.
pub(crate) fn further_schema(properties: &[Property]) -> Option<&Json> {
    written_schema(properties).filter(|schema| !is_understood(schema))
}

/// Returns the keywords of a schema that the check of values does not know.
pub(crate) fn unchecked(schema: &Json) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    collect_unchecked(schema, schema, &mut found);
    found
}

fn collect_unchecked(schema: &Json, root: &Json, found: &mut BTreeSet<String>) {
    for (key, value) in schema.as_object().into_iter().flatten() {
        match (key.as_str(), value) {
            ("$ref", Json::String(name)) if target(name, root).is_none() => drop(found.insert(key.clone())),
            (word, _) if UNCHECKED.contains(&word) => drop(found.insert(key.clone())),
            _ => {}
        }
    }
    within(schema).for_each(|inner| collect_unchecked(inner, root, found));
}

/// Returns whether the schema of an object says, or may say elsewhere, which undeclared properties it allows.
#[cfg(feature = "wire")]
pub(crate) fn is_open(schema: &JsonMap) -> bool {
    ["additionalProperties", "unevaluatedProperties"].iter().chain(&COMBINING).any(|word| schema.contains_key(*word))
}

/// Returns the patterns of a schema.
#[cfg(feature = "wire")]
pub(crate) fn patterns(schema: &Json) -> Vec<&str> {
    let own = schema.get("pattern").and_then(Json::as_str);
    let of_names = schema.get("patternProperties").and_then(Json::as_object).into_iter().flatten();
    let inner = within(schema).flat_map(patterns);
    own.into_iter().chain(of_names.map(|(pattern, _)| pattern.as_str())).chain(inner).collect()
}
