//! Mistakes in templates.

use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind};
use crate::text::source::Span;

/// The maximum number of mistakes that are reported for one template.
pub const MAX_ERRORS: usize = 100;

/// A mistake in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyntaxError {
    /// [`Kind::TemplateSyntax`]; [`Kind::LimitExceeded`] if the template nests too deeply; or [`Kind::ExcludedFeature`]
    /// for a tag of Mustache that prompts do not have.
    pub kind: Kind,
    /// The position.
    pub span: Span,
    /// What was found and what was expected.
    pub message: String,
    /// Advice on how to fix it.
    pub help: Option<String>,
}

impl SyntaxError {
    pub(super) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { kind: Kind::TemplateSyntax, span, message: message.into(), help: None }
    }

    pub(super) fn limit(span: Span, message: impl Into<String>) -> Self {
        Self { kind: Kind::LimitExceeded, ..Self::new(span, message) }
    }

    #[must_use]
    pub(super) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl From<SyntaxError> for Error {
    fn from(error: SyntaxError) -> Self {
        let converted = Self::new(error.kind, error.message).at(error.span);
        match error.help {
            Some(help) => converted.with_help(help),
            None => converted,
        }
    }
}

impl From<SyntaxError> for Diagnostic {
    fn from(error: SyntaxError) -> Self {
        let converted = Self::error(error.kind.code(), error.span, error.message);
        match error.help {
            Some(help) => converted.with_help(help),
            None => converted,
        }
    }
}

/// Adds a mistake, unless there are too many already.
pub(super) fn report(errors: &mut Vec<SyntaxError>, error: impl FnOnce() -> SyntaxError) {
    if errors.len() < MAX_ERRORS {
        errors.push(error());
    }
}
