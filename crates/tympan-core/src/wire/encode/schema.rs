//! Converts declared properties to JSON Schema.

use std::collections::HashSet;

use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value as Json;
use smallvec::SmallVec;

use crate::spec::Binding;
use crate::spec::schema::{Property, PropertyKind};

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
            let is_nullable = property.nullable || (strict && property.required != Some(true));
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

    /// Writes the branches of a union. Providers that enforce schemas know `anyOf`, but not `oneOf`.
    fn write_union<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let Self { property, strict, is_nullable } = *self;
        let key = if property.one_of.is_empty() || strict { "anyOf" } else { "oneOf" };
        map.serialize_entry(
            key,
            &Sequence(|| {
                let branches = property.branches().iter();
                let branches =
                    branches.map(|branch| Branch::Of(Self { property: branch, strict, is_nullable: branch.nullable }));
                branches.chain(is_nullable.then_some(Branch::Null))
            }),
        )?;
        if let Some(description) = &property.description {
            map.serialize_entry("description", description)?;
        }
        if let Some(values) = &property.enum_values {
            map.serialize_entry("enum", values)?;
        }
        Ok(())
    }
}

/// A branch of a union.
enum Branch<'a> {
    Of(PropertySchema<'a>),
    Null,
}

impl Serialize for Branch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Of(schema) => schema.serialize(serializer),
            Self::Null => serializer.collect_map([("type", "null")]),
        }
    }
}

impl Serialize for PropertySchema<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { property, strict, is_nullable } = *self;
        let mut map = serializer.serialize_map(None)?;
        if !property.branches().is_empty() {
            self.write_union(&mut map)?;
            return map.end();
        }
        let types = self.types();
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
            map.serialize_entry("items", &PropertySchema { property: items, strict, is_nullable: items.nullable })?;
        }
        if types.contains(&"object") && (strict || !property.properties.is_empty()) {
            ObjectSchema { properties: &property.properties, bound: &[], strict }.write(&mut map)?;
        }
        map.end()
    }
}

/// Returns the JSON Schema type of a kind. Images, audio and files are strings: a URL or base64 data.
const fn json_type(kind: PropertyKind) -> &'static str {
    match kind {
        PropertyKind::Float => "number",
        PropertyKind::Thread => "array",
        PropertyKind::Image | PropertyKind::File | PropertyKind::Audio => "string",
        kind => kind.as_str(),
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
    fn unions_keep_their_branches() {
        let branches = || vec![Property::new("", PropertyKind::String), Property::new("", PropertyKind::Boolean)];
        let property = Property { one_of: branches(), required: Some(true), ..Property::default() };
        let written = |property: &Property, strict| {
            let property = Property { name: "x".into(), ..property.clone() };
            json!(ObjectSchema { properties: &[property], bound: &[], strict })["properties"]["x"].clone()
        };
        let types = |names: &[&str]| names.iter().map(|name| json!({"type": name})).collect::<Json>();
        assert_eq!(written(&property, false), json!({"oneOf": types(&["string", "boolean"])}));
        assert_eq!(written(&property, true), json!({"anyOf": types(&["string", "boolean"])}));
        let optional = Property { required: None, ..property };
        assert_eq!(written(&optional, true), json!({"anyOf": types(&["string", "boolean", "null"])}));
        let nullable = Property { any_of: branches(), nullable: true, ..Property::default() };
        assert_eq!(written(&nullable, false), json!({"anyOf": types(&["string", "boolean", "null"])}));
        let simple = Property { nullable: true, ..Property::default() };
        assert_eq!(written(&simple, false), json!({"type": ["string", "null"]}));
    }

    #[test]
    fn objects_are_strict_all_the_way_down() {
        let inner = Property { required: Some(true), ..Property::new("free", PropertyKind::Object) };
        let schema = json!(ObjectSchema::strict(std::slice::from_ref(&inner)));
        let empty = json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
        assert_eq!(schema["properties"]["free"], empty);
    }
}
