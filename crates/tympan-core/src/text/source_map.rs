//! Maps positions in assembled text to positions in the file that its parts come from.

use std::ops::Range;

use crate::text::source::Span;

/// The ranges of a template that come from a file, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SourceMap(Vec<Mapping>);

/// A range of bytes in the template, and the offset in the file at which they start.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping {
    range: Range<usize>,
    source: usize,
}

impl SourceMap {
    /// Appends a range.
    pub(crate) fn push(&mut self, range: Range<usize>, source: usize) {
        self.0.push(Mapping { range, source });
    }

    /// Maps a span in the template to a span in the file. Returns `None` if the start of the span does not come from
    /// the file.
    pub(crate) fn locate(&self, span: Span) -> Option<Span> {
        let index = self.0.partition_point(|mapping| mapping.range.end <= span.start);
        let mapping = self.0.get(index).filter(|mapping| mapping.range.contains(&span.start))?;
        let moved = |offset: usize| mapping.source + offset.min(mapping.range.end) - mapping.range.start;
        Some(Span::new(moved(span.start), moved(span.end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_moved_with_their_range() {
        let mut map = SourceMap::default();
        map.push(10..20, 100);
        map.push(30..40, 7);
        assert_eq!(map.locate(Span::new(12, 15)), Some(Span::new(102, 105)));
        assert_eq!(map.locate(Span::new(38, 45)), Some(Span::new(15, 17)));
        assert_eq!(map.locate(Span::new(25, 26)), None);
    }
}
