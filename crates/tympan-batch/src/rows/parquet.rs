//! Reads Parquet files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::file::metadata::ParquetMetaData;
use arrow::array::RecordBatchReader;
use arrow::datatypes::{Field, Schema, SchemaRef};
use tympan_core::Result;

use super::source::unreadable;
use super::{CHUNK_BYTES, MAX_CHUNK_ROWS, ReadRows, Unreadable, Values, footer};
use crate::columns::with_views;

/// The largest size of a column of a row group after decompression. The reader holds one such column in memory.
const MAX_COLUMN_BYTES: i64 = 2 << 30;

pub(super) struct ParquetRows {
    reader: ParquetRecordBatchReader,
    path: std::path::PathBuf,
}

impl ParquetRows {
    pub(super) fn open(file: File, path: &Path, columns: Option<&[String]>, skip: u64) -> Result<Self> {
        let failed = |reason: &dyn std::fmt::Display| unreadable(path, None, reason);
        let metadata = metadata(&file, path)?;
        let schema = metadata.schema();
        let fields = schema
            .fields()
            .iter()
            .map(|field| Arc::new(field.as_ref().clone().with_data_type(with_views(field.data_type()))));
        let viewed = Schema::new_with_metadata(fields.collect::<Vec<Arc<Field>>>(), schema.metadata().clone());
        let options = ArrowReaderOptions::new().with_schema(Arc::new(viewed));
        let metadata = match ArrowReaderMetadata::try_new(metadata.metadata().clone(), options) {
            Ok(viewed) => viewed,
            // Some types, such as dictionaries, stay as they are.
            Err(_) => metadata,
        };
        check_size(metadata.metadata(), path)?;
        let rows = chunk_rows(metadata.metadata());
        let mut builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata).with_batch_size(rows);
        if let Some(columns) = columns {
            let roots = builder.schema().fields().iter().enumerate();
            let roots = roots.filter(|(_, field)| columns.contains(field.name())).map(|(index, _)| index);
            let mask = ProjectionMask::roots(builder.parquet_schema(), roots.collect::<Vec<_>>());
            builder = builder.with_projection(mask);
        }
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let reader = builder.with_offset(skip).build().map_err(|error| failed(&error))?;
        Ok(Self { reader, path: path.to_owned() })
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

impl ReadRows for ParquetRows {
    fn next(&mut self) -> Result<Option<(Values, Vec<Unreadable>)>> {
        match self.reader.next() {
            None => Ok(None),
            Some(Ok(batch)) => Ok(Some((Values::Arrow(batch), Vec::new()))),
            Some(Err(error)) => Err(unreadable(&self.path, None, &error)),
        }
    }
}

fn metadata(file: &File, path: &Path) -> Result<ArrowReaderMetadata> {
    footer::check(file).map_err(|reason| unreadable(path, None, &reason))?;
    ArrowReaderMetadata::load(file, ArrowReaderOptions::new()).map_err(|error| unreadable(path, None, &error))
}

pub(super) fn columns(file: File, path: &Path) -> Result<Vec<String>> {
    Ok(metadata(&file, path)?.schema().fields().iter().map(|field| field.name().clone()).collect())
}

pub(super) fn count(file: File, path: &Path) -> Result<u64> {
    let rows = metadata(&file, path)?.metadata().file_metadata().num_rows();
    u64::try_from(rows).map_err(|_| unreadable(path, None, &"the file claims a negative number of rows"))
}

/// Returns an error if a column is too large to be read.
fn check_size(metadata: &ParquetMetaData, path: &Path) -> Result<()> {
    let mut columns = metadata.row_groups().iter().flat_map(|group| group.columns());
    match columns.find(|column| column.uncompressed_size() > MAX_COLUMN_BYTES) {
        None => Ok(()),
        Some(column) => {
            let name = column.column_path().string();
            let most = MAX_COLUMN_BYTES >> 30;
            Err(unreadable(path, None, &format_args!("column `{name}` has a row group of more than {most} GiB"))
                .with_help("write the file with smaller row groups"))
        }
    }
}

/// Returns the number of rows in a chunk, so that a chunk of average rows has its usual size.
fn chunk_rows(metadata: &ParquetMetaData) -> usize {
    let bytes: i64 = metadata.row_groups().iter().map(|group| group.total_byte_size().max(0)).sum();
    let rows = metadata.file_metadata().num_rows().max(1);
    let average = usize::try_from(bytes / rows).unwrap_or(usize::MAX).max(1);
    (CHUNK_BYTES / average).clamp(1, MAX_CHUNK_ROWS)
}
