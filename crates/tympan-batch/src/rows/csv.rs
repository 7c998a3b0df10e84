//! Reads CSV and TSV files.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::csv::{ByteRecord, Reader, ReaderBuilder};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tympan_core::Result;

use super::source::unreadable;
use super::{CHUNK_BYTES, MAX_CHUNK_ROWS, MAX_ROW_BYTES, ReadRows, Unreadable, Values};

/// The largest number of columns.
const MAX_COLUMNS: usize = 10_000;

/// The most bytes that are read for a row, of which those up to [`MAX_ROW_BYTES`] are a row. A quote that is never closed would
/// otherwise bring the rest of the file into memory.
const MOST_READ: u64 = 2 * MAX_ROW_BYTES as u64;

/// A file of which only so much is read at a time.
struct Limited {
    file: File,
    /// The bytes that may still be read for the current row.
    left: Arc<AtomicU64>,
}

impl Read for Limited {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            let reason = format!("a row has more than {} MiB; is a quote missing?", MOST_READ >> 20);
            return Err(std::io::Error::new(ErrorKind::InvalidData, reason));
        }
        let read = self.file.read(buffer)?;
        self.left.store(left.saturating_sub(read as u64), Ordering::Relaxed);
        Ok(read)
    }
}

/// Every column is text. Cells are read as the declared kinds of the inputs that they belong to.
pub(super) struct CsvRows {
    reader: Reader<BufReader<Limited>>,
    left: Arc<AtomicU64>,
    schema: Arc<Schema>,
    record: ByteRecord,
    path: PathBuf,
}

impl CsvRows {
    pub(super) fn open(file: File, path: &Path, delimiter: u8) -> Result<Self> {
        let left = Arc::new(AtomicU64::new(MOST_READ));
        let file = BufReader::with_capacity(1 << 16, Limited { file, left: left.clone() });
        let mut reader = ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(file);
        let header = reader.headers().map_err(|error| unreadable(path, Some(1), &error))?;
        if header.len() > MAX_COLUMNS {
            return Err(unreadable(path, Some(1), &format_args!("more than {MAX_COLUMNS} columns")));
        }
        // Spreadsheet programs write a byte order mark.
        let names = header.iter().map(|name| name.trim_start_matches('\u{feff}'));
        let fields: Vec<_> = names.map(|name| Field::new(name, DataType::Utf8, true)).collect();
        if fields.is_empty() {
            return Err(unreadable(
                path,
                Some(1),
                &"expected a line with the names of the columns, found an empty file",
            ));
        }
        Ok(Self {
            reader,
            left,
            schema: Arc::new(Schema::new(fields)),
            record: ByteRecord::new(),
            path: path.to_owned(),
        })
    }

    pub(super) fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl ReadRows for CsvRows {
    fn next(&mut self) -> Result<Option<(Values, Vec<Unreadable>)>> {
        let width = self.schema.fields().len();
        let mut columns: Vec<_> = (0..width).map(|_| StringBuilder::new()).collect();
        let mut bad = Vec::new();
        let (mut rows, mut bytes) = (0, 0);
        while rows < MAX_CHUNK_ROWS && bytes < CHUNK_BYTES {
            self.left.store(MOST_READ, Ordering::Relaxed);
            let more = self.reader.read_byte_record(&mut self.record);
            let line = self.record.position().map(::csv::Position::line);
            if !more.map_err(|error| unreadable(&self.path, line, &error))? {
                break;
            }
            let size = self.record.as_slice().len();
            match cells(&self.record, width, size) {
                Ok(cells) => columns.iter_mut().zip(&cells).for_each(|(column, cell)| column.append_value(cell)),
                Err(reason) => {
                    columns.iter_mut().for_each(StringBuilder::append_null);
                    bad.push(Unreadable { index: rows, line, reason });
                }
            }
            rows += 1;
            bytes += size;
        }
        if rows == 0 {
            return Ok(None);
        }
        let columns: Vec<ArrayRef> = columns.iter_mut().map(|column| Arc::new(column.finish()) as ArrayRef).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        batch.map(|batch| Some((Values::Arrow(batch), bad))).map_err(|error| unreadable(&self.path, None, &error))
    }
}

/// Returns the cells of a row.
fn cells(record: &ByteRecord, width: usize, size: usize) -> Result<Vec<&str>, String> {
    if record.len() != width {
        return Err(format!("expected {width} cells, as in the first line, found {}", record.len()));
    }
    if size > MAX_ROW_BYTES {
        return Err(format!("the row has more than {} MiB", MAX_ROW_BYTES >> 20));
    }
    let cells = record.iter().map(|cell| std::str::from_utf8(cell).map_err(|_| "the row is not UTF-8".to_owned()));
    cells.collect()
}
