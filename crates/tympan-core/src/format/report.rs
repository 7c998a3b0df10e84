//! The findings of a reader, gathered while it reads on.

use std::fmt::Display;

use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind};
use crate::text::source::Span;

/// What a reader has found so far.
#[derive(Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// The findings in the order of their places.
    pub(crate) fn into_diagnostics(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span.map_or(0, |span| span.start));
        self.diagnostics
    }

    /// A key of an older format that has a new spelling; `new` would put it right where the key stands.
    pub(crate) fn renamed(&mut self, span: Span, old: &str, new: &str) {
        let key = new.rsplit('.').next().unwrap_or(new);
        self.push(
            Diagnostic::warning(LEGACY_KEY, span, format!("`{old}` is an older spelling of `{new}`"))
                .with_help(format!("write `{key}` instead"))
                .with_fix(key),
        );
    }

    /// Something of an older format that has moved; `new` shows what to write.
    pub(crate) fn moved(&mut self, span: Span, old: &str, new: &str) {
        self.push(
            Diagnostic::warning(LEGACY_KEY, span, format!("{old} belongs to an older version of the format"))
                .with_help(new),
        );
    }
}

/// The code of warnings about older formats.
pub(crate) const LEGACY_KEY: &str = "legacy_key";

/// An error of a kind, with its message as the kind writes it.
pub(crate) fn error(kind: Kind, span: Span, details: impl Display) -> Diagnostic {
    Diagnostic::error(kind.code(), span, kind.pattern().replacen("{}", &details.to_string(), 1))
}

/// A field that has the wrong shape.
pub(crate) fn invalid(span: Span, details: impl Display) -> Diagnostic {
    error(Kind::InvalidDocument, span, details)
}

/// An error as a finding at this place.
pub(crate) fn from_error(failure: &Error, span: Span) -> Diagnostic {
    let diagnostic = Diagnostic::error(failure.code(), span, failure.message());
    match failure.help() {
        Some(help) => diagnostic.with_help(help),
        None => diagnostic,
    }
}
