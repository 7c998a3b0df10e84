//! Converts JSON Schemas to the form that providers can enforce.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use self::dialect::{COMMON, is_regular};
use super::json_schema::{nullable, reference, target, within};
use crate::json::JsonMap;

mod dialect;
mod limits;

pub(crate) use self::dialect::Dialect;
#[cfg_attr(not(feature = "wire"), expect(unused_imports, reason = "only requests have a budget"))]
pub(crate) use self::limits::{Budget, Size};

/// The keywords that restrict values without changing their structure.
const BOUNDS: [&str; 18] = [
    "pattern",
    "multipleOf",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "contains",
    "minContains",
    "maxContains",
    "dependentRequired",
];

/// The keywords that change which values are allowed, and that no provider can enforce.
const STRUCTURAL: [&str; 13] = [
    "allOf",
    "not",
    "if",
    "then",
    "else",
    "prefixItems",
    "additionalItems",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
];

/// A schema in the form that a provider can enforce: all properties are required, optional ones may be null, and
/// additional properties are not allowed.
pub(crate) struct StrictSchema {
    /// The schema.
    #[cfg_attr(not(feature = "wire"), expect(dead_code, reason = "only requests contain it"))]
    pub(crate) schema: Json,
    /// The keywords that were left out, although they restrict values.
    pub(crate) dropped: BTreeSet<String>,
    /// What the provider cannot enforce. If there is anything, the schema is not usable.
    pub(crate) inexpressible: BTreeSet<String>,
}

impl StrictSchema {
    /// Converts the schema of an object.
    pub(crate) fn new(schema: &Json, dialect: Dialect) -> Self {
        let mut conversion =
            Conversion { root: schema, dialect, dropped: BTreeSet::new(), inexpressible: BTreeSet::new() };
        if dialect == Dialect::Anthropic && is_recursive(schema) {
            conversion.cannot("recursive `$ref`");
        }
        if ["anyOf", "oneOf", "enum", "not"].iter().any(|word| schema.get(*word).is_some()) {
            conversion.cannot("a choice at the root");
        }
        let schema = conversion.schema(schema, true);
        if schema.get("type").is_none_or(|name| name != "object") {
            conversion.cannot("a root that is not an object");
        }
        conversion.inexpressible.extend(Size::of(&schema).excess(dialect));
        let Conversion { dropped, inexpressible, .. } = conversion;
        Self { schema, dropped, inexpressible }
    }

    /// Returns whether the schema expresses all of the original.
    pub(crate) fn is_exact(&self) -> bool {
        self.dropped.is_empty() && self.inexpressible.is_empty()
    }

    /// Returns everything that the schema does not express.
    pub(crate) fn losses(&self) -> impl Iterator<Item = &str> {
        self.inexpressible.iter().chain(&self.dropped).map(String::as_str)
    }
}

struct Conversion<'s> {
    root: &'s Json,
    dialect: Dialect,
    dropped: BTreeSet<String>,
    inexpressible: BTreeSet<String>,
}

