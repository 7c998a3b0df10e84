//! Converts OpenAPI schemas to self-contained JSON Schema.
//!
//! References are replaced by their targets, because some providers do not resolve them. If a schema is recursive or
//! exceeds the limits, only its type and description remain; the service checks the rest.

use std::collections::HashSet;

use serde_json::{Value as Json, json};
use tympan_core::JsonMap;

use crate::tool::openapi::Reason;
use crate::tool::openapi::document::{Document, is_true, text_of};

/// The maximum number of values in all schemas of a function. Long strings count as several. References duplicate their
/// targets, so even a small document could exceed any limit.
const MAX_VALUES: usize = 4_000;
/// The maximum number of values in the schemas of all functions of a document.
const MAX_DOCUMENT_VALUES: usize = 200_000;
/// The maximum number of schema members to visit for all functions of a document, including those that are not output.
const MAX_STEPS: usize = 1_000_000;
/// The number of bytes of a string that count as one value.
const TEXT_BYTES: usize = 64;
/// The maximum nesting depth of schemas.
const MAX_DEPTH: usize = 24;
/// The maximum length of a description in a schema, in characters.
const MAX_DESCRIPTION: usize = 500;
/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];
/// The keywords that describe a value without restricting it.
const ANNOTATIONS: [&str; 5] = ["title", "description", "default", "deprecated", "examples"];
/// The keywords that restrict values and do not contain schemas. Other keywords are not useful to a model, or not
/// supported by providers.
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

/// The remaining limits for the schemas of a document, shared by all functions.
pub(super) struct Bounds {
    values: usize,
    steps: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { values: MAX_DOCUMENT_VALUES, steps: MAX_STEPS }
    }
}

/// Converts the schemas of one function to JSON Schema.
pub(super) struct Schemas<'d, 'b> {
    document: Document<'d>,
    /// The number of values that may still be output for this function.
    left: usize,
    bounds: &'b mut Bounds,
    /// The references that are currently being resolved.
    within: Vec<&'d str>,
}

impl<'d, 'b> Schemas<'d, 'b> {
    pub(super) fn new(document: Document<'d>, bounds: &'b mut Bounds) -> Self {
        Self { document, left: MAX_VALUES.min(bounds.values), bounds, within: Vec::new() }
    }

    /// Consumes room for values.
    fn take(&mut self, values: usize) {
        self.left = self.left.saturating_sub(values);
        self.bounds.values = self.bounds.values.saturating_sub(values);
    }

    /// Returns whether the limit on visited members has been reached, so that nothing more is output.
    pub(super) fn is_exhausted(&self) -> bool {
        self.bounds.steps == 0
    }

    /// Counts members that are visited. Once the limit is reached, nothing more is output.
    pub(super) fn look_at(&mut self, members: usize) {
        self.bounds.steps = self.bounds.steps.saturating_sub(members);
        if self.bounds.steps == 0 {
            self.left = 0;
        }
    }

    /// Converts a schema of a request to JSON Schema.
    ///
    /// # Errors
    /// Returns an error if a reference cannot be resolved.
    pub(super) fn convert(&mut self, schema: &'d Json) -> Result<Json, Reason> {
        self.schema(schema, 0)
    }

