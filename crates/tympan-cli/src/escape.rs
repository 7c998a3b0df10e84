//! Characters that could drive a terminal, or hide text from the eye, made visible.

use std::borrow::Cow;

/// Whether a character must not reach a terminal as it is. Line ends and tabs may.
pub(crate) fn is_unsafe(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        // Marks that turn the direction of writing show text in another order than it is in.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Line ends that few programs know, and characters that nobody can see.
        '\u{2028}' | '\u{2029}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        // Escape sequences begin with one of these; some terminals take the C1 ones too.
        other => other.is_control(),
    }
}

/// The text with every unsafe character written as its number.
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

/// The same on one line.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n").replace('\t', "\\t")
}

/// An unsafe character as its number.
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
