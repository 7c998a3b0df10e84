//! Text that an input chose but did not write.
//!
//! `{{ nickname or "user:" }}` may write the author's text, and the input decides whether it does. The set of notable
//! lines must not depend on the value of an input. Therefore the input leaves a zero-length piece on both sides of the
//! text, as it does when it is interpolated and empty. Where that is not enough, the text counts as the input's.

use std::ops::Range;

use crate::template::Notable;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;
use crate::text::traced::TracedText;

/// Marks a value with the inputs that took part in choosing it.
pub(crate) fn mark_choice<'a>(value: Value<'a>, by: Origin, notable: Option<Notable>) -> Value<'a> {
    if by.is_within(value.origin) {
        return value;
    }
    let Some(text) = value.as_str().filter(|_| !notable.is_some_and(|notable| has_line(&value, notable))) else {
        return value.also(by);
    };
    let mut traced = TracedText::with_capacity(text.len(), value.pieces() + 2);
    traced.mark(by);
    value.push_pieces(&mut traced);
    traced.mark(by);
    Value::text_like(&value, traced)
}

/// Returns whether it matters who chose a value that is written unchanged: whether it can be part of a notable line.
pub(crate) fn matters(value: &Value<'_>, notable: Option<Notable>) -> bool {
    let Some(notable) = notable else { return false };
    match value.as_str() {
        Some(text) => (notable.part)(text),
        None => !matches!(value.repr, Repr::Bool(_) | Repr::Int(_) | Repr::Big(_) | Repr::Float(_)),
    }
}

/// Returns whether a text contains a notable line that is neither at its start nor at its end. The zero-length pieces
/// on both sides of the text do not affect such a line.
pub(crate) fn has_line(value: &Value<'_>, notable: Notable) -> bool {
    if value.as_str().is_none_or(|text| memchr::memchr(b'\n', text.as_bytes()).is_none()) {
        return false;
    }
    let inside = |piece: &str, is_first: bool, is_last: bool| {
        let lines = (notable.lines)(piece);
        lines.iter().any(|line| (line.start > 0 || !is_first) && (line.end < piece.len() || !is_last))
    };
    match &value.repr {
        Repr::Str(text) => inside(text, true, true),
        Repr::Text(text) => {
            let last = value.pieces().saturating_sub(1);
            let mut pieces = text.traced.pieces().enumerate();
            pieces.any(|(index, (piece, _))| inside(piece, index == 0, index == last))
        }
        _ => false,
    }
}

/// Returns the author's pieces of a text that notable lines depend on: a notable line starts in the piece, or the piece
/// ends a line that started before the text, or it starts a line that may continue after the text. Text right after
/// another piece does not start a line.
pub(crate) fn author_lines(traced: &TracedText, notable: Notable) -> impl Iterator<Item = Range<usize>> {
    let last = traced.piece_ends().len().saturating_sub(1);
    // Whether a notable line may have started that continues after the text of an input.
    let mut is_open = false;
    traced.ranges().enumerate().filter(|(_, (_, origin))| origin.is_author()).filter_map(move |(index, (range, _))| {
        let piece = &traced.as_str()[range.clone()];
        let begun = |line: &Range<usize>| line.start > 0 || index == 0;
        let lines: Vec<_> = (notable.lines)(piece).into_iter().filter(begun).collect();
        let has_newline = piece.contains('\n');
        let ends_open_one = is_open && has_newline;
        is_open = (is_open && !has_newline) || lines.last().is_some_and(|line| line.end == piece.len());
        let ends_one = || index == 0 && piece.split_once('\n').is_some_and(|(line, _)| (notable.part)(line));
        let begins_one = || index == last && piece.rsplit_once('\n').is_some_and(|(_, line)| (notable.part)(line));
        (!lines.is_empty() || ends_open_one || ends_one() || begins_one()).then_some(range)
    })
}
