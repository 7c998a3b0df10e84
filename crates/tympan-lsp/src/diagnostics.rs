//! Diagnostics: the findings of `tympan check`.

use gen_lsp_types::{Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, DiagnosticTag, Location};
use tympan_core::diagnostic::Severity;
use tympan_core::text::source::Span;
use tympan_lint::Finding;

use crate::analysis::Analysis;
use crate::document::Document;

/// The name that editors show next to each diagnostic.
pub(crate) const SOURCE: &str = "tympan";

/// Returns the diagnostics of a document.
pub(crate) fn diagnostics(document: &Document, analysis: &Analysis) -> Vec<Diagnostic> {
    analysis.findings.iter().map(|finding| diagnostic(document, finding)).collect()
}

/// Converts a finding.
pub(crate) fn diagnostic(document: &Document, finding: &Finding) -> Diagnostic {
    let related = finding.related.iter().map(|(span, message)| DiagnosticRelatedInformation {
        location: Location::new(document.uri.clone(), document.range(*span)),
        message: message.clone(),
    });
    let related: Vec<_> = related.collect();
    let message = match &finding.help {
        Some(help) => format!("{}\nhelp: {help}", finding.message),
        None => finding.message.clone(),
    };
    Diagnostic {
        range: document.range(shown_span(document, finding)),
        severity: Some(severity(finding.severity)),
        code: Some(finding.rule.code.to_owned().into()),
        code_description: None,
        source: Some(SOURCE.to_owned()),
        message: message.into(),
        tags: tag(finding.rule.name).map(|tag| vec![tag]),
        related_information: (!related.is_empty()).then_some(related),
        data: None,
    }
}

/// Returns the span to underline. A finding without a position is shown at the first line.
pub(crate) fn shown_span(document: &Document, finding: &Finding) -> Span {
    finding.span.unwrap_or_else(|| document.line_at(0))
}

fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::Error,
        Severity::Warning => DiagnosticSeverity::Warning,
    }
}

/// Returns how editors may show a finding: unused names faded, and outdated ones struck through.
fn tag(rule: &str) -> Option<DiagnosticTag> {
    if rule.starts_with("unused_") || rule.starts_with("unreachable_") {
        Some(DiagnosticTag::Unnecessary)
    } else if rule.starts_with("legacy_") {
        Some(DiagnosticTag::Deprecated)
    } else {
        None
    }
}
