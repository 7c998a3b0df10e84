//! Findings for people.

use tympan::diagnostic::Severity;

use crate::commands::check::Report;
use crate::escape::visible_line;
use crate::excerpt::Finding;
use crate::output;
use crate::report::{Legacy, show_all};

/// Formats each finding with its line, then a summary.
pub(super) fn full(report: &Report) -> String {
    let findings: Vec<_> = report.findings().map(|(source, finding)| Finding::of_rule(finding, source)).collect();
    let shown = if findings.is_empty() {
        String::new()
    } else {
        show_all(&findings, Legacy::Listed, output::looks().colors) + "\n"
    };
    shown + &summary(report)
}

/// Formats each finding as one line, then a summary.
pub(super) fn concise(report: &Report) -> String {
    let line = |(source, finding): (&tympan::text::source::SourceFile, &tympan_lint::Finding)| {
        let place = finding.span.map_or_else(String::new, |span| {
            let at = source.line_column(span.start);
            format!(":{}:{}", at.line, at.column)
        });
        let (severity, code, name) = (finding.severity.as_str(), finding.rule.code, finding.rule.name);
        let mark = if finding.fix.as_ref().is_some_and(|fix| fix.safe) { " [*]" } else { "" };
        let (file, message) = (visible_line(source.name()), visible_line(&finding.message));
        format!("{file}{place}: {severity}[{code} {name}]{mark} {message}\n")
    };
    report.findings().map(line).collect::<String>() + &summary(report)
}

/// Formats the last lines: what was checked, found, fixed and can be fixed.
pub(super) fn summary(report: &Report) -> String {
    let fixed = report.fixed().count();
    let fixed =
        if report.is_fixed && fixed > 0 { format!("Fixed {}\n", counted(fixed, "problem")) } else { String::new() };
    stale(report) + &fixed + &found(report)
}

/// Formats the entries of the baseline that match no finding any more.
fn stale(report: &Report) -> String {
    let Some(baseline) = report.baseline.as_ref().filter(|baseline| !baseline.stale.is_empty()) else {
        return String::new();
    };
    let lines = baseline
        .stale
        .iter()
        .map(|(file, rule, line)| format!("  {}: {rule}: {}\n", visible_line(file), visible_line(line)));
    format!(
        "Fixed, but still in the baseline; `--write-baseline` removes {}:\n{}",
        if baseline.stale.len() == 1 { "it" } else { "them" },
        lines.collect::<String>()
    )
}

fn found(report: &Report) -> String {
    let files = counted(report.files.len(), "file");
    let (errors, warnings) = (report.count(Severity::Error), report.count(Severity::Warning));
    let known = report.baseline.as_ref().map_or(0, |baseline| baseline.known);
    let known = if known > 0 { format!(" ({known} in the baseline)") } else { String::new() };
    if errors + warnings == 0 {
        return format!("{files} checked, no problems found{known}\n");
    }
    let found = format!("{files} checked: {}, {}{known}\n", counted(errors, "error"), counted(warnings, "warning"));
    found + &fixable(report)
}

/// Says how many findings the command can fix.
fn fixable(report: &Report) -> String {
    let count = |safe: bool| {
        let fixes = report.findings().filter_map(|(_, finding)| finding.fix.as_ref());
        fixes.filter(|fix| fix.safe == safe).count()
    };
    match (count(true), count(false)) {
        (0, 0) => String::new(),
        (safe, 0) => format!("{safe} fixable with `--fix`\n"),
        (0, risky) => format!("{risky} fixable with `--fix --unsafe-fixes`\n"),
        (safe, risky) => format!("{safe} fixable with `--fix`, {risky} more with `--unsafe-fixes`\n"),
    }
}

/// Formats a number with a noun.
pub(in crate::commands::check) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
