//! Findings and errors as JSON.

use serde_json::{Value as Json, json};
use tympan_core::Error;
use tympan_core::diagnostic::Diagnostic;
use tympan_core::text::source::SourceFile;
use tympan_lint::Finding;

use super::offsets::Offsets;

/// Converts a finding to the JSON that `tympan check --json` writes, with spans in addition to lines and columns.
pub(super) fn to_json(finding: &Finding, source: &SourceFile, offsets: &Offsets) -> Json {
    let mut json = finding.to_json(source);
    json["span"] = finding.span.map(|span| offsets.span(span)).into();
    let related = json["related"].as_array_mut().into_iter().flatten();
    for (json, (span, _)) in related.zip(&finding.related) {
        json["span"] = offsets.span(*span);
    }
    if let Some(fix) = &finding.fix {
        let edits = json["fix"]["edits"].as_array_mut().into_iter().flatten();
        for (json, (span, _)) in edits.zip(&fix.edits) {
            json["span"] = offsets.span(*span);
        }
    }
    json
}

/// Converts an error to JSON. Its position is known only if it is in this file.
pub(super) fn error_to_json(error: &Error, source: &SourceFile, offsets: &Offsets) -> Json {
    let is_here = error.source_file().is_some_and(|file| file.name() == source.name());
    let place = error.line_column().filter(|_| is_here);
    json!({
        "code": error.code(),
        "message": error.message(),
        "help": error.help(),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "span": error.span().filter(|_| is_here).map(|span| offsets.span(span)),
    })
}

/// Converts a diagnostic of the engine to JSON.
pub(super) fn diagnostic_to_json(diagnostic: &Diagnostic, source: &SourceFile, offsets: &Offsets) -> Json {
    let place = diagnostic.span.map(|span| source.line_column(span.start));
    json!({
        "code": diagnostic.code,
        "message": diagnostic.message,
        "help": diagnostic.help,
        "severity": diagnostic.severity.as_str(),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
        "span": diagnostic.span.map(|span| offsets.span(span)),
    })
}