    fn schema(&mut self, schema: &'d Json, depth: usize) -> Result<Json, Reason> {
        if self.left == 0 {
            return Ok(json!({}));
        }
        self.take(1);
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
        // In OpenAPI 3.0, keywords next to a reference are ignored.
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
        self.look_at(map.len());
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
                // Without room, the keyword is omitted. The service still rejects what it forbids.
                ("required", Json::Array(names)) => {
                    if !self.has_room(value) {
                        continue;
                    }
                    names.iter().filter(|name| !hides(&hidden, name)).cloned().collect()
                }
                // A value that is not a schema: allowed values, defaults, limits.
                (key, value) if ASSERTIONS.contains(&key) || ANNOTATIONS.contains(&key) => {
                    if !self.has_room(value) {
                        continue;
                    }
                    value.clone()
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

    fn members(&mut self, members: &'d JsonMap, hidden: &HashSet<&str>, depth: usize) -> Result<Json, Reason> {
        let mut converted = JsonMap::new();
        for (name, schema) in members.iter().filter(|(name, _)| !hidden.contains(name.as_str())) {
            self.take(name.len() / TEXT_BYTES);
            // A member whose name exceeds the remaining room is omitted too.
            if self.left > 0 {
                converted.insert(name.clone(), self.schema(schema, depth + 1)?);
            }
        }
        Ok(Json::Object(converted))
    }

    /// Returns the read-only members, which appear only in responses.
    fn read_only(&mut self, map: &'d JsonMap) -> HashSet<&'d str> {
        let Some(members) = map.get("properties").and_then(Json::as_object) else { return HashSet::new() };
        self.look_at(members.len());
        let is_hidden = |schema: &'d Json| {
            is_true(schema, "readOnly") || self.document.resolve(schema).is_ok_and(|schema| is_true(schema, "readOnly"))
        };
        members.iter().filter(|(_, schema)| is_hidden(schema)).map(|(name, _)| name.as_str()).collect()
    }

    /// Returns whether there is room for a value, and if so, consumes it.
    fn has_room(&mut self, value: &Json) -> bool {
        let mut left = self.left;
        let has_room = has_room_for(value, &mut left);
        let size = self.left - left;
        self.look_at(size);
        if has_room {
            self.take(size);
        }
        has_room
    }
}

/// Returns what remains of a schema that has no room.
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

/// Returns the number of direct children of a value.
fn length(value: &Json) -> usize {
    match value {
        Json::Array(items) => items.len(),
        Json::Object(map) => map.len(),
        _ => 0,
    }
}

fn hides(hidden: &HashSet<&str>, name: &Json) -> bool {
    name.as_str().is_some_and(|name| hidden.contains(name))
}

fn bounded((key, value): (String, Json)) -> (String, Json) {
    match value {
        Json::String(text) if key == "description" => (key, Json::String(bounded_text(&text, MAX_DESCRIPTION))),
        value => (key, value),
    }
}

/// Shortens a text for models, and removes invisible characters.
pub(super) fn bounded_text(text: &str, most: usize) -> String {
    // Texts can be long and used many times, so never scan much more than is used.
    let is_visible = |char: &char| !char.is_control() || matches!(char, '\n' | '\t');
    let mut visible = text.chars().take(4 * most).filter(is_visible);
    let mut bounded: String = visible.by_ref().take(most).collect();
    if visible.next().is_some() || text.chars().nth(4 * most).is_some() {
        bounded.push('…');
    }
    bounded
}

/// Returns whether a value fits into the remaining room, and consumes it. Visits no more of the value than fits.
fn has_room_for(value: &Json, left: &mut usize) -> bool {
    match value {
        Json::Array(items) => take(left, 1) && items.iter().all(|item| has_room_for(item, left)),
        Json::Object(map) => {
            let member =
                |(key, value): (&String, &Json)| take(left, key.len() / TEXT_BYTES) && has_room_for(value, left);
            map.iter().all(member) && take(left, 1)
        }
        Json::String(text) => take(left, 1 + text.len() / TEXT_BYTES),
        _ => take(left, 1),
    }
}

fn take(left: &mut usize, size: usize) -> bool {
    let rest = left.checked_sub(size);
    *left = rest.unwrap_or(0);
    rest.is_some()
}

/// Converts features specific to OpenAPI 3.0: `nullable`, and exclusive limits that are flags.
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
    // Without a type, null is allowed unless another keyword forbids it.
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

/// Adds the description of a parameter or a body to its schema.
pub(super) fn described(schema: Json, of: &Json) -> Json {
    let Json::Object(mut schema) = schema else { return schema };
    if let Some(description) = text_of(of, "description").filter(|text| !text.is_empty()) {
        schema.insert("description".to_owned(), bounded_text(description, MAX_DESCRIPTION).into());
    }
    Json::Object(schema)
}
