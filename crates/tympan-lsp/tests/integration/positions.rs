//! The conversion of positions.

use gen_lsp_types::{Position, Range};
use proptest::prelude::*;
use tympan_core::text::source::Span;
use tympan_lsp::position::{Encoding, LineIndex};

const ENCODINGS: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

/// Returns the lines of a text, one character after the other.
fn reference_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = vec![(0, String::new())];
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        let mut end = at + char.len_utf8();
        if char == '\r' && chars.peek().is_some_and(|(_, next)| *next == '\n') {
            end += 1;
            chars.next();
        }
        match char {
            '\n' | '\r' => lines.push((end, String::new())),
            _ => lines.last_mut().expect("there is one").1.push(char),
        }
    }
    lines
}

#[test]
fn positions_that_do_not_exist_become_close_ones() {
    let text = "aß🎈\r\n\rb\n";
    let index = LineIndex::new(text);
    let offset = |line, character, encoding| index.offset(text, Position::new(line, character), encoding);
    assert_eq!(index.count(), 4);
    // Inside of a character, and of a surrogate pair.
    assert_eq!(offset(0, 2, Encoding::Utf8), 1);
    assert_eq!(offset(0, 5, Encoding::Utf8), 3);
    assert_eq!(offset(0, 3, Encoding::Utf16), 3);
    assert_eq!(offset(0, 4, Encoding::Utf16), 7);
    assert_eq!(offset(0, 3, Encoding::Utf32), 7);
    for encoding in ENCODINGS {
        assert_eq!(offset(0, u32::MAX, encoding), 7);
        assert_eq!(offset(1, 1, encoding), 9);
        assert_eq!(offset(2, 99, encoding), 11);
        assert_eq!(offset(3, 0, encoding), text.len());
        assert_eq!(offset(u32::MAX, u32::MAX, encoding), text.len());
        assert_eq!(index.position(text, 8, encoding), index.position(text, 7, encoding));
        assert_eq!(index.position(text, usize::MAX, encoding), Position::new(3, 0));
        let range = Range::new(Position::new(2, 1), Position::new(0, 0));
        assert_eq!(index.to_span(text, range, encoding), Span::new(0, 11));
    }
    assert_eq!(LineIndex::new("").position("", 5, Encoding::Utf16), Position::new(0, 0));
}

proptest! {
    #[test]
    fn offsets_survive_a_round_trip(text in "[aß€🎈\n\r]{0,40}", at in 0_usize..200) {
        let index = LineIndex::new(&text);
        let lines = reference_lines(&text);
        prop_assert_eq!(index.count(), lines.len());
        let at = text.floor_char_boundary(at);
        for encoding in ENCODINGS {
            let position = index.position(&text, at, encoding);
            let (start, line) = &lines[position.line as usize];
            prop_assert!(*start <= at);
            prop_assert_eq!(position.character as usize, encoding.length(&line[..(at - start).min(line.len())]));
            // Only the two bytes of one line end share a position.
            let back = index.offset(&text, position, encoding);
            prop_assert!(back == at || (back < at && text[back..at].chars().all(|char| char == '\r')));
        }
    }

    #[test]
    fn every_position_is_a_character_boundary(
        text in "[aß€🎈\n\r]{0,40}", line in 0_u32..50, character in 0_u32..200,
    ) {
        let index = LineIndex::new(&text);
        for encoding in ENCODINGS {
            let offset = index.offset(&text, Position::new(line, character), encoding);
            prop_assert!(text.is_char_boundary(offset));
            let back = index.position(&text, offset, encoding);
            prop_assert!(back <= Position::new(line, character));
        }
    }
}
