//! Differences between two texts, word by word.

use std::ops::Range;

use serde::{Serialize, Serializer};
use similar::{Algorithm, DiffOp, capture_diff_slices};

/// The largest product of the numbers of words for which a difference is searched. Otherwise, everything between the
/// first and the last change is one change. It bounds the work for texts that have nothing in common.
const LARGEST_SEARCH: usize = 1 << 20;
/// How many bytes of equal text are shown before and after a change.
const CONTEXT: usize = 400;
/// How many bytes of a changed text are shown at either end of it.
const LONGEST_CHANGE: usize = 4_000;
/// How many bytes of a difference are shown.
const LONGEST: usize = 32_000;

/// A piece of a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text that both have.
    Equal(String),
    /// Text that is expected and missing.
    Removed(String),
    /// Text that is there and was not expected.
    Added(String),
    /// A number of bytes that are left out because there are too many of them.
    Skipped(usize),
}

/// A pair, for programs: `["=", "text"]`, `["-", "text"]`, `["+", "text"]` or `["…", 123]`.
impl Serialize for Piece {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Equal(text) => ("=", text).serialize(serializer),
            Self::Removed(text) => ("-", text).serialize(serializer),
            Self::Added(text) => ("+", text).serialize(serializer),
            Self::Skipped(bytes) => ("…", bytes).serialize(serializer),
        }
    }
}

/// Returns the difference between an expected and an actual text. Long parts of it are left out, so the result is small
/// even if the texts are not.
pub fn difference(expected: &str, actual: &str) -> Vec<Piece> {
    let start = common_start(expected, actual);
    let end = common_end(&expected[start..], &actual[start..]);
    let (before, after) = (&expected[start..expected.len() - end], &actual[start..actual.len() - end]);
    let mut pieces = Vec::new();
    equal(&mut pieces, &expected[..start], true, before.is_empty() && after.is_empty());
    let changes = changes(before, after);
    for (index, (equal_text, removed, added)) in changes.iter().enumerate() {
        equal(&mut pieces, equal_text, start == 0 && index == 0, false);
        changed(&mut pieces, removed, Piece::Removed);
        changed(&mut pieces, added, Piece::Added);
    }
    equal(&mut pieces, &expected[expected.len() - end..], changes.is_empty() && start == 0, true);
    bounded(pieces)
}

/// Replaces the end of a difference that has too many changes.
fn bounded(mut pieces: Vec<Piece>) -> Vec<Piece> {
    let size = |piece: &Piece| match piece {
        Piece::Equal(text) | Piece::Removed(text) | Piece::Added(text) => text.len(),
        Piece::Skipped(_) => 0,
    };
    let mut total = 0;
    let is_shown = |piece: &Piece| {
        total += size(piece);
        total <= LONGEST
    };
    let shown = pieces.iter().map(is_shown).take_while(|is_shown| *is_shown).count();
    let rest: usize =
        pieces[shown..].iter().map(|piece| if let Piece::Skipped(bytes) = piece { *bytes } else { size(piece) }).sum();
    if rest > 0 && shown < pieces.len() {
        pieces.truncate(shown);
        pieces.push(Piece::Skipped(rest));
    }
    pieces
}

/// Returns a difference as text: `[-missing-]` and `{+unexpected+}`.
pub fn difference_text(pieces: &[Piece]) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Equal(text) => text.clone(),
        Piece::Removed(text) => format!("[-{text}-]"),
        Piece::Added(text) => format!("{{+{text}+}}"),
        Piece::Skipped(bytes) => format!(" … ({bytes} bytes) … "),
    };
    pieces.iter().map(piece).collect()
}

/// Returns how long the equal texts at the beginning are, up to the end of a word in both.
fn common_start(one: &str, other: &str) -> usize {
    let equal = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    if equal == one.len() && equal == other.len() {
        return equal;
    }
    // The word that the first difference is in counts as different.
    let equal = one.floor_char_boundary(equal);
    one[..equal].trim_end_matches(is_word).len()
}

