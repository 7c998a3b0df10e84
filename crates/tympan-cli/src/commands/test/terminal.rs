//! Results for people.

use std::io::{self, IsTerminal};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use indicatif::{ProgressBar, ProgressStyle};
use tympan_eval::report::{Summary, all_pass};
use tympan_eval::statistics::Confidence;
use tympan_eval::{CaseResult, Check, CheckStatus, Verdict};

use crate::color::{HEADING, styled};
use crate::diff;
use crate::escape::{visible, visible_line};
use crate::output::{self, Looks};
use crate::prices;

const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const OPEN: Style = AnsiColor::Yellow.on_default().bold();
const QUIET: Style = Style::new().dimmed();

/// Shows results on a terminal: a progress bar, failures as they happen, and a summary.
pub(super) struct Terminal {
    looks: Looks,
    progress: ProgressBar,
    /// Whether every case has a line.
    concise: bool,
    quiet: bool,
    counts: [usize; 4],
}

impl Terminal {
    pub(super) fn new(concise: bool, quiet: bool) -> Self {
        let progress =
            if quiet || !io::stderr().is_terminal() { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
        progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        progress.enable_steady_tick(Duration::from_millis(100));
        Self { looks: output::looks(), progress, concise, quiet, counts: [0; 4] }
    }

    /// Returns whether there is a progress bar.
    pub(super) fn has_progress(&self) -> bool {
        !self.progress.is_hidden()
    }

    /// Sets how many cases there are.
    pub(super) fn set_total(&self, cases: usize) {
        let style = ProgressStyle::with_template("{bar:24} {pos}/{len}  {msg}  {elapsed}");
        self.progress.set_length(u64::try_from(cases).unwrap_or(u64::MAX));
        self.progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    }

    /// Shows the result of a case.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written to.
    pub(super) fn show(&mut self, result: &CaseResult) -> io::Result<()> {
        self.counts[result.verdict as usize] += 1;
        let [passed, failed, not_run, _] = self.counts;
        let open = if not_run > 0 { format!(", {not_run} not run") } else { String::new() };
        self.progress.inc(1);
        self.progress.set_message(format!("{passed} passed, {failed} failed{open}"));
        if self.concise {
            return self.print(&self.line(result));
        }
        let has_warnings = !self.quiet && !result.warnings.is_empty();
        if matches!(result.verdict, Verdict::Failed | Verdict::NotRun) || has_warnings {
            return self.print(&self.block(result));
        }
        Ok(())
    }

    /// Shows the summary.
    ///
    /// # Errors
    /// Returns an error if standard output cannot be written to.
    pub(super) fn finish(&self, summary: &Summary) -> io::Result<()> {
        self.progress.finish_and_clear();
        self.print(&self.summary(summary))
    }

    /// Prints text above the progress bar.
    pub(super) fn print(&self, text: &str) -> io::Result<()> {
        self.progress.suspend(|| output::print_lines(text))
    }

    /// One line for a case.
    fn line(&self, result: &CaseResult) -> String {
        let mut out = String::new();
        let (word, style) = word(result.verdict);
        self.paint(&mut out, word, style);
        out.push_str(&format!(" {}", visible_line(&result.id)));
        if result.attempts.len() > 1 && result.verdict != Verdict::NotRun {
            out.push_str(&format!(" ({})", rate(result)));
        }
        out.push('\n');
        out
    }

    /// The failures of a case.
    fn block(&self, result: &CaseResult) -> String {
        let mut out = String::new();
        let (word, style) = word(result.verdict);
        self.paint(&mut out, word, style);
        out.push(' ');
        self.paint(&mut out, &visible_line(&result.name), HEADING);
        self.paint(&mut out, &format!("  {}:{}", visible_line(&result.file), result.line), QUIET);
        out.push('\n');
        let is_missing = result.verdict == Verdict::NotRun;
        if result.attempts.len() > 1 && !is_missing {
            out.push_str(&format!("  {}\n", rate(result)));
        }
        let mut has_shown = Vec::new();
        for check in result.failures() {
            // Repetitions often fail for the same reason.
            let key = (check.line, check.message.as_deref());
            // The recording of each repetition has another place.
            let is_repeated = is_missing && has_shown.iter().any(|(line, _)| *line == check.line);
            if !is_repeated && !has_shown.contains(&key) {
                has_shown.push(key);
                self.check(&mut out, check);
            }
        }
        if let Some(reason) = result.reason.as_ref().filter(|_| has_shown.is_empty()) {
            visible(reason).lines().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
        for warning in result.warnings.iter().filter(|_| !self.quiet) {
            out.push_str("  ");
            self.paint(&mut out, "warning", OPEN);
            out.push_str(&format!(": {}\n", visible(warning)));
        }
        out.push('\n');
        out
    }

    fn check(&self, out: &mut String, check: &Check) {
        let sign = if check.status == CheckStatus::NotRun { ("-", OPEN) } else { ("✗", BAD) };
        out.push_str("  ");
        self.paint(out, sign.0, sign.1);
        let message = check.message.as_deref().unwrap_or("failed");
        out.push_str(&format!(" {} (line {}): {}\n", check.assertion, check.line, visible_line(message)));
        if let (Some(expected), Some(actual)) = (&check.expected, &check.actual)
            && (expected.contains('\n') || actual.contains('\n') || expected.len() + actual.len() > 120)
        {
            // This is no patch: a log is displayed as well, sooner or later.
            let (expected, actual) = (visible(expected), visible(actual));
            let difference = diff::unified("expected/actual", &ended(&expected), &ended(&actual), self.looks);
            // The names of the two sides are above.
            for line in difference.lines().skip(2) {
                out.push_str(&format!("    {line}\n"));
            }
        }
    }

    fn summary(&self, summary: &Summary) -> String {
        let mut out = String::new();
        let parts = [
            (summary.passed, "passed", GOOD),
            (summary.failed, "failed", BAD),
            (summary.not_run, "not run", OPEN),
            (summary.skipped, "skipped", OPEN),
        ];
        let mut is_first = true;
        for (count, word, style) in parts {
            if count > 0 || word == "passed" {
                out.push_str(if is_first { "" } else { ", " });
                let style = if count > 0 { style } else { Style::new() };
                self.paint(&mut out, &format!("{count} {word}"), style);
                is_first = false;
            }
        }
        out.push_str(&format!(" in {}", seconds(summary.seconds)));
        if let Some(cost) = summary.cost.filter(|cost| *cost > 0.0) {
            out.push_str(&format!(", about {}", prices::shown(cost)));
        }
        out.push('\n');
        if let Some(repetitions) = summary.repetitions() {
            self.paint(&mut out, &repetitions, QUIET);
            out.push('\n');
        }
        out
    }

    fn paint(&self, out: &mut String, text: &str, style: Style) {
        styled(out, text, if self.looks.colors { style } else { Style::new() });
    }
}

/// Returns the word for a verdict, in a fixed width.
const fn word(verdict: Verdict) -> (&'static str, Style) {
    match verdict {
        Verdict::Passed => ("PASS", GOOD),
        Verdict::Failed => ("FAIL", BAD),
        Verdict::NotRun => ("OPEN", OPEN),
        Verdict::Skipped => ("SKIP", OPEN),
    }
}

/// Describes how many attempts passed, and how sure that is.
pub(super) fn rate(result: &CaseResult) -> String {
    let (passes, count) = (result.passes(), result.attempts.len());
    let interval = result.tally().interval(Confidence::P95);
    let percent = |share: f64| (share * 100.0).round();
    let together = all_pass(result).map(|chances| format!("; {chances}")).unwrap_or_default();
    format!(
        "{passes} of {count} attempts passed, between {} % and {} % with 95 % confidence; {} % required{together}",
        percent(interval.low),
        percent(interval.high),
        percent(result.required)
    )
}

fn ended(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

fn seconds(elapsed: f64) -> String {
    match elapsed {
        short if short < 1.0 => format!("{:.0} ms", short * 1000.0),
        long if long < 60.0 => format!("{long:.1} s"),
        long => format!("{:.0} min {:.0} s", (long / 60.0).floor(), long % 60.0),
    }
}
