//! Regular expressions: those of JSON Schemas, and those of tests.

use std::fmt;

use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;

/// The maximum length of a pattern in bytes.
const MAX_PATTERN: usize = 2_000;

/// The maximum size of a compiled pattern in bytes.
const MAX_SIZE: usize = 256 * 1024;

/// A regular expression that is searched in linear time.
///
/// ```
/// use tympan::text::pattern::Pattern;
///
/// let pattern = Pattern::new(r"order \d+", true)?;
/// assert!(pattern.is_match("Your ORDER 66"));
/// assert!(Pattern::new(r"(a)\1", false).is_err());
/// # Ok::<(), tympan::text::pattern::PatternError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

/// Why a regular expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError(String);

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PatternError {}

impl Pattern {
    /// Compiles a regular expression. If it ignores case, Unicode's simple case folding applies.
    ///
    /// # Errors
    /// Returns an error if it is invalid or too long, or uses features that no linear search supports, such as
    /// references to groups and look-around.
    pub fn new(pattern: &str, ignore_case: bool) -> Result<Self, PatternError> {
        if pattern.len() > MAX_PATTERN {
            return Err(PatternError(format!("expected at most {MAX_PATTERN} bytes, found {}", pattern.len())));
        }
        let config = Config::new().nfa_size_limit(Some(MAX_SIZE)).hybrid_cache_capacity(MAX_SIZE);
        let syntax = syntax::Config::new().case_insensitive(ignore_case);
        let built = Regex::builder().configure(config).syntax(syntax).build(pattern);
        built.map(Self).map_err(|error| PatternError(reason(&error)))
    }

    /// Returns whether a text contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns how many matches a text contains that do not overlap.
    pub fn count(&self, text: &str) -> usize {
        self.0.find_iter(text).count()
    }
}

/// Returns the last line of the innermost cause. The lines before it show the pattern, which messages quote themselves.
fn reason(error: &regex_automata::meta::BuildError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    let last = text.trim_end().lines().last().unwrap_or_default();
    last.trim().trim_start_matches("error: ").to_owned()
}

/// Compiles a pattern of a JSON Schema. Returns `None` if it is too long, or uses features that no linear search
/// supports.
///
/// JSON Schema uses the patterns of ECMAScript, which are almost the same.
pub(crate) fn compile(pattern: &str) -> Option<Pattern> {
    Pattern::new(pattern, false).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_is_folded_by_unicode() {
        let matches = |pattern, text, ignore_case| Pattern::new(pattern, ignore_case).expect("valid").is_match(text);
        assert!(matches("straße", "STRAẞE", true) && matches("ΣΑΣ", "σας", true));
        assert!(!matches("a", "A", false));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let error = |pattern: &str| Pattern::new(pattern, false).expect_err("invalid").to_string();
        assert_eq!(error("a("), "unclosed group");
        assert_eq!(error(r"(?=a)"), "look-around, including look-ahead and look-behind, is not supported");
        assert_eq!(error(&"a".repeat(2_001)), "expected at most 2000 bytes, found 2001");
        assert!(error(r"\w{500}{500}").contains("limit"), "{}", error(r"\w{500}{500}"));
    }
}