impl Conversion<'_> {
    fn cannot(&mut self, what: impl Into<String>) {
        self.inexpressible.insert(what.into());
    }

    fn schema(&mut self, schema: &Json, is_root: bool) -> Json {
        let Some(map) = schema.as_object() else {
            self.cannot("a value of any type");
            return schema.clone();
        };
        let mut map = map.clone();
        self.unwrap_all_of(&mut map);
        infer_type(&mut map);
        if let Some(choices) = map.shift_remove("oneOf")
            && map.insert("anyOf".to_owned(), choices).is_some()
        {
            self.cannot("`oneOf` beside `anyOf`");
        }
        for word in ["$ref", "anyOf"].into_iter().filter(|word| map.contains_key(*word)) {
            // Both schemas would forbid what the other one declares.
            if map.keys().any(|key| key != word && !is_annotation(key) && COMMON.contains(&key.as_str())) {
                self.cannot(format!("`{word}` beside other keywords"));
            }
        }
        self.check_type(&map, is_root);
        let required: Vec<String> = map
            .get("required")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect();
        let declared = map.get("properties").and_then(Json::as_object);
        if required.iter().any(|name| declared.is_none_or(|declared| !declared.contains_key(name))) {
            self.cannot("`required` of an undeclared property");
        }
        let mut strict = JsonMap::new();
        for (key, value) in &map {
            if self.keeps(key, value) {
                let value = self.value(key, value, &required);
                strict.insert(key.clone(), value);
            }
        }
        close(&mut strict);
        wrap_reference(&mut strict);
        Json::Object(strict)
    }

    /// Merges the only schema of `allOf` into the schema around it, as generators write references with a description.
    fn unwrap_all_of(&mut self, map: &mut JsonMap) {
        let only = match map.get("allOf").and_then(Json::as_array).map(Vec::as_slice) {
            Some([Json::Object(only)]) if map.keys().all(|key| key == "allOf" || is_annotation(key)) => only.clone(),
            _ => return,
        };
        map.shift_remove("allOf");
        for (key, value) in only {
            map.entry(key).or_insert(value);
        }
    }

    fn check_type(&mut self, map: &JsonMap, is_root: bool) {
        let is_type = |name: &str| match map.get("type") {
            Some(Json::Array(names)) => names.iter().any(|one| one == name),
            Some(one) => one == name,
            None => false,
        };
        let has_items = map.get("items").is_some_and(Json::is_object) || map.contains_key("prefixItems");
        if is_type("array") && !has_items {
            self.cannot("a list without `items`");
        }
        let has_properties = map.get("properties").and_then(Json::as_object).is_some_and(|named| !named.is_empty());
        if is_type("object") && !is_root && !has_properties && !map.contains_key("additionalProperties") {
            self.cannot("a map without `properties`");
        }
        let telling = ["type", "anyOf", "$ref", "allOf"];
        if !telling.iter().any(|word| map.contains_key(*word)) {
            self.cannot("a value of any type");
        }
    }

    /// Returns whether a keyword stays, and reports those that are lost.
    fn keeps(&mut self, key: &str, value: &Json) -> bool {
        match (key, value) {
            ("propertyNames", Json::Object(names))
                if names.len() == 1 && names.get("type") == Some(&"string".into()) =>
            {
                return false;
            }
            // Other formats do not restrict values: checks ignore them, too.
            ("format", format) => return self.dialect.knows_format(format),
            ("pattern", Json::String(pattern)) if !is_regular(pattern) => {
                self.dropped.insert("`pattern`".to_owned());
                return false;
            }
            ("enum", Json::Array(values)) if !values.iter().all(|value| self.dialect.knows_literal(value)) => {
                self.cannot("`enum` of such values");
            }
            ("const", value) if !self.dialect.knows_literal(value) => self.cannot("`const` of such a value"),
            ("minItems", count)
                if self.dialect == Dialect::Anthropic && count.as_u64().is_some_and(|count| count < 2) =>
            {
                return true;
            }
            ("additionalProperties", value) if *value != Json::Bool(false) => self.cannot("`additionalProperties`"),
            ("$ref", Json::String(name)) if target(name, self.root).is_none() => self.cannot("`$ref` to elsewhere"),
            _ => {}
        }
        if STRUCTURAL.contains(&key) {
            self.cannot(format!("`{key}`"));
        }
        let is_kept = self.dialect.knows(key);
        if !is_kept && BOUNDS.contains(&key) {
            self.dropped.insert(format!("`{key}`"));
        }
        is_kept
    }

    fn value(&mut self, key: &str, value: &Json, required: &[String]) -> Json {
        match (key, value) {
            ("properties", Json::Object(properties)) => {
                let convert = |(name, declared): (&String, &Json)| {
                    let schema = self.schema(declared, false);
                    let schema = if required.contains(name) { schema } else { nullable(schema) };
                    (name.clone(), schema)
                };
                Json::Object(properties.iter().map(convert).collect())
            }
            ("$defs" | "definitions", Json::Object(named)) => named
                .iter()
                .map(|(name, schema)| (name.clone(), self.schema(schema, false)))
                .collect::<JsonMap>()
                .into(),
            ("anyOf", Json::Array(choices)) => choices.iter().map(|choice| self.schema(choice, false)).collect(),
            ("items", items @ Json::Object(_)) => self.schema(items, false),
            (_, value) => value.clone(),
        }
    }
}

