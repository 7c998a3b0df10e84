//! Failures as commands of GitHub Actions, which annotate the lines of test files.

use std::io::{self, Write};

use super::escape::{shortened, visible};
use super::{Outcome, Report, ReportOptions, Summary, difference_text, failures, headline, pass_rate, slashed};
use crate::CaseResult;

/// How many bytes of a text are shown.
const LONGEST_TEXT: usize = 2_000;
/// How many failures of a case are annotations. GitHub shows ten errors of a step.
const MOST_FAILURES: usize = 5;

/// Writes one command per failure and warning. Cases that passed are not mentioned.
pub(super) struct Github<W> {
    out: W,
    options: ReportOptions,
}

impl<W: Write> Github<W> {
    pub(super) fn new(options: &ReportOptions, out: W) -> Self {
        Self { out, options: options.clone() }
    }

    /// Writes a command. Its message can have several lines.
    fn command(&mut self, kind: &str, result: &CaseResult, line: usize, message: &str) -> io::Result<()> {
        let (title, file, message) = (value(&result.name), value(&slashed(&result.file)), text(message));
        let line = if line > 0 { line } else { result.line };
        writeln!(self.out, "::{kind} title={title},file={file},line={line}::{message}")
    }

    fn failures(&mut self, result: &CaseResult) -> io::Result<()> {
        let failures = failures(result);
        let rate = pass_rate(result);
        if failures.is_empty() {
            let message = headline(result).unwrap_or_else(|| "the case failed".to_owned());
            return self.command("error", result, result.line, &message);
        }
        for (index, failure) in failures.iter().take(MOST_FAILURES).enumerate() {
            let mut message = format!("{}: {}", failure.check.assertion, failure.message());
            if let Some(pieces) = failure.difference() {
                message.push_str(&format!("\n{}", difference_text(&pieces)));
            }
            if let Some(rate) = rate.as_ref().filter(|_| index == 0) {
                message = format!("{rate}\n{message}");
            }
            let more = failures.len().saturating_sub(MOST_FAILURES);
            if more > 0 && index + 1 == MOST_FAILURES {
                message.push_str(&format!("\nand {more} more"));
            }
            self.command("error", result, failure.check.line, &message)?;
        }
        Ok(())
    }
}

impl<W: Write> Report for Github<W> {
    fn case(&mut self, result: &CaseResult) -> io::Result<()> {
        match Outcome::of(result, &self.options) {
            Outcome::Failed => self.failures(result)?,
            Outcome::Error => {
                let reason = headline(result).unwrap_or_else(|| "the case did not run".to_owned());
                self.command("error", result, result.line, &reason)?;
            }
            Outcome::Passed | Outcome::Skipped => {}
        }
        for warning in &result.warnings {
            self.command("warning", result, result.line, warning)?;
        }
        self.out.flush()
    }

    fn finish(mut self: Box<Self>, summary: &Summary) -> io::Result<()> {
        writeln!(self.out, "::notice title={}::{}", value(&self.options.title), text(&summary.counts()))?;
        self.out.flush()
    }
}

/// Returns a message that cannot end its command.
fn text(text: &str) -> String {
    let text = shortened(text, LONGEST_TEXT);
    visible(&text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Returns the value of a property.
fn value(value: &str) -> String {
    text(value).replace(':', "%3A").replace(',', "%2C")
}
