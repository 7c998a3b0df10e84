//! Patterns of JSON Schemas.

use regex_automata::meta::{Config, Regex};

/// The maximum length of a pattern in bytes.
const MAX_PATTERN: usize = 2_000;

/// The maximum size of a compiled pattern in bytes.
const MAX_SIZE: usize = 256 * 1024;

/// Compiles a pattern. Returns `None` if it is too long, or uses features that no linear search supports, such as
/// references to groups and look-around.
///
/// JSON Schema uses the patterns of ECMAScript, which are almost the same.
pub(crate) fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > MAX_PATTERN {
        return None;
    }
    let config = Config::new().nfa_size_limit(Some(MAX_SIZE)).hybrid_cache_capacity(MAX_SIZE);
    Regex::builder().configure(config).build(pattern).ok()
}
