//! Text that knows which inputs wrote each of its bytes.

use std::ops::Range;

use super::origin::Origin;

/// Text in pieces that each know their origin. The pieces follow each other without gaps.
///
/// Neighbouring text of the author is one piece. Every interpolation of an input is a piece of
/// its own, also when it is empty: that an input stood there matters even if it wrote nothing.
#[derive(Clone, Debug, Default)]
pub struct TracedText {
    text: String,
    pieces: Vec<Piece>,
    /// All origins together.
    origin: Origin,
    /// How many pieces there were when the last mark was left: if there are as many, the last piece is that mark.
    marked: usize,
}

impl PartialEq for TracedText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.pieces == other.pieces
    }
}

/// A piece: it begins where the one before it ends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) end: usize,
    pub(crate) origin: Origin,
}

impl TracedText {
    /// Empty text with room for this many bytes and pieces.
    pub fn with_capacity(bytes: usize, pieces: usize) -> Self {
        Self { text: String::with_capacity(bytes), pieces: Vec::with_capacity(pieces), ..Self::default() }
    }

    /// Text that all comes from one origin.
    pub fn whole(text: impl Into<String>, origin: Origin) -> Self {
        let text = text.into();
        let piece = Piece { end: text.len(), origin };
        Self { text, pieces: vec![piece], origin, marked: 0 }
    }

    /// Adds text at the end.
    #[inline]
    pub fn push(&mut self, text: &str, origin: Origin) {
        self.text.push_str(text);
        self.close_piece(origin);
    }

    /// Adds text at the end, as `write` writes it.
    pub(crate) fn push_with(&mut self, origin: Origin, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.close_piece(origin);
    }

    /// Gives the text behind the last piece its origin.
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

    /// Adds text at the end. A mark of the same inputs just before it is superfluous then.
    pub(crate) fn push_behind_mark(&mut self, text: &str, origin: Origin) {
        let is_mark = self.marked == self.pieces.len();
        if is_mark && self.pieces.last().is_some_and(|mark| !origin.is_author() && mark.origin.is_within(origin)) {
            self.pieces.pop();
        }
        self.push(text, origin);
    }

    /// Makes one piece of everything behind these bytes, which were in this many pieces, if an input had a part in it.
    pub(crate) fn unite(&mut self, bytes: usize, pieces: usize) {
        let origin = self.pieces[pieces..].iter().map(|piece| piece.origin).collect::<Origin>();
        if origin.is_author() {
            return;
        }
        self.pieces.truncate(pieces);
        if let Some(last) = self.pieces.last_mut() {
            last.end = last.end.min(bytes);
        }
        // None of the marks that were left in the meantime is there any more.
        self.marked = 0;
        self.close_piece(origin);
    }

    /// Leaves a mark: inputs were here, and wrote nothing. There is none where a piece of theirs is just before it or
    /// comes just behind it.
    pub(crate) fn mark(&mut self, origin: Origin) {
        let last = self.pieces.last().map(|piece| piece.origin).unwrap_or_default();
        if !origin.is_within(last) {
            self.push("", origin);
            self.marked = self.pieces.len();
        }
    }

    /// Adds traced text at the end, each of its pieces with its own origin and `also`.
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

    /// Adds traced text at the end as it is.
    pub(crate) fn append(&mut self, other: &Self) {
        self.push_traced(other, Origin::AUTHOR);
    }

    /// Returns the text alone, without a copy.
    pub(crate) fn into_string(self) -> String {
        self.text
    }

    /// The ends of the pieces, with their origins.
    pub(crate) fn piece_ends(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether nothing has been written, not even by an input that had nothing to write.
    pub(crate) fn is_untouched(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The text without its origins.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = (&str, Origin)> {
        self.ranges().map(|(range, origin)| (&self.text[range], origin))
    }

    /// The byte ranges of the pieces, in order.
    pub fn ranges(&self) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let mut start = 0;
        self.pieces.iter().map(move |piece| {
            let range = start..piece.end;
            start = piece.end;
            (range, piece.origin)
        })
    }

    /// As [`TracedText::ranges`], from the first piece on that does not end before an offset.
    pub(crate) fn ranges_from(&self, offset: usize) -> impl Iterator<Item = (Range<usize>, Origin)> {
        let first = self.pieces.partition_point(|piece| piece.end < offset);
        let mut start = first.checked_sub(1).map_or(0, |before| self.pieces[before].end);
        self.pieces[first..].iter().map(move |piece| {
            let range = start..piece.end;
            start = piece.end;
            (range, piece.origin)
        })
    }

    /// All origins together.
    pub fn origin(&self) -> Origin {
        self.origin
    }
}

/// A place in rendered text where something notable of the author's is, or may be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Note {
    pub(crate) range: Range<usize>,
    /// Whether it is a whole line, and notable for certain.
    pub(crate) is_line: bool,
}
