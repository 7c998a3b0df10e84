//! Files of results: Parquet, CSV, TSV and JSON Lines.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Schema, SchemaRef};
use arrow::util::display::array_value_to_string;
use parquet::arrow::arrow_writer::{ArrowWriter, ArrowWriterOptions};
use parquet::arrow::{ARROW_SCHEMA_META_KEY, encode_arrow_schema};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde_json::Value as Json;
use tympan_core::{Error, JsonMap, Kind, Result};

use super::formula;
use crate::columns::{Column, without_views};
use crate::rows::FileFormat;

/// The size of a row group in memory at which it is written.
const ROW_GROUP_BYTES: usize = 64 << 20;

const BUFFER: usize = 1 << 18;

/// A file of results that is being written. It replaces an existing file only when it is complete.
pub(super) struct Sink {
    path: PathBuf,
    partial: PathBuf,
    form: Form,
    /// The columns, for files that have columns.
    schema: SchemaRef,
    /// The number of cells that a spreadsheet would take for a formula.
    pub(super) formulas: u64,
}

enum Form {
    Parquet(Box<ArrowWriter<BufWriter<File>>>),
    Csv { writer: Box<csv::Writer<BufWriter<File>>>, escapes: bool },
    JsonLines(BufWriter<File>),
}

impl Sink {
    /// Creates a file. `escapes` says whether cells of CSV that begin like a formula get a prefix.
    pub(super) fn create(path: &Path, format: FileFormat, fields: Vec<Arc<Field>>, escapes: bool) -> Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".part");
        let partial = path.with_file_name(name);
        let file = File::create(&partial).map_err(|error| cannot_write(&partial, &error))?;
        let file = BufWriter::with_capacity(BUFFER, file);
        let schema = Arc::new(Schema::new(fields));
        let form = match format {
            FileFormat::Parquet => Form::Parquet(Box::new(parquet_writer(file, &schema)?)),
            FileFormat::Csv | FileFormat::Tsv => {
                let delimiter = if format == FileFormat::Tsv { b'\t' } else { b',' };
                let writer = csv::WriterBuilder::new().delimiter(delimiter).from_writer(file);
                Form::Csv { writer: Box::new(writer), escapes }
            }
            FileFormat::JsonLines => Form::JsonLines(file),
            FileFormat::Arrow => return Err(unsupported(path)),
        };
        let mut sink = Self { path: path.to_owned(), partial, form, schema, formulas: 0 };
        sink.write_header()?;
        Ok(sink)
    }

    fn write_header(&mut self) -> Result<()> {
        let Form::Csv { writer, escapes } = &mut self.form else { return Ok(()) };
        for field in self.schema.fields() {
            let is_formula = formula::is_formula(field.name());
            self.formulas += u64::from(is_formula);
            let name = if is_formula && *escapes { formula::escaped(field.name()) } else { field.name().clone() };
            writer.write_field(name).map_err(|error| cannot_write(&self.partial, &error))?;
        }
        writer.write_record(None::<&[u8]>).map_err(|error| cannot_write(&self.partial, &error))
    }

    /// Writes rows to a file that has columns.
    pub(super) fn write_table(&mut self, columns: Vec<ArrayRef>, rows: usize) -> Result<()> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(self.schema.clone(), columns, &options);
        let batch = batch.map_err(|error| Error::new(Kind::InvalidRows, error))?;
        match &mut self.form {
            Form::Parquet(writer) => {
                let written = writer.write(&batch).and_then(|()| match writer.in_progress_size() > ROW_GROUP_BYTES {
                    true => writer.flush(),
                    false => Ok(()),
                });
                written.map_err(|error| cannot_write(&self.partial, &error))
            }
            Form::Csv { writer, escapes } => {
                let formulas = write_csv(writer, &batch, *escapes);
                self.formulas += formulas.map_err(|error| cannot_write(&self.partial, &error))?;
                Ok(())
            }
            Form::JsonLines(_) => Ok(()),
        }
    }

    /// Writes a row to a file without columns.
    pub(super) fn write_object(&mut self, row: &JsonMap) -> Result<()> {
        let Form::JsonLines(file) = &mut self.form else { return Ok(()) };
        let written = serde_json::to_writer(&mut *file, row).map_err(std::io::Error::from);
        written.and_then(|()| file.write_all(b"\n")).map_err(|error| cannot_write(&self.partial, &error))
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Result<()> {
        let Self { path, partial, form, .. } = self;
        let failed = |error: &dyn std::fmt::Display| cannot_write(&partial, error);
        let file = match form {
            Form::Parquet(writer) => writer.into_inner().map_err(|error| failed(&error))?,
            Form::Csv { writer, .. } => writer.into_inner().map_err(|error| failed(error.error()))?,
            Form::JsonLines(file) => file,
        };
        let file = file.into_inner().map_err(|error| failed(error.error()))?;
        file.sync_data().and_then(|()| std::fs::rename(&partial, &path)).map_err(|error| failed(&error))
    }
}

