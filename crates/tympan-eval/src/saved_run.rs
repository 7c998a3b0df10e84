//! Reads saved runs: JSON Lines of results, as `report` writes them.

use std::fmt;
use std::io::{self, BufRead, Read};

use serde::Deserialize;

use crate::CaseResult;

/// The longest line that is read. Longer ones would fill the memory before anything about them is known.
const LONGEST_LINE: u64 = 64 * 1024 * 1024;

/// Reads the results of a saved run one by one. Only one line is in memory at a time.
///
/// Lines have a `kind`, and only those of the kind `case` are results; a line without a kind is a result, too. A last
/// line that is cut off, because the run was killed while it wrote it, is left out.
///
/// ```
/// use tympan_eval::saved_run::SavedRun;
///
/// let lines = "{\"kind\":\"case\",\"id\":\"a\",\"verdict\":\"passed\"}\n{\"kind\":\"summary\"}\n{\"kind\":\"ca";
/// let ids = SavedRun::new("run.jsonl", lines.as_bytes()).map(|result| Ok(result?.id));
/// assert_eq!(ids.collect::<Result<Vec<_>, tympan_eval::saved_run::SavedRunError>>()?, ["a"]);
/// # Ok::<(), tympan_eval::saved_run::SavedRunError>(())
/// ```
#[derive(Debug)]
pub struct SavedRun<R> {
    name: String,
    reader: R,
    line: usize,
    is_cut_off: bool,
    is_over: bool,
}

/// Why a saved run cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub struct SavedRunError {
    /// The name of the file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in bytes, counted from 1, if it is known.
    pub column: Option<usize>,
    /// What was found and what was expected.
    pub message: String,
    /// Advice on how to fix it.
    pub help: &'static str,
}

impl fmt::Display for SavedRunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        self.column.map_or(Ok(()), |column| write!(f, ":{column}"))?;
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for SavedRunError {}

#[derive(Deserialize)]
struct Kind {
    kind: Option<String>,
}

impl<R: BufRead> SavedRun<R> {
    /// Creates a reader. The name of the file is for errors.
    pub fn new(name: impl Into<String>, reader: R) -> Self {
        Self { name: name.into(), reader, line: 0, is_cut_off: false, is_over: false }
    }

    /// Returns the number of the line that was read last, counted from 1.
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Returns whether the last line was cut off, once everything is read.
    pub const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Reads the next result.
    fn read(&mut self) -> Result<Option<CaseResult>, SavedRunError> {
        loop {
            let Some(line) = self.read_line()? else { return Ok(None) };
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            if !text.starts_with(b"{") {
                return Err(self.error("expected a result as a JSON object, found something else", None));
            }
            match parse(text) {
                // The line end is written last, so a line without it may be incomplete.
                Err(_) if !line.ends_with(b"\n") => {
                    self.is_cut_off = true;
                    return Ok(None);
                }
                Err(error) => return Err(self.syntax_error(&error)),
                Ok(None) => {}
                Ok(Some(result)) if result.id.is_empty() => {
                    return Err(self.error("expected a result with an `id`, found none", None));
                }
                Ok(Some(result)) => return Ok(Some(result)),
            }
        }
    }

    fn read_line(&mut self) -> Result<Option<Vec<u8>>, SavedRunError> {
        self.line += 1;
        let mut line = Vec::new();
        let read: io::Result<usize> = (&mut self.reader).take(LONGEST_LINE).read_until(b'\n', &mut line);
        match read {
            Ok(0) => Ok(None),
            Ok(_) if line.len() as u64 == LONGEST_LINE => {
                Err(self.error(&format!("expected a line of at most {LONGEST_LINE} bytes, found a longer one"), None))
            }
            Ok(_) => Ok(Some(line)),
            Err(error) => Err(self.error(&format!("cannot read the file: {error}"), None)),
        }
    }

    fn syntax_error(&self, error: &serde_json::Error) -> SavedRunError {
        let message = error.to_string();
        // The line is always the first one of the text that was parsed.
        let message = message.split_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        let column = (error.column() > 0).then(|| error.column());
        self.error(&format!("expected a result as JSON: {message}"), column)
    }

    fn error(&self, message: &str, column: Option<usize>) -> SavedRunError {
        let help = "use a file that `tympan test` wrote as JSON Lines";
        SavedRunError { file: self.name.clone(), line: self.line, column, message: message.to_owned(), help }
    }
}

/// Parses a line. Returns `None` if it is not a result.
fn parse(line: &[u8]) -> serde_json::Result<Option<CaseResult>> {
    let Kind { kind } = serde_json::from_slice(line)?;
    if kind.is_some_and(|kind| kind != "case") {
        return Ok(None);
    }
    serde_json::from_slice(line).map(Some)
}

impl<R: BufRead> Iterator for SavedRun<R> {
    type Item = Result<CaseResult, SavedRunError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let next = self.read().transpose();
        self.is_over = !matches!(next, Some(Ok(_)));
        next
    }
}
