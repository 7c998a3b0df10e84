//! Joins the answers to a file with its requests, by identifier.
//!
//! Answers come in any order. They are written to a file as they arrive, and memory has only their positions.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::report::Findings;
use super::requests::Requests;
use super::{cannot_read, cannot_write};
use crate::api::{Answer, BatchApi, Outcome, RowError};
use crate::manifest::Exception;
use crate::prepare::row_of;
use tympan_core::wire::response::Usage;
use tympan_core::wire::{self, Protocol};
use tympan_core::{JsonMap, Result};

const BUFFER: usize = 1 << 20;
/// The most characters of an identifier that are shown.
const SHOWN_ID: usize = 80;
/// The most characters of a message that the manifest has.
const DETAIL_CHARS: usize = 200;

/// The answers to the requests of a file, as far as they have arrived.
pub(super) struct Join<'a> {
    job: &'a str,
    protocol: Protocol,
    attempt: u64,
    requests: &'a Requests,
    /// The answer to each request, by row.
    answers: Vec<Option<Saved>>,
    path: PathBuf,
    spool: BufWriter<File>,
    length: u64,
    pub(super) findings: Findings,
}

/// The position of an answer in the spool.
#[derive(Clone, Copy)]
struct Saved {
    position: u64,
    length: u64,
    is_body: bool,
}

impl<'a> Join<'a> {
    /// Starts with no answers. `path` names the file that they are written to.
    pub(super) fn new(
        path: PathBuf,
        job: &'a str,
        protocol: Protocol,
        attempt: u64,
        requests: &'a Requests,
    ) -> Result<Self> {
        let spool = BufWriter::with_capacity(BUFFER, create_new(&path)?);
        let answers = vec![None; requests.len()];
        Ok(Self { job, protocol, attempt, requests, answers, path, spool, length: 0, findings: Findings::default() })
    }

    /// Adds a line of the provider's results. Returns false if it cannot be read.
    pub(super) fn add(&mut self, api: &dyn BatchApi, line: &[u8]) -> Result<bool> {
        if line.trim_ascii().is_empty() {
            return Ok(true);
        }
        self.findings.lines += 1;
        let Ok(Answer { custom_id, outcome }) = api.read_line(line) else { return Ok(false) };
        let row = row_of(&custom_id, self.job);
        let Some((row, index)) = row.and_then(|row| Some((row, self.requests.index_of(row)?))) else {
            self.findings.unknown += 1;
            self.findings.note(format!("an answer to `{}`, which was not sent", short(&custom_id)));
            return Ok(true);
        };
        let (line, is_body) = match outcome {
            Outcome::Body(body) => (self.line(row, "body", body.get()), true),
            Outcome::Error(error) => (self.line(row, "error", &error.to_json().to_string()), false),
        };
        let Some(before) = self.answers.get(index).copied().flatten() else {
            return self.save(index, &line, is_body).map(|()| true);
        };
        if self.saved(before)? == line.as_bytes() {
            self.findings.duplicates += 1;
            return Ok(true);
        }
        self.findings.conflicts += 1;
        self.findings.note(format!("row {row} has several different answers; the first complete one was taken"));
        if is_body && !before.is_body {
            self.save(index, &line, is_body)?;
        }
        Ok(true)
    }

    fn line(&self, row: u64, key: &str, value: &str) -> String {
        let Self { job, attempt, .. } = self;
        format!("{{\"row\":{row},\"custom_id\":\"{job}-{row}\",\"attempt\":{attempt},\"{key}\":{value}}}\n")
    }

    fn save(&mut self, index: usize, line: &str, is_body: bool) -> Result<()> {
        self.spool.write_all(line.as_bytes()).map_err(|error| cannot_write(&self.path, &error))?;
        let saved = Saved { position: self.length, length: line.len() as u64, is_body };
        self.length += saved.length;
        if let Some(answer) = self.answers.get_mut(index) {
            *answer = Some(saved);
        }
        Ok(())
    }

    /// Reads an answer from the spool.
    fn saved(&mut self, saved: Saved) -> Result<Vec<u8>> {
        let mut read = || {
            self.spool.flush()?;
            let file = self.spool.get_mut();
            file.seek(SeekFrom::Start(saved.position))?;
            let mut line = Vec::new();
            Read::take(&mut *file, saved.length).read_to_end(&mut line)?;
            file.seek(SeekFrom::Start(self.length))?;
            Ok(line)
        };
        read().map_err(|error| cannot_read(&self.path, &error))
    }

