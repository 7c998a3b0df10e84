//! Slices of text that keep track of who wrote the removed parts.
//!
//! A removed piece leaves a mark: a zero-length piece at its position. Otherwise the author's text on both sides of it
//! could become one line, depending on the value of an input.

use std::ops::Range;

use crate::template::Notable;
use crate::template::influence;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;
use crate::text::traced::{Piece, TracedText};

/// Goes through the pieces of a text once, from start to end.
pub(super) struct PieceCursor<'v> {
    text: &'v str,
    pieces: &'v [Piece],
    /// The only piece of a text that has no list of pieces.
    single: Piece,
    also: Origin,
    index: usize,
    at: usize,
}

impl<'v> PieceCursor<'v> {
    pub(super) fn new(value: &'v Value<'_>) -> Self {
        let text = value.as_str().unwrap_or_default();
        let pieces = match &value.repr {
            Repr::Text(text) => text.traced.piece_ends(),
            _ => &[],
        };
        let single = Piece { end: text.len(), origin: value.origin };
        Self { text, pieces, single, also: value.origin, index: 0, at: 0 }
    }

    fn piece(&self) -> Option<Piece> {
        match (self.pieces, self.index) {
            ([], 0) => Some(self.single),
            (pieces, index) => {
                pieces.get(index).map(|piece| Piece { end: piece.end, origin: piece.origin | self.also })
            }
        }
    }

    /// Copies everything up to a position. A zero-length piece at that position belongs to the text after it, unless
    /// there is none.
    pub(super) fn copy_to(&mut self, end: usize, out: &mut TracedText) {
        while let Some(piece) = self.piece() {
            let belongs_to_next = self.at == end && end < self.text.len();
            if belongs_to_next || self.at > end {
                return;
            }
            if piece.end > end {
                if self.at < end {
                    out.push_behind_mark(&self.text[self.at..end], piece.origin);
                    self.at = end;
                }
                return;
            }
            out.push_behind_mark(&self.text[self.at..piece.end], piece.origin);
            (self.at, self.index) = (piece.end, self.index + 1);
        }
    }

    /// Skips everything up to a position, and returns the inputs that contributed to it.
    pub(super) fn skip_to(&mut self, place: usize) -> Origin {
        let mut touched = Origin::default();
        while let Some(piece) = self.piece().filter(|_| self.at < place) {
            touched |= piece.origin;
            if piece.end > place {
                self.at = place;
                break;
            }
            (self.at, self.index) = (piece.end, self.index + 1);
        }
        touched
    }

    /// Skips the rest, and returns the inputs that contributed to it.
    pub(super) fn rest(&mut self) -> Origin {
        let mut touched = Origin::default();
        while let Some(piece) = self.piece() {
            touched |= piece.origin;
            (self.at, self.index) = (piece.end, self.index + 1);
        }
        touched
    }
}

/// Returns a part of a text, with the origins of its pieces.
pub(super) fn slice<'a>(value: &Value<'a>, range: Range<usize>) -> Value<'a> {
    match &value.repr {
        Repr::Str(text) => Value::new(Repr::Str(&text[range]), value.origin),
        Repr::Text(_) if range.is_empty() => Value::string_like(value, "", value.whole_origin()),
        Repr::Text(_) => {
            let mut cursor = PieceCursor::new(value);
            let mut traced = TracedText::default();
            let before = cursor.skip_to(range.start);
            traced.mark(before);
            cursor.copy_to(range.end, &mut traced);
            traced.mark(cursor.rest());
            Value::text_like(value, traced)
        }
        _ => value.clone(),
    }
}

/// Returns parts of a text, in order, without the text between them. A part is marked with all inputs before it,
/// because they decide where it starts, and with the inputs that contributed to what ends it: all text between two
/// parts, or only the first character of that text.
pub(super) fn parts<'a>(value: &Value<'a>, ranges: &[Range<usize>], one_char_ends: bool) -> Vec<Value<'a>> {
    let Repr::Text(text) = &value.repr else {
        return ranges.iter().map(|range| slice(value, range.clone())).collect();
    };
    let all = text.traced.as_str();
    let mut cursor = PieceCursor::new(value);
    let mut before = Origin::default();
    let mut parts = Vec::with_capacity(ranges.len());
    for (index, range) in ranges.iter().enumerate() {
        before |= cursor.skip_to(range.start);
        let mut traced = TracedText::default();
        traced.mark(before);
        cursor.copy_to(range.end, &mut traced);
        before |= traced.origin();
        // Text after the last separator would be a part of its own, so only that separator follows the last part.
        let next = ranges.get(index + 1).map_or(all.len(), |next| next.start);
        let first_char = all[range.end..next].chars().next().map_or(0, char::len_utf8);
        let ended_by = cursor.skip_to(if one_char_ends { range.end + first_char } else { next });
        before |= ended_by;
        traced.mark(ended_by);
        parts.push(Value::text_like(value, traced));
    }
    parts
}

