//! Edits of whole lines, so that editors keep their position in the rest of a file.

use similar::{Algorithm, DiffTag, TextDiff};
use tympan_core::text::source::Span;

/// A span of a text, and its replacement.
pub type Edit = (Span, String);

/// Returns the edits that turn one text into another.
pub(crate) fn edits(before: &str, after: &str) -> Vec<Edit> {
    let difference = TextDiff::configure().algorithm(Algorithm::Patience).diff_lines(before, after);
    let starts = |lines: &[&str]| {
        let mut at = 0;
        let mut starts = vec![0];
        starts.extend(lines.iter().map(|line| {
            at += line.len();
            at
        }));
        starts
    };
    let (old, new) = (starts(difference.old_slices()), starts(difference.new_slices()));
    let changed = difference.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    let edits = changed.map(|op| {
        let (from, to) = (op.old_range(), op.new_range());
        (Span::new(old[from.start], old[from.end]), after[new[to.start]..new[to.end]].to_owned())
    });
    edits.collect()
}
