//! Maps positions in a template to positions in its source file.
//!
//! A `.prompty` file contains its template verbatim. In YAML, JSON and TOML, the template is a string with escapes,
//! indentation or folded lines, so a position in the template has to be looked up in the string as it is written.

use std::sync::OnceLock;

use crate::text::source::{SourceFile, Span};
use crate::text::source_map::SourceMap;

/// The placement of a template in its source.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// The template is the text that starts at this offset, unchanged.
    Verbatim(usize),
    /// The template is the value of the string literal in this span.
    Written(Span, OnceLock<OffsetIndex>),
    /// The template was assembled from ranges of the file.
    SourceMap(SourceMap),
}

impl Placement {
    /// Maps a span in the template to a span in the source.
    pub(crate) fn locate(&self, source: &SourceFile, template: &str, span: Span) -> Span {
        match self {
            Self::Verbatim(offset) => span.shifted(*offset),
            Self::SourceMap(map) => map.locate(span).unwrap_or_default(),
            Self::Written(written, index) => {
                let raw = source.slice(*written);
                let index = index.get_or_init(|| OffsetIndex::new(raw, template));
                let start = index.find(raw, template, span.start.min(template.len()));
                let end = index.find(raw, template, span.end.min(template.len())).max(start);
                Span::new(start, end).shifted(written.start)
            }
        }
    }

    /// Returns the placement of a template that is the value of the string literal in this span.
    pub(crate) const fn written(span: Span) -> Self {
        Self::Written(span, OnceLock::new())
    }
}

/// The quoting style of a string literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Style {
    /// `"…"`: backslash escapes.
    Escaped,
    /// `'…'`: a quote is doubled, if the format allows quotes at all.
    Quoted,
    /// Verbatim, possibly with folded lines.
    Plain,
}

/// The number of bytes of the value between two marks.
const STRIDE: usize = 1024;

/// An index that maps offsets in a string's value to offsets in the string as written. It stores only some offsets and
/// computes the others from them. A template can have as many findings as it has words, so lookups have to be fast.
#[derive(Clone, Debug)]
pub(crate) enum OffsetIndex {
    /// A literal block scalar (`|`), whose lines differ from the value only in their indentation. For each line: its
    /// start in the value, and its span in the string as written.
    Block { lines: Vec<(usize, Span)>, indent: usize },
    /// Any other string: marks at regular distances in the value.
    Chars { style: Style, marks: Vec<(usize, usize)> },
}

impl OffsetIndex {
    fn new(raw: &str, value: &str) -> Self {
        let block = if raw.starts_with('|') { Self::block(raw, value) } else { None };
        block.unwrap_or_else(|| Self::chars(raw, value))
    }

    fn block(raw: &str, value: &str) -> Option<Self> {
        let start = raw.find('\n')? + 1;
        let lines = || value.split('\n').zip(raw[start..].split('\n'));
        let spaces = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let indent =
            lines().find(|(value, _)| !value.trim().is_empty()).map(|(value, raw)| (spaces(value), spaces(raw)))?;
        let indent = indent.1.checked_sub(indent.0)?;
        let mut at = (0, start);
        let starts = lines().map(|(value, raw)| {
            let line = (at.0, Span::new(at.1, at.1 + raw.len()));
            at = (at.0 + value.len() + 1, line.1.end + 1);
            line
        });
        let lines: Vec<_> = starts.collect();
        // Every line of the value needs a line in the source. Otherwise, this is not such a block.
        (lines.len() > value.matches('\n').count()).then_some(Self::Block { lines, indent })
    }

    fn chars(raw: &str, value: &str) -> Self {
        let (style, mut at) = opening(raw);
        let mut marks = vec![(0, at)];
        for (offset, char) in value.char_indices() {
            if offset >= marks.len() * STRIDE {
                marks.push((offset, at));
            }
            at = after(raw, at, char, style);
        }
        Self::Chars { style, marks }
    }