/// Returns whether a keyword does not restrict values.
fn is_annotation(key: &str) -> bool {
    ["title", "description", "default", "$defs", "definitions"].contains(&key)
        || !COMMON.contains(&key) && !BOUNDS.contains(&key) && !STRUCTURAL.contains(&key) && key != "oneOf"
}

/// Adds the type of a schema that implies it: providers require one.
fn infer_type(map: &mut JsonMap) {
    if map.contains_key("type") || ["$ref", "anyOf", "allOf"].iter().any(|word| map.contains_key(*word)) {
        return;
    }
    let literals = map.get("enum").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut types: Vec<&str> = literals.iter().chain(map.get("const")).map(type_of).collect();
    if types.is_empty() && map.contains_key("properties") {
        types.push("object");
    }
    if types.is_empty() && map.contains_key("items") {
        types.push("array");
    }
    types.sort_unstable();
    types.dedup();
    let types = match types.as_slice() {
        [] => return,
        [one] => json!(one),
        several => json!(several),
    };
    map.shift_insert(0, "type".to_owned(), types);
}

fn type_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Requires all properties of an object, and forbids others.
fn close(map: &mut JsonMap) {
    let Some(Json::Object(properties)) = map.get("properties") else { return };
    let names: Json = properties.keys().cloned().collect();
    map.insert("required".to_owned(), names);
    map.insert("additionalProperties".to_owned(), Json::Bool(false));
}

/// Puts a reference that has other keywords next to it into a list of one choice, because providers refuse it otherwise.
fn wrap_reference(map: &mut JsonMap) {
    let is_alone = map.keys().all(|key| matches!(key.as_str(), "$ref" | "$defs" | "definitions"));
    if !is_alone
        && !map.contains_key("anyOf")
        && let Some(reference) = map.shift_remove("$ref")
    {
        map.insert("anyOf".to_owned(), json!([{ "$ref": reference }]));
    }
}

/// The maximum number of references to follow from one schema to the next.
const MAX_CHAIN: usize = 64;

/// Returns whether a schema refers to itself.
fn is_recursive(root: &Json) -> bool {
    let mut done = BTreeSet::new();
    let mut path = Vec::new();
    has_circle(root, root, &mut path, &mut done)
}

fn has_circle<'s>(schema: &'s Json, root: &'s Json, path: &mut Vec<&'s str>, done: &mut BTreeSet<&'s str>) -> bool {
    if let Some(name) = schema.get("$ref").and_then(Json::as_str) {
        // A long chain of references counts as a circle.
        if name == "#" || path.contains(&name) || path.len() > MAX_CHAIN {
            return true;
        }
        if done.insert(name)
            && let Some(target) = reference(schema, root)
        {
            path.push(name);
            let found = has_circle(target, root, path, done);
            path.pop();
            if found {
                return true;
            }
        }
    }
    within(schema).any(|inner| has_circle(inner, root, path, done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_name_without_a_schema_cannot_be_enforced() {
        let inner = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]});
        let schema = json!({"type": "object", "properties": {"inner": inner}, "required": ["inner"]});
        for dialect in [Dialect::OpenAi, Dialect::Azure, Dialect::Anthropic] {
            let strict = StrictSchema::new(&schema, dialect);
            assert_eq!(strict.losses().collect::<Vec<_>>(), ["`required` of an undeclared property"]);
        }
    }
}
