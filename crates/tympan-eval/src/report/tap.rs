//! Results in the Test Anything Protocol, version 14.

use std::io::{self, Write};

use super::escape::{shortened, visible, visible_line};
use super::{Outcome, Report, ReportOptions, Summary, difference_text, failures, headline};
use crate::{CaseResult, Verdict};

/// How many bytes of a text are shown.
const LONGEST_TEXT: usize = 4_000;
/// How many failures of a case are described.
const MOST_FAILURES: usize = 20;

/// Writes a test point for each case, and the plan at the end.
pub(super) struct Tap<W> {
    out: W,
    options: ReportOptions,
    count: usize,
}

impl<W: Write> Tap<W> {
    pub(super) fn new(options: &ReportOptions, mut out: W) -> io::Result<Self> {
        out.write_all(b"TAP version 14\n")?;
        Ok(Self { out, options: options.clone(), count: 0 })
    }
}

impl<W: Write> Report for Tap<W> {
    fn case(&mut self, result: &CaseResult) -> io::Result<()> {
        self.count += 1;
        let outcome = Outcome::of(result, &self.options);
        let status = if matches!(outcome, Outcome::Passed | Outcome::Skipped) { "ok" } else { "not ok" };
        let mut point = format!("{status} {} - {}", self.count, description(&result.id));
        if outcome == Outcome::Skipped {
            point.push_str(&format!(" # SKIP {}", description(result.reason.as_deref().unwrap_or_default())));
        }
        point.truncate(point.trim_end().len());
        point.push('\n');
        if outcome != Outcome::Skipped && (outcome != Outcome::Passed || !result.warnings.is_empty()) {
            point.push_str(&diagnostics(result));
        }
        self.out.write_all(point.as_bytes())?;
        self.out.flush()
    }

    fn finish(mut self: Box<Self>, summary: &Summary) -> io::Result<()> {
        writeln!(self.out, "1..{}\n# {}", self.count, summary.counts())?;
        self.out.flush()
    }
}

/// Returns a text on one line in which nothing is a directive.
fn description(text: &str) -> String {
    visible_line(&shortened(text, LONGEST_TEXT)).replace('\\', "\\\\").replace('#', "\\#")
}

/// Returns a text as a quoted scalar of YAML. JSON's strings are such scalars.
fn quoted(text: &str) -> String {
    serde_json::Value::from(visible(&shortened(text, LONGEST_TEXT)).replace('\t', "    ")).to_string()
}

/// Returns what is known about a case as a block of YAML.
fn diagnostics(result: &CaseResult) -> String {
    let mut lines = vec!["---".to_owned()];
    if let Some(headline) = headline(result) {
        lines.push(format!("message: {}", quoted(&headline)));
    }
    let severity = match result.verdict {
        Verdict::Passed => "comment",
        Verdict::Failed => "fail",
        Verdict::NotRun => "not run",
        Verdict::Skipped => "skip",
    };
    lines.push(format!("severity: {severity}"));
    if let Some(reason) = &result.reason {
        lines.push(format!("reason: {}", quoted(reason)));
    }
    lines.extend(["at:".to_owned(), format!("  file: {}", quoted(&result.file)), format!("  line: {}", result.line)]);
    let failures = failures(result);
    if !failures.is_empty() {
        lines.push("failures:".to_owned());
    }
    for failure in failures.iter().take(MOST_FAILURES) {
        lines.push(format!("  - assertion: {}", quoted(&failure.check.assertion)));
        lines.push(format!("    line: {}", failure.check.line));
        lines.push(format!("    attempts: {:?}", failure.attempts));
        lines.push(format!("    message: {}", quoted(failure.message())));
        if let Some(pieces) = failure.difference() {
            lines.push(format!("    difference: {}", quoted(&difference_text(&pieces))));
        }
    }
    if failures.len() > MOST_FAILURES {
        lines.push(format!("more_failures: {}", failures.len() - MOST_FAILURES));
    }
    if !result.warnings.is_empty() {
        lines.push("warnings:".to_owned());
        lines.extend(result.warnings.iter().map(|warning| format!("  - {}", quoted(warning))));
    }
    lines.push("...".to_owned());
    lines.iter().map(|line| format!("  {line}\n")).collect()
}
