//! Newlines that white space control must not remove.

use std::borrow::Cow;
use std::ops::Range;

use crate::text::source::Span;

/// The newlines before and after protected lines, and which of them have been handled.
///
/// White space control removes newlines from the ends of literal text. Missing ones are found by comparing their offsets
/// with those of the remaining pieces.
pub(super) struct Newlines<'s> {
    source: &'s str,
    /// Offsets of protected newlines, ascending.
    offsets: Vec<usize>,
    /// How many of them have been handled.
    done: usize,
}

impl<'s> Newlines<'s> {
    pub(super) fn new(source: &'s str, protected: &[Range<usize>]) -> Self {
        let bytes = source.as_bytes();
        let mut offsets = Vec::new();
        for line in protected {
            if let Some(before) = line.start.checked_sub(1).filter(|&at| bytes[at] == b'\n') {
                offsets.push(before);
            }
            if bytes.get(line.end) == Some(&b'\n') {
                offsets.push(line.end);
            }
        }
        offsets.dedup();
        Self { source, offsets, done: 0 }
    }

    /// Returns a piece of literal text with the protected newlines that were trimmed from its ends.
    pub(super) fn restore(&mut self, kept: Span) -> Cow<'s, str> {
        let Span { start, end } = kept;
        let text = &self.source[kept.range()];
        if self.done == self.offsets.len() {
            return Cow::Borrowed(text);
        }
        let mut restored = self.before(start);
        restored.push_str(text);
        while self.next().is_some_and(|at| at < end) {
            self.done += 1;
        }
        while let Some(at) = self.next() {
            if !self.source[end..at].chars().all(char::is_whitespace) {
                break;
            }
            restored.push('\n');
            self.done += 1;
        }
        Cow::Owned(restored)
    }

    /// Returns the newlines before an offset that no text contained.
    pub(super) fn before(&mut self, offset: usize) -> String {
        let mut lost = String::new();
        while self.next().is_some_and(|at| at < offset) {
            lost.push('\n');
            self.done += 1;
        }
        lost
    }

    fn next(&self) -> Option<usize> {
        self.offsets.get(self.done).copied()
    }
}
