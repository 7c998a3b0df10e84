//! Results as JSON Lines: one object per line, each with a `kind`.

use std::io::{self, Write};

use serde::Serialize;

use super::{Report, Summary, escape};
use crate::CaseResult;

/// Writes a line for each case, and one for the summary. Nothing is buffered, so that a run that is killed loses no case
/// that has ended.
pub(super) struct JsonLines<W> {
    out: W,
}

#[derive(Serialize)]
struct Line<'line, T> {
    kind: &'static str,
    #[serde(flatten)]
    contents: &'line T,
}

impl<W: Write> JsonLines<W> {
    pub(super) const fn new(out: W) -> Self {
        Self { out }
    }

    fn line(&mut self, kind: &'static str, contents: &impl Serialize) -> io::Result<()> {
        let json = serde_json::to_string(&Line { kind, contents })?;
        // One write for the whole line: two programs that append to one file do not mix their lines.
        self.out.write_all(format!("{}\n", escape::json(&json)).as_bytes())?;
        self.out.flush()
    }
}

impl<W: Write> Report for JsonLines<W> {
    fn case(&mut self, result: &CaseResult) -> io::Result<()> {
        self.line("case", result)
    }

    fn finish(mut self: Box<Self>, summary: &Summary) -> io::Result<()> {
        self.line("summary", summary)
    }
}
