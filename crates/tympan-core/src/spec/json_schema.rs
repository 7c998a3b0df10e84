//! JSON Schemas that authors write: converts declarations to them, and answers questions about them.

use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use serde_json::{Value as Json, json};

use crate::json::JsonMap;
use crate::spec::Binding;
use crate::spec::schema::{Property, PropertyKind, written_schema};

/// The maximum number of references to follow from one schema to the next, and of combinations within each other.
const MAX_HOPS: usize = 16;

/// The keywords whose value is a schema. `items` may also be a list of schemas.
pub(crate) const ONE: [&str; 12] = [
    "items",
    "additionalProperties",
    "additionalItems",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];

/// The keywords whose value is a list of schemas.
pub(crate) const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];

/// The keywords whose value is a map from names to schemas.
pub(crate) const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// The keywords whose schemas only count where a reference points to them.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];

/// The keywords that combine schemas, so that a schema may declare properties elsewhere.
pub(crate) const COMBINING: [&str; 9] =
    ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas", "$dynamicRef", "$recursiveRef"];

/// The keywords that restrict values and have no counterpart in a [`Property`]. `type`, `enum`, `properties`, `required`
/// and `items` do.
const RESTRICTING: [&str; 44] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "const",
    "format",
    "pattern",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "maxItems",
    "minItems",
    "uniqueItems",
    "prefixItems",
    "additionalItems",
    "contains",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "nullable",
    "discriminator",
    "$defs",
    "definitions",
];

/// The keywords of a [`RESTRICTING`] kind that the check of values does not know.
const UNCHECKED: [&str; 10] = [
    "$dynamicRef",
    "$recursiveRef",
    "format",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$anchor",
];

/// The keywords that describe values, and those that [`Property`] can express.
const OTHER_KEYWORDS: [&str; 17] = [
    "$schema",
    "$id",
    "$comment",
    "$vocabulary",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "type",
    "enum",
    "properties",
    "required",
    "items",
    "additionalProperties",
];

/// The keys of a declaration that a JSON Schema does not have.
const OWN_KEYS: [&str; 4] = ["trusted", "strict", "sample", "validationRequired"];

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

