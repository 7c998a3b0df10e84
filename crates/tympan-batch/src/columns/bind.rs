//! Which column each input of a prompt comes from.

use std::collections::HashSet;
use std::iter;

use arrow::array::RecordBatch;
use bumpalo::Bump;
use tympan_core::diagnostic::guess_name;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::template::input::{InputData, InputMap};
use tympan_core::{Error, JsonMap, Kind, Prompt, Result};

use super::array::{Column, Unusable};
use super::convert::{json_as, read_as};

/// An input and the column that its values come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputColumn {
    /// The name of the input.
    pub input: String,
    /// The name of the column.
    pub column: String,
    /// The declared kind, if text in the column has to be read as that kind.
    reads: Option<PropertyKind>,
    /// Whether whole numbers in a column of floats are integers. Many programs have no integers, or none with nulls.
    whole: bool,
}

/// The columns that the inputs of a prompt come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    columns: Vec<InputColumn>,
}

impl Bindings {
    /// Binds the inputs of a prompt to columns of the same name, and those in `map` (pairs of an input and a column) to
    /// the columns that it names. Columns that are not inputs are ignored.
    ///
    /// # Errors
    /// Returns an error if `map` names an unknown input or column, or if a required input has neither a column nor a
    /// default.
    pub fn new(prompt: &Prompt, columns: &[&str], map: &[(String, String)]) -> Result<Self> {
        let known = input_names(prompt);
        for (input, column) in map {
            if !known.contains(&input.as_str()) {
                return Err(unknown("the prompt has no input", input, &known));
            }
            if !columns.contains(&column.as_str()) {
                return Err(unknown("the rows have no column", column, columns));
            }
        }
        if let Some(twice) =
            columns.iter().enumerate().find(|(at, name)| columns.iter().skip(at + 1).any(|other| other == *name))
        {
            return Err(invalid(format_args!("the rows have two columns `{}`", twice.1)));
        }
        let declared = &prompt.spec().inputs;
        let mut bound = Vec::new();
        for input in known {
            let mapped = map.iter().rev().find(|(name, _)| name == input).map(|(_, column)| column.as_str());
            let Some(column) = mapped.or_else(|| columns.contains(&input).then_some(input)) else {
                check_optional(declared, input, columns)?;
                continue;
            };
            let property = declared.iter().find(|property| property.name == input);
            bound.push(InputColumn {
                input: input.to_owned(),
                column: column.to_owned(),
                reads: property.and_then(reads),
                whole: property.is_some_and(is_integer),
            });
        }
        Ok(Self { columns: bound })
    }

    /// Returns the inputs and their columns.
    pub fn columns(&self) -> &[InputColumn] {
        &self.columns
    }

    /// Resolves the columns of a table.
    pub(crate) fn of_batch<'a>(&'a self, batch: &'a RecordBatch) -> Result<BoundBatch<'a>> {
        let columns = self.columns.iter().map(|bound| {
            let column = batch.column_by_name(&bound.column);
            let column = column.ok_or_else(|| invalid(format_args!("the rows have no column `{}`", bound.column)))?;
            let column =
                Column::new(column).map_err(|reason| invalid(format_args!("column `{}`: {reason}", bound.column)))?;
            Ok((bound, column))
        });
        Ok(BoundBatch { columns: columns.collect::<Result<_>>()? })
    }

    /// Returns the inputs of a row of JSON.
    #[cfg(feature = "jobs")]
    pub(crate) fn of_json(&self, row: &JsonMap) -> JsonMap {
        let mut inputs = JsonMap::with_capacity(self.columns.len());
        for bound in &self.columns {
            // Two inputs may come from the same column.
            if let Some(value) = row.get(&bound.column) {
                inputs.insert(bound.input.clone(), value.clone());
            }
        }
        inputs
    }
}

/// The kind that text has to be read as.
fn reads(property: &Property) -> Option<PropertyKind> {
    let is_text = |kind: &PropertyKind| matches!(kind, PropertyKind::String);
    let allows_text = is_text(&property.kind) || property.kinds.iter().any(is_text);
    (!allows_text).then_some(property.kind)
}

fn is_integer(property: &Property) -> bool {
    let all = || iter::once(&property.kind).chain(&property.kinds);
    all().any(|kind| matches!(kind, PropertyKind::Integer)) && !all().any(|kind| matches!(kind, PropertyKind::Float))
}

