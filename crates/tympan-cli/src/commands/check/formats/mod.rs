//! The forms of the output.

mod annotations;
mod text;

use serde_json::{Value as Json, json};
use tympan::diagnostic::Severity;

use super::Report;
use crate::args::OutputFormat;
use crate::json;

/// Formats a report.
pub(super) fn show(report: &Report, format: OutputFormat) -> String {
    match format {
        OutputFormat::Full => text::full(report),
        OutputFormat::Concise => text::concise(report),
        OutputFormat::Json => json::pretty(&json_report(report)) + "\n",
        OutputFormat::JsonLines => {
            report.findings().map(|(source, finding)| json::line(&finding.to_json(source))).collect()
        }
        OutputFormat::Github => annotations::github(report),
        OutputFormat::Gitlab => annotations::gitlab(report),
        OutputFormat::Sarif | OutputFormat::Junit => String::new(),
    }
}

fn json_report(report: &Report) -> Json {
    json!({
        "files": report.files.len(),
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
        "diagnostics": report.findings().map(|(source, finding)| finding.to_json(source)).collect::<Json>(),
    })
}
