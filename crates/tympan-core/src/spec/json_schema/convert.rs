//! Converts declarations to JSON Schemas.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::keywords::{COMBINING, NAMED, ONE, RESTRICTING, SEVERAL, is_keyword};
use super::{MAX_HOPS, is_understood, json_type, reference, within};
use crate::json::JsonMap;
use crate::spec::schema::PropertyKind;

/// The keys of a declaration that a JSON Schema does not have.
const OWN_KEYS: [&str; 9] = [
    "trusted",
    "strict",
    "sample",
    "validationRequired",
    "confidential",
    "speaker",
    "trusted_only",
    "trustedOnly",
    "destination",
];

/// The notation of a declaration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Notation {
    /// A list or a map of properties, as in prompt files.
    Properties,
    /// A JSON Schema of an object.
    Schema,
}

/// Converts declarations, as written, to the JSON Schema of an object. Returns `None` if [`Property`] expresses all of
/// it.
pub(crate) fn written(declared: Json, notation: Notation) -> Option<Arc<Json>> {
    let schema = match notation {
        Notation::Schema => {
            let mut schema = converted(declared, notation).0;
            resolve_root(&mut schema);
            Some(schema).filter(|schema| !is_expressed(schema, true))
        }
        Notation::Properties => {
            let (properties, required) = members(declared, notation);
            let mut schema = json!({"type": "object", "properties": properties});
            if !required.is_empty() {
                schema["required"] = required.into();
            }
            Some(schema).filter(|schema| !is_understood(schema))
        }
    };
    schema.filter(Json::is_object).map(Arc::new)
}

/// Converts one declaration, and returns whether it says that a value is required.
fn converted(declared: Json, notation: Notation) -> (Json, bool) {
    let map = match declared {
        Json::Object(map) => map,
        other => return (other, false),
    };
    let (mut schema, mut required, mut flagged) = (JsonMap::new(), false, Vec::new());
    for (key, value) in map {
        let one = |value| converted(value, notation).0;
        match (key.as_str(), value) {
            (key, Json::Null) if !matches!(key, "default" | "const") => {}
            ("required", Json::Bool(flag)) => required = flag,
            ("kind" | "type", value) => {
                schema.extend(types(value, notation).map(|types| ("type".to_owned(), types)));
            }
            ("enumValues", value) => drop(schema.insert("enum".to_owned(), value)),
            ("properties", value @ (Json::Object(_) | Json::Array(_))) => {
                // A list is written as in prompt files, wherever it occurs.
                let notation = if value.is_array() { Notation::Properties } else { notation };
                let (properties, names) = members(value, notation);
                flagged = names;
                schema.insert(key, Json::Object(properties));
            }
            ("items", Json::String(kind)) => {
                let items = types(kind.into(), notation).map(|types| json!({"type": types}));
                schema.insert(key, items.unwrap_or_else(|| json!({})));
            }
            ("name" | "example", _) if notation == Notation::Properties => {}
            (own, value) if OWN_KEYS.contains(&own) && !value.is_object() => {}
            (word, Json::Object(named)) if NAMED.contains(&word) => {
                let named = named.into_iter().map(|(name, value)| (name, one(value))).collect();
                schema.insert(key, Json::Object(named));
            }
            (word, Json::Array(several)) if SEVERAL.contains(&word) || word == "items" => {
                schema.insert(key, several.into_iter().map(|value| branch(value, notation)).collect());
            }
            (word, value) if ONE.contains(&word) => drop(schema.insert(key, one(value))),
            (word, value) if notation == Notation::Schema || is_keyword(word) => drop(schema.insert(key, value)),
            _ => {}
        }
    }
    add_required(&mut schema, flagged);
    exclude_bounds(&mut schema);
    allow_null(&mut schema);
    (Json::Object(schema), required)
}

/// Converts a declaration in a list, which may be only the name of a kind.
fn branch(declared: Json, notation: Notation) -> Json {
    match declared {
        Json::Null => json!({"type": "null"}),
        Json::String(kind) => types(kind.into(), notation).map_or_else(|| json!({}), |types| json!({"type": types})),
        declared => converted(declared, notation).0,
    }
}

