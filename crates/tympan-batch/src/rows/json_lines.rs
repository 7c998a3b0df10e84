//! Reads JSON Lines.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tympan_core::{JsonMap, Result};

use super::source::unreadable;
use super::{CHUNK_BYTES, MAX_CHUNK_ROWS, MAX_ROW_BYTES, ReadRows, Unreadable, Values};

pub(super) struct JsonLines {
    lines: BufReader<File>,
    number: u64,
    line: Vec<u8>,
    path: PathBuf,
}

impl JsonLines {
    pub(super) fn open(file: File, path: &Path) -> Self {
        let lines = BufReader::with_capacity(1 << 16, file);
        Self { lines, number: 0, line: Vec::new(), path: path.to_owned() }
    }

    /// Returns the keys of the first row.
    pub(super) fn columns(&mut self) -> Result<Vec<String>> {
        Ok(match self.read_row()? {
            Some(Ok(row)) => row.keys().cloned().collect(),
            Some(Err(_)) | None => Vec::new(),
        })
    }

    /// Reads the next row. Blank lines are not rows.
    fn read_row(&mut self) -> Result<Option<Result<JsonMap, String>>> {
        loop {
            self.line.clear();
            let most = MAX_ROW_BYTES as u64 + 1;
            let read = (&mut self.lines).take(most).read_until(b'\n', &mut self.line);
            self.number += 1;
            match read {
                Err(error) => return Err(unreadable(&self.path, Some(self.number), &error)),
                Ok(0) => return Ok(None),
                Ok(_) if self.line.len() > MAX_ROW_BYTES => {
                    self.pass_over()?;
                    return Ok(Some(Err(format!("the line has more than {} MiB", MAX_ROW_BYTES >> 20))));
                }
                Ok(_) if self.line.trim_ascii().is_empty() => {}
                Ok(_) => return Ok(Some(parse(&self.line))),
            }
        }
    }

    /// Reads to the end of a line that is too long.
    fn pass_over(&mut self) -> Result<()> {
        let failed = |number, path: &Path, error: std::io::Error| Err(unreadable(path, Some(number), &error));
        while self.line.last() != Some(&b'\n') {
            self.line.clear();
            match (&mut self.lines).take(CHUNK_BYTES as u64).read_until(b'\n', &mut self.line) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => return failed(self.number, &self.path, error),
            }
        }
        Ok(())
    }
}

impl ReadRows for JsonLines {
    fn next(&mut self) -> Result<Option<(Values, Vec<Unreadable>)>> {
        let (mut rows, mut bad, mut bytes) = (Vec::new(), Vec::new(), 0);
        while rows.len() < MAX_CHUNK_ROWS && bytes < CHUNK_BYTES {
            match self.read_row()? {
                None => break,
                Some(Ok(row)) => rows.push(row),
                Some(Err(reason)) => {
                    bad.push(Unreadable { index: rows.len(), line: Some(self.number), reason });
                    rows.push(JsonMap::new());
                }
            }
            bytes += self.line.len();
        }
        Ok(if rows.is_empty() { None } else { Some((Values::Json(rows), bad)) })
    }
}

fn parse(line: &[u8]) -> Result<JsonMap, String> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    match serde_json::from_slice(line) {
        Ok(Json::Object(row)) => Ok(row),
        Ok(_) => Err("expected a JSON object".to_owned()),
        // The position in the line; serde_json counts lines from 1.
        Err(error) => Err(format!("invalid JSON at column {}: {}", error.column(), reason(&error))),
    }
}

fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    message.split(" at line ").next().unwrap_or_default().to_owned()
}
