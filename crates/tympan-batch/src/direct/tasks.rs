//! The rows of a job that are still to be called.
//!
//! Rows are read and rendered when it is their turn, so that a call has the same bytes as a single one: messages that were
//! saved as JSON would lack what only the engine knows about them, such as where images are.

use std::collections::HashSet;

use arrow::array::RecordBatch;
use tympan_core::{JsonMap, Message, Result};

use super::file::RowStates;
use crate::manifest::{Exception, JobFile};
use crate::render::{Arena, RowRenderer};
use crate::rows::{Chunk, Rows, Source, Values};

/// A row to call.
pub(super) struct Task {
    pub(super) row: u64,
    values: TaskValues,
}

enum TaskValues {
    /// A table with one row.
    Arrow(RecordBatch),
    Json(JsonMap),
}

impl Task {
    /// Renders the messages of the row.
    pub(super) fn messages(&self, renderer: &RowRenderer<'_>) -> Result<Vec<Message>> {
        match &self.values {
            TaskValues::Arrow(batch) => {
                let bound = renderer.bind(batch)?;
                bound.with_row(0, Arena::default().next(), |inputs| renderer.messages(inputs))
            }
            TaskValues::Json(row) => renderer.messages((&renderer.bindings().of_json(row)).into()),
        }
    }
}

/// Reads the rows of a job, in order.
pub(super) struct RowQueue {
    rows: Rows,
    chunk: Option<Chunk>,
    /// The position of the next row in the chunk.
    index: usize,
}

impl RowQueue {
    /// Opens the files, at a row.
    pub(super) fn open(sources: &[Source], columns: Vec<String>, first_row: u64) -> Result<Self> {
        let mut rows = Rows::new(sources.to_vec(), Some(columns));
        rows.skip(first_row)?;
        Ok(Self { rows, chunk: None, index: 0 })
    }

    /// Returns the next row before this one.
    fn next_before(&mut self, end_row: u64) -> Result<Option<Task>> {
        loop {
            let is_used = self.chunk.as_ref().is_none_or(|chunk| self.index >= chunk.len());
            if is_used {
                self.chunk = self.rows.next_chunk()?;
                self.index = 0;
            }
            let Some(chunk) = &self.chunk else { return Ok(None) };
            if chunk.is_empty() {
                continue;
            }
            let row = chunk.first + self.index as u64;
            if row >= end_row {
                return Ok(None);
            }
            let values = match &chunk.values {
                Values::Arrow(batch) => TaskValues::Arrow(batch.slice(self.index, 1)),
                Values::Json(rows) => TaskValues::Json(rows.get(self.index).cloned().unwrap_or_default()),
            };
            self.index += 1;
            return Ok(Some(Task { row, values }));
        }
    }
}

/// The rows of one file that are still to be called.
pub(super) struct Tasks<'q> {
    queue: &'q mut RowQueue,
    first_row: u64,
    end_row: u64,
    /// The rows that were rejected when the job was prepared.
    rejected: HashSet<u64>,
    states: RowStates,
    attempt: u64,
}

impl<'q> Tasks<'q> {
    pub(super) fn new(queue: &'q mut RowQueue, file: &JobFile, exceptions: &[Exception], states: RowStates) -> Self {
        let rejected = exceptions.iter().filter(|exception| exception.is_rejected()).map(|exception| exception.row);
        let (first_row, end_row, attempt) = (file.first_row, file.end_row, file.attempts);
        Self { queue, first_row, end_row, rejected: rejected.collect(), states, attempt }
    }

    /// Returns the next row.
    pub(super) fn next(&mut self) -> Result<Option<Task>> {
        while let Some(task) = self.queue.next_before(self.end_row)? {
            let is_here = task.row >= self.first_row && !self.rejected.contains(&task.row);
            if is_here && !self.states.is_done(task.row, self.attempt) {
                return Ok(Some(task));
            }
        }
        Ok(None)
    }
}
