//! Texts from models and files, made safe for reports.

use std::borrow::Cow;

/// Returns whether a character must not reach a report as it is: it could control a terminal, change the order of the
/// text around it, hide something, or break a format. Line feeds and tabs are safe.
pub(super) fn is_unsafe(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        // Bidirectional controls display text in a different order than it is stored.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Unusual line separators and invisible characters.
        '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        // XML and YAML do not allow them.
        '\u{fffe}' | '\u{ffff}' => true,
        other => other.is_control(),
    }
}

/// Replaces every unsafe character with its escape sequence.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            '\r' => out.push_str("\\r"),
            other if is_unsafe(other) => out.extend(other.escape_unicode()),
            other => out.push(other),
        }
    }
    Cow::Owned(out)
}

/// Replaces every unsafe character, line feed and tab with its escape sequence, so that the text fits on one line.
pub(super) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Shortens a text to about a number of bytes, and says how much is missing.
pub(super) fn shortened(text: &str, longest: usize) -> Cow<'_, str> {
    if text.len() <= longest {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(longest);
    Cow::Owned(format!("{}… ({} more bytes)", &text[..end], text.len() - end))
}

/// Returns JSON in which unsafe characters are `\u` escapes, which are equivalent.
pub(super) fn json(text: &str) -> Cow<'_, str> {
    json_without(text, is_unsafe)
}

/// Returns JSON that can be part of an HTML page: nothing in it ends an element or starts a comment.
pub(super) fn json_for_html(text: &str) -> Cow<'_, str> {
    json_without(text, |char| matches!(char, '<' | '>' | '&') || is_unsafe(char))
}

/// Escapes characters in JSON. They may only be characters that JSON has nowhere but in strings.
fn json_without(text: &str, is_escaped: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for char in text.chars() {
        if is_escaped(char) {
            char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(char);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_written_out() {
        assert_eq!(
            visible("a\u{1b}[2Jb\u{9b}c\u{202e}d\r\u{7f}\u{ffff}"),
            r"a\u{1b}[2Jb\u{9b}c\u{202e}d\r\u{7f}\u{ffff}"
        );
        assert_eq!(visible_line("a\n\tb\u{0}"), r"a\n\tb\u{0}");
        assert!(matches!(visible("grüße 👩‍🚀\n\tdone"), Cow::Borrowed(_)));
    }

    #[test]
    fn escaped_json_has_the_same_meaning() {
        let text = "</script><!-- & \u{2028}\u{1b}\u{9b}\u{e0041} é\"\\";
        let written = serde_json::to_string(text).expect("JSON");
        for escaped in [json(&written), json_for_html(&written)] {
            assert_eq!(serde_json::from_str::<String>(&escaped).ok().as_deref(), Some(text));
            assert!(!escaped.contains(is_unsafe));
        }
        assert!(!json_for_html(&written).contains(['<', '>', '&']));
    }

    #[test]
    fn shortened_texts_end_between_characters() {
        assert_eq!(shortened("short", 5), "short");
        assert_eq!(shortened("aéé", 2), "a… (4 more bytes)");
    }
}
