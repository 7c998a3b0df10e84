//! Positions: byte offsets here, lines and code units in the protocol. This is the only place that converts them.

use gen_lsp_types::{Position, PositionEncodingKind, Range};
use tympan_core::text::source::Span;

/// The unit in which a client counts the characters of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// Bytes of UTF-8.
    Utf8,
    /// Code units of UTF-16, which every client supports.
    #[default]
    Utf16,
    /// Characters.
    Utf32,
}

impl Encoding {
    /// Returns the encoding with this name in the protocol.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "utf-8" => Self::Utf8,
            "utf-16" => Self::Utf16,
            "utf-32" => Self::Utf32,
            _ => return None,
        })
    }

    /// Returns the name in the protocol.
    pub fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    /// Returns the length of a text.
    pub fn length(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Utf32 => text.chars().count(),
        }
    }

    /// Returns the offset of the character that contains this unit of a line, or the length of the line if it has fewer
    /// units.
    fn offset(self, line: &str, units: usize) -> usize {
        if self == Self::Utf8 {
            return line.floor_char_boundary(units);
        }
        let mut before = 0;
        for (offset, char) in line.char_indices() {
            before += if self == Self::Utf16 { char.len_utf16() } else { 1 };
            if before > units {
                return offset;
            }
        }
        line.len()
    }
}

/// The offsets at which the lines of a text start. Lines end with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<usize>,
}

impl LineIndex {
    /// Finds the lines of a text.
    pub fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        // The `\r` of `\r\n` does not end a line itself.
        let ends = memchr::memchr2_iter(b'\n', b'\r', bytes)
            .filter(|at| bytes[*at] == b'\n' || bytes.get(at + 1) != Some(&b'\n'));
        Self { starts: std::iter::once(0).chain(ends.map(|end| end + 1)).collect() }
    }

    /// Returns the number of the line, from 0, that contains an offset.
    pub fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    /// Returns the span of a line without its line end. A line past the end is an empty one at the end.
    pub fn span(&self, text: &str, line: usize) -> Span {
        let Some(start) = self.starts.get(line).copied() else { return Span::new(text.len(), text.len()) };
        let next = self.starts.get(line + 1).copied();
        let line = &text[start..next.unwrap_or(text.len())];
        let line = if next.is_none() { line } else { line.trim_end_matches('\n').trim_end_matches('\r') };
        Span::new(start, start + line.len())
    }

    /// Returns the number of lines.
    pub fn count(&self) -> usize {
        self.starts.len()
    }

    /// Converts a position to an offset. Positions outside of the text, or inside a character, become the closest
    /// offset before them.
    pub fn offset(&self, text: &str, position: Position, encoding: Encoding) -> usize {
        let line = self.span(text, position.line as usize);
        line.start + encoding.offset(&text[line.range()], position.character as usize)
    }

    /// Converts an offset to a position. Offsets outside of the text, or inside a character or a line end, become the
    /// closest position before them.
    pub fn position(&self, text: &str, offset: usize, encoding: Encoding) -> Position {
        let offset = text.floor_char_boundary(offset);
        let number = self.line(offset);
        let line = self.span(text, number);
        let before = &text[line.start..offset.min(line.end)];
        Position::new(unit(number), unit(encoding.length(before)))
    }

    /// Converts a range to a span. The ends of an inverted range are exchanged.
    pub fn to_span(&self, text: &str, range: Range, encoding: Encoding) -> Span {
        let (a, b) = (self.offset(text, range.start, encoding), self.offset(text, range.end, encoding));
        Span::new(a.min(b), a.max(b))
    }

    /// Converts a span to a range.
    pub fn range(&self, text: &str, span: Span, encoding: Encoding) -> Range {
        let start = self.position(text, span.start, encoding);
        Range::new(start, self.position(text, span.end.max(span.start), encoding))
    }
}

/// Converts a count to the protocol's type.
pub(crate) fn unit(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
