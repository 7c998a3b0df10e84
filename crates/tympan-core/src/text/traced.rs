//! Text that tracks which inputs wrote each of its bytes.

use std::ops::Range;

use super::origin::Origin;

/// Text split into contiguous pieces, each with its origin.
///
/// Adjacent text by the author is one piece. Every interpolation of an input is a separate piece, even if it is empty:
/// the fact that an input was interpolated there matters even if it wrote nothing.
#[derive(Clone, Debug, Default)]
pub struct TracedText {
    text: String,
    pieces: Vec<Piece>,
    /// The union of all origins.
    origin: Origin,
    /// The number of pieces after the last mark was added. If it equals the current number, the last piece is that
    /// mark.
    marked: usize,
}

impl PartialEq for TracedText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.pieces == other.pieces
    }
}

/// A piece of text. It starts where the previous one ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) end: usize,
    pub(crate) origin: Origin,
}

impl TracedText {
    /// Creates an empty text with room for this many bytes and pieces.
    pub fn with_capacity(bytes: usize, pieces: usize) -> Self {
        Self { text: String::with_capacity(bytes), pieces: Vec::with_capacity(pieces), ..Self::default() }
    }

    /// Creates a text with a single origin.
    pub fn whole(text: impl Into<String>, origin: Origin) -> Self {
        let text = text.into();
        let piece = Piece { end: text.len(), origin };
        Self { text, pieces: vec![piece], origin, marked: 0 }
    }

    /// Appends text.
    #[inline]
    pub fn push(&mut self, text: &str, origin: Origin) {
        self.text.push_str(text);
        self.close_piece(origin);
    }

    /// Appends the text that `write` writes.
    pub(crate) fn push_with(&mut self, origin: Origin, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.close_piece(origin);
    }

    /// Assigns an origin to the text after the last piece.
    #[inline]
    fn close_piece(&mut self, origin: Origin) {
        let end = self.text.len();
        if origin.is_author() {
            match self.pieces.last_mut() {
                Some(last) if last.origin.is_author() => last.end = end,
                Some(last) if last.end == end => {}
                None if end == 0 => {}
                _ => self.pieces.push(Piece { end, origin }),
            }
        } else {
            self.origin |= origin;
            self.pieces.push(Piece { end, origin });
        }
    }

    /// Appends text. Removes a mark just before it if the text's origin covers the mark's inputs.
    pub(crate) fn push_behind_mark(&mut self, text: &str, origin: Origin) {
        let is_mark = self.marked == self.pieces.len();
        if is_mark && self.pieces.last().is_some_and(|mark| !origin.is_author() && mark.origin.is_within(origin)) {
            self.pieces.pop();
        }
        self.push(text, origin);
    }

    /// Merges everything after the first `bytes` bytes and `pieces` pieces into one piece, if an input contributed to
    /// it.
    pub(crate) fn unite(&mut self, bytes: usize, pieces: usize) {
        let origin = self.pieces[pieces..].iter().map(|piece| piece.origin).collect::<Origin>();
        if origin.is_author() {
            return;
        }
        self.pieces.truncate(pieces);
        if let Some(last) = self.pieces.last_mut() {
            last.end = last.end.min(bytes);
        }
        // The marks added in the meantime are gone.
        self.marked = 0;
        self.close_piece(origin);
    }

    /// Adds a mark: an empty piece where inputs were interpolated but wrote nothing. Does nothing if the previous piece
    /// already has these inputs. [`TracedText::push_behind_mark`] removes a mark that the next piece makes redundant.
    pub(crate) fn mark(&mut self, origin: Origin) {
        let last = self.pieces.last().map(|piece| piece.origin).unwrap_or_default();
        if !origin.is_within(last) {
            self.push("", origin);
            self.marked = self.pieces.len();
        }
    }

    /// Appends traced text, and adds `also` to the origin of each of its pieces.
    pub fn push_traced(&mut self, other: &Self, also: Origin) {
        if other.is_untouched() {
            self.push("", also);
        }
        for (text, origin) in other.pieces() {
            if text.is_empty() {
                self.mark(origin | also);
            } else {
                self.push_behind_mark(text, origin | also);
            }
        }
    }

    /// Appends traced text unchanged.
    pub(crate) fn append(&mut self, other: &Self) {
        self.push_traced(other, Origin::AUTHOR);
    }

    /// Converts to the text without its origins, without copying it.
    pub(crate) fn into_string(self) -> String {
        self.text
    }

    /// Returns the end and the origin of each piece.
    pub(crate) fn piece_ends(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns whether nothing has been written, not even an empty piece from an input.
    pub(crate) fn is_untouched(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the text without its origins.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Iterates over the pieces and their origins, in order.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.ranges().map(|(range, origin)| (&self.text[range], origin))
    }

    /// Iterates over the byte ranges of the pieces and their origins, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let mut start = 0;
        self.pieces.iter().map(move |piece| {
            let range = start..piece.end;
            start = piece.end;
            (range, piece.origin)
        })
    }

    /// Iterates over the byte ranges and origins, starting at the first piece that does not end before an offset.
    pub(crate) fn ranges_from(&self, offset: usize) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let first = self.pieces.partition_point(|piece| piece.end < offset);
        let mut start = first.checked_sub(1).map_or(0, |before| self.pieces[before].end);
        self.pieces[first..].iter().map(move |piece| {
            let range = start..piece.end;
            start = piece.end;
            (range, piece.origin)
        })
    }

    /// Returns the union of all origins.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

/// A range in rendered text where the author wrote, or may have written, something notable.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) range: Range<usize>,
    /// Whether the range is a whole line and notable for certain.
    pub(crate) is_line: bool,
}