/// Converts a list or a map of declarations, and returns the names of those that say they are required.
fn members(declared: Json, notation: Notation) -> (JsonMap, Vec<String>) {
    let named: Vec<(String, Json)> = match declared {
        Json::Object(map) => map.into_iter().collect(),
        Json::Array(items) => items.into_iter().filter_map(named).collect(),
        _ => Vec::new(),
    };
    let (mut properties, mut required) = (JsonMap::new(), Vec::new());
    for (name, value) in named {
        let (schema, is_required) = match value {
            Json::Null => (json!({"type": "string"}), false),
            Json::Object(map) if notation == Notation::Schema || is_declaration_map(&map) => {
                converted(Json::Object(map), notation)
            }
            Json::Bool(any) if notation == Notation::Schema => (any.into(), false),
            // In a map of properties, any other value is the default.
            default => (json!({"type": json_type(PropertyKind::of_value(&default)), "default": default}), false),
        };
        if is_required {
            required.push(name.clone());
        }
        properties.insert(name, schema);
    }
    (properties, required)
}

/// Returns the name and the declaration of an item of a list.
fn named(item: Json) -> Option<(String, Json)> {
    match item {
        Json::String(name) => Some((name, json!({"type": "string"}))),
        Json::Object(map) => Some((map.get("name")?.as_str()?.to_owned(), Json::Object(map))),
        _ => None,
    }
}

/// The keys of a property in a prompt file.
pub(crate) const KEYS: [&str; 22] = [
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
    "confidential",
    "speaker",
    "trusted_only",
    "trustedOnly",
    "destination",
    "strict",
    "name",
    "oneOf",
    "anyOf",
    "nullable",
];

/// The keys that are unlikely to occur in an object that is meant as a default value.
const TELLING_KEYS: [&str; 7] = ["description", "required", "default", "example", "sample", "enumValues", "enum"];

/// The type of a value, as far as it tells a declaration from data.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Shape {
    Text,
    List,
    Other,
}

/// Returns whether the entries of a map declare a property. Otherwise it is an object that serves as a default value.
pub(crate) fn is_declaration<'k>(entries: impl Iterator<Item = (&'k str, Shape)> + Clone) -> bool {
    let names_kind = |(key, shape): (&str, Shape)| key == "kind" || (key == "type" && shape == Shape::Text);
    let is_telling = |(key, _): (&str, Shape)| TELLING_KEYS.contains(&key);
    let combines = |(key, shape): (&str, Shape)| shape == Shape::List && ["anyOf", "oneOf", "allOf"].contains(&key);
    entries.clone().any(names_kind)
        || (entries.clone().any(is_telling) && entries.clone().all(|(key, _)| KEYS.contains(&key)))
        || (entries.clone().any(combines) && entries.clone().all(|(key, _)| KEYS.contains(&key) || is_keyword(key)))
}

fn is_declaration_map(map: &JsonMap) -> bool {
    is_declaration(map.iter().map(|(key, value)| {
        let shape = match value {
            Json::String(_) => Shape::Text,
            Json::Array(_) => Shape::List,
            _ => Shape::Other,
        };
        (key.as_str(), shape)
    }))
}

/// Converts the name of a kind, or several, to JSON Schema types. Returns `None` if the value may have any type.
fn types(value: Json, notation: Notation) -> Option<Json> {
    let one = |name: &str| {
        let lower = name.to_ascii_lowercase();
        match PropertyKind::from_name(&lower).or_else(|| PropertyKind::from_alias(&lower)) {
            Some(kind) => Some(json_type(kind)),
            None => (name == "null").then_some("null"),
        }
    };
    match value {
        Json::String(name) => match one(&name) {
            Some(name) => Some(name.into()),
            // The type of a union is that of its branches.
            None => (notation == Notation::Schema && name != "union").then_some(name.into()),
        },
        Json::Array(names) => {
            let names: Vec<_> = names.iter().filter_map(Json::as_str).filter_map(one).collect();
            (!names.is_empty()).then(|| names.into())
        }
        _ => None,
    }
}

/// Adds names to the list of required properties.
fn add_required(schema: &mut JsonMap, names: Vec<String>) {
    if names.is_empty() {
        return;
    }
    if let Json::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        let listed: HashSet<String> = required.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        required.extend(names.into_iter().filter(|name| !listed.contains(name)).map(Json::String));
    }
}

