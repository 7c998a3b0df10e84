//! What a check has to say about a file.

use std::borrow::Cow;

use crate::text::source::Span;

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

/// The most bytes of a word that somebody may have mistyped: what is longer was not typed.
const MAX_WORD: usize = 64;

/// The most candidates that a word is compared with. Who has more of them gets a list that nobody reads anyway.
const MAX_CANDIDATES: usize = 200;

/// The candidate that someone who wrote `word` most likely meant, if any is near enough.
///
/// Words of more than 64 bytes, and candidates after the first 200, are not compared.
pub fn guess<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > MAX_WORD {
        return None;
    }
    let lower = word.to_lowercase();
    let length = lower.chars().count();
    let allowed = if word.chars().count() <= 4 { 1 } else { 2 };
    let distance = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        // As many letters as one has more than the other have to be put in.
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

/// As [`guess`], among names that people make up: of those, anything is near to one of two letters.
pub fn guess_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().take(3).count() > 2 { guess(name, candidates) } else { None }
}

/// The most characters of a name in a message.
const MAX_SHOWN: usize = 100;

/// The most names in a list.
const MAX_LISTED: usize = 20;

/// A name for a message that repeats it: as much of it as people read.
pub(crate) fn short(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}…", &name[..end])),
        None => Cow::Borrowed(name),
    }
}

/// Names in a list for people: the first ones, and how many others there are.
pub(crate) fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let listed: Vec<_> = names.take(MAX_LISTED).map(|name| format!("`{}`", short(name))).collect();
    let listed = listed.join(", ");
    if more == 0 { listed } else { format!("{listed} and {more} more") }
}
