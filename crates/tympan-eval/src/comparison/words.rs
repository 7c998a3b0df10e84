//! Differences between two texts, word by word, with the writer of each word.
//!
//! Lines are compared first, and then the words of lines that differ. Texts that are too long for that are replaced as
//! a whole, so the work is bounded and the result is always the same.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

use similar::{Algorithm, DiffTag, capture_diff_slices};
use tympan_core::chat::rendered::InputTable;
use tympan_core::text::origin::Origin;

/// The most lines or words of both texts together that are compared with each other.
const MAX_COMPARED: usize = 6000;

/// The most steps that comparing the words of all lines may take.
const MAX_STEPS: usize = 64_000_000;

/// Who wrote a text, as far as trust is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriterKind {
    /// The author of the prompt.
    Author,
    /// A trusted input.
    Trusted,
    /// Any other input.
    Untrusted,
}

impl WriterKind {
    /// Returns the word for the kind.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Author => "author",
            Self::Trusted => "trusted",
            Self::Untrusted => "untrusted",
        }
    }
}

/// The writer of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextWriter {
    /// Who wrote it, as far as trust is concerned.
    pub kind: WriterKind,
    /// The inputs that wrote it, or none if the author did.
    pub inputs: Vec<String>,
}

/// A piece of a text that is in one of two versions or in both.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Piece {
    /// What happened to it.
    pub change: Change,
    /// The text.
    pub text: String,
    /// The writer, in the version after the change if there is one.
    pub writer: TextWriter,
    /// The writer before the change, if only the writer changed.
    pub before: Option<TextWriter>,
}

/// What happened to a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is in both versions.
    Equal,
    /// It is only in the version before.
    Removed,
    /// It is only in the version after.
    Added,
    /// It is in both versions, but another kind of writer wrote it.
    Rewritten,
}

impl Change {
    /// Returns the word for the change.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Removed => "removed",
            Self::Added => "added",
            Self::Rewritten => "rewritten",
        }
    }
}

/// A word of a text, a space, a line end or a punctuation mark. Two words are equal if their text and the kind of
/// their writer are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Word<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) kind: WriterKind,
}

/// A text as words. Which inputs wrote a word does not matter for the comparison, as long as they are trusted alike.
#[derive(Clone, Debug)]
pub(super) struct Words<'t> {
    pub(super) words: Vec<Word<'t>>,
    /// The origin of each word.
    origins: Vec<Origin>,
    inputs: &'t InputTable,
}

impl<'t> Words<'t> {
    /// Creates an empty text. Origins refer to these inputs.
    pub(super) fn new(inputs: &'t InputTable) -> Self {
        Self { words: Vec::new(), origins: Vec::new(), inputs }
    }

    /// Appends the words of a text.
    pub(super) fn push_text(&mut self, text: &'t str, origin: Origin) {
        split(text).for_each(|word| self.push(Cow::Borrowed(word), origin));
    }

    /// Appends one word.
    pub(super) fn push(&mut self, text: Cow<'t, str>, origin: Origin) {
        let kind = match origin {
            origin if origin.is_author() => WriterKind::Author,
            origin if self.inputs.is_trusted(origin) => WriterKind::Trusted,
            _ => WriterKind::Untrusted,
        };
        self.words.push(Word { text, kind });
        self.origins.push(origin);
    }

    fn writer(&self, index: usize) -> TextWriter {
        let inputs = self.inputs.names(self.origins[index]).map(str::to_owned).collect();
        TextWriter { kind: self.words[index].kind, inputs }
    }

    fn text(&self, range: Range<usize>) -> String {
        self.words[range].iter().map(|word| &*word.text).collect()
    }
}

