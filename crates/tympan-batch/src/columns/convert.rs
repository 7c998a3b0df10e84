//! Text that is read as the declared kind of an input.
//!
//! Files such as CSV have only text. An integer or a list in them is written as in JSON, so text is parsed as JSON if the
//! input is declared as something other than text. Text that is not JSON stays text, and the check of kinds reports it.

use bumpalo::Bump;
use serde_json::Value as Json;
use tympan_core::spec::schema::PropertyKind;
use tympan_core::template::input::InputData;

use super::array::Unusable;

/// Reads text as a kind. Blank text is no value.
pub(crate) fn read_as<'b>(text: &'b str, kind: PropertyKind, arena: &'b Bump) -> Result<InputData<'b>, Unusable> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Ok(InputData::Null);
    }
    match kind {
        PropertyKind::String => Ok(InputData::Str(text)),
        PropertyKind::Integer => Ok(trimmed.parse().map_or_else(|_| number(trimmed, text), InputData::Int)),
        PropertyKind::Float => Ok(number(trimmed, text)),
        PropertyKind::Boolean => Ok(match trimmed {
            _ if trimmed.eq_ignore_ascii_case("true") => InputData::Bool(true),
            _ if trimmed.eq_ignore_ascii_case("false") => InputData::Bool(false),
            _ => InputData::Str(text),
        }),
        _ if !trimmed.starts_with(['[', '{']) => Ok(InputData::Str(text)),
        _ => match serde_json::from_str::<Json>(trimmed) {
            Ok(json) => copy(&json, arena),
            Err(_) => Ok(InputData::Str(text)),
        },
    }
}

/// Reads text as a kind, as JSON.
pub(crate) fn json_as(text: &str, kind: PropertyKind) -> Json {
    match serde_json::from_str(text.trim()) {
        Ok(json @ (Json::Array(_) | Json::Object(_))) if !matches!(kind, PropertyKind::String) => json,
        _ => match read_as(text, kind, &Bump::new()) {
            Ok(value) => value.to_json(),
            Err(_) => Json::String(text.to_owned()),
        },
    }
}

fn number<'b>(trimmed: &str, text: &'b str) -> InputData<'b> {
    match serde_json::from_str::<serde_json::Number>(trimmed) {
        Ok(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), ..) => InputData::Int(number),
            (_, Some(number), _) => InputData::Uint(number),
            (.., Some(number)) => InputData::Float(number),
            _ => InputData::Str(text),
        },
        Err(_) => InputData::Str(text),
    }
}

/// Copies JSON into the arena. The arena runs no destructors, so it must not own the JSON itself.
fn copy<'b>(json: &Json, arena: &'b Bump) -> Result<InputData<'b>, Unusable> {
    Ok(match json {
        Json::Null => InputData::Null,
        Json::Bool(value) => InputData::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(value), _) => InputData::Int(value),
            (None, Some(value)) => InputData::Uint(value),
            (None, None) => InputData::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => InputData::Str(arena.alloc_str(text)),
        Json::Array(items) => {
            let mut list = bumpalo::collections::Vec::with_capacity_in(items.len(), arena);
            for item in items {
                list.push(copy(item, arena)?);
            }
            InputData::List(list.into_bump_slice())
        }
        Json::Object(map) => {
            let mut entries = bumpalo::collections::Vec::with_capacity_in(map.len(), arena);
            for (key, value) in map {
                entries.push((&*arena.alloc_str(key), copy(value, arena)?));
            }
            InputData::map(entries.into_bump_slice()).ok_or(Unusable::TooManyKeys)?
        }
    })
}
