//! Offsets in UTF-16, as JavaScript counts.

use serde_json::{Value as Json, json};
use tympan_core::text::source::Span;

/// The number of bytes between two marks.
const STRIDE: usize = 1024;

/// An index of a text that converts byte offsets to UTF-16 offsets.
#[derive(Debug)]
pub(super) struct Offsets {
    text: String,
    /// The number of UTF-16 code units before every mark. Empty if all characters are ASCII.
    marks: Vec<usize>,
}

impl Offsets {
    pub(super) fn new(text: &str) -> Self {
        let mut marks = Vec::new();
        if !text.is_ascii() {
            let mut units = 0;
            for chunk in text.as_bytes().chunks(STRIDE) {
                marks.push(units);
                units += units_of(chunk);
            }
            marks.push(units);
        }
        Self { text: text.to_owned(), marks }
    }

    /// Converts a byte offset. An offset past the end is treated as the end.
    pub(super) fn utf16(&self, offset: usize) -> usize {
        let offset = self.text.floor_char_boundary(offset);
        let mark = offset / STRIDE;
        match self.marks.get(mark) {
            None => offset,
            Some(units) => units + units_of(&self.text.as_bytes()[mark * STRIDE..offset]),
        }
    }

    /// Converts a span to `[start, end]`.
    pub(super) fn span(&self, span: Span) -> Json {
        json!([self.utf16(span.start), self.utf16(span.end)])
    }
}

/// Returns the number of UTF-16 code units of the characters that start in these bytes.
pub(super) fn units_of(bytes: &[u8]) -> usize {
    let units = |byte: &u8| match byte {
        // A byte inside of a character.
        0x80..=0xbf => 0,
        // The first byte of a character outside of the Basic Multilingual Plane.
        0xf0..=0xff => 2,
        _ => 1,
    };
    bytes.iter().map(units).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_javascript() {
        let text = "aß€😀\n".repeat(400);
        for text in [text.as_str(), "plain", ""] {
            let offsets = Offsets::new(text);
            let counted = |at: usize| text[..at].encode_utf16().count();
            let boundaries = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
            boundaries.for_each(|at| assert_eq!(offsets.utf16(at), counted(at), "{at}"));
            assert_eq!(offsets.utf16(text.len() + 9), counted(text.len()));
        }
    }
}