/// Returns how long the equal texts at the end are, from the beginning of a word in both.
fn common_end(one: &str, other: &str) -> usize {
    let equal = one.bytes().rev().zip(other.bytes().rev()).take_while(|(one, other)| one == other).count();
    let tail = &one[one.ceil_char_boundary(one.len() - equal)..];
    if tail.len() == one.len() && tail.len() == other.len() {
        return tail.len();
    }
    tail.trim_start_matches(is_word).len()
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Splits a text into words, white space, and other characters one by one.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = if is_word(first) {
            rest.find(|char| !is_word(char)).unwrap_or(rest.len())
        } else if first.is_whitespace() {
            // A line end is a word of its own, so that lines are found again.
            let end = rest.find(|char: char| !char.is_whitespace() || char == '\n').unwrap_or(rest.len());
            end.max(first.len_utf8())
        } else {
            first.len_utf8()
        };
        let (word, behind) = rest.split_at(end);
        words.push(word);
        rest = behind;
    }
    words
}

/// Returns equal text with the removed and the added text that follow it, from the beginning to the end.
fn changes(before: &str, after: &str) -> Vec<(String, String, String)> {
    if before.is_empty() && after.is_empty() {
        return Vec::new();
    }
    let (old, new) = (words(before), words(after));
    if old.len().saturating_mul(new.len()) > LARGEST_SEARCH {
        return vec![(String::new(), before.to_owned(), after.to_owned())];
    }
    let join = |words: &[&str], range: Range<usize>| words[range].concat();
    let mut changes: Vec<(String, String, String)> = Vec::new();
    let mut equal = String::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        if let DiffOp::Equal { old_index, len, .. } = op {
            equal.push_str(&join(&old, old_index..old_index + len));
            continue;
        }
        let (removed, added) = (join(&old, op.old_range()), join(&new, op.new_range()));
        match changes.last_mut() {
            // Two changes with nothing but spaces between them are easier to read as one.
            Some((_, old, new)) if equal.chars().all(char::is_whitespace) && !equal.contains('\n') => {
                for (all, part) in [(old, removed), (new, added)] {
                    all.push_str(&equal);
                    all.push_str(&part);
                }
                equal.clear();
            }
            _ => changes.push((std::mem::take(&mut equal), removed, added)),
        }
    }
    if !equal.is_empty() {
        changes.push((equal, String::new(), String::new()));
    }
    changes
}

/// Adds equal text: only its end if it is the first piece, only its beginning if it is the last, or both.
fn equal(pieces: &mut Vec<Piece>, text: &str, is_first: bool, is_last: bool) {
    let before = if is_first { 0 } else { CONTEXT };
    let after = if is_last { 0 } else { CONTEXT };
    // Texts without any difference still have a beginning.
    let before = if is_first && is_last { CONTEXT } else { before };
    shortened(pieces, text, before, after, Piece::Equal);
}

fn changed(pieces: &mut Vec<Piece>, text: &str, piece: fn(String) -> Piece) {
    shortened(pieces, text, LONGEST_CHANGE, LONGEST_CHANGE, piece);
}

