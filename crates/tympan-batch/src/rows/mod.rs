//! Reads rows from files, a chunk at a time.
//!
//! A chunk has a bounded size, whatever the size of the file, and its rows are numbered through all files. A row that
//! cannot be read keeps its number and its place: it is reported, and the rows after it are read.

mod csv;
mod footer;
mod ipc;
mod json_lines;
mod parquet;
mod source;

use std::fmt;

use arrow::array::RecordBatch;
use tympan_core::{Error, JsonMap, Kind, Result};

pub use self::source::{FileFormat, Source};

/// The largest number of rows in a chunk.
const MAX_CHUNK_ROWS: usize = 4096;
/// The size of a chunk in bytes at which no further row is added.
const CHUNK_BYTES: usize = 4 << 20;
/// The largest row in bytes.
const MAX_ROW_BYTES: usize = 64 << 20;

/// Rows that follow each other in one file.
#[derive(Debug)]
pub struct Chunk {
    /// The index of the file in the list of sources.
    pub source: usize,
    /// The number of the first row, counted from 0 through all files.
    pub first: u64,
    /// The values.
    pub values: Values,
    /// The rows that cannot be read. Their values are empty.
    pub unreadable: Vec<Unreadable>,
}

impl Chunk {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        match &self.values {
            Values::Arrow(batch) => batch.num_rows(),
            Values::Json(rows) => rows.len(),
        }
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The values of the rows of a chunk.
pub enum Values {
    /// A table.
    Arrow(RecordBatch),
    /// One JSON object per row. Objects in JSON Lines need not have the same keys and types.
    Json(Vec<JsonMap>),
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arrow(batch) => write!(f, "Arrow({} rows)", batch.num_rows()),
            Self::Json(rows) => write!(f, "Json({} rows)", rows.len()),
        }
    }
}

/// A row that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The position in the chunk.
    pub index: usize,
    /// The line in the file, counted from 1, if the file has lines.
    pub line: Option<u64>,
    /// The reason.
    pub reason: String,
}

/// Reads the rows of one file.
trait ReadRows: Send {
    /// Returns the next values, or `None` at the end of the file.
    fn next(&mut self) -> Result<Option<(Values, Vec<Unreadable>)>>;
}

/// The rows of several files.
pub struct Rows {
    sources: Vec<Source>,
    /// The columns to read. `None` reads all.
    columns: Option<Vec<String>>,
    current: Option<Box<dyn ReadRows>>,
    source: usize,
    next: u64,
    /// The number of rows of the current file to pass over.
    skip: u64,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("sources", &self.sources).field("next", &self.next).finish_non_exhaustive()
    }
}

impl Rows {
    /// Creates a reader of these files, which are opened one after the other. `columns` limits what is read from files
    /// that store columns separately.
    pub fn new(sources: Vec<Source>, columns: Option<Vec<String>>) -> Self {
        Self { sources, columns, current: None, source: 0, next: 0, skip: 0 }
    }

    /// Passes over rows before the first is read.
    ///
    /// # Errors
    /// Returns an error if there are fewer rows, or if they cannot be read.
    pub fn skip(&mut self, rows: u64) -> Result<()> {
        let mut left = rows;
        while left > 0 {
            let Some(source) = self.sources.get(self.source) else {
                return Err(Error::new(Kind::InvalidRows, "the files have fewer rows than before"));
            };
            // Counting is cheap for files that store the number of rows; the others are read.
            match source.stored_rows()? {
                Some(stored) if stored <= left => {
                    left -= stored;
                    self.next += stored;
                    self.source += 1;
                }
                _ => {
                    self.skip = left;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Returns the next rows, or `None` after the last.
    ///
    /// # Errors
    /// Returns an error if a file cannot be opened, or if its damage affects more than single rows.
    pub fn next_chunk(&mut self) -> Result<Option<Chunk>> {
        loop {
            let Some(source) = self.sources.get(self.source) else { return Ok(None) };
            if self.current.is_none() {
                self.current = Some(source.open(self.columns.as_deref(), &mut self.skip, &mut self.next)?);
            }
            let Some(reader) = &mut self.current else { return Ok(None) };
            let Some((values, unreadable)) = reader.next()? else {
                self.current = None;
                self.source += 1;
                continue;
            };
            let mut chunk = Chunk { source: self.source, first: self.next, values, unreadable };
            let rows = chunk.len() as u64;
            self.next += rows;
            if self.skip >= rows {
                self.skip -= rows;
                continue;
            }
            if self.skip > 0 {
                chunk = chunk.from(usize::try_from(self.skip).unwrap_or(usize::MAX));
                self.skip = 0;
            }
            return Ok(Some(chunk));
        }
    }
}

impl Chunk {
    /// Drops the rows before the row at this position.
    fn from(self, start: usize) -> Self {
        let values = match self.values {
            Values::Arrow(batch) => Values::Arrow(batch.slice(start, batch.num_rows().saturating_sub(start))),
            Values::Json(rows) => Values::Json(rows.into_iter().skip(start).collect()),
        };
        let unreadable = self.unreadable.into_iter().filter(|row| row.index >= start);
        let unreadable = unreadable.map(|row| Unreadable { index: row.index - start, ..row }).collect();
        Self { source: self.source, first: self.first + start as u64, values, unreadable }
    }
}