/// Returns whether a key is a keyword of JSON Schema.
pub(crate) fn is_keyword(word: &str) -> bool {
    RESTRICTING.contains(&word) || UNCHECKED.contains(&word) || OTHER_KEYWORDS.contains(&word)
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
pub(crate) const KEYS: [&str; 17] = [
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

/// Returns the JSON Schema type of a kind. Images, audio and files are strings: a URL or base64 data.
pub(crate) const fn json_type(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::Float => "number",
        PropertyKind::Thread => "array",
        PropertyKind::Image | PropertyKind::File | PropertyKind::Audio => "string",
        kind => kind.as_str(),
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

/// Returns whether a tree, as written, contains a keyword that [`Property`] has no counterpart for.
pub(crate) fn is_restricting(key: &str) -> bool {
    RESTRICTING.contains(&key) || key == "additionalProperties"
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

/// Returns a schema of an object without some of its properties.
pub(crate) fn without(schema: &Json, is_removed: &dyn Fn(&str) -> bool) -> Json {
    let mut schema = schema.clone();
    let root = schema.clone();
    let removal = Removal { root: &root, is_removed, steps: Cell::new(MAX_STEPS) };
    removal.remove(&mut schema, 0);
    prune(&mut schema);
    schema
}

/// Removes definitions that are no longer used, because they may show what was removed.
fn prune(schema: &mut Json) {
    if !DEFINITIONS.iter().any(|word| schema.get(*word).is_some()) {
        return;
    }
    let mut used = HashSet::new();
    let mut open = vec![&*schema];
    while let Some(next) = open.pop() {
        let name = next.get("$ref").and_then(Json::as_str).and_then(definition);
        if let Some((word, name)) = name
            && let Some(definition) = schema.get(word).and_then(|named| named.get(&name))
            && used.insert((word, name))
        {
            open.push(definition);
        }
        let is_root = std::ptr::eq(next, schema);
        let inner = next.as_object().into_iter().flatten();
        open.extend(inner.filter(|(key, _)| !is_root || !DEFINITIONS.contains(&key.as_str())).flat_map(schemas_at));
    }
    for word in DEFINITIONS {
        let Some(Json::Object(named)) = schema.get_mut(word) else { continue };
        named.retain(|name, _| used.contains(&(word, name.clone())));
        if named.is_empty() {
            schema.as_object_mut().map(|map| map.shift_remove(word));
        }
    }
}

/// Returns the keyword and the name of the definition that a reference points into.
fn definition(reference: &str) -> Option<(&'static str, String)> {
    let (word, rest) = reference.strip_prefix("#/")?.split_once('/')?;
    let word = DEFINITIONS.into_iter().find(|known| *known == word)?;
    let name = rest.split('/').next().unwrap_or_default();
    Some((word, percent_decoded(name)?.replace("~1", "/").replace("~0", "~")))
}

/// Returns a schema of an object without its bound parameters.
pub(crate) fn without_bound(schema: &Json, bindings: &[Binding]) -> Json {
    if bindings.is_empty() {
        return schema.clone();
    }
    let bound: HashSet<&str> = bindings.iter().map(|binding| binding.parameter.as_str()).collect();
    without(schema, &|name| bound.contains(name))
}

/// The maximum number of schemas to visit to remove properties. References can multiply them, and the schema may come
/// from a malicious server.
const MAX_STEPS: usize = 10_000;

struct Removal<'r> {
    root: &'r Json,
    is_removed: &'r dyn Fn(&str) -> bool,
    /// The number of steps left.
    steps: Cell<usize>,
}

impl Removal<'_> {
    fn remove(&self, schema: &mut Json, depth: usize) {
        if !self.mentions(schema, depth) {
            return;
        }
        if let Some(target) = reference(schema, self.root) {
            let mut target = target.clone();
            if let (Json::Object(target), Json::Object(map)) = (&mut target, &mut *schema) {
                map.shift_remove("$ref");
                target.extend(std::mem::take(map));
            }
            *schema = target;
            return self.remove(schema, depth + 1);
        }
        let Some(map) = schema.as_object_mut() else { return };
        if let Some(Json::Array(required)) = map.get_mut("required") {
            required.retain(|name| !self.is_named(name));
        }
        for word in ["properties", "dependentRequired", "dependentSchemas", "dependencies"] {
            if let Some(Json::Object(named)) = map.get_mut(word) {
                named.retain(|name, _| !(self.is_removed)(name));
            }
        }
        for names in map.get_mut("dependentRequired").and_then(Json::as_object_mut).into_iter().flatten() {
            if let (_, Json::Array(names)) = names {
                names.retain(|name| !self.is_named(name));
            }
        }
        for word in ["allOf", "anyOf", "oneOf"] {
            for choice in map.get_mut(word).and_then(Json::as_array_mut).into_iter().flatten() {
                self.remove(choice, depth + 1);
            }
        }
    }

    fn is_named(&self, name: &Json) -> bool {
        name.as_str().is_some_and(self.is_removed)
    }

    /// Returns whether a schema, or one that it combines, mentions such a property.
    fn mentions(&self, schema: &Json, depth: usize) -> bool {
        self.steps.set(self.steps.get().saturating_sub(1));
        if depth > MAX_HOPS || self.steps.get() == 0 {
            return false;
        }
        let has = |word: &str| {
            let named = schema.get(word).and_then(Json::as_object);
            named.is_some_and(|named| named.keys().any(|name| (self.is_removed)(name)))
        };
        let listed = |word: &str| schema.get(word).and_then(Json::as_array).into_iter().flatten();
        has("properties")
            || has("dependentRequired")
            || listed("required").any(|name| self.is_named(name))
            || reference(schema, self.root).is_some_and(|target| self.mentions(target, depth + 1))
            || ["allOf", "anyOf", "oneOf"].iter().any(|word| listed(word).any(|one| self.mentions(one, depth + 1)))
    }
}

/// The maximum number of properties to read from a schema. References can multiply them.
const MAX_PROPERTIES: usize = 1_000;

/// The maximum depth of properties within each other.
const MAX_DEPTH: usize = 8;

/// Reads properties from a JSON Schema, as far as [`Property`] can express them.
pub(crate) struct SchemaReader<'s> {
    root: &'s Json,
    /// The number of properties that may still be read.
    left: usize,
}

impl<'s> SchemaReader<'s> {
    pub(crate) fn new(root: &'s Json) -> Self {
        Self { root, left: MAX_PROPERTIES }
    }

    /// Reads the properties of the object at the root, including those of the schemas that it combines.
    pub(crate) fn properties(&mut self) -> Vec<Property> {
        self.members(self.root, 0)
    }

    /// Improves what was read from a schema without following references and combinations.
    pub(crate) fn refine(&mut self, property: &mut Property) {
        let declared = self.root.get("properties").and_then(|properties| properties.get(&property.name));
        let Some(declared) = declared.filter(|declared| !is_understood(declared)) else { return };
        let read = self.property(&property.name, declared, 0);
        property.kind = read.kind;
        property.kinds = read.kinds;
        property.enum_values = read.enum_values;
        property.items = read.items;
        property.properties = read.properties;
        property.description = property.description.take().or(read.description);
    }

    fn members(&mut self, schema: &'s Json, depth: usize) -> Vec<Property> {
        let mut found: Vec<Property> = Vec::new();
        let mut parts = Vec::new();
        collect_parts(schema, self.root, true, 0, &mut parts);
        for (part, is_certain) in parts {
            let names: HashSet<&str> =
                part.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str).collect();
            for (name, declared) in part.get("properties").and_then(Json::as_object).into_iter().flatten() {
                if self.left == 0 || found.iter().any(|property| property.name == *name) {
                    continue;
                }
                self.left -= 1;
                let required = (is_certain && names.contains(name.as_str())).then_some(true);
                found.push(Property { required, ..self.property(name, declared, depth + 1) });
            }
        }
        found
    }

    fn property(&mut self, name: &str, schema: &'s Json, depth: usize) -> Property {
        let mut parts = Vec::new();
        collect_parts(schema, self.root, true, 0, &mut parts);
        // Null is not a choice of its own: it makes the value optional.
        let is_choice = |(part, is_certain): &&(&Json, bool)| !is_certain && !kinds_of(part).is_empty();
        let is_union = parts.iter().filter(is_choice).nth(1).is_some();
        let parts: Vec<_> = parts.into_iter().map(|(part, _)| part).collect();
        let mut kinds: Vec<PropertyKind> = Vec::new();
        for kind in parts.iter().flat_map(|part| kinds_of(part)) {
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        let find = |key: &str| parts.iter().find_map(|part| part.get(key));
        let mut property = Property::new(name, kinds.first().copied().unwrap_or_default());
        property.description = find("description").and_then(Json::as_str).map(str::to_owned);
        property.default = find("default").filter(|default| !default.is_null()).cloned();
        let only = || find("const").map(|only| vec![only.clone()]);
        property.enum_values = find("enum").and_then(Json::as_array).cloned().or_else(only).filter(|_| !is_union);
        if depth < MAX_DEPTH && kinds.contains(&PropertyKind::Array) {
            let items = find("items").filter(|items| items.is_object() && self.left > 0);
            property.items = items.map(|items| {
                self.left -= 1;
                Box::new(self.property("", items, depth + 1))
            });
        }
        if depth < MAX_DEPTH && kinds == [PropertyKind::Object] {
            property.properties = self.members(schema, depth);
        }
        if kinds.len() > 1 {
            property.kinds = kinds;
        }
        property
    }
}

/// Collects a schema and those that it combines. The flag says whether a value has to match the schema, which is not
/// certain for one of several.
fn collect_parts<'s>(
    schema: &'s Json,
    root: &'s Json,
    is_certain: bool,
    depth: usize,
    parts: &mut Vec<(&'s Json, bool)>,
) {
    if depth > MAX_HOPS || parts.len() > MAX_PROPERTIES {
        return;
    }
    parts.push((schema, is_certain));
    if let Some(target) = reference(schema, root) {
        collect_parts(target, root, is_certain, depth + 1, parts);
    }
    for (word, is_all) in [("allOf", true), ("anyOf", false), ("oneOf", false)] {
        for choice in schema.get(word).and_then(Json::as_array).into_iter().flatten() {
            collect_parts(choice, root, is_certain && is_all, depth + 1, parts);
        }
    }
}

/// Returns the kinds that a schema names itself.
fn kinds_of(schema: &Json) -> Vec<PropertyKind> {
    let kind = |name: &str| match name {
        "number" => Some(PropertyKind::Float),
        name => PropertyKind::from_name(name).filter(|kind| !kind.is_rich()),
    };
    let of_values =
        |values: &[Json]| values.iter().filter(|value| !value.is_null()).map(PropertyKind::of_value).collect();
    match (schema.get("type"), schema.get("enum"), schema.get("const")) {
        (Some(Json::String(name)), ..) => kind(name).into_iter().collect(),
        (Some(Json::Array(names)), ..) => names.iter().filter_map(Json::as_str).filter_map(kind).collect(),
        (_, Some(Json::Array(values)), _) => of_values(values),
        (_, _, Some(only)) => of_values(std::slice::from_ref(only)),
        _ if schema.get("properties").is_some() => vec![PropertyKind::Object],
        _ if schema.get("items").is_some() => vec![PropertyKind::Array],
        _ => Vec::new(),
    }
}
