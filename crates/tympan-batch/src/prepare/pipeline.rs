//! Renders chunks of rows on several threads, and hands the results on in order.
//!
//! Every thread does all of the work in turn: it reads a chunk, renders it, and writes what is complete. Only one thread
//! reads and only one writes at a time, while the others render. No chunk waits in a queue for longer than the other
//! threads need for theirs, so memory is bounded by the number of threads.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tympan_core::{Error, Kind, Result};

use super::line::LineWriter;
use super::part::{Parts, Piece};
use super::table::TableWriter;
use super::{PrepareOptions, Progress, Reject};
use crate::limits::Limits;
use crate::manifest::Manifest;
use crate::render::{Arena, RowRenderer};
use crate::rows::{Chunk, Rows, Values};

/// The size of rendered lines, in bytes, at which a thread writes them before its chunk is complete.
const PIECE_BYTES: usize = 16 << 20;
/// The number of complete pieces per thread that may wait for an earlier one.
const WAITING: usize = 2;

/// What the threads share about rendering.
pub(super) struct Pipeline<'a> {
    renderer: &'a RowRenderer<'a>,
    lines: &'a LineWriter<'a>,
    /// Renders tables, if the files have tables and not lines.
    tables: Option<&'a TableWriter<'a>>,
    limits: Limits,
    threads: usize,
}

/// The pieces that were rendered, and where they go.
struct Output {
    /// The files, unless a thread is writing to them.
    parts: Option<Parts>,
    /// The sequence number of the next piece to write.
    next: u64,
    waiting: BTreeMap<u64, Piece>,
    /// Buffers of pieces that were written. New ones would have to be mapped by the system first.
    spare: Vec<Vec<u8>>,
    failed: Option<Error>,
}

struct Shared<'s> {
    rows: Mutex<(Rows, u64)>,
    output: Mutex<Output>,
    /// Notified whenever `next` changes, or when a thread fails.
    turn: Condvar,
    progress: &'s (dyn Fn(Progress) + Sync),
}

impl<'a> Pipeline<'a> {
    pub(super) fn new(
        renderer: &'a RowRenderer<'a>,
        lines: &'a LineWriter<'a>,
        tables: Option<&'a TableWriter<'a>>,
        limits: Limits,
        options: &PrepareOptions,
    ) -> Self {
        let available = || thread::available_parallelism().map_or(1, usize::from);
        let threads = if options.threads == 0 { available() } else { options.threads };
        Self { renderer, lines, tables, limits, threads: threads.min(256) }
    }

    /// Renders all rows.
    pub(super) fn run(
        &self,
        rows: Rows,
        parts: Parts,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(Manifest, Progress)> {
        let output = Output { parts: Some(parts), next: 0, waiting: BTreeMap::new(), spare: Vec::new(), failed: None };
        let shared = Shared { rows: Mutex::new((rows, 0)), output: Mutex::new(output), turn: Condvar::new(), progress };
        thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(|| self.work(&shared));
            }
            self.work(&shared);
        });
        let output = shared.output.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (output.failed, output.parts) {
            (Some(error), _) => Err(error),
            (None, Some(parts)) => parts.finish(),
            (None, None) => Err(Error::new(Kind::InvalidBatch, "a thread has ended early")),
        }
    }

    /// Does the work of one thread.
    fn work(&self, shared: &Shared<'_>) {
        let mut arena = Arena::default();
        loop {
            let chunk = match shared.next_chunk() {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return,
                Err(error) => return shared.fail(error),
            };
            let (sequence, chunk) = chunk;
            let rendered = self.render(&chunk, sequence, shared, &mut arena);
            let written = rendered.and_then(|piece| shared.write(sequence, piece, WAITING * self.threads));
            if let Err(error) = written {
                return shared.fail(error);
            }
        }
    }

    /// Renders a chunk. Lines that exceed the size of a piece are written as soon as all earlier chunks are.
    fn render(&self, chunk: &Chunk, sequence: u64, shared: &Shared<'_>, arena: &mut Arena) -> Result<Piece> {
        if let Some(tables) = self.tables {
            return tables.render(chunk);
        }
        let end_row = chunk.first + chunk.len() as u64;
        let mut piece = Piece { lines: shared.spare(), source: chunk.source, end_row, ..Piece::default() };
        let mut bad = chunk.unreadable.iter().peekable();
        let bound = match &chunk.values {
            Values::Arrow(batch) => Some(self.renderer.bind(batch)?),
            Values::Json(_) => None,
        };
        for index in 0..chunk.len() {
            let row = chunk.first + index as u64;
            if let Some(unreadable) = bad.next_if(|unreadable| unreadable.index == index) {
                piece.rejects.push(Reject::unreadable(row, unreadable.line, &unreadable.reason));
                continue;
            }
            let start = piece.lines.len();
            let lines = &mut piece.lines;
            let mut render = |inputs: tympan_core::template::input::InputMap<'_>| {
                let messages = self.renderer.messages(inputs)?;
                self.lines.write(row, &messages, lines)
            };
            let rendered = match (&bound, &chunk.values) {
                (Some(bound), _) => bound.with_row(index, arena.next(), &mut render),
                (None, Values::Json(rows)) => match rows.get(index) {
                    Some(values) => render((&self.renderer.bindings().of_json(values)).into()),
                    None => Ok(()),
                },
                (None, Values::Arrow(_)) => Ok(()),
            };
            match rendered.and_then(|()| self.check_size(piece.lines.len() - start)) {
                Ok(()) => piece.ends.push((row, piece.lines.len())),
                Err(error) => {
                    piece.lines.truncate(start);
                    let inputs = match (&bound, &chunk.values) {
                        (Some(bound), _) => bound.json(index).ok(),
                        (None, Values::Json(rows)) => rows.get(index).map(|row| self.renderer.bindings().of_json(row)),
                        (None, Values::Arrow(_)) => None,
                    };
                    piece.rejects.push(Reject::new(row, &error, inputs));
                }
            }
            if piece.lines.len() >= PIECE_BYTES {
                let full = Piece { source: chunk.source, end_row: row + 1, ..std::mem::take(&mut piece) };
                shared.write_early(sequence, &full)?;
                (piece.source, piece.end_row) = (chunk.source, end_row);
            }
        }
        Ok(piece)
    }

    /// Returns an error if a request fits into no file.
    fn check_size(&self, bytes: usize) -> Result<()> {
        if bytes as u64 <= self.limits.bytes {
            return Ok(());
        }
        let most = self.limits.bytes;
        Err(Error::new(Kind::InvalidRequest, format_args!("the request has {bytes} bytes, and a file at most {most}")))
    }
}

