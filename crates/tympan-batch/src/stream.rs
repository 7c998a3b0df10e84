//! Streams of tables: rows in, messages out, on several threads.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use tympan_core::{Prompt, Result};
use tympan_runtime::Runtime;

use crate::output::{TableOptions, TableRenderer};

/// The largest number of rows that a thread renders at once.
const PIECE_ROWS: usize = 1024;
/// The number of pieces per thread that are rendered before the first of them is returned.
const PIECES_PER_THREAD: usize = 4;

/// Renders a stream of tables. The result has the same rows in the same order.
///
/// Memory does not depend on the number of rows: tables are read when the next result is asked for, and large tables are
/// rendered piece by piece.
pub struct TableStream {
    input: Box<dyn RecordBatchReader + Send>,
    runtime: Runtime,
    prompt: Arc<Prompt>,
    options: TableOptions,
    schema: SchemaRef,
    threads: usize,
    /// The rows of the last table that are not rendered yet.
    rest: Option<RecordBatch>,
    ready: VecDeque<RecordBatch>,
    is_done: bool,
}

impl fmt::Debug for TableStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableStream")
            .field("schema", &self.schema)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl TableStream {
    /// Creates a stream. `threads` is the number of threads; 0 uses all cores.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`TableRenderer::new`].
    pub fn new(
        input: Box<dyn RecordBatchReader + Send>,
        runtime: Runtime,
        prompt: Arc<Prompt>,
        options: TableOptions,
        threads: usize,
    ) -> Result<Self> {
        let schema = TableRenderer::new(&runtime, &prompt, &input.schema(), &options)?.schema();
        let available = || thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { available() } else { threads }.min(256);
        let (rest, ready) = (None, VecDeque::new());
        Ok(Self { input, runtime, prompt, options, schema, threads, rest, ready, is_done: false })
    }

    /// Reads the next tables, in pieces: enough for all threads, or fewer at the end.
    fn read(&mut self) -> std::result::Result<Vec<RecordBatch>, ArrowError> {
        let wanted = if self.threads == 1 { 1 } else { self.threads * PIECES_PER_THREAD };
        let mut pieces = Vec::new();
        while pieces.len() < wanted {
            let table = match self.rest.take() {
                Some(rest) => rest,
                None => match self.input.next() {
                    Some(table) => table?,
                    None => break,
                },
            };
            let rows = table.num_rows().min(PIECE_ROWS);
            if rows < table.num_rows() {
                self.rest = Some(table.slice(rows, table.num_rows() - rows));
            }
            if rows > 0 {
                pieces.push(table.slice(0, rows));
            }
        }
        Ok(pieces)
    }

    /// Renders pieces on all threads.
    fn render(&self, pieces: &[RecordBatch]) -> Result<Vec<RecordBatch>> {
        let renderer = TableRenderer::new(&self.runtime, &self.prompt, &self.input.schema(), &self.options)?;
        let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(usize::MAX));
        let rendered = Mutex::new(Vec::with_capacity(pieces.len()));
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(piece) = pieces.get(index).filter(|_| index < failed.load(Ordering::Relaxed)) else { return };
                let mut tables = Vec::new();
                let outcome = renderer.render_into(piece, &mut tables).map(|()| tables);
                if outcome.is_err() {
                    failed.fetch_min(index, Ordering::Relaxed);
                }
                rendered.lock().unwrap_or_else(PoisonError::into_inner).push((index, outcome));
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.threads.min(pieces.len()) {
                scope.spawn(work);
            }
            work();
        });
        let mut rendered = rendered.into_inner().unwrap_or_else(PoisonError::into_inner);
        rendered.sort_by_key(|(index, _)| *index);
        let tables = rendered.into_iter().map(|(_, tables)| tables).collect::<Result<Vec<_>>>()?;
        Ok(tables.into_iter().flatten().collect())
    }
}

impl Iterator for TableStream {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(table) = self.ready.pop_front() {
            return Some(Ok(table));
        }
        if self.is_done {
            return None;
        }
        let rendered = self.read().and_then(|pieces| {
            self.is_done = pieces.is_empty();
            self.render(&pieces).map_err(|error| ArrowError::ExternalError(Box::new(error)))
        });
        match rendered {
            Ok(tables) => {
                self.ready.extend(tables);
                self.ready.pop_front().map(Ok)
            }
            Err(error) => {
                self.is_done = true;
                Some(Err(error))
            }
        }
    }
}

impl RecordBatchReader for TableStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
