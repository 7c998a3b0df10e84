//! Schemas of OpenAPI as JSON Schema that stands alone.
//!
//! References are replaced by what they lead to, because not every provider follows them. Where a schema contains
//! itself, or grows past the bounds, only its type and description stay: whoever gets the value checks the rest.

use serde_json::{Value as Json, json};
use tympan::JsonMap;

use super::Reason;
use super::document::{Document, is_true, text_of};

/// The most values of all schemas of a function; long texts count as several. References repeat what they lead to, so a
/// small document could have very many.
const MAX_VALUES: usize = 4_000;
/// The bytes of a text that count as one value.
const TEXT_BYTES: usize = 64;
/// How deep schemas may stand in each other.
const MAX_DEPTH: usize = 24;
/// The most characters of a description in a schema.
const MAX_DESCRIPTION: usize = 500;
/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];
/// What says something about a value and nothing about which values there are.
const ANNOTATIONS: [&str; 5] = ["title", "description", "default", "deprecated", "examples"];
/// The keywords that say which values there are, and hold no schemas. Others are not for a model, or not known to
/// providers.
const ASSERTIONS: [&str; 18] = [
    "type",
    "enum",
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
    "maxProperties",
    "minProperties",
    "dependentRequired",
];

/// Makes JSON Schema of the schemas of one function.
pub(super) struct Schemas<'d> {
    document: Document<'d>,
    /// How many values may still be written.
    left: usize,
    /// The references that lead to where we are.
    within: Vec<&'d str>,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(document: Document<'d>) -> Self {
        Self { document, left: MAX_VALUES, within: Vec::new() }
    }

    /// The JSON Schema of what is sent.
    ///
    /// # Errors
    /// It refers to something that is not there.
    pub(super) fn convert(&mut self, schema: &'d Json) -> Result<Json, Reason> {
        self.schema(schema, 0)
    }

    fn schema(&mut self, schema: &'d Json, depth: usize) -> Result<Json, Reason> {
        if self.left == 0 {
            return Ok(json!({}));
        }
        self.left -= 1;
        match schema {
            Json::Object(map) => match map.get("$ref").and_then(Json::as_str) {
                Some(reference) => self.reference(reference, map, depth),
                None => self.map(map, depth).map(Json::Object),
            },
            Json::Bool(all) => Ok(Json::Bool(*all)),
            _ => Ok(json!({})),
        }
    }

    fn reference(&mut self, reference: &'d str, map: &'d JsonMap, depth: usize) -> Result<Json, Reason> {
        let target = self.document.target(reference)?;
        if self.within.contains(&reference) || depth >= MAX_DEPTH {
            return Ok(Json::Object(cut(target)));
        }
        self.within.push(reference);
        let converted = self.schema(target, depth + 1);
        self.within.pop();
        let Json::Object(mut converted) = converted? else { return Ok(json!({})) };
        // In 3.0, what stands beside a reference does not count.
        let mut beside = if self.document.is_3_0 { JsonMap::new() } else { self.map(map, depth)? };
        if beside.keys().all(|key| ANNOTATIONS.contains(&key.as_str())) {
            converted.extend(beside);
            return Ok(Json::Object(converted));
        }
        let all = beside.entry("allOf").or_insert_with(|| json!([]));
        all.as_array_mut().into_iter().for_each(|all| all.push(Json::Object(std::mem::take(&mut converted))));
        Ok(Json::Object(beside))
    }

    fn map(&mut self, map: &'d JsonMap, depth: usize) -> Result<JsonMap, Reason> {
        if depth >= MAX_DEPTH || map.len() > self.left || map.values().any(|value| length(value) > self.left) {
            return Ok(cut_map(map));
        }
        let hidden = self.read_only(map);
        let mut converted = JsonMap::new();
        for (key, value) in map {
            let value = match (key.as_str(), value) {
                ("properties" | "patternProperties" | "dependentSchemas", Json::Object(members)) => {
                    self.members(members, &hidden, depth)?
                }
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Json::Array(schemas)) => {
                    schemas.iter().map(|schema| self.schema(schema, depth + 1)).collect::<Result<_, _>>()?
                }
                (
                    "items"
                    | "additionalProperties"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "contains"
                    | "propertyNames"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    schema,
                ) => self.schema(schema, depth + 1)?,
                // Without room for it, a value is left out: what it forbids, the service refuses.
                ("required", Json::Array(names)) => {
                    let names: Json = names.iter().filter(|name| !hides(&hidden, name)).cloned().collect();
                    let Some(names) = self.plain(&names) else { continue };
                    names
                }
                (key, value) if ASSERTIONS.contains(&key) || ANNOTATIONS.contains(&key) => {
                    let Some(value) = self.plain(value) else { continue };
                    value
                }
                _ => continue,
            };
            let (key, value) = bounded((key.clone(), value));
            converted.insert(key, value);
        }
        if self.document.is_3_0 {
            from_3_0(map, &mut converted);
        }
        Ok(converted)
    }

    fn members(&mut self, members: &'d JsonMap, hidden: &[&str], depth: usize) -> Result<Json, Reason> {
        let mut converted = JsonMap::new();
        for (name, schema) in members.iter().filter(|(name, _)| !hidden.contains(&name.as_str())) {
            self.left = self.left.saturating_sub(name.len() / TEXT_BYTES);
            // A member whose name alone is too much has no place either.
            if self.left > 0 {
                converted.insert(name.clone(), self.schema(schema, depth + 1)?);
            }
        }
        Ok(Json::Object(converted))
    }

    /// Members that only answers have.
    fn read_only(&self, map: &'d JsonMap) -> Vec<&'d str> {
        let members = map.get("properties").and_then(Json::as_object).into_iter().flatten();
        let is_hidden = |schema: &'d Json| {
            is_true(schema, "readOnly") || self.document.resolve(schema).is_ok_and(|schema| is_true(schema, "readOnly"))
        };
        members.filter(|(_, schema)| is_hidden(schema)).map(|(name, _)| name.as_str()).collect()
    }

    /// A value that is no schema: allowed values, defaults, bounds.
    fn plain(&mut self, value: &Json) -> Option<Json> {
        self.left = self.left.checked_sub(size(value))?;
        Some(value.clone())
    }
}

