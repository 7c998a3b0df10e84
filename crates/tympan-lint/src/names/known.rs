//! What declarations say about values.

use tympan_core::spec::schema::{Property, PropertyKind};

/// What is known about a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Known<'p> {
    Nothing,
    Declared(&'p Property),
}

pub(super) fn is_single(property: &Property) -> bool {
    property.kinds.len() <= 1 && property.schema.is_none()
}

/// Returns whether a declaration may be a string only because its kind is missing.
pub(super) fn is_text(property: &Property) -> bool {
    property.kind == PropertyKind::String && property.enum_values.is_none()
}

pub(super) fn is_scalar(property: &Property) -> bool {
    use PropertyKind::{Boolean, Float, Integer, String};
    is_single(property) && matches!(property.kind, String | Integer | Float | Boolean)
}

/// Returns whether a value has no other attributes than those that are declared.
pub(super) fn is_closed(property: &Property) -> bool {
    let is_open = property.extra.contains_key("additionalProperties");
    let is_object = property.kind == PropertyKind::Object && !property.properties.is_empty() && !is_open;
    is_single(property) && (is_object || is_scalar(property))
}

/// Returns what is known about a property, if it is declared. A property without a kind may be anything.
pub(super) fn known_property<'p>(declaration: &'p Property, name: &str) -> Option<Known<'p>> {
    let found = declaration.properties.iter().find(|property| property.name == name)?;
    Some(if is_text(found) { Known::Nothing } else { Known::Declared(found) })
}

pub(super) fn item_of(property: &Property) -> Known<'_> {
    match &property.items {
        Some(items) if property.kind == PropertyKind::Array && !is_text(items) => Known::Declared(items),
        _ => Known::Nothing,
    }
}

/// Returns what is known about a value after a filter.
pub(super) fn filtered<'p>(filter: &str, value: Known<'p>) -> Known<'p> {
    match (filter, value) {
        ("first" | "last" | "random" | "min" | "max", Known::Declared(list)) => item_of(list),
        ("sort" | "reverse" | "unique" | "select" | "reject" | "selectattr" | "rejectattr", Known::Declared(list))
            if list.kind == PropertyKind::Array =>
        {
            value
        }
        ("list", Known::Declared(list)) if list.kind == PropertyKind::Array => value,
        _ => Known::Nothing,
    }
}
