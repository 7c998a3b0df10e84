//! Reads Arrow's IPC format.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::ipc::reader::{FileReader, StreamReader};
use tympan_core::Result;

use super::source::{begins_with, unreadable};
use super::{CHUNK_BYTES, MAX_CHUNK_ROWS, ReadRows, Unreadable, Values};

/// How files in the file format begin. Streams begin otherwise.
const MAGIC: &[u8] = b"ARROW1";

pub(super) struct IpcRows {
    reader: Box<dyn RecordBatchReader + Send>,
    /// The rest of a batch that is larger than a chunk.
    slices: VecDeque<RecordBatch>,
    path: PathBuf,
}

impl IpcRows {
    pub(super) fn open(mut file: File, path: &Path, columns: Option<&[String]>) -> Result<Self> {
        let failed = |reason: &dyn std::fmt::Display| unreadable(path, None, reason);
        let is_file = begins_with(&mut file, MAGIC).map_err(|error| failed(&error))?;
        let projection = |schema: &Schema| {
            let fields = schema.fields().iter().enumerate();
            let chosen = |name: &String| columns.is_none_or(|columns| columns.contains(name));
            fields.filter(|(_, field)| chosen(field.name())).map(|(index, _)| index).collect::<Vec<_>>()
        };
        let reader: Box<dyn RecordBatchReader + Send> = if is_file {
            let all = FileReader::try_new(BufReader::new(file.try_clone().map_err(|error| failed(&error))?), None);
            let chosen = projection(&all.map_err(|error| failed(&error))?.schema());
            Box::new(FileReader::try_new(BufReader::new(file), Some(chosen)).map_err(|error| failed(&error))?)
        } else {
            Box::new(StreamReader::try_new(BufReader::new(file), None).map_err(|error| failed(&error))?)
        };
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
