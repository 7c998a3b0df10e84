//! Rows of tables, which are cases.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value as Json;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::{Error, Inputs, JsonMap, Kind, Result};
use tympan_runtime::file::read;

use crate::quote::type_name;

/// The maximum size of a row in bytes.
const MAX_ROW: u64 = 16 << 20;

/// The byte order mark, which some programs write at the start of a file.
const MARK: char = '\u{feff}';

/// The rows of a file, read one by one.
pub(crate) enum Rows {
    Csv { records: csv::StringRecordsIntoIter<File>, columns: Vec<String> },
    JsonLines { lines: BufReader<File>, number: usize },
}

/// The values of a row, by column.
pub(crate) type Row = JsonMap;

impl Rows {
    /// Opens a file. Its ending is `.csv`, `.tsv`, `.jsonl` or `.ndjson`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let delimiter = match extension.as_str() {
            "csv" => b',',
            "tsv" => b'\t',
            "jsonl" | "ndjson" => {
                return Ok(Self::JsonLines { lines: BufReader::new(opened(path)?), number: 0 });
            }
            _ => {
                let message = format_args!("the rows `{}` are in an unknown format", path.display());
                let help = "use a file that ends in `.csv`, `.tsv` or `.jsonl`";
                return Err(Error::new(Kind::InvalidTests, message).with_help(help));
            }
        };
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(opened(path)?);
        let columns = reader.headers().map_err(|error| csv_error(path, &error))?;
        // Spreadsheet programs write a byte order mark.
        let columns: Vec<_> = columns.iter().map(|name| name.trim_start_matches(MARK).to_owned()).collect();
        let is_second = |(index, name): &(usize, &String)| columns[..*index].contains(name);
        if let Some((_, name)) = columns.iter().enumerate().find(is_second) {
            let reason = format_args!("expected columns with different names, found two called `{name}`");
            return Err(unreadable(path, 1, None, &reason).with_help("rename one of the columns"));
        }
        Ok(Self::Csv { records: reader.into_records(), columns })
    }

    /// Reads the next row.
    pub(crate) fn next(&mut self, path: &Path, declared: &[Property]) -> Option<Result<Row>> {
        match self {
            Self::Csv { records, columns } => Some(match records.next()? {
                Ok(record) => Ok(csv_row(&record, columns, declared)),
                Err(error) => Err(csv_error(path, &error)),
            }),
            Self::JsonLines { lines, number } => loop {
                let mut line = String::new();
                *number += 1;
                match lines.take(MAX_ROW).read_line(&mut line) {
                    Ok(0) => return None,
                    Ok(_) if line.trim_start_matches(MARK).trim().is_empty() => {}
                    Ok(_) => return Some(json_row(path, *number, &line)),
                    Err(error) => return Some(Err(unreadable(path, *number, None, &error))),
                }
            },
        }
    }
}

fn opened(path: &Path) -> Result<File> {
    read::open(path).map_err(|error| {
        Error::new(Kind::InvalidTests, format_args!("cannot read the rows `{}`: {error}", path.display()))
            .with_help("the path is relative to the test file")
    })
}

/// Creates the error for a row that cannot be read, with its position.
fn unreadable(path: &Path, line: usize, column: Option<usize>, reason: &dyn std::fmt::Display) -> Error {
    let column = column.map_or_else(String::new, |column| format!(":{column}"));
    Error::new(Kind::InvalidTests, format_args!("the rows {}:{line}{column}: {reason}", path.display()))
}

fn csv_error(path: &Path, error: &csv::Error) -> Error {
    let line = usize::try_from(error.position().map_or(1, csv::Position::line)).unwrap_or(usize::MAX);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let cells = if *expected_len == 1 { "cell" } else { "cells" };
            let reason = format_args!("expected {expected_len} {cells}, one for each column, found {len}");
            unreadable(path, line, None, &reason).with_help("put cells that contain a separator in quotes")
        }
        csv::ErrorKind::Utf8 { .. } => {
            unreadable(path, line, None, &"expected UTF-8, found other bytes").with_help("save the table as UTF-8")
        }
        _ => unreadable(path, line, None, error),
    }
}

fn json_row(path: &Path, number: usize, line: &str) -> Result<Row> {
    let help = "write one JSON object per line, such as `{\"name\": \"Ada\"}`";
    let unreadable = |column, reason: &str| unreadable(path, number, column, &reason).with_help(help);
    match serde_json::from_str(line.trim_start_matches(MARK)) {
        Ok(Json::Object(row)) => Ok(row),
        Ok(other) => Err(unreadable(None, &format!("expected a JSON object, found {}", type_name(&other)))),
        Err(error) => {
            let message = error.to_string();
            // The line is always the first one of the text that was parsed.
            let reason = message.split_once(" at line ").map_or(&*message, |(reason, _)| reason);
            Err(unreadable((error.column() > 0).then(|| error.column()), reason))
        }
    }
}

fn csv_row(record: &csv::StringRecord, columns: &[String], declared: &[Property]) -> Row {
    let cells = columns.iter().zip(record.iter());
    let cells = cells.filter_map(|(name, cell)| {
        let kind = declared.iter().find(|input| input.name == *name).map(|input| &input.kind);
        Some((name.clone(), cell_value(cell, kind)?))
    });
    cells.collect()
}

/// Converts a cell to the declared kind of its input. A cell that cannot be converted stays text, which rendering then
/// reports. An empty cell is an empty text, and no value for other kinds.
fn cell_value(cell: &str, kind: Option<&PropertyKind>) -> Option<Json> {
    let text = || Json::String(cell.to_owned());
    match kind {
        None | Some(PropertyKind::String) => Some(text()),
        Some(_) if cell.trim().is_empty() => None,
        // JSON covers numbers, booleans, lists and maps. Anything else is text, such as the address of an image.
        Some(_) => Some(serde_json::from_str(cell.trim()).unwrap_or_else(|_| text())),
    }
}

/// Splits a row into inputs and other columns. Columns that are neither are values for `${row:NAME}`.
pub(crate) fn inputs_of(row: &Row, declared: &[Property]) -> Inputs {
    if declared.is_empty() {
        return row.clone();
    }
    let is_input = |name: &&String| declared.iter().any(|input| input.name == **name);
    row.iter().filter(|(name, _)| is_input(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Replaces references such as `${row:label}` in the strings of a value. A string that is only a reference becomes the
/// value of the column; in a longer string, the value is written as text.
pub(crate) fn fill(json: &mut Json, row: &Row) -> Result<(), String> {
    match json {
        Json::String(text) if text.contains(REFERENCE) => *json = filled(text, row)?,
        Json::Array(items) => items.iter_mut().try_for_each(|item| fill(item, row))?,
        Json::Object(map) => map.values_mut().try_for_each(|value| fill(value, row))?,
        _ => {}
    }
    Ok(())
}

const REFERENCE: &str = "${row:";

fn filled(text: &str, row: &Row) -> Result<Json, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(REFERENCE) {
        let Some(length) = rest[start..].find('}') else { break };
        let name = &rest[start + REFERENCE.len()..start + length];
        let value = row.get(name).ok_or_else(|| format!("the rows have no column `{name}`"))?;
        if start == 0 && out.is_empty() && length + 1 == rest.len() {
            return Ok(value.clone());
        }
        out.push_str(&rest[..start]);
        match value {
            Json::String(value) => out.push_str(value),
            other => out.push_str(&other.to_string()),
        }
        rest = &rest[start + length + 1..];
    }
    out.push_str(rest);
    Ok(Json::String(out))
}
