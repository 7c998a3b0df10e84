//! A summary in Markdown, for the page that GitHub shows for a step.
//!
//! Text that did not come from Tympan is only ever inside of `<code>` and `<pre>`, and every character of it that means
//! something in Markdown or HTML is a character reference. References cannot end a table's cell, a code span or an
//! element, and GitHub links no mentions or issues inside of code.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::difference::Piece;
use super::escape::{shortened, visible, visible_line};
use super::number::{counted, dollars, seconds};
use super::{Outcome, Report, ReportOptions, Summary, failures, pass_rate};
use crate::CaseResult;
use crate::baseline::{Changes, Comparison};
use crate::statistics::{Change, MeanChange};

/// How many bytes of failures are written. GitHub refuses summaries of more than a megabyte.
const LARGEST: usize = 600_000;
/// How many bytes of a text are shown.
const LONGEST_TEXT: usize = 4_000;
/// How many bytes of a name are shown.
const LONGEST_NAME: usize = 200;
/// How many failures of a case are described.
const MOST_FAILURES: usize = 10;
/// How many rows a table or a list has.
const MOST_ROWS: usize = 100;

pub(super) struct Markdown<W> {
    out: W,
    options: ReportOptions,
    files: BTreeMap<String, Summary>,
    /// The details of cases that did not pass, as far as there is room for them.
    details: String,
    left_out: usize,
    warnings: Vec<String>,
}

impl<W: Write> Markdown<W> {
    pub(super) fn new(options: &ReportOptions, out: W) -> Self {
        let options = options.clone();
        Self { out, options, files: BTreeMap::new(), details: String::new(), left_out: 0, warnings: Vec::new() }
    }

    fn files(&self) -> String {
        let mut out = "| File | Passed | Failed | Not run | Skipped |\n|---|--:|--:|--:|--:|\n".to_owned();
        for (file, count) in self.files.iter().take(MOST_ROWS) {
            let Summary { passed, failed, not_run, skipped, .. } = count;
            out.push_str(&format!("| {} | {passed} | {failed} | {not_run} | {skipped} |\n", code(file)));
        }
        if self.files.len() > MOST_ROWS {
            out.push_str(&format!("\nand {} more\n", counted(self.files.len() - MOST_ROWS, "file")));
        }
        out
    }
}

