//! Source text and positions in it.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A half-open range of byte offsets into a [`SourceFile`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Span {
    /// The offset of the first byte.
    pub start: usize,
    /// The offset one past the last byte.
    pub end: usize,
}

impl Span {
    /// Creates the span from `start` up to, but not including, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the span moved to the right by `offset` bytes.
    #[must_use]
    pub const fn shifted(self, offset: usize) -> Self {
        Self { start: self.start + offset, end: self.end + offset }
    }

    /// Returns the span as a range, for slicing.
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self::new(range.start, range.end)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// A line and a column, both counted from 1. Columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineColumn {
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
}

/// A named text that is cheap to clone, so that everything that points into it can share it.
#[derive(Clone)]
pub struct SourceFile {
    name: Arc<str>,
    text: Arc<str>,
    /// The line index, built on first use. A file can have many findings, and each needs a line and a column.
    lines: Arc<OnceLock<Lines>>,
}

impl SourceFile {
    /// Creates a source with a name, usually its path, and a text.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), text: text.into(), lines: Arc::default() }
    }

    /// Returns the name that messages use for the source: its path, or a name such as `<string>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text in a span, or an empty string if the span is out of bounds or not on character boundaries.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or_default()
    }

    /// Returns the line and column of a byte offset. An offset past the end is treated as the end.
    pub fn line_column(&self, offset: usize) -> LineColumn {
        let end = self.text.floor_char_boundary(offset);
        self.lines.get_or_init(|| Lines::new(&self.text)).line_column(&self.text, end)
    }
}

impl PartialEq for SourceFile {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.text) == (&other.name, &other.text)
    }
}

impl Eq for SourceFile {}

/// The number of bytes between two marks.
const STRIDE: usize = 1024;

/// An index of the lines in a text, with marks at regular distances. A lookup scans no more than the bytes between two
/// marks, twice.
struct Lines(Vec<Mark>);

/// Counts for the text before an offset.
#[derive(Clone, Copy, Default)]
struct Mark {
    newlines: usize,
    /// The number of characters, counted by their first bytes.
    chars: usize,
    /// The offset at which the current line starts.
    line_start: usize,
}

impl Lines {
    fn new(text: &str) -> Self {
        let mut mark = Mark::default();
        let marks = text.as_bytes().chunks(STRIDE).enumerate().map(|(index, chunk)| {
            let here = mark;
            mark.pass(chunk, index * STRIDE);
            here
        });
        let mut marks: Vec<_> = marks.collect();
        // Add a mark for the end of the text.
        marks.push(mark);
        Self(marks)
    }

    fn line_column(&self, text: &str, offset: usize) -> LineColumn {
        let at = self.before(text, offset);
        let line_start = self.before(text, at.line_start);
        LineColumn { line: at.newlines + 1, column: at.chars - line_start.chars + 1 }
    }

    /// Returns the counts for the text before an offset.
    fn before(&self, text: &str, offset: usize) -> Mark {
        let index = (offset / STRIDE).min(self.0.len() - 1);
        let (start, mut mark) = ((index * STRIDE).min(offset), self.0[index]);
        mark.pass(&text.as_bytes()[start..offset], start);
        mark
    }
}

impl Mark {
    /// Advances over `bytes`, which start at the offset `start`.
    fn pass(&mut self, bytes: &[u8], start: usize) {
        self.newlines += memchr::memchr_iter(b'\n', bytes).count();
        self.chars += bytes.iter().filter(|byte| (**byte & 0xc0) != 0x80).count();
        if let Some(at) = memchr::memrchr(b'\n', bytes) {
            self.line_start = start + at + 1;
        }
    }
}

impl fmt::Debug for SourceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceFile({:?}, {} bytes)", self.name, self.text.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters() {
        let source = SourceFile::new("x", "a\nß€b");
        let at = source.text().find('b').expect("there is a b");
        assert_eq!(source.line_column(at), LineColumn { line: 2, column: 3 });
        assert_eq!(source.line_column(999), LineColumn { line: 2, column: 4 });
    }

    #[test]
    fn places_far_into_a_text_are_those_of_counting() {
        let text = "aß€\n".repeat(700) + &"é".repeat(3000) + "\n\nx";
        let source = SourceFile::new("x", text.as_str());
        for offset in (0..text.len() + 3).step_by(7).chain([0, 1023, 1024, 1025, 2048, text.len()]) {
            let before = &text[..text.floor_char_boundary(offset)];
            let line = before.matches('\n').count() + 1;
            let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
            assert_eq!(source.line_column(offset), LineColumn { line, column }, "{offset}");
        }
        assert_eq!(SourceFile::new("x", "").line_column(3), LineColumn { line: 1, column: 1 });
    }
}
