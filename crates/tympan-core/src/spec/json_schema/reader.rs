//! Reads properties from a JSON Schema.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::{MAX_HOPS, is_understood, reference};
use crate::spec::schema::{Property, PropertyKind};

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

/// Returns whether every object that matches a schema has a property of this name.
#[cfg(feature = "wire")]
pub(crate) fn schema_requires(schema: &Json, name: &str) -> bool {
    let mut parts = Vec::new();
    collect_parts(schema, schema, true, 0, &mut parts);
    let required = |part: &Json| part.get("required")?.as_array().map(|names| names.iter().any(|one| one == name));
    parts.into_iter().any(|(part, is_certain)| is_certain && required(part) == Some(true))
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
