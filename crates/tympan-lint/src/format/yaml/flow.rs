//! Flow collections: `{name: x}` and `[a, b]`. They keep their lines.

use super::line::{closing_quote, leading_spaces};
use super::{Layout, Owner};

/// What is before a token of a flow collection.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Before {
    /// An opening bracket, or the indentation of a line.
    Start,
    Comma,
    Colon,
    /// A plain scalar.
    Plain,
    /// A quoted scalar or a collection. A colon may follow without white space.
    Closed,
}

impl<'t> Layout<'_, 't> {
    /// Lays a flow collection out, up to the end of its last line.
    pub(super) fn flow(&mut self, text: &'t str, owner: Owner) -> Option<()> {
        let mut text = text;
        let (mut depth, mut before) = (0usize, Before::Start);
        loop {
            let token = text.trim_start_matches([' ', '\t']);
            let has_space = token.len() < text.len();
            let Some(first) = token.bytes().next() else {
                (text, before) = (self.flow_line(owner)?, Before::Start);
                continue;
            };
            if first == b'#' && (has_space || before == Before::Start) {
                self.out.push_str(if before == Before::Start { "" } else { "  " });
                self.out.push_str(token);
                (text, before) = (self.flow_line(owner)?, Before::Start);
                continue;
            }
            let (length, after) = flow_token(token, before)?;
            let written = token[..length].trim_end_matches([' ', '\t']);
            self.out.push_str(if has_gap(before, after, written, has_space, &self.out) { " " } else { "" });
            self.out.push_str(written);
            (text, before) = (&token[written.len()..], after);
            match first {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return self.end_line(text);
                    }
                }
                _ => {}
            }
        }
    }

    /// Continues a flow collection on the next line.
    fn flow_line(&mut self, owner: Owner) -> Option<&'t str> {
        self.out.truncate(self.out.trim_end_matches([' ', '\t']).len());
        self.next_line();
        let text = self.lines.get(self.at)?.text;
        let column = leading_spaces(text);
        if text[column..].starts_with('\t') {
            return None;
        }
        if column < text.len() {
            self.indent(owner.moved(column));
        }
        Some(&text[column..])
    }
}

/// Returns the length of the first token of a text, and what it is for the token behind it.
fn flow_token(text: &str, before: Before) -> Option<(usize, Before)> {
    let first = text.as_bytes()[0];
    Some(match first {
        b'{' | b'[' => (1, Before::Start),
        b'}' | b']' => (1, Before::Closed),
        b',' => (1, Before::Comma),
        b':' if before == Before::Closed || is_colon(text, 0) => (1, Before::Colon),
        // Quoted scalars of several lines, and complex keys.
        b'"' | b'\'' => (closing_quote(text, 1, first)?, Before::Closed),
        b'?' | b'|' | b'>' | b'@' | b'`' | b'%' => return None,
        _ => (plain_length(text), Before::Plain),
    })
}

/// Returns whether there is a colon at an offset that separates a key from its value.
fn is_colon(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    bytes[at] == b':' && matches!(bytes.get(at + 1), None | Some(b' ' | b'\t' | b',' | b'{' | b'}' | b'[' | b']'))
}

fn plain_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_end = |at: &usize| match bytes[*at] {
        b',' | b'{' | b'}' | b'[' | b']' => true,
        b':' => is_colon(text, *at),
        b'#' => matches!(bytes[*at - 1], b' ' | b'\t'),
        _ => false,
    };
    (1..bytes.len()).find(is_end).unwrap_or(bytes.len())
}

/// Returns whether there is a space between two tokens.
fn has_gap(before: Before, after: Before, token: &str, has_space: bool, out: &str) -> bool {
    match (before, after) {
        (Before::Start, _) => false,
        // The name of an alias would include the colon.
        (Before::Plain, Before::Colon) => has_space && word(out).starts_with('*'),
        (Before::Colon, Before::Comma) => has_space,
        (Before::Colon, _) if matches!(token, "}" | "]") => has_space,
        (_, Before::Comma | Before::Colon) => false,
        _ => !matches!(token, "}" | "]"),
    }
}

/// Returns the last word of a text.
fn word(text: &str) -> &str {
    text.rsplit([' ', '\t', ',', '{', '[', '\n']).next().unwrap_or_default()
}