/// Converts the exclusive bounds of OpenAPI 3.0 and draft 4, which are flags next to the bound.
fn exclude_bounds(schema: &mut JsonMap) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Json::Bool(is_exclusive)) = schema.get(flag) else { continue };
        if !is_exclusive {
            schema.shift_remove(flag);
        } else if let Some(value) = schema.shift_remove(bound) {
            schema.insert(flag.to_owned(), value);
        }
    }
}

/// Converts OpenAPI's `nullable`, which JSON Schema does not know.
fn allow_null(schema: &mut JsonMap) {
    if schema.get("nullable").is_some_and(Json::is_boolean) && schema.shift_remove("nullable") == Some(Json::Bool(true))
    {
        let nullable = nullable(Json::Object(std::mem::take(schema)));
        schema.extend(nullable.as_object().cloned().unwrap_or_default());
    }
}

/// Returns a schema that also allows null.
pub(crate) fn nullable(schema: Json) -> Json {
    let Json::Object(mut map) = schema else { return schema };
    if allows_null(&map) {
        return Json::Object(map);
    }
    let is_simple = !COMBINING.iter().any(|word| map.contains_key(*word)) && !map.contains_key("not");
    if is_simple && let Some(types) = map.get_mut("type") {
        match types {
            Json::Array(types) => types.push("null".into()),
            one => *one = json!([one.take(), "null"]),
        }
        if let Some(only) = map.shift_remove("const") {
            map.insert("enum".to_owned(), json!([only]));
        }
        if let Some(Json::Array(allowed)) = map.get_mut("enum")
            && !allowed.contains(&Json::Null)
        {
            allowed.push(Json::Null);
        }
        return Json::Object(map);
    }
    let is_other = |key: &str| RESTRICTING.contains(&key) || key == "enum" || key == "type";
    for word in ["anyOf", "oneOf"] {
        if map.keys().all(|key| key == word || !is_other(key))
            && let Some(Json::Array(choices)) = map.get_mut(word)
        {
            choices.push(json!({"type": "null"}));
            return Json::Object(map);
        }
    }
    let mut around = JsonMap::new();
    for word in ["title", "description", "default"] {
        around.extend(map.shift_remove(word).map(|value| (word.to_owned(), value)));
    }
    around.insert("anyOf".to_owned(), json!([map, {"type": "null"}]));
    Json::Object(around)
}

fn allows_null(map: &JsonMap) -> bool {
    let is_null =
        |types: &Json| types == "null" || types.as_array().is_some_and(|types| types.contains(&"null".into()));
    let has_null = |allowed: &Json| allowed.as_array().is_some_and(|allowed| allowed.contains(&Json::Null));
    let choice = |choice: &Json| choice.as_object().is_some_and(allows_null);
    match (map.get("type"), map.get("enum"), map.get("anyOf").or_else(|| map.get("oneOf"))) {
        (Some(types), Some(allowed), _) => is_null(types) && has_null(allowed),
        (Some(types), None, _) => is_null(types),
        (None, Some(allowed), _) => has_null(allowed),
        (None, None, Some(choices)) => choices.as_array().is_some_and(|choices| choices.iter().any(choice)),
        (None, None, None) => map.get("const") == Some(&Json::Null),
    }
}

/// Replaces a reference at the root by its target, because providers expect an object there.
fn resolve_root(schema: &mut Json) {
    for _ in 0..MAX_HOPS {
        let Some(target) = reference(schema, schema) else { return };
        let mut target = target.as_object().cloned().unwrap_or_default();
        let Some(map) = schema.as_object_mut() else { return };
        map.shift_remove("$ref");
        for (key, value) in std::mem::take(map) {
            target.insert(key, value);
        }
        *map = target;
    }
}

/// Returns whether [`Property`] expresses everything that a schema says.
fn is_expressed(schema: &Json, is_root: bool) -> bool {
    let Some(map) = schema.as_object() else { return false };
    let types = ["string", "integer", "number", "boolean", "array", "object"];
    let has_type = match map.get("type").map(Json::as_str) {
        Some(name) => name.is_some_and(|name| if is_root { name == "object" } else { types.contains(&name) }),
        None => is_root && map.contains_key("properties"),
    };
    let is_known = |key: &String| match key.as_str() {
        "type" | "properties" | "required" => true,
        "description" | "enum" | "items" => !is_root,
        _ => false,
    };
    has_type
        && map.get("items").is_none_or(Json::is_object)
        && map.keys().all(is_known)
        && within(schema).all(|inner| is_expressed(inner, false))
}