impl<W: Write> Report for Markdown<W> {
    fn case(&mut self, result: &CaseResult) -> io::Result<()> {
        self.files.entry(result.file.clone()).or_default().add(result);
        let room = MOST_ROWS.saturating_sub(self.warnings.len());
        self.warnings.extend(
            result.warnings.iter().take(room).map(|warning| format!("- {}: {}\n", code(&result.id), code(warning))),
        );
        let outcome = Outcome::of(result, &self.options);
        if !matches!(outcome, Outcome::Failed | Outcome::Error) {
            return Ok(());
        }
        let details = details(result, outcome);
        if self.details.len() + details.len() > LARGEST {
            self.left_out += 1;
        } else {
            self.details.push_str(&details);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, summary: &Summary) -> io::Result<()> {
        let mark = if summary.is_success(self.options.allow_missing) { "✅" } else { "❌" };
        let mut out = format!("## {mark} {}: {}\n\n", html(&self.options.title), summary.counts());
        out.push_str(&format!("{}\n\n{}\n", totals(summary), self.files()));
        if let Some(comparison) = &summary.comparison {
            out.push_str(&compared(comparison));
        }
        out.push_str(&self.details);
        if self.left_out > 0 {
            out.push_str(&format!("and {} without room here\n\n", counted(self.left_out, "more case")));
        }
        if !self.warnings.is_empty() {
            let count = counted(summary.warnings, "warning");
            out.push_str(&format!(
                "<details><summary>⚠️ {count}</summary>\n\n{}\n</details>\n\n",
                self.warnings.concat()
            ));
        }
        self.out.write_all(out.as_bytes())?;
        self.out.flush()
    }
}

/// Returns the numbers of a run in one line.
fn totals(summary: &Summary) -> String {
    let mut totals = vec![counted(summary.cases(), "case")];
    totals.extend(summary.repetitions());
    if summary.input_tokens + summary.output_tokens > 0 {
        totals.push(format!("{} tokens in, {} out", summary.input_tokens, summary.output_tokens));
    }
    totals.extend(summary.cost.map(dollars));
    totals.push(seconds(summary.seconds));
    totals.join(" · ")
}

/// Returns a comparison with a baseline as a table.
fn compared(comparison: &Comparison) -> String {
    let word = comparison.word();
    let mut out = format!("### Compared with the baseline: {}\n\n", marked(comparison.change(), word));
    out.push_str("| Measure | Change | Shown |\n|---|---|---|\n");
    let Changes { pairs, improved, regressed } = comparison.exact;
    if pairs > 0 || comparison.varying == 0 {
        let shown = comparison.exact.change();
        let shown = marked(shown, if shown == Change::NotShown { "unchanged" } else { shown.as_str() });
        let cases = counted(pairs, "case");
        out.push_str(&format!(
            "| Exact verdicts | {improved} improved, {regressed} regressed of {cases} | {shown} |\n"
        ));
    }
    if comparison.varying > 0 {
        let verdicts = &comparison.verdicts;
        let (improved, regressed, p) = (verdicts.improved, verdicts.regressed, verdicts.p);
        let (shown, cases) = (change(verdicts.change), counted(comparison.varying, "case"));
        out.push_str(&format!(
            "| Verdicts of models | {improved} improved, {regressed} regressed of {cases} (p = {p:.3}) | {shown} |\n"
        ));
    }
    for (name, mean) in [("Pass rate", &comparison.pass_rates), ("Score", &comparison.scores)] {
        if let Some(MeanChange { mean, interval, change: shown, pairs, .. }) = mean {
            let pairs = counted(*pairs, "case");
            let interval = format!("{:+.3} to {:+.3}", interval.low, interval.high);
            out.push_str(&format!(
                "| {name} | {mean:+.3} on average of {pairs} (95 % interval: {interval}) | {} |\n",
                change(*shown)
            ));
        }
    }
    out.push('\n');
    let lists = [
        ("Regressed", &comparison.regressed),
        ("Improved", &comparison.improved),
        ("Only in the baseline", &comparison.only_before),
        ("Only in this run", &comparison.only_now),
    ];
    for (name, ids) in lists.into_iter().filter(|(_, ids)| !ids.is_empty()) {
        let rows: String = ids.iter().take(MOST_ROWS).map(|id| format!("- {}\n", code(id))).collect();
        let more = ids.len().saturating_sub(MOST_ROWS);
        let more = if more > 0 { format!("- and {more} more\n") } else { String::new() };
        out.push_str(&format!("<details><summary>{name}: {}</summary>\n\n{rows}{more}\n</details>\n\n", ids.len()));
    }
    out
}

fn change(change: Change) -> String {
    marked(change, if change == Change::NotShown { "not shown" } else { change.as_str() })
}

fn marked(change: Change, word: &str) -> String {
    match change {
        Change::Better => format!("✅ {word}"),
        Change::Worse => format!("❌ {word}"),
        Change::NotShown => word.to_owned(),
    }
}

/// Returns a case that did not pass, folded.
fn details(result: &CaseResult, outcome: Outcome) -> String {
    let mark = if outcome == Outcome::Error { "⚠️" } else { "❌" };
    let place = code(&format!("{}:{}", result.file, result.line));
    let mut out = format!("<details><summary>{mark} {} in {place}</summary>\n\n", code(&result.name));
    for text in [pass_rate(result), result.reason.clone()].iter().flatten() {
        out.push_str(&format!("<pre>{}</pre>\n\n", block(text)));
    }
    let failures = failures(result);
    for failure in failures.iter().take(MOST_FAILURES) {
        let assertion = code(&failure.check.assertion);
        let attempts = match (result.attempts.len(), failure.attempts.len()) {
            (0 | 1, _) => String::new(),
            (all, failed) => format!(", in {failed} of {all} attempts"),
        };
        out.push_str(&format!("{assertion} in line {}{attempts}:\n\n", failure.check.line));
        out.push_str(&format!("<pre>{}</pre>\n\n", block(failure.message())));
        if let Some(pieces) = failure.difference() {
            out.push_str(&format!("<pre>{}</pre>\n\n", pieces.iter().map(piece).collect::<String>()));
        }
    }
    if failures.len() > MOST_FAILURES {
        out.push_str(&format!("and {} more\n\n", failures.len() - MOST_FAILURES));
    }
    out.push_str("</details>\n\n");
    out
}

fn piece(piece: &Piece) -> String {
    match piece {
        Piece::Equal(text) => block(text),
        Piece::Removed(text) => format!("<del>{}</del>", block(text)),
        Piece::Added(text) => format!("<ins>{}</ins>", block(text)),
        Piece::Skipped(bytes) => format!(" … ({bytes} bytes) … "),
    }
}

/// Returns a text on one line, as code.
fn code(text: &str) -> String {
    format!("<code>{}</code>", html(&visible_line(&shortened(text, LONGEST_NAME))))
}

/// Returns a text with its lines, for the inside of `<pre>`.
fn block(text: &str) -> String {
    html(&visible(&shortened(text, LONGEST_TEXT)))
}

/// Replaces every character that means something in Markdown or HTML with a reference to it.
fn html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // Commas, full stops, hyphens and parentheses only mean something next to one of the others.
            ',' | '.' | '-' | '(' | ')' | '/' | '\'' | ';' | '?' | '=' | '+' | '%' => out.push(char),
            other if other.is_ascii_punctuation() => out.push_str(&format!("&#{};", u32::from(other))),
            other => out.push(other),
        }
    }
    // This would be a link without any other character.
    out.replace("www.", "www&#46;")
}
