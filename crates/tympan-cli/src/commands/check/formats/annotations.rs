//! Findings for the pages of CI servers.

use std::collections::HashMap;

use serde_json::{Value as Json, json};
use tympan::diagnostic::Severity;
use tympan::text::hash::sha256_hex;
use tympan::text::source::SourceFile;
use tympan_lint::Finding;

use crate::commands::check::Report;
use crate::json;

/// Formats findings as commands of GitHub Actions, one per line.
pub(super) fn github(report: &Report) -> String {
    let command = |(source, finding): (&SourceFile, &Finding)| {
        let kind = finding.severity.as_str();
        let title = format!("{} {}", finding.rule.code, finding.rule.name);
        let place = finding.span.map_or_else(String::new, |span| {
            let (start, end) = (source.line_column(span.start), source.line_column(span.end));
            // Columns are shown only for findings within a line.
            let columns = if start.line == end.line {
                format!(",col={},endColumn={}", start.column, end.column)
            } else {
                String::new()
            };
            format!(",line={},endLine={}{columns}", start.line, end.line)
        });
        let help = finding.help.as_ref().map_or_else(String::new, |help| format!("\n{help}"));
        let message = github_text(&format!("{}{help}", finding.message));
        format!("::{kind} title={},file={}{place}::{message}\n", github_value(&title), github_value(source.name()))
    };
    report.findings().map(command).collect()
}

fn github_text(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn github_value(text: &str) -> String {
    github_text(text).replace(':', "%3A").replace(',', "%2C")
}

/// Formats findings as a Code Quality report of GitLab.
pub(super) fn gitlab(report: &Report) -> String {
    let mut fingerprints = Fingerprints::default();
    let issue = |(source, finding): (&SourceFile, &Finding)| {
        let span = finding.span.unwrap_or_default();
        let (start, end) = (source.line_column(span.start), source.line_column(span.end));
        json!({
            "description": finding.message,
            "check_name": format!("{} {}", finding.rule.code, finding.rule.name),
            "fingerprint": fingerprints.of(source, finding),
            "severity": match finding.severity { Severity::Error => "major", Severity::Warning => "minor" },
            "location": {
                "path": uri_path(source.name()),
                "positions": {
                    "begin": { "line": start.line, "column": start.column },
                    "end": { "line": end.line, "column": end.column },
                },
            },
        })
    };
    json::pretty(&report.findings().map(issue).collect::<Json>()) + "\n"
}

/// Returns a path with slashes, without a leading `./`.
pub(super) fn uri_path(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    path.strip_prefix("./").map(str::to_owned).unwrap_or(path)
}

/// Identifiers of findings that stay the same if lines are added elsewhere.
#[derive(Default)]
pub(super) struct Fingerprints(HashMap<String, usize>);

impl Fingerprints {
    pub(super) fn of(&mut self, source: &SourceFile, finding: &Finding) -> String {
        let line = finding.line(source).trim();
        let text = format!("{}\n{}\n{line}\n{}", uri_path(source.name()), finding.rule.code, finding.message);
        let count = self.0.entry(text.clone()).or_default();
        *count += 1;
        sha256_hex(format!("{text}\n{count}"))
    }
}
