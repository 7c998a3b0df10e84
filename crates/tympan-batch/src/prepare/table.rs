//! Files with tables of messages.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::Runtime;

use super::part::Piece;
use super::{PrepareOptions, Reject};
use crate::columns::Bindings;
use crate::output::{TableOptions, TableRenderer};
use crate::rows::{Chunk, Values};

/// The name of the column with the number of each row.
const ROW: &str = "row";

/// Returns the options for the tables of a job.
pub(super) fn options(options: &PrepareOptions) -> TableOptions {
    TableOptions {
        map: options.map.clone(),
        variant: options.variant.clone(),
        run: options.run.clone(),
        hashes: true,
        tokens: true,
        origins: options.origins,
        ..TableOptions::default()
    }
}

/// Renders chunks as tables: the number of the row, its columns, its messages.
pub(super) struct TableWriter<'a> {
    renderer: TableRenderer<'a>,
    /// The columns of the rows. Rows of JSON Lines have none.
    columns: Schema,
    schema: SchemaRef,
}

impl<'a> TableWriter<'a> {
    /// Creates a writer for rows with these columns.
    pub(super) fn new(
        runtime: &'a Runtime,
        prompt: &'a Prompt,
        bindings: Bindings,
        columns: Option<&Schema>,
        options: &'a TableOptions,
    ) -> Result<Self> {
        let columns = columns.cloned().unwrap_or_else(Schema::empty);
        if columns.field_with_name(ROW).is_ok() {
            let error = Error::new(Kind::InvalidRows, format_args!("the rows already have a column `{ROW}`"));
            return Err(error.with_help("rename the column: the result has the number of each row under this name"));
        }
        let renderer = TableRenderer::with_bindings(runtime, prompt, bindings, &columns, options)?;
        let mut fields = vec![Arc::new(Field::new(ROW, DataType::Int64, false))];
        let rendered = renderer.schema();
        fields.extend(rendered.fields().iter().take(rendered.fields().len().saturating_sub(1)).cloned());
        Ok(Self { renderer, columns, schema: Arc::new(Schema::new(fields)) })
    }

    /// Renders a chunk. Rejected rows are not in the table.
    pub(super) fn render(&self, chunk: &Chunk) -> Result<Piece> {
        let (mut added, failed) = self.renderer.added(&chunk.values)?;
        added.pop();
        let rows = chunk.len();
        let mut is_good = vec![true; rows];
        let mut rejects = Vec::new();
        for (index, error) in &failed {
            is_good[*index] = false;
            rejects.push(Reject::new(chunk.first + *index as u64, error, None));
        }
        for bad in &chunk.unreadable {
            let row = chunk.first + bad.index as u64;
            is_good[bad.index] = false;
            rejects.retain(|reject| reject.row != row);
            rejects.push(Reject::unreadable(row, bad.line, &bad.reason));
        }
        rejects.sort_by_key(|reject| reject.row);
        let kept = match &chunk.values {
            Values::Arrow(batch) => {
                self.check_columns(batch)?;
                batch.columns()
            }
            Values::Json(_) => &[],
        };
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter_values((chunk.first..chunk.first + rows as u64).map(u64::cast_signed)));
        let all = std::iter::once(numbers).chain(kept.iter().cloned()).chain(added).collect();
        let failed = |error: arrow::error::ArrowError| Error::new(Kind::InvalidRows, error);
        let table = RecordBatch::try_new(self.schema.clone(), all).map_err(failed)?;
        let table = match rejects.is_empty() {
            true => table,
            false => filter_record_batch(&table, &BooleanArray::from(is_good)).map_err(failed)?,
        };
        let table = (table.num_rows() > 0).then_some((chunk.first, table));
        let end_row = chunk.first + rows as u64;
        Ok(Piece { table, rejects, source: chunk.source, end_row, ..Piece::default() })
    }

    /// Returns an error if the columns of a file are not those of the first one.
    fn check_columns(&self, batch: &RecordBatch) -> Result<()> {
        if batch.schema().fields() == self.columns.fields() {
            return Ok(());
        }
        Err(Error::new(Kind::InvalidRows, "the files have different columns")
            .with_help("prepare them as jobs of their own, or write them with the same columns"))
    }
}
