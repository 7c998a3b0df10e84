//! Short quotes for messages.

use serde_json::Value as Json;

/// The maximum number of characters to quote.
const MAX_QUOTED: usize = 200;

/// Quotes a text. Control characters are escaped, and a long text is shortened.
pub fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Quotes a JSON value: a text as [`quoted`] does, everything else as compact JSON.
pub fn quoted_json(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        other => visible(&other.to_string()),
    }
}

/// Returns a text on one line, in which control characters are escaped. A long text is shortened.
pub fn visible(text: &str) -> String {
    let is_plain = |char: char| char == '"' || char == '\'' || char == '\\';
    let escape = |char: char| if is_plain(char) { char.to_string() } else { char.escape_debug().to_string() };
    let mut short: String = text.chars().take(MAX_QUOTED).map(escape).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        short.push('…');
    }
    short
}

/// Returns what a value is, with its article.
pub const fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "a map",
    }
}
