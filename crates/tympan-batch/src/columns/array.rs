//! Reads values of Arrow arrays.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BooleanArray, GenericBinaryArray, GenericListArray, GenericStringArray,
    MapArray, OffsetSizeTrait, PrimitiveArray, StringViewArray, StructArray,
};
use arrow::datatypes::{
    ArrowPrimitiveType, DataType, Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bumpalo::Bump;
use serde_json::Value as Json;
use tympan_core::JsonMap;
use tympan_core::template::input::InputData;

/// The deepest nesting of lists and structs.
const MAX_DEPTH: usize = 64;

/// Why a value cannot be an input.
#[derive(Debug)]
pub(crate) enum Unusable {
    /// The value has a map with more keys than [`InputData::map`] takes. As JSON, it can be an input.
    TooManyKeys,
    /// The reason, for people.
    Because(String),
}

impl From<String> for Unusable {
    fn from(reason: String) -> Self {
        Self::Because(reason)
    }
}

type Outcome<T> = Result<T, Unusable>;

/// A column, with its type resolved.
pub(crate) enum Column<'a> {
    Null,
    Bool(&'a BooleanArray),
    Int(Integers<'a>),
    Float16(&'a PrimitiveArray<Float16Type>),
    Float32(&'a PrimitiveArray<Float32Type>),
    Float64(&'a PrimitiveArray<Float64Type>),
    Text(&'a GenericStringArray<i32>),
    LargeText(&'a GenericStringArray<i64>),
    TextView(&'a StringViewArray),
    Bytes(&'a GenericBinaryArray<i32>),
    LargeBytes(&'a GenericBinaryArray<i64>),
    BytesView(&'a BinaryViewArray),
    List(&'a GenericListArray<i32>, Box<Column<'a>>),
    LargeList(&'a GenericListArray<i64>, Box<Column<'a>>),
    Struct(&'a StructArray, Vec<(&'a str, Column<'a>)>),
    Map(&'a MapArray, Box<Column<'a>>, Box<Column<'a>>),
    /// Values that many rows share. They are never repeated in memory.
    Shared(&'a dyn Array, Keys, Box<Column<'a>>),
    /// Dates, times, decimals: values that only text can carry exactly.
    Formatted(&'a dyn Array, ArrayFormatter<'a>),
}

/// The position of each row's value in a dictionary.
pub(crate) type Keys = Vec<Option<usize>>;

pub(crate) enum Integers<'a> {
    I8(&'a PrimitiveArray<Int8Type>),
    I16(&'a PrimitiveArray<Int16Type>),
    I32(&'a PrimitiveArray<Int32Type>),
    I64(&'a PrimitiveArray<Int64Type>),
    U8(&'a PrimitiveArray<UInt8Type>),
    U16(&'a PrimitiveArray<UInt16Type>),
    U32(&'a PrimitiveArray<UInt32Type>),
    U64(&'a PrimitiveArray<UInt64Type>),
}

/// How dates and times are written: ISO 8601, as in JSON.
const FORMAT: FormatOptions<'static> = FormatOptions::new().with_display_error(false);

impl<'a> Column<'a> {
    /// Resolves the type of a column.
    pub(crate) fn new(array: &'a ArrayRef) -> Result<Self, String> {
        Self::at_depth(array, 0)
    }

    fn at_depth(array: &'a ArrayRef, depth: usize) -> Result<Self, String> {
        if depth > MAX_DEPTH {
            return Err(format!("lists and structs are nested deeper than {MAX_DEPTH} levels"));
        }
        let inner = |array| Self::at_depth(array, depth + 1).map(Box::new);
        Ok(match array.data_type() {
            DataType::Null => Self::Null,
            DataType::Boolean => Self::Bool(array.as_boolean()),
            DataType::Int8 => Self::Int(Integers::I8(array.as_primitive())),
            DataType::Int16 => Self::Int(Integers::I16(array.as_primitive())),
            DataType::Int32 => Self::Int(Integers::I32(array.as_primitive())),
            DataType::Int64 => Self::Int(Integers::I64(array.as_primitive())),
            DataType::UInt8 => Self::Int(Integers::U8(array.as_primitive())),
            DataType::UInt16 => Self::Int(Integers::U16(array.as_primitive())),
            DataType::UInt32 => Self::Int(Integers::U32(array.as_primitive())),
            DataType::UInt64 => Self::Int(Integers::U64(array.as_primitive())),
            DataType::Float16 => Self::Float16(array.as_primitive()),
            DataType::Float32 => Self::Float32(array.as_primitive()),
            DataType::Float64 => Self::Float64(array.as_primitive()),
            DataType::Utf8 => Self::Text(array.as_string()),
            DataType::LargeUtf8 => Self::LargeText(array.as_string()),
            DataType::Utf8View => Self::TextView(array.as_string_view()),
            DataType::Binary => Self::Bytes(array.as_binary()),
            DataType::LargeBinary => Self::LargeBytes(array.as_binary()),
            DataType::BinaryView => Self::BytesView(array.as_binary_view()),
            DataType::List(_) => Self::List(array.as_list(), inner(array.as_list::<i32>().values())?),
            DataType::LargeList(_) => Self::LargeList(array.as_list(), inner(array.as_list::<i64>().values())?),
            DataType::Struct(fields) => {
                let structs = array.as_struct();
                let columns = fields
                    .iter()
                    .zip(structs.columns())
                    .map(|(field, column)| Ok((field.name().as_str(), Self::at_depth(column, depth + 1)?)));
                Self::Struct(structs, columns.collect::<Result<_, String>>()?)
            }
            DataType::Map(..) => {
                let map = array.as_map();
                Self::Map(map, inner(map.keys())?, inner(map.values())?)
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let keys = dictionary.normalized_keys();
                let keys = keys.into_iter().enumerate().map(|(row, key)| array.is_valid(row).then_some(key));
                Self::Shared(array, keys.collect(), inner(dictionary.values())?)
            }
            kind if kind.is_temporal() || kind.is_decimal() => {
                let formatter = ArrayFormatter::try_new(array, &FORMAT).map_err(|error| error.to_string())?;
                Self::Formatted(array, formatter)
            }
            kind => return Err(format!("values of the Arrow type {kind} cannot be inputs")),
        })
    }

    /// Returns the text of a row if it is text.
    pub(crate) fn text(&self, row: usize) -> Option<&'a str> {
        match self {
            Self::Text(array) => array.is_valid(row).then(|| array.value(row)),
            Self::LargeText(array) => array.is_valid(row).then(|| array.value(row)),
            Self::TextView(array) => array.is_valid(row).then(|| array.value(row)),
            Self::Shared(_, keys, values) => values.text(keys.get(row).copied().flatten()?),
            _ => None,
        }
    }

    /// Returns the value of a row, borrowed as far as possible.
    pub(crate) fn value<'b>(&self, row: usize, arena: &'b Bump) -> Outcome<InputData<'b>>
    where
        'a: 'b,
    {
        if let Some(text) = self.text(row) {
            return Ok(InputData::Str(text));
        }
        if self.is_null(row) {
            return Ok(InputData::Null);
        }
        Ok(match self {
            Self::Bool(array) => InputData::Bool(array.value(row)),
            Self::Int(array) => array.value(row),
            Self::Float16(_) | Self::Float32(_) | Self::Float64(_) => InputData::Float(self.float(row)?),
            Self::Bytes(_) | Self::LargeBytes(_) | Self::BytesView(_) => {
                InputData::Str(arena.alloc_str(&STANDARD.encode(self.bytes(row))))
            }
            Self::List(array, values) => list(array, row, values, arena)?,
            Self::LargeList(array, values) => list(array, row, values, arena)?,
            Self::Struct(_, fields) => {
                let mut entries = bumpalo::collections::Vec::with_capacity_in(fields.len(), arena);
                for (name, column) in fields {
                    entries.push((*name, column.value(row, arena)?));
                }
                InputData::map(entries.into_bump_slice()).ok_or(Unusable::TooManyKeys)?
            }
            Self::Map(array, keys, values) => {
                let range = range(array.offsets(), row);
                let mut entries = bumpalo::collections::Vec::with_capacity_in(range.len(), arena);
                for at in range {
                    let key = keys.key(at)?;
                    entries.push((&*arena.alloc_str(&key), values.value(at, arena)?));
                }
                unique(&entries)?;
                InputData::map(entries.into_bump_slice()).ok_or(Unusable::TooManyKeys)?
            }
            Self::Shared(_, keys, values) => match keys.get(row).copied().flatten() {
                Some(at) => values.value(at, arena)?,
                None => InputData::Null,
            },
            Self::Formatted(_, formatter) => {
                let text = formatter.value(row).try_to_string().map_err(|error| error.to_string())?;
                InputData::Str(arena.alloc_str(&text))
            }
            Self::Null | Self::Text(_) | Self::LargeText(_) | Self::TextView(_) => InputData::Null,
        })
    }

    /// Returns the value of a row as JSON: for maps with more keys than a borrowed map can have, and for output.
    pub(crate) fn json(&self, row: usize) -> Result<Json, String> {
        if self.is_null(row) {
            return Ok(Json::Null);
        }
        let items = |values: &Self, range: std::ops::Range<usize>| {
            range.map(|at| values.json(at)).collect::<Result<Vec<_>, _>>()
        };
        match self {
            Self::List(array, values) => items(values, range(array.offsets(), row)).map(Json::Array),
            Self::LargeList(array, values) => items(values, range(array.offsets(), row)).map(Json::Array),
            Self::Struct(_, fields) => {
                let entries = fields.iter().map(|(name, column)| Ok(((*name).to_owned(), column.json(row)?)));
                Ok(Json::Object(entries.collect::<Result<_, String>>()?))
            }
            Self::Map(array, keys, values) => {
                let entries = range(array.offsets(), row).map(|at| Ok((keys.key(at)?, values.json(at)?)));
                Ok(Json::Object(entries.collect::<Result<JsonMap, String>>()?))
            }
            Self::Shared(_, keys, values) => {
                keys.get(row).copied().flatten().map_or(Ok(Json::Null), |at| values.json(at))
            }
            _ => match self.value(row, &Bump::new()) {
                Ok(value) => Ok(value.to_json()),
                Err(Unusable::Because(reason)) => Err(reason),
                Err(Unusable::TooManyKeys) => Err("too many keys".to_owned()),
            },
        }
    }

    pub(crate) fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(array) => array.is_null(row),
            Self::Int(array) => array.is_null(row),
            Self::Float16(array) => array.is_null(row),
            Self::Float32(array) => array.is_null(row),
            Self::Float64(array) => array.is_null(row),
            Self::Text(array) => array.is_null(row),
            Self::LargeText(array) => array.is_null(row),
            Self::TextView(array) => array.is_null(row),
            Self::Bytes(array) => array.is_null(row),
            Self::LargeBytes(array) => array.is_null(row),
            Self::BytesView(array) => array.is_null(row),
            Self::List(array, _) => array.is_null(row),
            Self::LargeList(array, _) => array.is_null(row),
            Self::Struct(array, _) => array.is_null(row),
            Self::Map(array, ..) => array.is_null(row),
            Self::Shared(array, ..) | Self::Formatted(array, _) => array.is_null(row),
        }
    }

    fn float(&self, row: usize) -> Result<f64, String> {
        let value = match self {
            // The shortest digits of the narrow type, not those of its exact value.
            Self::Float16(array) => array.value(row).to_string().parse().unwrap_or(f64::NAN),
            Self::Float32(array) => array.value(row).to_string().parse().unwrap_or(f64::NAN),
            Self::Float64(array) => array.value(row),
            _ => f64::NAN,
        };
        if value.is_finite() { Ok(value) } else { Err(format!("expected a finite number, found {value}")) }
    }

    fn bytes(&self, row: usize) -> &'a [u8] {
        match self {
            Self::Bytes(array) => array.value(row),
            Self::LargeBytes(array) => array.value(row),
            Self::BytesView(array) => array.value(row),
            _ => &[],
        }
    }

    /// Returns a key of a map as text.
    fn key(&self, row: usize) -> Result<String, String> {
        match self.json(row)? {
            Json::String(text) => Ok(text),
            Json::Array(_) | Json::Object(_) | Json::Null => Err("a key of a map is not text".to_owned()),
            other => Ok(other.to_string()),
        }
    }
}

impl Integers<'_> {
    fn value<'b>(&self, row: usize) -> InputData<'b> {
        fn get<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, row: usize) -> InputData<'static>
        where
            i64: From<T::Native>,
        {
            InputData::Int(i64::from(array.value(row)))
        }
        match self {
            Self::I8(array) => get(array, row),
            Self::I16(array) => get(array, row),
            Self::I32(array) => get(array, row),
            Self::I64(array) => get(array, row),
            Self::U8(array) => get(array, row),
            Self::U16(array) => get(array, row),
            Self::U32(array) => get(array, row),
            Self::U64(array) => {
                let value = array.value(row);
                i64::try_from(value).map_or(InputData::Uint(value), InputData::Int)
            }
        }
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::I8(array) => array.is_null(row),
            Self::I16(array) => array.is_null(row),
            Self::I32(array) => array.is_null(row),
            Self::I64(array) => array.is_null(row),
            Self::U8(array) => array.is_null(row),
            Self::U16(array) => array.is_null(row),
            Self::U32(array) => array.is_null(row),
            Self::U64(array) => array.is_null(row),
        }
    }
}

fn list<'a: 'b, 'b, O: OffsetSizeTrait>(
    array: &GenericListArray<O>,
    row: usize,
    values: &Column<'a>,
    arena: &'b Bump,
) -> Outcome<InputData<'b>> {
    let range = range(array.offsets(), row);
    let mut items = bumpalo::collections::Vec::with_capacity_in(range.len(), arena);
    for at in range {
        items.push(values.value(at, arena)?);
    }
    Ok(InputData::List(items.into_bump_slice()))
}

/// Returns the positions of a row's items.
fn range<O: OffsetSizeTrait>(offsets: &[O], row: usize) -> std::ops::Range<usize> {
    let at = |index: usize| offsets.get(index).map_or(0, |offset| offset.as_usize());
    at(row)..at(row + 1).max(at(row))
}

/// Returns an error if a map has a key twice.
fn unique(entries: &[(&str, InputData<'_>)]) -> Result<(), String> {
    // Maps with more keys are not borrowed.
    let few = entries.get(..entries.len().min(64)).unwrap_or_default();
    let has_duplicate =
        few.iter().enumerate().any(|(at, (key, _))| few.iter().skip(at + 1).any(|(other, _)| other == key));
    if has_duplicate { Err("a map has a key twice".to_owned()) } else { Ok(()) }
}

/// Returns a table's type with text and bytes as views, so that a text that many rows of a file share is in memory once.
#[cfg(feature = "files")]
pub(crate) fn with_views(kind: &DataType) -> DataType {
    let field = |field: &arrow::datatypes::FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(with_views(field.data_type())))
    };
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}

/// Returns a table's type with views as text and bytes, for files.
pub(crate) fn without_views(kind: &DataType) -> DataType {
    let field = |field: &arrow::datatypes::FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(without_views(field.data_type())))
    };
    match kind {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::List(item) => DataType::List(field(item)),
        DataType::LargeList(item) => DataType::LargeList(field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(field).collect()),
        other => other.clone(),
    }
}
