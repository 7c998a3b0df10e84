//! Text that is copied with changes, where each part keeps its origin.

use crate::template::eval::Eval;
use crate::template::eval::filters::slice;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;
use crate::text::traced::{Piece, TracedText};

/// Returns the text to change. Where the author's notable lines in it would depend on the value of an input, all of the
/// text counts as the input's.
pub(super) fn changeable<'a>(eval: &mut Eval<'a>, value: Value<'a>) -> crate::error::Result<Value<'a>> {
    if slice::delicate(&value, eval.notable()).is_empty() {
        return Ok(value);
    }
    let text = value.as_str().unwrap_or_default();
    eval.budget.make(text.len())?;
    Ok(Value::string_like(&value, text, value.whole_origin()))
}

/// Goes through a text once and writes a changed copy. What is written in place of text has the origins of that text.
/// The result has no more pieces than needed: parts of the same piece stay one piece.
pub(super) struct Rewrite<'v> {
    text: &'v str,
    pieces: Vec<Piece>,
    index: usize,
    at: usize,
    /// What the current piece has contributed since the last piece of the output.
    pending: String,
    out: TracedText,
}

impl<'v> Rewrite<'v> {
    pub(super) fn new(value: &'v Value<'_>) -> Self {
        let text = value.as_str().unwrap_or_default();
        let also = value.origin;
        let pieces = match &value.repr {
            Repr::Text(text) if !text.traced.is_untouched() => {
                text.traced.piece_ends().iter().map(|piece| Piece { origin: piece.origin | also, ..*piece }).collect()
            }
            _ => vec![Piece { end: text.len(), origin: also }],
        };
        Self { text, pieces, index: 0, at: 0, pending: String::new(), out: TracedText::default() }
    }

    fn origin(&self) -> Origin {
        self.pieces.get(self.index).map(|piece| piece.origin).unwrap_or_default()
    }

    fn piece_end(&self) -> usize {
        self.pieces.get(self.index).map_or(self.text.len(), |piece| piece.end)
    }

    /// Ends the current piece of the output. A piece of which nothing is left leaves a mark.
    fn flush(&mut self) {
        let origin = self.origin();
        if self.pending.is_empty() {
            self.out.mark(origin);
        } else {
            self.out.push_behind_mark(&self.pending, origin);
            self.pending.clear();
        }
    }

    fn next_piece(&mut self) {
        self.flush();
        self.at = self.piece_end();
        self.index += 1;
    }

    /// Copies everything up to a position.
    pub(super) fn copy_to(&mut self, end: usize) {
        while self.index < self.pieces.len() && self.piece_end() < end {
            self.pending.push_str(&self.text[self.at..self.piece_end()]);
            self.next_piece();
        }
        self.pending.push_str(&self.text[self.at..end.max(self.at)]);
        self.at = end.max(self.at);
    }

    /// Writes this text in place of everything up to a position.
    pub(super) fn replace_to(&mut self, end: usize, text: &str) {
        // The end of a piece that was copied completely is not part of what is replaced.
        while self.index < self.pieces.len() && self.at >= self.piece_end() && self.piece_end() < end {
            self.next_piece();
        }
        if self.index >= self.pieces.len() || self.piece_end() >= end {
            self.pending.push_str(text);
            self.at = end.max(self.at);
            return;
        }
        let mut touched = Origin::default();
        while self.index < self.pieces.len() && self.piece_end() < end {
            if self.at < self.piece_end() {
                touched |= self.origin();
            }
            self.next_piece();
        }
        touched |= self.origin();
        self.at = end;
        if !text.is_empty() {
            self.out.push_behind_mark(text, touched);
        }
    }

    /// Inserts a text that keeps its own origins.
    pub(super) fn insert(&mut self, value: &Value<'_>) {
        let origin = value.whole_origin();
        let here = self.origin();
        let is_same = here == origin && (origin.is_author() || value.pieces() == 1);
        if self.index < self.pieces.len() && is_same {
            self.pending.push_str(value.as_str().unwrap_or_default());
            return;
        }
        if !self.pending.is_empty() {
            self.flush();
        }
        value.push_pieces(&mut self.out);
    }

    /// Ends the copy. What has not been copied is left out. It leaves a mark, as do the pieces that are empty.
    pub(super) fn finish(mut self) -> TracedText {
        while self.index < self.pieces.len() {
            self.next_piece();
        }
        self.out
    }
}