/// What stays of a schema for which there is no room.
fn cut(schema: &Json) -> JsonMap {
    schema.as_object().map(cut_map).unwrap_or_default()
}

fn cut_map(map: &JsonMap) -> JsonMap {
    let is_nullable = map.get("nullable") == Some(&Json::Bool(true));
    let is_type = |value: &Json| value.as_str().is_some_and(|name| TYPES.contains(&name)) && !is_nullable;
    let kept = map.iter().filter(|(key, value)| match key.as_str() {
        "description" => value.is_string(),
        "type" => is_type(value),
        _ => false,
    });
    kept.map(|(key, value)| bounded((key.clone(), value.clone()))).collect()
}

/// How many values stand directly in this one.
fn length(value: &Json) -> usize {
    match value {
        Json::Array(items) => items.len(),
        Json::Object(map) => map.len(),
        _ => 0,
    }
}

fn hides(hidden: &[&str], name: &Json) -> bool {
    name.as_str().is_some_and(|name| hidden.contains(&name))
}

fn bounded((key, value): (String, Json)) -> (String, Json) {
    match value {
        Json::String(text) if key == "description" => (key, Json::String(bounded_text(&text, MAX_DESCRIPTION))),
        value => (key, value),
    }
}

/// As much of a text for models as there is room for, without what cannot be seen.
pub(super) fn bounded_text(text: &str, most: usize) -> String {
    let visible = text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t'));
    let mut bounded: String = visible.clone().take(most).collect();
    if visible.count() > most {
        bounded.push('…');
    }
    bounded
}

fn size(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Json::Object(map) => 1 + map.iter().map(|(key, value)| key.len() / TEXT_BYTES + size(value)).sum::<usize>(),
        Json::String(text) => 1 + text.len() / TEXT_BYTES,
        _ => 1,
    }
}

/// What 3.0 writes in ways of its own: `nullable`, and bounds that are exclusive by a flag.
fn from_3_0(written: &JsonMap, schema: &mut JsonMap) {
    for (flag, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        match schema.get(flag) {
            Some(Json::Bool(true)) => {
                schema.remove(flag);
                if let Some(value) = schema.remove(bound) {
                    schema.insert(flag.to_owned(), value);
                }
            }
            Some(Json::Bool(false)) => {
                schema.remove(flag);
            }
            _ => {}
        }
    }
    if written.get("nullable") != Some(&Json::Bool(true)) {
        return;
    }
    // Without a type, null is allowed unless the rest forbids it.
    if let Some(Json::String(name)) = schema.get("type") {
        let types = json!([name, "null"]);
        schema.insert("type".to_owned(), types);
    }
    if let Some(Json::Array(allowed)) = schema.get_mut("enum")
        && !allowed.contains(&Json::Null)
    {
        allowed.push(Json::Null);
    }
    if !schema.contains_key("type") && ["allOf", "anyOf", "oneOf"].iter().any(|key| schema.contains_key(*key)) {
        let description = schema.remove("description");
        let inner = std::mem::take(schema);
        schema.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
        schema.extend(description.map(|description| ("description".to_owned(), description)));
    }
}

/// The schema of a parameter or a body, with the description of what it is the schema of.
pub(super) fn described(schema: Json, of: &Json) -> Json {
    let Json::Object(mut schema) = schema else { return schema };
    if let Some(description) = text_of(of, "description").filter(|text| !text.is_empty()) {
        schema.insert("description".to_owned(), bounded_text(description, MAX_DESCRIPTION).into());
    }
    Json::Object(schema)
}
