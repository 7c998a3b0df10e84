//! JSON output that is also safe to print on a terminal.

use serde::Serialize;

use crate::escape::is_unsafe;

/// Formats a value as indented JSON. Characters that could control a terminal are written as `\u` escapes, which are
/// equivalent in JSON.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    escaped(serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Formats a value as JSON on one line, with its line end, escaped as [`pretty`] does.
pub(crate) fn line(value: &impl Serialize) -> String {
    escaped(serde_json::to_string(value).unwrap_or_default()) + "\n"
}

fn escaped(text: String) -> String {
    if !text.contains(is_unsafe) {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_unsafe(char) {
            char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(char);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_characters_keep_their_meaning() {
        let text = "\u{1b}\u{9b}\u{202e}\u{e0041}é";
        let json = pretty(&text);
        assert_eq!(json, r#""\u001b\u009b\u202e\udb40\udc41é""#);
        assert_eq!(serde_json::from_str::<String>(&json).ok().as_deref(), Some(text));
    }
}