/// Returns the integer that a float is, if it is one. Larger floats stand for more than one integer.
fn integer(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[allow(clippy::cast_possible_truncation)]
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

/// Returns the names of the inputs that a prompt declares or uses.
fn input_names(prompt: &Prompt) -> Vec<&str> {
    let declared = prompt.spec().inputs.iter().map(|input| input.name.as_str());
    let mut seen = HashSet::new();
    let names = declared.chain(prompt.input_names());
    names.filter(|name| seen.insert(*name)).collect()
}

fn check_optional(declared: &[Property], input: &str, columns: &[&str]) -> Result<()> {
    let is_missing =
        |property: &&Property| property.name == input && property.required == Some(true) && property.default.is_none();
    match declared.iter().find(is_missing) {
        None => Ok(()),
        Some(_) => {
            let error = invalid(format_args!("no column for the required input `{input}`"));
            let near = guess_name(input, columns.iter().copied()).or(columns.first().copied()).unwrap_or("COLUMN");
            let shown = shown(columns);
            Err(error.with_help(format!("the columns are {shown}; map one with `--map {input}={near}`")))
        }
    }
}

fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let error = invalid(format_args!("{what} `{name}`"));
    match guess_name(name, known.iter().copied()) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error.with_help(format!("there are {}", shown(known))),
    }
}

fn shown(names: &[&str]) -> String {
    let first: Vec<_> = names.iter().take(20).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > first.len() { ", …" } else { "" };
    if first.is_empty() { "none".to_owned() } else { first.join(", ") + more }
}

fn invalid(details: std::fmt::Arguments<'_>) -> Error {
    Error::new(Kind::InvalidRows, details)
}

/// The columns of a table that are inputs.
pub(crate) struct BoundBatch<'a> {
    columns: Vec<(&'a InputColumn, Column<'a>)>,
}

impl BoundBatch<'_> {
    /// Calls a function with the inputs of a row.
    pub(crate) fn with_row<T>(
        &self,
        row: usize,
        arena: &Bump,
        call: impl FnOnce(InputMap<'_>) -> Result<T>,
    ) -> Result<T> {
        match self.borrowed(row, arena) {
            Ok(inputs) => match InputMap::of(&inputs) {
                Some(inputs) => call(inputs),
                None => Err(invalid(format_args!("the inputs are not a map"))),
            },
            Err((_, Unusable::TooManyKeys)) => call(InputMap::Json(&self.json(row)?)),
            Err((column, Unusable::Because(reason))) => Err(invalid(format_args!("column `{column}`: {reason}"))),
        }
    }

    fn borrowed<'b>(&'b self, row: usize, arena: &'b Bump) -> Result<InputData<'b>, (&'b str, Unusable)> {
        let mut entries = bumpalo::collections::Vec::with_capacity_in(self.columns.len(), arena);
        for (bound, column) in &self.columns {
            let value = match (bound.reads, column.text(row)) {
                (Some(kind), Some(text)) => read_as(text, kind, arena),
                _ => column.value(row, arena),
            };
            let value = match value.map_err(|reason| (bound.column.as_str(), reason))? {
                InputData::Float(value) if bound.whole => {
                    integer(value).map_or(InputData::Float(value), InputData::Int)
                }
                value => value,
            };
            entries.push((bound.input.as_str(), value));
        }
        InputData::map(entries.into_bump_slice()).ok_or(("", Unusable::TooManyKeys))
    }

    /// Returns the inputs of a row as JSON.
    pub(crate) fn json(&self, row: usize) -> Result<JsonMap> {
        let entries = self.columns.iter().map(|(bound, column)| {
            let value = match (bound.reads, column.text(row)) {
                (Some(kind), Some(text)) => Ok(json_as(text, kind)),
                _ => column.json(row),
            };
            let value = value.map_err(|reason| invalid(format_args!("column `{}`: {reason}", bound.column)))?;
            let number = value.as_f64().filter(|_| bound.whole && value.is_f64());
            Ok((bound.input.clone(), number.and_then(integer).map_or(value, Into::into)))
        });
        entries.collect::<Result<JsonMap>>()
    }
}