/// Returns whether both the author and inputs contributed to a text.
pub(super) fn is_mixed(value: &Value<'_>) -> bool {
    value.origin.is_author() && value.pieces() > 1 && !value.whole_origin().is_author()
}

/// Returns the author's pieces with notable lines in a text that inputs contributed to as well. The values of inputs
/// must not change these lines.
pub(super) fn delicate(value: &Value<'_>, notable: Option<Notable>) -> Vec<Range<usize>> {
    match (&value.repr, notable) {
        (Repr::Text(text), Some(notable)) if is_mixed(value) => {
            influence::author_lines(&text.traced, notable).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the author's pieces of a text that inputs contributed to as well, if anything in them can be notable.
pub(super) fn author_pieces(value: &Value<'_>, notable: Option<Notable>) -> Vec<Range<usize>> {
    match &value.repr {
        Repr::Text(text) if notable.is_some() && is_mixed(value) => {
            text.traced.ranges().filter(|(_, origin)| origin.is_author()).map(|(range, _)| range).collect()
        }
        _ => Vec::new(),
    }
}

/// Widens the range that is left of a text after trimming. The value of an input must not decide whether an author's
/// line end before or after a notable line is trimmed.
pub(super) fn protect(
    value: &Value<'_>,
    range: Range<usize>,
    (trims_start, trims_end): (bool, bool),
    notable: Option<Notable>,
) -> Range<usize> {
    let (Some(notable), Repr::Text(text)) = (notable.filter(|_| is_mixed(value)), &value.repr) else { return range };
    let Range { mut start, mut end } = range;
    if range.is_empty() && trims_start && trims_end {
        return range;
    }
    // Whatever is written after the text will follow its trimmed end directly. The same is true before its start.
    let lines = Lines {
        text: text.traced.as_str(),
        pieces: text.traced.piece_ends(),
        start: if trims_start { range.start } else { 0 },
        end: if trims_end { range.end } else { text.traced.as_str().len() },
        notable,
    };
    if trims_start {
        start = lines.start(start).unwrap_or(start);
    }
    if trims_end {
        end = lines.end(end).unwrap_or(end);
    }
    start..end.max(start)
}

struct Lines<'t> {
    text: &'t str,
    pieces: &'t [Piece],
    start: usize,
    end: usize,
    notable: Notable,
}

impl<'t> Lines<'t> {
    fn start_of(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.pieces[index - 1].end }
    }

    /// Returns the position of the author's line end before `at` if it must not be trimmed: there is an input before
    /// it, and the line after it is or may become notable.
    fn start(&self, at: usize) -> Option<usize> {
        let index = self.pieces.partition_point(|piece| piece.end < at);
        let piece = self.pieces.get(index).filter(|piece| piece.origin.is_author() && index > 0)?;
        let newline = self.start_of(index) + self.text[self.start_of(index)..at].rfind('\n')?;
        let line = &self.text[newline + 1..piece.end.min(self.end).max(newline + 1)];
        let begins = (self.notable.lines)(line).first().is_some_and(|range| range.start == 0);
        // The last line of the text may continue after the text.
        let is_last = index + 1 == self.pieces.len() || piece.end >= self.end;
        let goes_on = is_last && !line.contains('\n') && (self.notable.part)(line);
        (begins || goes_on).then_some(newline)
    }

    /// Returns the position after the author's next line end after `at` if it must not be trimmed: there is an input
    /// after it, and the line before it may be notable.
    fn end(&self, at: usize) -> Option<usize> {
        let index = self.pieces.partition_point(|piece| piece.end <= at);
        let piece = self.pieces.get(index).filter(|piece| piece.origin.is_author())?;
        if index + 1 >= self.pieces.len() {
            return None;
        }
        let newline = at + self.text[at..piece.end].find('\n')?;
        self.ends_notable_line(index, newline).then_some(newline + 1)
    }

    /// Returns whether the line that ends at `newline` in this piece may be a notable one.
    fn ends_notable_line(&self, last: usize, newline: usize) -> bool {
        let mut end = newline;
        for index in (0..=last).rev() {
            let start = self.start_of(index).max(self.start).min(end);
            let text = &self.text[start..end];
            end = start;
            let line = text.rfind('\n').filter(|_| self.pieces[index].origin.is_author());
            if let Some(at) = line {
                return !(self.notable.lines)(&text[at + 1..]).is_empty();
            }
        }
        // The first line of the text may have started before the text.
        (self.notable.part)(&self.text[self.start_of(last).max(self.start).min(newline)..newline])
    }
}
