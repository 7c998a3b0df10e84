//! The lines of a YAML text, and what is on them.

/// A line and its line end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'t> {
    pub(super) text: &'t str,
    pub(super) end: &'t str,
}

impl Line<'_> {
    pub(super) fn is_blank(self) -> bool {
        self.text.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
    }
}

/// Splits a text into lines. Returns `None` if it contains a carriage return that is not part of a line end.
pub(super) fn split(text: &str) -> Option<Vec<Line<'_>>> {
    let lines = text.split_inclusive('\n').map(|line| {
        let text = line.strip_suffix('\n').map_or(line, |text| text.strip_suffix('\r').unwrap_or(text));
        (!text.contains('\r')).then_some(Line { text, end: &line[text.len()..] })
    });
    lines.collect()
}

pub(super) fn leading_spaces(text: &str) -> usize {
    text.len() - text.trim_start_matches(' ').len()
}

/// What a line contains after its indentation and its dashes.
#[derive(Debug, PartialEq)]
pub(super) enum Content<'t> {
    /// An entry of a map: the key, and what follows the colon.
    Entry { key: &'t str, value: &'t str },
    /// A value.
    Value,
}

/// Returns what is on a line. Returns `None` for a key that is not a simple one.
pub(super) fn content(text: &str) -> Option<Content<'_>> {
    let mut rest = text;
    while rest.starts_with(['&', '!']) {
        let Some(end) = rest.find([' ', '\t']) else { return Some(Content::Value) };
        rest = rest[end..].trim_start_matches([' ', '\t']);
    }
    let start = text.len() - rest.len();
    let key_end = match rest.as_bytes().first() {
        None | Some(b'#' | b'{' | b'[' | b'|' | b'>') => return Some(Content::Value),
        Some(b'?') if rest.len() == 1 || rest[1..].starts_with([' ', '\t']) => return None,
        Some(quote @ (b'"' | b'\'')) => match quoted_end(rest, *quote) {
            Some(end) => end,
            None => return Some(Content::Value),
        },
        Some(_) => match plain_key_end(rest) {
            Some(end) => end,
            None => return Some(Content::Value),
        },
    };
    let after = rest[key_end..].trim_start_matches([' ', '\t']);
    match after.strip_prefix(':').filter(|value| value.is_empty() || value.starts_with([' ', '\t'])) {
        // The name of an alias would include the colon, and what follows an empty key may be on the same line.
        Some(_) if rest.starts_with('*') || key_end == 0 => None,
        Some(value) => Some(Content::Entry { key: &text[..start + key_end], value }),
        None => Some(Content::Value),
    }
}

/// Returns the end of a plain key, without the white space before its colon.
fn plain_key_end(text: &str) -> Option<usize> {
    let (text, _) = split_comment(text);
    let bytes = text.as_bytes();
    let is_end = |at: usize| bytes[at] == b':' && matches!(bytes.get(at + 1), None | Some(b' ' | b'\t'));
    let colon = (0..bytes.len()).find(|at| is_end(*at))?;
    Some(text[..colon].trim_end_matches([' ', '\t']).len())
}

/// Returns the end of a quoted scalar that is closed in this text.
pub(super) fn quoted_end(text: &str, quote: u8) -> Option<usize> {
    closing_quote(text, 1, quote)
}

/// Returns the offset after the closing quote, which is searched from an offset.
pub(super) fn closing_quote(text: &str, from: usize, quote: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = from;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quote == b'"' => at += 2,
            byte if *byte == quote => {
                // In single quotes, a quote is doubled.
                if quote == b'"' || bytes.get(at + 1) != Some(&quote) {
                    return Some(at + 1);
                }
                at += 2;
            }
            _ => at += 1,
        }
    }
    None
}

/// Splits a plain scalar from the comment behind it.
pub(super) fn split_comment(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let is_comment = |at: &usize| bytes[*at] == b'#' && (*at == 0 || matches!(bytes[*at - 1], b' ' | b'\t'));
    let (text, comment) = text.split_at((0..bytes.len()).find(is_comment).unwrap_or(bytes.len()));
    (text.trim_end_matches([' ', '\t']), comment)
}