fn parquet_writer(file: BufWriter<File>, schema: &SchemaRef) -> Result<ArrowWriter<BufWriter<File>>> {
    let invalid = |error: parquet::errors::ParquetError| Error::new(Kind::InvalidRows, error);
    let level = ZstdLevel::try_new(3).map_err(invalid)?;
    // Other programs read text as text, and not as the views that are only the form in memory.
    let plain = schema.fields().iter().map(|field| {
        let kind = without_views(field.data_type());
        Arc::new(field.as_ref().clone().with_data_type(kind))
    });
    let plain = encode_arrow_schema(&Schema::new(plain.collect::<Vec<_>>()));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        .set_key_value_metadata(Some(vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), plain)]));
    let options = ArrowWriterOptions::new().with_properties(properties.build()).with_skip_arrow_metadata(true);
    ArrowWriter::try_new_with_options(file, schema.clone(), options).map_err(invalid)
}

/// Writes rows as CSV, and returns how many cells look like formulas.
fn write_csv<W: Write>(writer: &mut csv::Writer<W>, batch: &RecordBatch, escapes: bool) -> csv::Result<u64> {
    let columns: Vec<_> = batch.columns().iter().map(|column| (column, Column::new(column).ok())).collect();
    let mut formulas = 0;
    for row in 0..batch.num_rows() {
        for (array, column) in &columns {
            let other;
            let text = match column.as_ref().and_then(|column| column.text(row)) {
                Some(text) => text,
                None => {
                    other = cell(array, column.as_ref(), row);
                    &other
                }
            };
            let is_formula = formula::is_formula(text);
            formulas += u64::from(is_formula);
            match is_formula && escapes {
                true => writer.write_field(formula::escaped(text))?,
                false => writer.write_field(text)?,
            }
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(formulas)
}

/// Returns the text of a cell. Lists and structs are JSON.
fn cell(array: &ArrayRef, column: Option<&Column<'_>>, row: usize) -> String {
    match value(array, column, row) {
        Json::Null => String::new(),
        Json::String(text) => text,
        other => other.to_string(),
    }
}

/// Returns a value as JSON. What has no form of its own in JSON, such as infinity, is text.
pub(super) fn value(array: &ArrayRef, column: Option<&Column<'_>>, row: usize) -> Json {
    if array.is_null(row) {
        return Json::Null;
    }
    match column.and_then(|column| column.json(row).ok()) {
        Some(value) => value,
        None => array_value_to_string(array, row).map_or(Json::Null, Json::String),
    }
}

pub(super) fn unsupported(path: &Path) -> Error {
    let message = format_args!("results cannot be written to `{}` in this format", path.display());
    Error::new(Kind::InvalidBatch, message)
        .with_help("use a name that ends in `.parquet`, `.csv`, `.tsv` or `.jsonl`, or name one of these formats")
}

fn cannot_write(path: &Path, error: &(impl std::fmt::Display + ?Sized)) -> Error {
    Error::new(Kind::InvalidBatch, format_args!("cannot write `{}`: {error}", path.display()))
}
