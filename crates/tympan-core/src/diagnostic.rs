//! What a check has to say about a file.

use crate::source::Span;

/// How serious a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The prompt works, but something is worth knowing.
    Warning,
    /// The prompt cannot be used as it stands.
    Error,
}

impl Severity {
    /// The word shown to people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding: what, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// A short stable name, such as `duplicate_key`.
    pub code: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// Where it is, if it has a place.
    pub span: Option<Span>,
    /// What was expected and what was found.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Text that would put it right if it stood at `span`.
    pub fix: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn error(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, span.into(), message.into())
    }

    /// A warning at a place.
    pub fn warning(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, span.into(), message.into())
    }

    fn new(code: &'static str, severity: Severity, span: Option<Span>, message: String) -> Self {
        Self { code, severity, span, message, help: None, fix: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the text that would put it right.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Whether the prompt cannot be used because of it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The candidate that someone who wrote `word` most likely meant, if any is near enough.
pub fn guess<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    let allowed = if word.chars().count() <= 4 { 1 } else { 2 };
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// As [`guess`], among names that people make up: of those, anything is near to one of two letters.
pub fn guess_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().count() > 2 { guess(name, candidates) } else { None }
}
