//! Converts declared properties to JSON Schema.

use std::collections::HashSet;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::json::JsonMap;
use crate::spec::Binding;
use crate::spec::json_schema::{json_type, without};
use crate::spec::schema::{Property, written_schema};
use crate::spec::strict_schema::{Dialect, Size, StrictSchema};

/// The schema of a map with these properties.
///
/// A strict schema is one that providers can enforce, at every level: all properties are required, optional ones may be
/// null, and additional properties are not allowed.
#[derive(Clone, Copy)]
pub(super) struct ObjectSchema<'a> {
    pub(super) properties: &'a [Property],
    /// Bound properties, which the model neither sees nor sets.
    pub(super) bound: &'a [Binding],
    pub(super) strict: bool,
}

impl<'a> ObjectSchema<'a> {
    /// Creates the strict schema of a response.
    pub(super) fn strict(properties: &'a [Property]) -> Self {
        Self { properties, bound: &[], strict: true }
    }

    /// Converts the schema to JSON.
    pub(super) fn to_json(self) -> Json {
        // All map keys are strings, so serialization cannot fail.
        serde_json::to_value(self).unwrap_or_default()
    }

    fn visible(self) -> impl Iterator<Item = &'a Property> {
        let bound: HashSet<&str> = self.bound.iter().map(|binding| binding.parameter.as_str()).collect();
        self.properties.iter().filter(move |property| !bound.contains(property.name.as_str()))
    }

    fn required(self) -> impl Iterator<Item = &'a str> {
        let is_required = move |property: &&Property| self.strict || property.required == Some(true);
        self.visible().filter(is_required).map(|property| property.name.as_str())
    }

    fn write<M: SerializeMap>(self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("properties", &Properties(self))?;
        if self.strict || self.required().next().is_some() {
            map.serialize_entry("required", &Sequence(|| self.required()))?;
        }
        if self.strict {
            map.serialize_entry("additionalProperties", &false)?;
        }
        Ok(())
    }
}

/// Returns the schema that the author wrote for these properties, without the bound ones. Returns `None` if the
/// properties themselves say everything.
pub(crate) fn written(properties: &[Property], bound: &[Binding]) -> Option<Json> {
    let schema = written_schema(properties)?;
    let bound: HashSet<&str> = bound.iter().map(|binding| binding.parameter.as_str()).collect();
    let given: HashSet<&str> = properties.iter().map(|property| property.name.as_str()).collect();
    let declared = schema.get("properties").and_then(Json::as_object);
    // The host may use only some of the properties.
    let is_absent = |name: &str| {
        !given.contains(name) && declared.is_some_and(|declared| declared.contains_key(name)) || bound.contains(name)
    };
    let Json::Object(mut schema) = without(schema, &is_absent) else { return None };
    let mut whole = JsonMap::new();
    // Providers refuse the parameters of a function without these.
    whole.insert("type".to_owned(), schema.shift_remove("type").unwrap_or_else(|| "object".into()));
    whole.extend(schema);
    whole.entry("properties").or_insert_with(|| JsonMap::new().into());
    let optional = properties.iter().filter(|property| property.required == Some(false));
    let optional: HashSet<&str> = optional.map(|property| property.name.as_str()).collect();
    if let Some(Json::Array(required)) = whole.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(|name| optional.contains(name)));
    }
    for property in properties.iter().filter(|property| property.schema.is_none()) {
        add(&mut whole, property);
    }
    Some(Json::Object(whole))
}

/// Adds a property that the host declared beside those of a schema.
fn add(schema: &mut JsonMap, property: &Property) {
    let declared = PropertySchema { property, strict: false, is_nullable: false };
    // All map keys are strings, so serialization cannot fail.
    let declared = serde_json::to_value(declared).unwrap_or_default();
    if let Some(Json::Object(properties)) = schema.get_mut("properties") {
        properties.insert(property.name.clone(), declared);
    }
    if property.required == Some(true)
        && let Json::Array(required) = schema.entry("required").or_insert_with(|| Json::Array(Vec::new()))
    {
        required.push(property.name.clone().into());
    }
}

/// The schema of a response.
pub(super) struct ResponseSchema<'a> {
    pub(super) schema: ResponseSchemaKind<'a>,
    /// Whether the provider can enforce all of the schema.
    pub(super) is_strict: bool,
    /// Whether the provider accepts the schema only if it can enforce it, but cannot.
    pub(super) is_unusable: bool,
}

/// The schema of a response, from its declaration.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum ResponseSchemaKind<'a> {
    /// Built from the declared properties.
    Declared(ObjectSchema<'a>),
    /// Written by the author.
    Written(Json),
}

