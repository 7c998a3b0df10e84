//! Collects the findings of a parser while it continues to read.

use std::collections::HashSet;
use std::fmt::Display;

use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind};
use crate::text::source::Span;

/// The findings so far.
#[derive(Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
    /// The positions of values that are not known yet.
    deferred: HashSet<Span>,
    /// The positions of values that could not be read, which has been reported.
    failed: HashSet<Span>,
}

impl Report {
    /// Adds a finding, unless it is about a value that is not known yet.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        if !diagnostic.span.is_some_and(|span| self.is_deferred(span)) {
            self.push_if_read(diagnostic);
        }
    }

    /// Adds a finding that is true of every text, and so of a value that is not known yet as well. Values from the
    /// environment are always text.
    pub(crate) fn push_about_text(&mut self, diagnostic: Diagnostic) {
        self.push_if_read(diagnostic);
    }

    fn push_if_read(&mut self, diagnostic: Diagnostic) {
        if !diagnostic.span.is_some_and(|span| self.failed.contains(&span)) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Marks a value that is not known yet: it is some text.
    pub(crate) fn defer(&mut self, span: Span) {
        self.deferred.insert(span);
    }

    /// Marks a value that could not be read, so that there is only one finding about it.
    pub(crate) fn fail(&mut self, span: Span) {
        self.failed.insert(span);
    }

    /// Returns whether the value at this position is not known yet.
    pub(crate) fn is_deferred(&self, span: Span) -> bool {
        self.deferred.contains(&span)
    }

    /// Returns the findings, sorted by position.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
        self.diagnostics
    }

    /// Reports a key from an older version of the format that has been renamed. The suggested fix replaces the key with
    /// the last segment of `new`.
    pub(crate) fn renamed(&mut self, span: Span, old: &str, new: &str) {
        let key = new.rsplit('.').next().unwrap_or(new);
        self.push(
            Diagnostic::warning(LEGACY_KEY, span, format!("`{old}` is a former name of `{new}`"))
                .with_help(format!("write `{key}` instead"))
                .with_fix(key),
        );
    }

    /// Reports something from an older version of the format that has moved. `new` shows what to write instead.
    pub(crate) fn moved(&mut self, span: Span, old: &str, new: &str) {
        self.push(Diagnostic::warning(LEGACY_KEY, span, format!("{old} is deprecated")).with_help(new));
    }
}

/// The code of warnings about older versions of the format.
pub(crate) const LEGACY_KEY: &str = "legacy_key";

/// Creates an error diagnostic with the message pattern of a kind.
pub(crate) fn error(kind: Kind, span: Span, details: impl Display) -> Diagnostic {
    Diagnostic::error(kind.code(), span, kind.pattern().replacen("{}", &details.to_string(), 1))
}

/// Creates the error diagnostic for a field with the wrong shape.
pub(crate) fn invalid(span: Span, details: impl Display) -> Diagnostic {
    error(Kind::InvalidDocument, span, details)
}

/// Converts an error to a diagnostic at this position.
pub(crate) fn from_error(failure: &Error, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error(failure.code(), span, failure.message());
    match failure.help() {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    }
}
