//! Escaping of characters that could control a terminal or hide text.

use std::borrow::Cow;

/// Returns whether a character must not reach a terminal unescaped. Line feeds and tabs are safe.
pub(crate) fn is_unsafe(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        // Bidirectional controls display text in a different order than it is stored.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Unusual line separators and invisible characters.
        '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        // Escape sequences start with a control character; some terminals also accept C1 controls.
        other => other.is_control(),
    }
}

/// Replaces every unsafe character with its escape sequence.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().fold(String::with_capacity(text.len() + 16), |mut out, char| {
        if is_unsafe(char) {
            out.push_str(&written(char));
        } else {
            out.push(char);
        }
        out
    }))
}

/// Replaces every unsafe character, line feed and tab with its escape sequence, so that the text fits on one line.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// Returns the escape sequence of an unsafe character.
pub(crate) fn written(char: char) -> String {
    match char {
        '\r' => "\\r".to_owned(),
        other => other.escape_unicode().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drives_a_terminal_is_written_out() {
        assert_eq!(visible("a\u{1b}[2Jb\u{9b}c\u{202e}d\r\u{7f}"), r"a\u{1b}[2Jb\u{9b}c\u{202e}d\r\u{7f}");
        assert_eq!(visible_line("a\n\tb\u{0}"), r"a\n\tb\u{0}");
        assert!(matches!(visible("grüße 👩‍🚀\n\tdone"), Cow::Borrowed(_)));
    }
}