/// Splits a text into words, spaces, line ends and punctuation marks.
fn split(text: &str) -> impl Iterator<Item = &str> {
    #[derive(PartialEq)]
    enum Class {
        Letter,
        Space,
        Other,
    }
    let class = |char: char| match char {
        '\n' => Class::Other,
        char if char.is_whitespace() => Class::Space,
        char if char.is_alphanumeric() || char == '_' => Class::Letter,
        _ => Class::Other,
    };
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let kind = class(first);
        let end = match kind {
            Class::Other => first.len_utf8(),
            _ => rest.find(|char| class(char) != kind).unwrap_or(rest.len()),
        };
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Compares two texts.
pub(super) fn pieces(before: &Words<'_>, after: &Words<'_>) -> Vec<Piece> {
    let hunks = joined(hunks(&before.words, &after.words), &before.words);
    let mut pieces = Vec::new();
    for hunk in hunks {
        let Hunk { old, new, is_equal } = hunk;
        if is_equal {
            grouped(after, new, Change::Equal, None, &mut pieces);
        } else if before.text(old.clone()) == after.text(new.clone()) {
            let writer = old.clone().next().map(|first| before.writer(first));
            grouped(after, new, Change::Rewritten, writer.as_ref(), &mut pieces);
        } else {
            grouped(before, old, Change::Removed, None, &mut pieces);
            grouped(after, new, Change::Added, None, &mut pieces);
        }
    }
    pieces
}

/// Appends words as pieces, one for each run of words with the same writer.
fn grouped(
    words: &Words<'_>,
    range: Range<usize>,
    change: Change,
    before: Option<&TextWriter>,
    pieces: &mut Vec<Piece>,
) {
    let mut start = range.start;
    while start < range.end {
        let has_origin = |index: &usize| words.origins[*index] == words.origins[start];
        let end = start + (start..range.end).take_while(has_origin).count();
        let (text, writer) = (words.text(start..end), words.writer(start));
        match pieces.last_mut() {
            Some(last) if last.change == change && last.writer == writer && last.before.as_ref() == before => {
                last.text.push_str(&text);
            }
            _ => pieces.push(Piece { change, text, writer, before: before.cloned() }),
        }
        start = end;
    }
}

/// Ranges of words of both texts that are equal, or that replace each other.
#[derive(Clone, Debug, PartialEq)]
struct Hunk {
    old: Range<usize>,
    new: Range<usize>,
    is_equal: bool,
}

/// Compares the lines of two texts, and the words of those that differ.
fn hunks(old: &[Word<'_>], new: &[Word<'_>]) -> Vec<Hunk> {
    let (old_lines, new_lines) = (lines(old), lines(new));
    let (old_ids, new_ids) =
        ids(old_lines.iter().map(|line| &old[line.clone()]), new_lines.iter().map(|line| &new[line.clone()]));
    let place = |lines: &[Range<usize>], range: Range<usize>, end: usize| {
        let start = lines.get(range.start).map_or(end, |line| line.start);
        start..lines.get(range.end).map_or(end, |line| line.start)
    };
    let mut hunks = Vec::new();
    let mut steps = MAX_STEPS;
    for (tag, from, to) in compared_inside(&old_ids, &new_ids) {
        let (from, to) = (place(&old_lines, from, old.len()), place(&new_lines, to, new.len()));
        match tag {
            DiffTag::Replace => word_hunks(old, new, from, to, &mut steps, &mut hunks),
            tag => hunks.push(Hunk { old: from, new: to, is_equal: tag == DiffTag::Equal }),
        }
    }
    hunks.retain(|hunk| !hunk.old.is_empty() || !hunk.new.is_empty());
    hunks
}

/// Compares two ranges of words, as long as there are steps left.
fn word_hunks(
    old: &[Word<'_>],
    new: &[Word<'_>],
    from: Range<usize>,
    to: Range<usize>,
    steps: &mut usize,
    hunks: &mut Vec<Hunk>,
) {
    let words = (from.len() + to.len()).min(MAX_COMPARED);
    let Some(left) = steps.checked_sub(words * words) else {
        hunks.push(Hunk { old: from, new: to, is_equal: false });
        return;
    };
    *steps = left;
    let (old_ids, new_ids) = ids(old[from.clone()].iter(), new[to.clone()].iter());
    hunks.extend(compared_inside(&old_ids, &new_ids).into_iter().map(|(tag, old, new)| Hunk {
        old: from.start + old.start..from.start + old.end,
        new: to.start + new.start..to.start + new.end,
        is_equal: tag == DiffTag::Equal,
    }));
}

/// Compares what is between the equal ends of two lists. If that is too long, it is replaced as a whole.
fn compared_inside(old: &[usize], new: &[usize]) -> Vec<Op> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (from, to) = (start..old.len() - end, start..new.len() - end);
    let mut ops = vec![(DiffTag::Equal, 0..start, 0..start)];
    match compared(&old[from.clone()], &new[to.clone()]) {
        Some(inside) => ops.extend(
            inside
                .into_iter()
                .map(|(tag, old, new)| (tag, start + old.start..start + old.end, start + new.start..start + new.end)),
        ),
        None => ops.push((DiffTag::Replace, from.clone(), to.clone())),
    }
    ops.push((DiffTag::Equal, from.end..old.len(), to.end..new.len()));
    ops
}

type Op = (DiffTag, Range<usize>, Range<usize>);

/// Compares two lists. Returns `None` if they are too long.
pub(super) fn compared(old: &[usize], new: &[usize]) -> Option<Vec<Op>> {
    let is_short = old.len() + new.len() <= MAX_COMPARED;
    is_short
        .then(|| capture_diff_slices(Algorithm::Myers, old, new).iter().map(similar::DiffOp::as_tag_tuple).collect())
}

/// Replaces the items of two lists by numbers that are equal if the items are.
pub(super) fn ids<T: Hash + Eq>(
    old: impl Iterator<Item = T>,
    new: impl Iterator<Item = T>,
) -> (Vec<usize>, Vec<usize>) {
    let mut known = HashMap::new();
    let mut id = |item: T| {
        let next = known.len();
        *known.entry(item).or_insert(next)
    };
    let old = old.map(&mut id).collect();
    (old, new.map(&mut id).collect())
}

/// Splits words into lines, with their line ends.
fn lines(words: &[Word<'_>]) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in words.split_inclusive(|word| word.text == "\n") {
        lines.push(start..start + line.len());
        start += line.len();
    }
    lines
}

/// Joins changes that only spaces are between, so that a phrase is replaced as a phrase.
fn joined(hunks: Vec<Hunk>, old: &[Word<'_>]) -> Vec<Hunk> {
    let is_space = |hunk: &Hunk| {
        let words = &old[hunk.old.clone()];
        hunk.is_equal && words.iter().all(|word| word.text != "\n" && word.text.trim().is_empty())
    };
    let mut joined: Vec<Hunk> = Vec::new();
    let mut rest = hunks.into_iter().peekable();
    while let Some(hunk) = rest.next() {
        let is_between = is_space(&hunk) && rest.peek().is_some_and(|next| !next.is_equal);
        match joined.last_mut().filter(|last| !last.is_equal) {
            Some(last) if !hunk.is_equal || is_between => {
                last.old.end = hunk.old.end;
                last.new.end = hunk.new.end;
            }
            _ => joined.push(hunk),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words<'t>(text: &'t str, inputs: &'t InputTable) -> Words<'t> {
        let mut words = Words::new(inputs);
        words.push_text(text, Origin::AUTHOR);
        words
    }

    /// Returns the pieces of two texts of the author, as `git diff --word-diff` writes them.
    fn shown(before: &str, after: &str) -> String {
        let inputs = InputTable::default();
        let pieces = pieces(&words(before, &inputs), &words(after, &inputs));
        let one = |change: &[Change]| {
            let kept = pieces.iter().filter(|piece| change.contains(&piece.change));
            kept.map(|piece| &*piece.text).collect::<String>()
        };
        assert_eq!(one(&[Change::Equal, Change::Removed]), before);
        assert_eq!(one(&[Change::Equal, Change::Added]), after);
        let shown = pieces.iter().map(|piece| match piece.change {
            Change::Removed => format!("[-{}-]", piece.text),
            Change::Added => format!("{{+{}+}}", piece.text),
            _ => piece.text.clone(),
        });
        shown.collect()
    }

    #[test]
    fn words_are_compared() {
        assert_eq!(shown("", ""), "");
        assert_eq!(shown("a b", "a b"), "a b");
        assert_eq!(shown("Be brief.", "Be very brief."), "Be {+very +}brief.");
        assert_eq!(shown("Be brief.", ""), "[-Be brief.-]");
        assert_eq!(shown("one two\nthree\n", "one\nthree\nfour\n"), "one[- two-]\nthree\n{+four\n+}");
        // A phrase is replaced as a phrase.
        assert_eq!(shown("x be kind now", "x stay calm now"), "x [-be kind-]{+stay calm+} now");
    }

    #[test]
    fn long_texts_are_replaced() {
        let before: String = (0..MAX_COMPARED).map(|number| format!("a{number} ")).collect();
        let after: String = (0..MAX_COMPARED).map(|number| format!("b{number} ")).collect();
        let text = |text: &str| format!("start {}\nlast", text.trim());
        let expected = format!("start [-{}-]{{+{}+}}\nlast", before.trim(), after.trim());
        assert!(shown(&text(&before), &text(&after)) == expected, "all words are replaced");
        let many = |word: &str| format!("{word}\n").repeat(MAX_COMPARED);
        let expected = 2 * many("a").len() - 1 + "[--]{++}".len();
        assert_eq!(shown(&many("a"), &many("b")).len(), expected, "all lines are replaced");
        // The words of many long lines take too many steps.
        let line = |word: &str| format!("{}\n", format!("{word} ").repeat(MAX_COMPARED / 4 - 1));
        let both = |word: &str| (0..40).map(|number| format!("{number}\n{}", line(word))).collect::<String>();
        shown(&both("a"), &both("b"));
    }
}
