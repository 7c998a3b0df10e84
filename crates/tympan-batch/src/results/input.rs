//! The input columns of results.

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use serde_json::Value as Json;
use tympan_core::{Error, JsonMap, Kind, Result};

use super::types::ColumnType;
use crate::rows::{Chunk, FileFormat, Rows, Source, Values};

/// The largest number of columns that are inferred from JSON Lines.
const MAX_COLUMNS: usize = 10_000;

/// The columns of the rows, for files of results that have columns.
pub(super) enum InputColumns {
    /// Those of the files.
    Table(Arc<Schema>),
    /// Those inferred from JSON Lines.
    Inferred(Vec<(String, Inferred)>),
}

/// What the values of a key in JSON Lines have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inferred {
    /// Nothing but nulls so far.
    Nothing,
    Same(Plain),
    /// Values of several kinds, lists or maps: text, or JSON text.
    Mixed,
}

/// The kinds of values that are columns of their own type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Boolean,
    Integer,
    Float,
    Text,
}

impl Inferred {
    fn with(self, value: &Json) -> Self {
        let kind = match value {
            Json::Null => return self,
            Json::Bool(_) => Plain::Boolean,
            Json::Number(number) if number.is_i64() => Plain::Integer,
            Json::Number(number) if number.is_f64() => Plain::Float,
            Json::String(_) => Plain::Text,
            Json::Number(_) | Json::Array(_) | Json::Object(_) => return Self::Mixed,
        };
        match (self, kind) {
            (Self::Nothing, kind) => Self::Same(kind),
            (Self::Same(one), other) if one == other => self,
            (Self::Same(Plain::Integer), Plain::Float) | (Self::Same(Plain::Float), Plain::Integer) => {
                Self::Same(Plain::Float)
            }
            _ => Self::Mixed,
        }
    }

    fn column_type(self) -> Option<ColumnType> {
        match self {
            Self::Same(Plain::Boolean) => Some(ColumnType::Boolean),
            Self::Same(Plain::Integer) => Some(ColumnType::Integer),
            Self::Same(Plain::Float) => Some(ColumnType::Float),
            Self::Same(Plain::Text) => Some(ColumnType::Text),
            Self::Nothing | Self::Mixed => None,
        }
    }
}

impl InputColumns {
    /// Finds out the columns. JSON Lines are read as a whole.
    pub(super) fn of_sources(sources: &[Source]) -> Result<Self> {
        let is_json = |source: &Source| source.format == FileFormat::JsonLines;
        match sources.first() {
            Some(first) if !is_json(first) => match first.schema()? {
                Some(schema) => Ok(Self::Table(schema)),
                None => Err(different()),
            },
            Some(_) if !sources.iter().all(is_json) => Err(different()),
            _ => infer(sources).map(Self::Inferred),
        }
    }

    /// Returns the columns of Arrow.
    pub(super) fn fields(&self) -> Vec<FieldRef> {
        match self {
            Self::Table(schema) => {
                // A row that cannot be read has no values.
                let optional = |field: &FieldRef| Arc::new(field.as_ref().clone().with_nullable(true));
                schema.fields().iter().map(optional).collect()
            }
            Self::Inferred(columns) => {
                let kind = |kind: &Inferred| kind.column_type().map_or(DataType::Utf8, |kind| kind.data_type());
                columns.iter().map(|(name, inferred)| Arc::new(Field::new(name, kind(inferred), true))).collect()
            }
        }
    }

    /// Returns the columns of some rows of a chunk.
    pub(super) fn arrays(&self, chunk: &Chunk, start: usize, rows: usize) -> Result<Vec<ArrayRef>> {
        match (self, &chunk.values) {
            (Self::Table(schema), Values::Arrow(batch)) => {
                if batch.schema().fields() != schema.fields() {
                    return Err(different());
                }
                Ok(batch.slice(start, rows).columns().to_vec())
            }
            (Self::Inferred(columns), Values::Json(all)) => {
                let some = all.get(start..start + rows).unwrap_or_default();
                Ok(columns.iter().map(|(name, inferred)| array(*inferred, some, name)).collect())
            }
            _ => Err(different()),
        }
    }
}

fn array(inferred: Inferred, rows: &[JsonMap], name: &str) -> ArrayRef {
    let values = rows.iter().map(|row| row.get(name));
    match inferred.column_type() {
        Some(kind) => kind.array(&values.collect::<Vec<_>>()),
        None => Arc::new(values.map(|value| value.and_then(as_text)).collect::<StringArray>()),
    }
}

fn as_text(value: &Json) -> Option<String> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Reads all rows, and finds out which keys they have and what the values of each have in common.
fn infer(sources: &[Source]) -> Result<Vec<(String, Inferred)>> {
    let mut columns: indexmap::IndexMap<String, Inferred> = indexmap::IndexMap::new();
    let mut rows = Rows::new(sources.to_vec(), None);
    while let Some(chunk) = rows.next_chunk()? {
        let Values::Json(values) = &chunk.values else { return Err(different()) };
        for (key, value) in values.iter().flatten() {
            if let Some(inferred) = columns.get_mut(key) {
                *inferred = inferred.with(value);
                continue;
            }
            columns.insert(key.clone(), Inferred::Nothing.with(value));
            if columns.len() > MAX_COLUMNS {
                let message = format_args!("the rows have more than {MAX_COLUMNS} different keys");
                return Err(Error::new(Kind::InvalidRows, message)
                    .with_help("write the results as JSON Lines, which need no columns"));
            }
        }
    }
    Ok(columns.into_iter().collect())
}

fn different() -> Error {
    Error::new(Kind::InvalidRows, "the files have different columns")
        .with_help("write the results as JSON Lines, whose rows need not have the same columns")
}
