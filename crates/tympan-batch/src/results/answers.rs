//! The answers of a job, read from its files in the order of the rows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use tympan_core::{Error, Kind, Result};

use super::line::AnswerLine;
use crate::prepare::row_of;

/// What the names of all files of answers begin with.
pub const ANSWERS: &str = "answers-";

/// How the names of all files of answers end.
const ENDING: &str = ".jsonl";

/// The largest line. The body of a response is never larger than the client accepts.
const MAX_LINE_BYTES: usize = 128 << 20;

/// Returns the name of the file with the answers of a file of requests.
pub fn answers_name(number: u64) -> String {
    format!("{ANSWERS}{number:05}{ENDING}")
}

/// Reads files of answers, each of which is sorted by row, as one sequence. Only files whose rows overlap are open at the
/// same time.
pub(crate) struct Answers {
    /// The identifier of the job, with which all identifiers begin.
    job: String,
    files: Vec<AnswerFile>,
    /// The row of the next line of each file.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    /// The number of answers to requests that were never sent.
    pub(crate) unknown: u64,
    /// The number of rows that have two different answers.
    pub(crate) conflicting: u64,
}

impl Answers {
    /// Finds the files of answers in the directory of a job.
    pub(crate) fn open(directory: &Path, job: &str) -> Result<Self> {
        let unreadable = |error: std::io::Error| failed(directory, None, &error);
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(ANSWERS) && name.ends_with(ENDING) {
                paths.push(path);
            }
        }
        paths.sort();
        let mut answers =
            Self { job: job.to_owned(), files: Vec::new(), next: BinaryHeap::new(), unknown: 0, conflicting: 0 };
        for path in paths {
            let mut file = AnswerFile::new(path);
            if let Some(row) = file.first_row()? {
                answers.next.push(Reverse((row, answers.files.len())));
                answers.files.push(file);
            }
        }
        Ok(answers)
    }

    /// Returns the answer of a row, or else its last error. Rows are asked for in order.
    pub(crate) fn of_row(&mut self, row: u64) -> Result<Option<AnswerLine>> {
        let mut best: Option<AnswerLine> = None;
        while let Some(Reverse((next, file))) = self.next.peek().copied().filter(|Reverse((next, _))| *next <= row) {
            self.next.pop();
            let line = self.take(file)?;
            if next < row || row_of(&line.custom_id, &self.job) != Some(row) {
                self.unknown += 1;
                continue;
            }
            best = Some(match best.take() {
                None => line,
                Some(other) => self.better(other, line),
            });
        }
        Ok(best)
    }

    /// Counts the answers to rows that do not exist.
    pub(crate) fn finish(&mut self) -> Result<()> {
        while let Some(Reverse((_, file))) = self.next.pop() {
            self.take(file)?;
            self.unknown += 1;
        }
        Ok(())
    }

    /// Takes the next line of a file, and finds out the row of the one after it.
    fn take(&mut self, index: usize) -> Result<AnswerLine> {
        let missing = || Error::new(Kind::InvalidBatch, "a file of answers has become shorter");
        let file = self.files.get_mut(index).ok_or_else(missing)?;
        let line = file.take()?.ok_or_else(missing)?;
        if let Some(next) = file.peek()? {
            if next < line.row {
                let reason = format_args!("expected a row after {}, found {next}", line.row);
                return Err(failed(&file.path, Some(file.number), &reason));
            }
            self.next.push(Reverse((next, index)));
        }
        Ok(line)
    }

    /// Decides between two lines of a row: an answer beats an error, the first answer beats later ones, and the last error
    /// beats earlier ones.
    fn better(&mut self, one: AnswerLine, other: AnswerLine) -> AnswerLine {
        let (first, last) = if other.attempt < one.attempt { (other, one) } else { (one, other) };
        match (first.is_answer(), last.is_answer()) {
            (true, true) => {
                self.conflicting += u64::from(first.reply != last.reply);
                first
            }
            (true, false) => first,
            (false, _) => last,
        }
    }
}

/// A file of answers.
struct AnswerFile {
    path: PathBuf,
    lines: Option<BufReader<File>>,
    next: Option<AnswerLine>,
    /// The number of lines that were read.
    number: u64,
}

impl AnswerFile {
    fn new(path: PathBuf) -> Self {
        Self { path, lines: None, next: None, number: 0 }
    }

    /// Returns the first row, and closes the file until it is needed.
    fn first_row(&mut self) -> Result<Option<u64>> {
        let row = self.peek()?;
        *self = Self::new(std::mem::take(&mut self.path));
        Ok(row)
    }

    fn peek(&mut self) -> Result<Option<u64>> {
        if self.next.is_none() {
            self.next = self.read()?;
        }
        Ok(self.next.as_ref().map(|line| line.row))
    }

    fn take(&mut self) -> Result<Option<AnswerLine>> {
        self.peek()?;
        Ok(self.next.take())
    }

    fn read(&mut self) -> Result<Option<AnswerLine>> {
        let lines = match &mut self.lines {
            Some(lines) => lines,
            None => {
                let file = File::open(&self.path).map_err(|error| failed(&self.path, None, &error))?;
                self.lines.insert(BufReader::with_capacity(1 << 16, file))
            }
        };
        let mut line = Vec::new();
        loop {
            line.clear();
            self.number += 1;
            let read = lines.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut line);
            let number = Some(self.number);
            if read.map_err(|error| failed(&self.path, number, &error))? == 0 {
                return Ok(None);
            }
            if line.len() > MAX_LINE_BYTES {
                let reason = format_args!("the line has more than {} MiB", MAX_LINE_BYTES >> 20);
                return Err(failed(&self.path, number, &reason));
            }
            if !line.trim_ascii().is_empty() {
                return AnswerLine::parse(&line).map(Some).map_err(|reason| failed(&self.path, number, &reason));
            }
        }
    }
}

fn failed(path: &Path, line: Option<u64>, reason: &dyn std::fmt::Display) -> Error {
    let line = line.map_or_else(String::new, |line| format!(", line {line}"));
    Error::new(Kind::InvalidBatch, format_args!("the answers in `{}`{line}: {reason}", path.display()))
}