/// Adds the beginning and the end of a text, and how much there is between them.
fn shortened(pieces: &mut Vec<Piece>, text: &str, before: usize, after: usize, piece: fn(String) -> Piece) {
    let start = text.floor_char_boundary(before);
    let end = text.ceil_char_boundary(text.len().saturating_sub(after));
    // It takes more room to say that a few bytes are missing than to show them.
    if end.saturating_sub(start) < 40 {
        if !text.is_empty() {
            pieces.push(piece(text.to_owned()));
        }
        return;
    }
    if start > 0 {
        pieces.push(piece(text[..start].to_owned()));
    }
    pieces.push(Piece::Skipped(end - start));
    if end < text.len() {
        pieces.push(piece(text[end..].to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(expected: &str, actual: &str) -> String {
        difference_text(&difference(expected, actual))
    }

    #[test]
    fn words_differ_not_letters() {
        assert_eq!(text("Dear Ada,\nwelcome.", "Dear Adam,\nwelcome!"), "Dear [-Ada-]{+Adam+},\nwelcome[-.-]{+!+}");
        assert_eq!(text("the total is 10.50", "the total is 10.75"), "the total is 10.[-50-]{+75+}");
        assert_eq!(text("one two three", "one deux trois"), "one [-two three-]{+deux trois+}");
        assert_eq!(text("", "new"), "{+new+}");
        assert_eq!(text("old", ""), "[-old-]");
        assert_eq!(text("same", "same"), "same");
        assert_eq!(text("", ""), "");
        assert_eq!(text("aé", "aè"), "[-aé-]{+aè+}");
        assert_eq!(text("é", "è"), "[-é-]{+è+}");
        assert_eq!(text("a\nb\nc\n", "a\nc\n"), "a\n[-b\n-]c\n");
    }

    /// Both texts can be put together again from the pieces of short texts.
    #[test]
    fn nothing_gets_lost() {
        let texts = ["", "a", "a b", "a  b\n", "b a", "é è\n\nê", "x = 1;", "x == 1", "👩‍🚀 a 👩", "a a a a", "a a b a"];
        for expected in texts {
            for actual in texts {
                let pieces = difference(expected, actual);
                let side = |is_expected: bool| -> String {
                    let part = |piece: &Piece| match piece {
                        Piece::Equal(text) => text.clone(),
                        Piece::Removed(text) if is_expected => text.clone(),
                        Piece::Added(text) if !is_expected => text.clone(),
                        _ => String::new(),
                    };
                    pieces.iter().map(part).collect()
                };
                assert_eq!((side(true).as_str(), side(false).as_str()), (expected, actual), "{pieces:?}");
            }
        }
    }

    #[test]
    fn long_texts_are_shortened_around_the_difference() {
        let long = "all work and no play ".repeat(5_000);
        let pieces = difference(&format!("{long}old {long}"), &format!("{long}new {long}"));
        let skipped = long.len() - CONTEXT;
        let is_expected = matches!(&pieces[..], [Piece::Skipped(before), Piece::Equal(one), Piece::Removed(old),
            Piece::Added(new), Piece::Equal(other), Piece::Skipped(after)]
            if *before == skipped && one.len() == CONTEXT && old == "old" && new == "new"
                && other.len() == CONTEXT && *after == skipped + 1);
        assert!(is_expected, "{pieces:?}");
        let other = "nothing in common, ".repeat(5_000);
        let size: usize = difference_text(&difference(&long, &other)).len();
        assert!(size < 5 * LONGEST_CHANGE, "{size}");
        let numbers = |first: u32| -> String {
            (0..500).map(|index| format!("{} {index} ", "x".repeat(500) + &(index * first).to_string())).collect()
        };
        let many = difference_text(&difference(&numbers(1), &numbers(7)));
        assert!(many.len() < 2 * LONGEST, "{}", many.len());
        assert_eq!(difference(&long, &long), [Piece::Equal(long[..CONTEXT].to_owned()), Piece::Skipped(skipped)]);
    }
    /// A search through long texts that have little in common would take the product of their lengths.
    #[test]
    fn long_texts_with_little_in_common_are_one_change() {
        let text =
            |name: &str, count: u32| -> String { (0..count).map(|index| format!("{name}{index} same\n")).collect() };
        let equal = |count: u32| {
            let pieces = difference(&text("old", count), &text("new", count));
            pieces.iter().filter(|piece| matches!(piece, Piece::Equal(_))).count()
        };
        assert_eq!((equal(20), equal(1_000)), (20, 1));
    }
}