impl<'a> ResponseSchema<'a> {
    /// Converts declared outputs. A schema that the provider cannot enforce stays as it was written, because the result
    /// is checked in any case.
    pub(super) fn new(outputs: &'a [Property], dialect: Dialect) -> Self {
        let Some(written) = written(outputs, &[]) else {
            return Self::declared(ObjectSchema::strict(outputs), dialect);
        };
        let strict = StrictSchema::new(&written, dialect);
        let is_strict = strict.is_exact();
        let is_usable = strict.inexpressible.is_empty();
        let schema = if is_strict || is_usable && dialect == Dialect::Anthropic { strict.schema } else { written };
        Self { schema: ResponseSchemaKind::Written(schema), is_strict, is_unusable: !is_usable }
    }

    fn declared(schema: ObjectSchema<'a>, dialect: Dialect) -> Self {
        let is_small = Size::of(&schema.to_json()).fits(dialect);
        let schema = ResponseSchemaKind::Declared(schema);
        Self { schema, is_strict: is_small, is_unusable: !is_small }
    }

    /// Returns the size of the schema.
    pub(super) fn size(&self) -> Size {
        match &self.schema {
            ResponseSchemaKind::Declared(schema) => Size::of(&schema.to_json()),
            ResponseSchemaKind::Written(schema) => Size::of(schema),
        }
    }
}

impl Serialize for ObjectSchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "object")?;
        self.write(&mut map)?;
        map.end()
    }
}

struct Properties<'a>(ObjectSchema<'a>);

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let strict = self.0.strict;
        serializer.collect_map(self.0.visible().map(|property| {
            let is_nullable = strict && property.required != Some(true);
            (&property.name, PropertySchema { property, strict, is_nullable })
        }))
    }
}

struct PropertySchema<'a> {
    property: &'a Property,
    strict: bool,
    is_nullable: bool,
}

impl PropertySchema<'_> {
    /// Returns the types that a value may have, without duplicates.
    fn types(&self) -> SmallVec<[&'static str; 4]> {
        let Property { kind, kinds, .. } = self.property;
        let kinds = if kinds.is_empty() { std::slice::from_ref(kind) } else { kinds };
        let mut types = SmallVec::new();
        for name in kinds.iter().map(|kind| json_type(*kind)).chain(self.is_nullable.then_some("null")) {
            if !types.contains(&name) {
                types.push(name);
            }
        }
        types
    }
}

impl Serialize for PropertySchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { property, strict, is_nullable } = *self;
        let types = self.types();
        let mut map = serializer.serialize_map(None)?;
        match types.as_slice() {
            [only] => map.serialize_entry("type", only)?,
            several => map.serialize_entry("type", several)?,
        }
        if let Some(description) = &property.description {
            map.serialize_entry("description", description)?;
        }
        if let Some(values) = &property.enum_values {
            let null = is_nullable && !values.contains(&Json::Null);
            map.serialize_entry("enum", &Sequence(|| values.iter().chain(null.then_some(&Json::Null))))?;
        }
        if let Some(items) = property.items.as_deref() {
            map.serialize_entry("items", &PropertySchema { property: items, strict, is_nullable: false })?;
        }
        if types.contains(&"object") && (strict || !property.properties.is_empty()) {
            ObjectSchema { properties: &property.properties, bound: &[], strict }.write(&mut map)?;
        }
        map.end()
    }
}

/// A list that is serialized from an iterator, without collecting it first.
struct Sequence<F>(F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for Sequence<F> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for item in (self.0)() {
            list.serialize_element(&item)?;
        }
        list.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::schema::PropertyKind;
    use serde_json::json;

    #[test]
    fn unions_list_each_type_once() {
        let kinds = vec![PropertyKind::String, PropertyKind::Image, PropertyKind::Float];
        let property = Property { kinds, required: Some(true), ..Property::new("x", PropertyKind::String) };
        let written = |strict| {
            let properties = std::slice::from_ref(&property);
            json!(ObjectSchema { properties, bound: &[], strict })["properties"]["x"].clone()
        };
        assert_eq!(written(true), json!({"type": ["string", "number"]}));
        assert_eq!(written(false), json!({"type": ["string", "number"]}));
    }

    #[test]
    fn objects_are_strict_all_the_way_down() {
        let inner = Property { required: Some(true), ..Property::new("free", PropertyKind::Object) };
        let schema = json!(ObjectSchema::strict(std::slice::from_ref(&inner)));
        let empty = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
        assert_eq!(schema["properties"]["free"], empty);
    }
}
