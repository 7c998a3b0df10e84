//! Rows of tables, which are cases.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::Value as Json;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::{Error, Inputs, JsonMap, Kind, Result};
use tympan_runtime::file::read;

/// The maximum size of a row in bytes.
const MAX_ROW: u64 = 16 << 20;

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
        let columns = reader.headers().map_err(|error| unreadable(path, 1, &error))?;
        // Spreadsheet programs write a byte order mark.
        let columns = columns.iter().map(|name| name.trim_start_matches('\u{feff}').to_owned()).collect();
        Ok(Self::Csv { records: reader.into_records(), columns })
    }

    /// Reads the next row.
    pub(crate) fn next(&mut self, path: &Path, declared: &[Property]) -> Option<Result<Row>> {
        match self {
            Self::Csv { records, columns } => Some(match records.next()? {
                Ok(record) => Ok(csv_row(&record, columns, declared)),
                Err(error) => Err(unreadable(path, csv_line(&error), &error)),
            }),
            Self::JsonLines { lines, number } => loop {
                let mut line = String::new();
                *number += 1;
                match lines.take(MAX_ROW).read_line(&mut line) {
                    Ok(0) => return None,
                    Ok(_) if line.trim().is_empty() => {}
                    Ok(_) => return Some(json_row(&line).map_err(|reason| unreadable(path, *number, &reason))),
                    Err(error) => return Some(Err(unreadable(path, *number, &error))),
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

fn unreadable(path: &Path, line: usize, reason: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::InvalidTests, format_args!("`{}`, line {line}: {reason}", path.display()))
}

fn csv_line(error: &csv::Error) -> usize {
    let line = error.position().map_or(0, csv::Position::line);
    usize::try_from(line).unwrap_or_default()
}

fn json_row(line: &str) -> Result<Row, String> {
    match serde_json::from_str(line) {
        Ok(Json::Object(row)) => Ok(row),
        Ok(_) => Err("expected a JSON object".to_owned()),
        Err(error) => Err(error.to_string()),
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