impl Output {
    /// Keeps the buffer of a piece that was written, unless there are this many already.
    fn reuse(&mut self, mut lines: Vec<u8>, most: usize) {
        if self.spare.len() < most {
            lines.clear();
            self.spare.push(lines);
        }
    }
}

impl Shared<'_> {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an empty buffer for lines.
    fn spare(&self) -> Vec<u8> {
        self.output().spare.pop().unwrap_or_default()
    }

    /// Reads the next chunk, unless a thread has failed.
    fn next_chunk(&self) -> Result<Option<(u64, Chunk)>> {
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if self.output().failed.is_some() {
            return Ok(None);
        }
        let Some(chunk) = rows.0.next_chunk()? else { return Ok(None) };
        rows.1 += 1;
        Ok(Some((rows.1 - 1, chunk)))
    }

    /// Writes a piece if it is its turn, and all complete pieces after it. Otherwise it waits for a place in the queue.
    fn write(&self, sequence: u64, piece: Piece, most_waiting: usize) -> Result<()> {
        let mut output = self.output();
        while output.failed.is_none() && output.next != sequence && output.waiting.len() >= most_waiting {
            output = self.turn.wait(output).unwrap_or_else(PoisonError::into_inner);
        }
        output.waiting.insert(sequence, piece);
        let mut progress = None;
        // If another thread is writing, it writes this piece as well.
        while let Some(mut parts) = output.parts.take() {
            let next = output.next;
            let Some(piece) = output.waiting.remove(&next) else {
                output.parts = Some(parts);
                break;
            };
            drop(output);
            let written = parts.write(&piece);
            output = self.output();
            output.parts = Some(parts);
            progress = Some(written?);
            output.next += 1;
            output.reuse(piece.lines, most_waiting);
            self.turn.notify_all();
        }
        drop(output);
        if let Some(progress) = progress {
            (self.progress)(progress);
        }
        Ok(())
    }

    /// Waits until it is the turn of a chunk, and writes a part of it.
    fn write_early(&self, sequence: u64, piece: &Piece) -> Result<()> {
        let mut output = self.output();
        while output.failed.is_none() && output.next != sequence {
            output = self.turn.wait(output).unwrap_or_else(PoisonError::into_inner);
        }
        if output.failed.is_some() {
            return Ok(());
        }
        if let Some(parts) = &mut output.parts {
            parts.write(piece)?;
        }
        Ok(())
    }

    /// Records the first error, and wakes all threads.
    fn fail(&self, error: Error) {
        let mut output = self.output();
        output.failed.get_or_insert(error);
        drop(output);
        self.turn.notify_all();
    }
}