    /// Writes one line for each row to a file, in the order of the rows: the answers that have arrived, those of earlier
    /// attempts, and an error for each request without an answer. Returns the rows without an answer, and what was found.
    pub(super) fn finish(
        mut self,
        previous: Option<&Path>,
        missing: &RowError,
        to: &Path,
    ) -> Result<(Vec<Exception>, Findings)> {
        let file = BufWriter::with_capacity(BUFFER, create_new(to)?);
        let mut out = Answers { path: to, file, protocol: self.protocol, open: Vec::new() };
        let mut earlier = Earlier::open(previous)?;
        let rows: Vec<_> = self.requests.rows().collect();
        for (index, row) in rows.into_iter().enumerate() {
            while let Some((_, line)) = earlier.next_before(row)? {
                out.write(&line, &mut self.findings)?;
            }
            let before = earlier.take(row)?;
            let line = match self.answers.get(index).copied().flatten() {
                Some(saved) => self.saved(saved)?,
                None => self.line(row, "error", &missing.to_json().to_string()).into_bytes(),
            };
            // A killed process may have written the answers of this attempt already.
            let is_answered = before.as_deref().is_some_and(|line| read(line).is_some_and(|line| line.body.is_some()));
            let line = before.filter(|_| is_answered).unwrap_or(line);
            out.write(&line, &mut self.findings)?;
        }
        while let Some((_, line)) = earlier.next_before(u64::MAX)? {
            out.write(&line, &mut self.findings)?;
        }
        let open = out.finish()?;
        // The directory no longer needs the answers in the order of their arrival.
        let _ = std::fs::remove_file(&self.path);
        Ok((open, self.findings))
    }
}

/// A line of a file with answers.
#[derive(Deserialize)]
struct AnswerLine<'l> {
    row: u64,
    #[serde(borrow, default)]
    body: Option<&'l RawValue>,
    #[serde(default)]
    error: Option<Json>,
}

fn read(line: &[u8]) -> Option<AnswerLine<'_>> {
    serde_json::from_slice(line).ok()
}

/// Returns the tokens that the body of a response reports.
fn usage_of(protocol: Protocol, body: &RawValue) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Body {
        usage: Option<JsonMap>,
    }
    let usage = serde_json::from_str::<Body>(body.get()).ok()?.usage?;
    Some(wire::decode_usage(protocol, usage))
}

/// The file with the answers that is being written.
struct Answers<'p> {
    path: &'p Path,
    file: BufWriter<File>,
    protocol: Protocol,
    /// The rows without an answer.
    open: Vec<Exception>,
}

impl Answers<'_> {
    fn write(&mut self, line: &[u8], findings: &mut Findings) -> Result<()> {
        self.file.write_all(line).map_err(|error| cannot_write(self.path, &error))?;
        let Some(AnswerLine { row, body, error }) = read(line) else { return Ok(()) };
        if let Some(body) = body {
            findings.answered += 1;
            match usage_of(self.protocol, body) {
                Some(usage) => findings.add_usage(&usage),
                None => findings.uncounted += 1,
            }
            return Ok(());
        }
        let text = |key: &str| error.as_ref().and_then(|error| error.get(key)?.as_str()).unwrap_or_default();
        let (state, message) = (text("state"), text("message"));
        let count = match state {
            "expired" => &mut findings.expired,
            "cancelled" => &mut findings.cancelled,
            "missing" => &mut findings.missing,
            _ => &mut findings.failed,
        };
        *count += 1;
        let detail = message.chars().take(DETAIL_CHARS).collect();
        self.open.push(Exception { row, state: state.to_owned(), detail });
        Ok(())
    }

    fn finish(self) -> Result<Vec<Exception>> {
        let written =
            self.file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        written.map_err(|error| cannot_write(self.path, &error))?;
        Ok(self.open)
    }
}

/// The answers of earlier attempts, by row.
struct Earlier {
    path: PathBuf,
    lines: Option<BufReader<File>>,
    next: Option<(u64, Vec<u8>)>,
}

impl Earlier {
    fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else { return Ok(Self { path: PathBuf::new(), lines: None, next: None }) };
        let file = tympan_runtime::file::read::open_regular(path).map_err(|error| cannot_read(path, &error))?;
        let mut earlier =
            Self { path: path.to_owned(), lines: Some(BufReader::with_capacity(BUFFER, file)), next: None };
        earlier.advance()?;
        Ok(earlier)
    }

    fn advance(&mut self) -> Result<()> {
        let mut line = Vec::new();
        if let Some(lines) = &mut self.lines {
            lines.read_until(b'\n', &mut line).map_err(|error| cannot_read(&self.path, &error))?;
        }
        let row = read(&line).map(|read| read.row);
        self.next = row.map(|row| (row, line));
        Ok(())
    }

    /// Returns the next line, if it is of an earlier row.
    fn next_before(&mut self, row: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let found = self.next.take_if(|(next, _)| *next < row);
        if found.is_some() {
            self.advance()?;
        }
        Ok(found)
    }

    /// Returns the line of a row, if it is the next one.
    fn take(&mut self, row: u64) -> Result<Option<Vec<u8>>> {
        let found = self.next.take_if(|(next, _)| *next == row);
        if found.is_some() {
            self.advance()?;
        }
        Ok(found.map(|(_, line)| line))
    }
}

/// Creates a file that can be read and written, replacing an existing one. Links are replaced, not followed.
pub(super) fn create_new(path: &Path) -> Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(cannot_write(path, &error)),
        _ => {}
    }
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
    file.map_err(|error| cannot_write(path, &error))
}

fn short(text: &str) -> String {
    let start: String = text.chars().take(SHOWN_ID).collect();
    if start.len() < text.len() { start + "…" } else { start }
}
