//! The forms of the output.

mod annotations;
mod junit;
mod sarif;
mod statistics;
mod text;

use serde_json::{Value as Json, json};
use tympan::diagnostic::Severity;

pub(super) use self::statistics::statistics;
pub(super) use self::text::counted;
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
        OutputFormat::Sarif => json::pretty(&sarif::log(report)) + "\n",
        OutputFormat::Junit => junit::show(report),
    }
}

fn json_report(report: &Report) -> Json {
    let mut json = json!({
        "files": report.files.len(),
        "errors": report.count(Severity::Error),
        "warnings": report.count(Severity::Warning),
    });
    if report.is_fixed {
        json["fixed"] = json!(report.fixed().count());
    }
    if let Some(baseline) = &report.baseline {
        let stale = baseline.stale.iter().map(|(file, rule, line)| json!({"file": file, "rule": rule, "line": line}));
        json["baseline"] = json!({ "known": baseline.known, "stale": stale.collect::<Json>() });
    }
    json["diagnostics"] = report.findings().map(|(source, finding)| finding.to_json(source)).collect();
    json
}
