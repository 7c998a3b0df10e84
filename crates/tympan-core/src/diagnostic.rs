//! Diagnostics: the findings of a check.

use std::borrow::Cow;

use crate::text::source::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The prompt works, but something is worth fixing.
    Warning,
    /// The prompt cannot be used.
    Error,
}

impl Severity {
    /// Returns the word that is shown to people and programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One finding: what is wrong, where, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// A short, stable code, such as `duplicate_key`.
    pub code: &'static str,
    /// The severity.
    pub severity: Severity,
    /// The position, if it is known.
    pub span: Option<Span>,
    /// What was found and what was expected.
    pub message: String,
    /// Advice on how to fix it.
    pub help: Option<String>,
    /// The text to replace `span` with to fix it.
    pub fix: Option<String>,
}

impl Diagnostic {
    /// Creates an error.
    pub fn error(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, span.into(), message.into())
    }

    /// Creates a warning.
    pub fn warning(code: &'static str, span: impl Into<Option<Span>>, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, span.into(), message.into())
    }

    fn new(code: &'static str, severity: Severity, span: Option<Span>, message: String) -> Self {
        Self { code, severity, span, message, help: None, fix: None }
    }

    /// Adds advice on how to fix the finding.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the replacement text that fixes the finding.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Returns whether the severity is [`Severity::Error`].
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The maximum length in bytes of a word that is compared. Longer words are not typing mistakes.
const MAX_WORD: usize = 64;

/// The maximum number of candidates that a word is compared with, to bound the cost of a guess.
const MAX_CANDIDATES: usize = 200;

/// Returns the candidate that `word` is most likely a misspelling of, if one is close enough.
///
/// Words and candidates longer than 64 bytes, and candidates after the first 200, are not compared.
pub fn guess<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let lower = word.to_lowercase();
    let length = lower.chars().count();
    let allowed = if word.chars().count() <= 4 { 1 } else { 2 };
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        // The distance is at least the difference in length, so a large difference rules a candidate out cheaply.
        let is_near = candidate.chars().count().abs_diff(length) <= allowed;
        is_near.then(|| strsim::damerau_levenshtein(&lower, &candidate)).filter(|distance| *distance <= allowed)
    };
    candidates
        .into_iter()
        .take(MAX_CANDIDATES)
        .filter(|candidate| candidate.len() <= MAX_WORD)
        .filter_map(|candidate| distance(candidate).map(|distance| (distance, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Returns the candidate that `name` is most likely a misspelling of, for names that users choose freely.
///
/// This is [`guess`] for names of at least three characters. Shorter names are close to too many others.
pub fn guess_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().take(3).count() > 2 { guess(name, candidates) } else { None }
}

/// The maximum number of characters of a name in a message.
const MAX_SHOWN: usize = 100;

/// The maximum number of names in a list.
const MAX_LISTED: usize = 20;

/// Shortens a name to a readable length for a message.
pub(crate) fn short(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
        None => Cow::Borrowed(name),
    }
}

/// Formats names as a list for a message: the first ones, and the number of the remaining ones.
pub fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let listed: Vec<_> = names.take(MAX_LISTED).map(|name| format!("`{}`", short(name))).collect();
    let listed = listed.join(", ");
    if more == 0 { listed } else { format!("{listed} and {more} more") }
}
