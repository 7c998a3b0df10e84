//! Reads Arrow's IPC format.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use tympan_core::Result;

use super::source::unreadable;
use super::{CHUNK_BYTES, MAX_CHUNK_ROWS, ReadRows, Unreadable, Values};
use crate::ipc::IpcTables;

pub(super) struct IpcRows {
    reader: IpcTables,
    /// The rest of a batch that is larger than a chunk.
    slices: VecDeque<RecordBatch>,
    path: PathBuf,
}

impl IpcRows {
    pub(super) fn open(file: File, path: &Path, columns: Option<&[String]>) -> Result<Self> {
        let keeps = |name: &str| columns.is_none_or(|columns| columns.iter().any(|column| column == name));
        let reader = IpcTables::from_file(file, &keeps).map_err(|error| unreadable(path, None, &error))?;
        Ok(Self { reader, slices: VecDeque::new(), path: path.to_owned() })
    }

    pub(super) fn columns(&self) -> Vec<String> {
        self.reader.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    pub(super) fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

impl ReadRows for IpcRows {
    fn next(&mut self) -> Result<Option<(Values, Vec<Unreadable>)>> {
        loop {
            if let Some(batch) = self.slices.pop_front() {
                return Ok(Some((Values::Arrow(batch), Vec::new())));
            }
            match self.reader.next() {
                None => return Ok(None),
                Some(Ok(batch)) => self.slices = slices(&batch),
                Some(Err(error)) => return Err(unreadable(&self.path, None, &error)),
            }
        }
    }
}

/// Cuts a batch into chunks. They share its memory.
pub(crate) fn slices(batch: &RecordBatch) -> VecDeque<RecordBatch> {
    let rows = batch.num_rows();
    let average = (batch.get_array_memory_size() / rows.max(1)).max(1);
    let step = (CHUNK_BYTES / average).clamp(1, MAX_CHUNK_ROWS);
    (0..rows).step_by(step).map(|start| batch.slice(start, step.min(rows - start))).collect()
}