    /// Maps an offset in the value to an offset in the string as written.
    fn find(&self, raw: &str, value: &str, target: usize) -> usize {
        match self {
            Self::Block { lines, indent } => {
                let (line, written) = lines[lines.partition_point(|(line, _)| *line <= target) - 1];
                (written.start + indent + target - line).min(written.end)
            }
            Self::Chars { style, marks } => {
                let (offset, mut at) = marks[marks.partition_point(|(offset, _)| *offset <= target) - 1];
                for (_, char) in value[offset..].char_indices().take_while(|(passed, _)| offset + passed < target) {
                    at = after(raw, at, char, *style);
                }
                at
            }
        }
    }
}

/// Returns the style of a string literal and the offset at which its text starts.
fn opening(raw: &str) -> (Style, usize) {
    let after_line_end = |start: usize| {
        let rest = &raw[start..];
        start + if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) }
    };
    match raw.as_bytes() {
        [b'"', b'"', b'"', ..] => (Style::Escaped, after_line_end(3)),
        [b'"', ..] => (Style::Escaped, 1),
        [b'\'', b'\'', b'\'', ..] => (Style::Plain, after_line_end(3)),
        [b'\'', ..] => (Style::Quoted, 1),
        [b'>', ..] => (Style::Plain, raw.find('\n').map_or(raw.len(), |end| end + 1)),
        _ => (Style::Plain, 0),
    }
}

/// Returns the offset after the written form of `char` at `at`.
fn after(raw: &str, mut at: usize, char: char, style: Style) -> usize {
    loop {
        let rest = &raw[at..];
        let Some(next) = rest.chars().next() else { return at };
        if style == Style::Escaped && next == '\\' {
            match escape(rest) {
                Some(length) => return at + length,
                None => at += continued(rest),
            }
        } else if style == Style::Quoted && char == '\'' && rest.starts_with("''") {
            return at + 2;
        } else if next == char {
            return at + next.len_utf8();
        } else if next.is_whitespace() {
            // Indentation, or the rest of a folded line.
            at += next.len_utf8();
        } else {
            return at;
        }
    }
}

/// Returns the length of an escape, or `None` for a line continuation, which produces no character.
fn escape(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    Some(match bytes.get(1)? {
        b'\n' | b'\r' => return None,
        b' ' | b'\t' if rest[1..].trim_start_matches([' ', '\t']).starts_with(['\n', '\r']) => return None,
        b'x' => 4,
        // A character that does not fit in 16 bits is written as two escapes, a surrogate pair.
        b'u' if matches!(bytes.get(2..4), Some([b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B'])) => 12,
        b'u' => 6,
        b'U' => 10,
        _ => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
    })
    .map(|length| length.min(rest.len()))
}

fn continued(rest: &str) -> usize {
    rest.len() - rest[1..].trim_start().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tag in the value is found at its position in the source, whatever the style.
    #[test]
    fn places_are_found_in_every_style() {
        let cases = [
            (r#""a\n\"b\" \u00e9 \ud83d\ude00 {{ x }}""#, "a\n\"b\" é 😀 {{ x }}"),
            ("'it''s {{ x }}'", "it's {{ x }}"),
            ("|\n    a\n      b\n\n    {{ x }}\n", "a\n  b\n\n{{ x }}\n"),
            ("|-\n  {{ x }}", "{{ x }}"),
            (">\n  a\n  b\n\n  c {{ x }}\n", "a b\nc {{ x }}\n"),
            ("plain\n   text {{ x }}", "plain text {{ x }}"),
            ("\"\"\"\na \\\n   b {{ x }}\"\"\"", "a b {{ x }}"),
            ("'''\na\\n {{ x }}'''", "a\\n {{ x }}"),
            ("\"a\n  b {{ x }}\"", "a b {{ x }}"),
        ];
        for (raw, value) in cases {
            let source = SourceFile::new("x", format!("key: {raw}\n"));
            let written = Span::new(5, 5 + raw.len());
            let at = value.find("{{").expect("there is a tag");
            let found = Placement::written(written).locate(&source, value, Span::new(at, at + 7));
            assert_eq!(source.slice(found), "{{ x }}", "{raw:?}");
        }
    }
}
