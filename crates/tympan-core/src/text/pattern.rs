//! Regular expressions: those of JSON Schemas, and those of tests.

use std::fmt;

use regex_automata::util::syntax;

#[cfg(not(target_arch = "wasm32"))]
use fast as engine;
#[cfg(target_arch = "wasm32")]
use small as engine;

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
pub struct Pattern(engine::Regex);

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
        let syntax = syntax::Config::new().case_insensitive(ignore_case);
        engine::Regex::new(pattern, syntax).map(Self).map_err(|error| PatternError(reason(&*error)))
    }

    /// Returns whether a text contains a match.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    /// Returns how many matches a text contains that do not overlap.
    pub fn count(&self, text: &str) -> usize {
        self.0.count(text)
    }
}

/// The error of a regular expression.
type BuildError = Box<dyn std::error::Error>;

/// Regular expressions with lazy automata, which are the fastest.
#[cfg(any(not(target_arch = "wasm32"), test))]
mod fast {
    use regex_automata::meta;

    use super::{BuildError, MAX_SIZE, syntax};

    #[derive(Clone, Debug)]
    pub(super) struct Regex(meta::Regex);

    impl Regex {
        pub(super) fn new(pattern: &str, syntax: syntax::Config) -> Result<Self, BuildError> {
            let config = meta::Config::new().nfa_size_limit(Some(MAX_SIZE)).hybrid_cache_capacity(MAX_SIZE);
            Ok(Self(meta::Regex::builder().configure(config).syntax(syntax).build(pattern)?))
        }

        pub(super) fn is_match(&self, text: &str) -> bool {
            self.0.is_match(text)
        }

        pub(super) fn count(&self, text: &str) -> usize {
            self.0.find_iter(text).count()
        }
    }
}

/// The same regular expressions with much less code, for WebAssembly, which is downloaded.
#[cfg(any(target_arch = "wasm32", test))]
mod small {
    use regex_automata::nfa::thompson::{self, pikevm::PikeVM};

    use super::{BuildError, MAX_SIZE, syntax};

    #[derive(Clone, Debug)]
    pub(super) struct Regex(PikeVM);

    impl Regex {
        pub(super) fn new(pattern: &str, syntax: syntax::Config) -> Result<Self, BuildError> {
            let config = thompson::Config::new().nfa_size_limit(Some(MAX_SIZE));
            Ok(Self(PikeVM::builder().thompson(config).syntax(syntax).build(pattern)?))
        }

        pub(super) fn is_match(&self, text: &str) -> bool {
            self.0.is_match(&mut self.0.create_cache(), text)
        }

        pub(super) fn count(&self, text: &str) -> usize {
            self.0.find_iter(&mut self.0.create_cache(), text).count()
        }
    }
}

/// Returns the last line of the innermost cause. The lines before it show the pattern, which messages quote themselves.
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
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

    #[test]
    fn both_engines_agree() {
        let patterns = [
            "straße",
            r"^\d{2,3}$",
            r"\bκόσμε\b",
            "(?m)^a|b$",
            "",
            r"[^\w\s]+",
            "a(",
            r"\w{500}{500}",
            r"\p{Greek}+",
            "é",
        ];
        let texts = ["STRASSE straße", "123", "x κόσμε y", "x\na", "", "!?", "καλό", "É"];
        for (pattern, ignore_case) in patterns.iter().flat_map(|pattern| [(pattern, true), (pattern, false)]) {
            let syntax = syntax::Config::new().case_insensitive(ignore_case);
            match (fast::Regex::new(pattern, syntax), small::Regex::new(pattern, syntax)) {
                (Ok(fast), Ok(small)) => {
                    for text in texts {
                        assert_eq!(fast.is_match(text), small.is_match(text), "{pattern}: {text}");
                        assert_eq!(fast.count(text), small.count(text), "{pattern}: {text}");
                    }
                }
                (fast, small) => {
                    let failure = |error: Option<BuildError>| reason(&*error.expect("it is an error"));
                    assert_eq!(failure(fast.err()), failure(small.err()), "{pattern}");
                }
            }
        }
    }
}
