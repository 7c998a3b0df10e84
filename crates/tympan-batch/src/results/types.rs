//! The types of result columns: what a prompt declares as its outputs, as types of Arrow.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, ListArray, StringArray, StructArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields};
use serde_json::Value as Json;
use tympan_core::spec::schema::{Property, PropertyKind};

/// The deepest nesting of lists and structs. What is declared deeper is JSON text.
const MAX_DEPTH: usize = 32;

/// The type of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Text.
    Text,
    /// A value of any other shape, as JSON text.
    Json,
    Integer,
    Float,
    Boolean,
    List(Box<ColumnType>),
    Struct(Vec<(String, ColumnType)>),
}

impl ColumnType {
    /// Returns the type for a declared output.
    pub(crate) fn of_property(property: &Property) -> Self {
        Self::at_depth(property, 0)
    }

    fn at_depth(property: &Property, depth: usize) -> Self {
        if property.kinds.len() > 1 {
            let is_number = |kind: &PropertyKind| matches!(kind, PropertyKind::Integer | PropertyKind::Float);
            return if property.kinds.iter().all(is_number) { Self::Float } else { Self::Json };
        }
        match property.kind {
            PropertyKind::String => Self::Text,
            PropertyKind::Integer => Self::Integer,
            PropertyKind::Float => Self::Float,
            PropertyKind::Boolean => Self::Boolean,
            PropertyKind::Array if depth < MAX_DEPTH => match &property.items {
                Some(items) => Self::List(Box::new(Self::at_depth(items, depth + 1))),
                None => Self::Json,
            },
            PropertyKind::Object if depth < MAX_DEPTH && has_named_fields(property) => {
                let fields = property.properties.iter();
                Self::Struct(fields.map(|field| (field.name.clone(), Self::at_depth(field, depth + 1))).collect())
            }
            _ => Self::Json,
        }
    }

    /// Returns the type of Arrow.
    pub(crate) fn data_type(&self) -> DataType {
        match self {
            Self::Text | Self::Json => DataType::Utf8,
            Self::Integer => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::List(item) => DataType::List(item_field(item)),
            Self::Struct(fields) => DataType::Struct(arrow_fields(fields)),
        }
    }

    /// Checks that a value can be in a column of this type. Null always can.
    ///
    /// # Errors
    /// Returns what was expected, and where.
    pub(crate) fn check(&self, value: &Json, path: &str) -> Result<(), String> {
        let expected = |what: &str| Err(format!("`{path}`: expected {what}, found {}", name_of(value)));
        match (self, value) {
            (_, Json::Null) | (Self::Json, _) | (Self::Text, Json::String(_)) | (Self::Boolean, Json::Bool(_)) => {
                Ok(())
            }
            (Self::Integer, Json::Number(number)) => match (number.as_i64(), number.is_u64()) {
                (Some(_), _) => Ok(()),
                (None, true) => Err(format!("`{path}`: the integer is larger than a column of int64 can hold")),
                (None, false) => expected("an integer"),
            },
            (Self::Float, Json::Number(number)) => match number.as_f64().filter(|number| number.is_finite()) {
                Some(_) => Ok(()),
                None => expected("a finite number"),
            },
            (Self::List(item), Json::Array(values)) => {
                let mut values = values.iter().enumerate();
                values.try_for_each(|(index, value)| item.check(value, &format!("{path}[{index}]")))
            }
            (Self::Struct(fields), Json::Object(map)) => fields.iter().try_for_each(|(name, kind)| {
                map.get(name).map_or(Ok(()), |value| kind.check(value, &format!("{path}.{name}")))
            }),
            (Self::Text, _) => expected("text"),
            (Self::Integer, _) => expected("an integer"),
            (Self::Float, _) => expected("a number"),
            (Self::Boolean, _) => expected("a boolean"),
            (Self::List(_), _) => expected("a list"),
            (Self::Struct(_), _) => expected("a map"),
        }
    }

    /// Builds a column of checked values.
    pub(crate) fn array(&self, values: &[Option<&Json>]) -> ArrayRef {
        let values = || values.iter().map(|value| value.filter(|value| !value.is_null()));
        match self {
            Self::Text => Arc::new(values().map(|value| value.and_then(Json::as_str)).collect::<StringArray>()),
            Self::Json => Arc::new(values().map(|value| value.map(Json::to_string)).collect::<StringArray>()),
            Self::Integer => Arc::new(values().map(|value| value.and_then(Json::as_i64)).collect::<Int64Array>()),
            Self::Float => Arc::new(values().map(|value| value.and_then(Json::as_f64)).collect::<Float64Array>()),
            Self::Boolean => Arc::new(values().map(|value| value.and_then(Json::as_bool)).collect::<BooleanArray>()),
            Self::List(item) => {
                let lists: Vec<_> = values().map(|value| value.and_then(Json::as_array)).collect();
                let nulls: NullBuffer = lists.iter().map(Option::is_some).collect::<Vec<_>>().into();
                let lengths = lists.iter().map(|list| list.map_or(0, Vec::len));
                let offsets = OffsetBuffer::<i32>::from_lengths(lengths);
                let items: Vec<_> = lists.iter().copied().flatten().flatten().map(Some).collect();
                Arc::new(ListArray::new(item_field(item), offsets, item.array(&items), Some(nulls)))
            }
            Self::Struct(fields) => {
                let maps: Vec<_> = values().map(|value| value.and_then(Json::as_object)).collect();
                let nulls: NullBuffer = maps.iter().map(Option::is_some).collect::<Vec<_>>().into();
                let columns = fields.iter().map(|(name, kind)| {
                    let values: Vec<_> = maps.iter().map(|map| map.and_then(|map| map.get(name))).collect();
                    kind.array(&values)
                });
                Arc::new(StructArray::new(arrow_fields(fields), columns.collect(), Some(nulls)))
            }
        }
    }
}

/// Returns whether an object can be a struct. Without declared fields, its fields may be any.
fn has_named_fields(property: &Property) -> bool {
    !property.properties.is_empty() && property.properties.iter().all(|field| !field.name.is_empty())
}

fn item_field(item: &ColumnType) -> Arc<Field> {
    Arc::new(Field::new_list_field(item.data_type(), true))
}

fn arrow_fields(fields: &[(String, ColumnType)]) -> Fields {
    fields.iter().map(|(name, kind)| Field::new(name, kind.data_type(), true)).collect()
}

/// Returns what a value is, for people.
fn name_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(number) if number.is_f64() => "a number",
        Json::Number(_) => "an integer",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "a map",
    }
}
