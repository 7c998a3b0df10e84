//! The state of one file of requests: which rows are answered, and the file with their answers in order.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tympan_core::wire::response::Usage;
use tympan_core::{Error, Kind, Result};

use super::journal::for_each_line;
use super::total::Totals;
use crate::manifest::{Exception, FileState, JobFile, Manifest};
use crate::price::Price;
use crate::results::{AnswerLine, Reply, answers_name};

/// The state of rows whose call failed.
const FAILED: &str = "failed";

/// How far the rows of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowState {
    /// The row has an answer.
    Answered,
    /// The call failed in this attempt.
    Failed(u64),
}

/// The files that belong to one file of requests.
pub(super) struct Paths {
    pub(super) journal: PathBuf,
    pub(super) answers: PathBuf,
}

impl Paths {
    pub(super) fn new(directory: &Path, file: &JobFile) -> Self {
        let answers = directory.join(answers_name(file.number));
        Self { journal: answers.with_extension("journal"), answers }
    }

    /// Calls a function with every line that the rows of the file were answered, in the order of their arrival.
    pub(super) fn for_each_saved(&self, mut each: impl FnMut(AnswerLine)) -> Result<()> {
        if !self.answers.exists() {
            return Ok(());
        }
        for_each_line(&self.answers, |line| {
            each(AnswerLine::parse(line)?);
            Ok(())
        })
    }
}

/// The states of the rows of a file.
#[derive(Default)]
pub(super) struct RowStates(HashMap<u64, RowState>);

impl RowStates {
    /// Adds a line. An answer is final.
    pub(super) fn add(&mut self, line: &AnswerLine) {
        let state = if line.is_answer() { RowState::Answered } else { RowState::Failed(line.attempt) };
        let known = self.0.entry(line.row).or_insert(state);
        *known = match (*known, state) {
            (RowState::Answered, _) | (_, RowState::Answered) => RowState::Answered,
            (RowState::Failed(one), RowState::Failed(other)) => RowState::Failed(one.max(other)),
        };
    }

    /// Returns how many rows have an answer, and how many have failed in this attempt.
    pub(super) fn count(&self, attempt: u64) -> (u64, u64) {
        let count = |is: &dyn Fn(&RowState) -> bool| self.0.values().filter(|state| is(state)).count() as u64;
        let failed = |state: &RowState| matches!(state, RowState::Failed(last) if *last >= attempt);
        (count(&|state| *state == RowState::Answered), count(&failed))
    }

    /// Returns whether nothing is left to do for a row in this attempt.
    pub(super) fn is_done(&self, row: u64, attempt: u64) -> bool {
        match self.0.get(&row) {
            Some(RowState::Answered) => true,
            Some(RowState::Failed(last)) => *last >= attempt,
            None => false,
        }
    }
}

/// A line, and where it is.
struct Place {
    row: u64,
    attempt: u64,
    is_journal: bool,
    start: u64,
    length: u64,
    usage: Totals,
    /// The error, unless the row was answered.
    error: Option<String>,
}

/// Writes the answers of a complete file in the order of the rows, and records the file as complete. If the process is
/// killed in the middle, it can be repeated.
pub(super) fn complete(manifest: &Manifest, paths: &Paths, file: &mut JobFile, price: &Price<'_>) -> Result<()> {
    let mut places = Vec::new();
    for (path, is_journal) in [(&paths.answers, false), (&paths.journal, true)] {
        if !path.exists() {
            continue;
        }
        let mut start = 0;
        for_each_line(path, |bytes| {
            let line = AnswerLine::parse(bytes)?;
            let length = bytes.len() as u64;
            let mut usage = Totals::default();
            usage_of(&line.reply).into_iter().for_each(|used| usage.add_usage(used, price));
            let (row, attempt, error) = (line.row, line.attempt, line.into_error());
            places.push(Place { row, attempt, is_journal, start, length, usage, error });
            start += length;
            Ok(())
        })?;
    }
    places.sort_by_key(|place| (place.row, place.attempt, place.is_journal));
    // A process that was killed after the file was replaced has left the same lines in the journal.
    places.dedup_by_key(|place| (place.row, place.attempt));
    write_sorted(paths, &places)?;

    let mut totals = Totals::default();
    let mut exceptions = Vec::new();
    for row in places.chunk_by(|one, other| one.row == other.row) {
        row.iter().for_each(|place| totals.add(&place.usage));
        match row.last().and_then(|last| last.error.clone()).filter(|_| row.iter().all(|place| place.error.is_some())) {
            Some(detail) => {
                let row = row.first().map_or(0, |place| place.row);
                exceptions.push(Exception { row, state: FAILED.to_owned(), detail });
            }
            None => totals.answered += 1,
        }
    }
    totals.failed = exceptions.len() as u64;
    totals.save(manifest, file.number)?;
    file.state = FileState::Collected;
    manifest.set_results(file, &[FAILED], &exceptions)?;
    fs::remove_file(&paths.journal).map_err(|error| cannot_write(&paths.journal, &error))
}

/// Returns the tokens of an answer.
pub(super) fn usage_of(reply: &Reply) -> Option<&Usage> {
    match reply {
        Reply::Response(response) => response.usage.as_ref(),
        Reply::Body(_) | Reply::Error { .. } => None,
    }
}

fn write_sorted(paths: &Paths, places: &[Place]) -> Result<()> {
    let partial = paths.answers.with_extension("jsonl.part");
    let write = || {
        let mut saved = paths.answers.exists().then(|| File::open(&paths.answers)).transpose()?.map(BufReader::new);
        let mut journal = BufReader::new(File::open(&paths.journal)?);
        let mut out = BufWriter::new(File::create(&partial)?);
        let mut line = Vec::new();
        for place in places {
            let source = match (&mut saved, place.is_journal) {
                (Some(saved), false) => saved,
                _ => &mut journal,
            };
            source.seek(SeekFrom::Start(place.start))?;
            line.resize(usize::try_from(place.length).unwrap_or_default(), 0);
            source.read_exact(&mut line)?;
            out.write_all(&line)?;
        }
        out.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_data()?;
        fs::rename(&partial, &paths.answers)
    };
    write().map_err(|error| cannot_write(&paths.answers, &error))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::InvalidBatch, format_args!("cannot write `{}`: {error}", path.display()))
}
