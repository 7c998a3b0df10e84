//! The journal of a file of requests: the answers, in the order in which they arrived.
//!
//! An answer counts when it is on the disk. Threads that wait for the disk at the same time share one write: the first
//! writes the lines of all of them.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use tympan_core::{Error, Kind, Result};

use super::Moment;
use crate::results::AnswerLine;

/// A function that is called at moments at which a process may be killed.
pub(super) type Hook<'a> = &'a (dyn Fn(Moment<'_>) + Sync);

/// An open journal.
pub(super) struct Journal<'a> {
    path: PathBuf,
    state: Mutex<State>,
    /// Notified when lines are on the disk.
    written: Condvar,
    hook: Option<Hook<'a>>,
}

struct State {
    /// The file, unless a thread writes to it.
    file: Option<File>,
    /// The lines that no thread has begun to write.
    lines: Vec<u8>,
    /// The number of lines that were added.
    added: u64,
    /// The number of lines that are on the disk.
    durable: u64,
    failed: Option<Error>,
}

impl<'a> Journal<'a> {
    /// Opens a journal, and calls a function with every line that it has. What a killed process wrote of a line is
    /// removed.
    pub(super) fn open(path: &Path, hook: Option<Hook<'a>>, mut each: impl FnMut(AnswerLine)) -> Result<Self> {
        let failed = |error: std::io::Error| cannot_write(path, &error);
        let file = OpenOptions::new().create(true).read(true).append(true).open(path).map_err(failed)?;
        let mut complete = 0;
        for_each_line(path, |line| {
            complete += line.len() as u64;
            each(AnswerLine::parse(line)?);
            Ok(())
        })?;
        file.set_len(complete).and_then(|()| file.sync_data()).map_err(failed)?;
        let state = State { file: Some(file), lines: Vec::new(), added: 0, durable: 0, failed: None };
        Ok(Self { path: path.to_owned(), state: Mutex::new(state), written: Condvar::new(), hook })
    }

    /// Adds a line, and returns when it is on the disk.
    pub(super) fn append(&self, line: &[u8]) -> Result<()> {
        let mut state = self.state();
        state.lines.extend_from_slice(line);
        state.added += 1;
        let own = state.added;
        loop {
            if let Some(error) = &state.failed {
                return Err(error.clone());
            }
            if state.durable >= own {
                return Ok(());
            }
            let Some(mut file) = state.file.take() else {
                state = self.written.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let (lines, upto) = (std::mem::take(&mut state.lines), state.added);
            drop(state);
            let written = self.write(&mut file, &lines);
            state = self.state();
            state.file = Some(file);
            match written {
                Ok(()) => state.durable = upto,
                Err(error) => state.failed = Some(cannot_write(&self.path, &error)),
            }
            self.written.notify_all();
        }
    }

    fn write(&self, file: &mut File, lines: &[u8]) -> std::io::Result<()> {
        if let Some(hook) = self.hook {
            hook(Moment::BeforeWrite(file, lines));
        }
        file.write_all(lines)?;
        file.sync_data()?;
        if let Some(hook) = self.hook {
            hook(Moment::AfterWrite);
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls a function with every complete line of a file. The last line may be incomplete.
pub(super) fn for_each_line(path: &Path, mut each: impl FnMut(&[u8]) -> Result<(), String>) -> Result<()> {
    let file = File::open(path).map_err(|error| cannot_write(path, &error))?;
    let (mut lines, mut line, mut number) = (BufReader::with_capacity(1 << 16, file), Vec::new(), 0);
    loop {
        line.clear();
        number += 1;
        lines.read_until(b'\n', &mut line).map_err(|error| cannot_write(path, &error))?;
        if line.last() != Some(&b'\n') {
            return Ok(());
        }
        each(&line).map_err(|reason| {
            Error::new(Kind::InvalidBatch, format_args!("`{}`, line {number}: {reason}", path.display()))
        })?;
    }
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::InvalidBatch, format_args!("cannot write `{}`: {error}", path.display()))
}
