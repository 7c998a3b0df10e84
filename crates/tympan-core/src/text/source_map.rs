//! Where the parts of a text that was put together stand in the file they came from.

use std::ops::Range;

use crate::text::source::Span;

/// The parts of a template that stand in a file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pieces(Vec<Piece>);

/// Bytes of the template, and where in the file they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    range: Range<usize>,
    source: usize,
}

impl Pieces {
    /// Adds a part behind the others.
    pub(crate) fn push(&mut self, range: Range<usize>, source: usize) {
        self.0.push(Piece { range, source });
    }

    /// The place in the file of a place in the template; `None` if nobody wrote it there.
    pub(crate) fn locate(&self, span: Span) -> Option<Span> {
        let index = self.0.partition_point(|piece| piece.range.end <= span.start);
        let piece = self.0.get(index).filter(|piece| piece.range.contains(&span.start))?;
        let moved = |offset: usize| piece.source + offset.min(piece.range.end) - piece.range.start;
        Some(Span::new(moved(span.start), moved(span.end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_moved_with_their_piece() {
        let mut pieces = Pieces::default();
        pieces.push(10..20, 100);
        pieces.push(30..40, 7);
        assert_eq!(pieces.locate(Span::new(12, 15)), Some(Span::new(102, 105)));
        assert_eq!(pieces.locate(Span::new(38, 45)), Some(Span::new(15, 17)));
        assert_eq!(pieces.locate(Span::new(25, 26)), None);
    }
}
