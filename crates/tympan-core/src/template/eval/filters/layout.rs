//! Filters that fit text into a width: `truncate`, `wordwrap`, `center`; and `wordcount`.
//!
//! Lengths are numbers of characters. Words are as in Python's `textwrap`.

use std::ops::Range;

use crate::error::Result;
use crate::template::eval::Eval;
use crate::template::eval::filters::params::{Params, as_count};
use crate::template::eval::filters::rewrite::{Rewrite, changeable};
use crate::template::eval::filters::text::{BYTES_OF_LETTERS, escape, text};
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;
use crate::text::traced::TracedText;

pub(super) fn apply<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    value: Value<'a>,
    params: &mut Params<'_, 'a>,
) -> Result<Value<'a>> {
    let value = text(eval, value)?;
    eval.budget.step(value.as_str().map_or(0, str::len) / BYTES_OF_LETTERS)?;
    match name {
        "truncate" => truncate(eval, value, params),
        "wordwrap" => word_wrap(eval, value, params),
        "center" => center(eval, value, params),
        _ => Ok(Value::int(count_words(value.as_str().unwrap_or_default()), value.whole_origin())),
    }
}

/// Counts runs of letters, digits and underscores.
fn count_words(text: &str) -> i128 {
    let mut count = 0;
    let mut in_word = false;
    for char in text.chars() {
        let is_word = is_word(char);
        count += i128::from(is_word && !in_word);
        in_word = is_word;
    }
    count
}

fn is_word(char: char) -> bool {
    char == '_' || char.is_alphanumeric()
}

/// Returns the origin of an optional argument.
fn origin_of(value: Option<&Value<'_>>) -> Origin {
    value.map(Value::whole_origin).unwrap_or_default()
}

/// Returns the position of the character with this index, or the end of the text.
fn position(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(at, _)| at)
}

/// How much longer than the maximum a text may be before `truncate` shortens it, unless the template says otherwise.
const LEEWAY: usize = 5;

fn truncate<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let length = params.count("length")?;
    let kill_words = params.next("killwords");
    let end = params.next("end").unwrap_or(Value::written(Repr::Str("..."), eval.tree.authored()));
    let end = text(eval, end)?;
    let leeway = params.count("leeway")?;
    let decided = origin_of(length.as_ref()) | origin_of(kill_words.as_ref()) | origin_of(leeway.as_ref());
    let length = length.as_ref().map_or(255, as_count);
    let leeway = leeway.as_ref().map_or(LEEWAY, as_count);
    let end_length = end.as_str().map_or(0, |end| end.chars().count());
    let Some(kept) = length.checked_sub(end_length) else {
        return Err(params.fail("`length` must not be less than the length of `end`"));
    };
    let value = changeable(eval, value)?;
    let text = value.as_str().unwrap_or_default();
    if text.chars().nth(length.saturating_add(leeway)).is_none() {
        return Ok(value.also(decided));
    }
    // The length of `end` decides how much of the text is left.
    let decided = decided | end.whole_origin();
    let mut cut = position(text, kept);
    if !kill_words.is_some_and(|flag| flag.is_true()) {
        cut = text[..cut].rfind(' ').unwrap_or(cut);
    }
    let end = eval.chosen(end, value.whole_origin())?;
    let pieces = value.pieces().saturating_add(end.pieces()).saturating_add(2);
    eval.budget.make_text(cut.saturating_add(end.as_str().map_or(0, str::len)), pieces)?;
    let mut rewrite = Rewrite::new(&value);
    rewrite.copy_to(cut);
    if value.is_safe() == end.is_safe() {
        rewrite.insert(&end);
        return Ok(Value::text_like(&value, rewrite.finish()).also(decided));
    }
    // If one of the two is safe, the other is escaped.
    let shortened = Value::text_like(&value, rewrite.finish());
    let (shortened, end) = (escape(eval, shortened)?, escape(eval, end)?);
    let mut out = TracedText::default();
    shortened.push_pieces(&mut out);
    end.push_pieces(&mut out);
    Ok(Value::safe_text(out).also(decided))
}

fn center<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let width = params.next("width").filter(|width| !width.is_none());
    let width_origin = origin_of(width.as_ref());
    let width = match &width {
        Some(width) => width.as_int().ok_or_else(|| params.fail("`width` must be an integer"))?,
        None => 80,
    };
    let value = changeable(eval, value)?;
    let text = value.as_str().unwrap_or_default();
    let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
    let padding = width.saturating_sub(text.chars().count());
    eval.budget.make_text(text.len().saturating_add(padding), value.pieces().saturating_add(2))?;
    // As in Python, the odd space is on the left if the width is odd.
    let left = padding / 2 + (padding & width & 1);
    let origin = width_origin | value.whole_origin();
    let mut out = TracedText::with_capacity(text.len() + padding, value.pieces() + 2);
    out.push(&" ".repeat(left), origin);
    value.push_pieces(&mut out);
    out.push(&" ".repeat(padding - left), origin);
    Ok(Value::text_like(&value, out))
}

fn word_wrap<'a>(eval: &mut Eval<'a>, value: Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let width = params.count("width")?;
    let break_words = params.next("break_long_words");
    let separator = params.next("wrapstring").filter(|separator| !separator.is_none());
    let break_hyphens = params.next("break_on_hyphens");
    let decided = origin_of(width.as_ref()) | origin_of(break_words.as_ref()) | origin_of(break_hyphens.as_ref());
    let wrapping = Wrapping {
        width: width.as_ref().map_or(79, as_count),
        break_words: break_words.is_none_or(|flag| flag.is_true()),
        break_hyphens: break_hyphens.is_none_or(|flag| flag.is_true()),
    };
    if wrapping.width == 0 {
        return Err(params.fail("`width` must be at least 1"));
    }
    let keeps_line_ends = separator.is_none();
    let separator = separator.unwrap_or(Value::written(Repr::Str("\n"), eval.tree.authored()));
    let separator = text(eval, separator)?;
    let value = changeable(eval, value)?;
    let whole = value.whole_origin();
    // A line end that is inserted into an input's text does not count as the author's.
    let breaks_lines = separator.as_str().is_some_and(|separator| separator.contains('\n'));
    let separator = if breaks_lines { separator.also(whole) } else { eval.chosen(separator, whole)? };
    let text = value.as_str().unwrap_or_default();
    eval.budget.make_text(text.len(), value.pieces())?;
    let mut size = Size { bytes: 0, separator: separator.as_str().map_or(0, str::len), pieces: separator.pieces() };
    let mut rewrite = Rewrite::new(&value);
    let mut line_end = None;
    for (line, next) in lines(text) {
        if let Some(before) = line_end.replace(line.end..next) {
            size.charge(eval)?;
            // The author's own line ends stay the author's.
            rewrite.replace_to(before.start, "");
            if keeps_line_ends && &text[before.clone()] == "\n" {
                rewrite.copy_to(before.end);
            } else {
                rewrite.replace_to(before.end, "");
                rewrite.insert(&separator);
            }
        }
        let mut is_first = true;
        let mut chunks = Chunks::new(text, line, wrapping.break_hyphens);
        while let Some(wrapped) = wrapping.next_line(&mut chunks, is_first) {
            size.charge(eval)?;
            rewrite.replace_to(wrapped.start, "");
            if !is_first {
                rewrite.insert(&separator);
            }
            rewrite.copy_to(wrapped.end);
            is_first = false;
        }
    }
    Ok(Value::text(rewrite.finish()).also(decided))
}

/// Charges for the separators that are written. Their number is not known in advance.
struct Size {
    bytes: usize,
    separator: usize,
    pieces: usize,
}

impl Size {
    fn charge(&mut self, eval: &mut Eval<'_>) -> Result<()> {
        eval.budget.make_text(self.separator, self.pieces.saturating_add(2))?;
        self.bytes = self.bytes.saturating_add(self.separator);
        if self.bytes > eval.budget.operation_bytes() {
            // The operation as a whole is subject to the limit for one operation.
            eval.budget.make(self.bytes)?;
        }
        Ok(())
    }
}

/// Iterates over the lines of a text, as Python splits them: the line without its end, and where the next one starts.
fn lines(text: &str) -> impl Iterator<Item = (Range<usize>, usize)> {
    let is_end = |char: char| matches!(char, '\n'..='\r' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let end = rest.find(is_end).unwrap_or(rest.len());
        let behind = &rest[end..];
        let len = if behind.starts_with("\r\n") { 2 } else { behind.chars().next().map_or(0, char::len_utf8) };
        let line = start..start + end;
        start += end + len;
        Some((line, start))
    })
}

/// How lines are wrapped.
struct Wrapping {
    width: usize,
    break_words: bool,
    break_hyphens: bool,
}

impl Wrapping {
    /// Returns the next line: as many chunks as fit, without white space at its ends. The first line keeps the white
    /// space at its start.
    fn next_line(&self, chunks: &mut Chunks<'_>, is_first: bool) -> Option<Range<usize>> {
        while let Some(first) = chunks.peek() {
            if !is_first && chunks.is_blank(&first) {
                chunks.take();
            }
            let Some(first) = chunks.peek() else { break };
            let start = first.range.start;
            let (mut end, mut length, mut last) = (start, 0, start..start);
            while let Some(chunk) = chunks.peek().filter(|chunk| length + chunk.chars <= self.width) {
                length += chunk.chars;
                (end, last) = (chunk.range.end, chunk.range);
                chunks.take();
            }
            if let Some(long) = chunks.peek().filter(|chunk| chunk.chars > self.width) {
                if self.break_words {
                    let cut = self.cut(&chunks.text[long.range.clone()], self.width - length);
                    last = chunks.split(cut);
                    end = last.end;
                } else if end == start {
                    (end, last) = (long.range.end, long.range);
                    chunks.take();
                }
            }
            if chunks.text[last.clone()].trim().is_empty() {
                end = last.start;
            }
            if start < end {
                return Some(start..end);
            }
        }
        None
    }

    /// Returns how many characters of a long word fit into the space that is left: up to a hyphen, if there is one.
    fn cut(&self, word: &str, space: usize) -> usize {
        let fits = &word[..position(word, space)];
        let hyphen = fits.rfind('-').filter(|at| self.break_hyphens && fits[..*at].contains(|char| char != '-'));
        hyphen.map_or(space, |at| fits[..at].chars().count() + 1)
    }
}

/// A part of a line that is not broken, unless it is too long.
#[derive(Clone)]
struct Chunk {
    range: Range<usize>,
    chars: usize,
}

/// Splits a line into chunks: white space, words, and parts of hyphenated words.
struct Chunks<'t> {
    text: &'t str,
    line: Range<usize>,
    at_hyphens: bool,
    next: Option<Chunk>,
}

impl<'t> Chunks<'t> {
    fn new(text: &'t str, line: Range<usize>, at_hyphens: bool) -> Self {
        Self { text, line, at_hyphens, next: None }
    }

    fn peek(&mut self) -> Option<Chunk> {
        if self.next.is_none() && !self.line.is_empty() {
            let len = self.chunk_len();
            let range = self.line.start..self.line.start + len;
            self.line.start = range.end;
            self.next = Some(Chunk { chars: self.text[range.clone()].chars().count(), range });
        }
        self.next.clone()
    }

    fn take(&mut self) {
        self.next = None;
    }

    fn is_blank(&self, chunk: &Chunk) -> bool {
        self.text[chunk.range.clone()].trim().is_empty()
    }

    /// Takes this many characters of the next chunk.
    fn split(&mut self, chars: usize) -> Range<usize> {
        let Some(chunk) = &mut self.next else { return self.line.start..self.line.start };
        let start = chunk.range.start;
        let cut = start + position(&self.text[chunk.range.clone()], chars);
        chunk.range.start = cut;
        chunk.chars = chunk.chars.saturating_sub(chars);
        start..cut
    }

    fn chunk_len(&self) -> usize {
        let rest = &self.text[self.line.clone()];
        let blank = rest.len() - rest.trim_start_matches(is_blank).len();
        if blank > 0 {
            return blank;
        }
        if !self.at_hyphens {
            return rest.find(is_blank).unwrap_or(rest.len());
        }
        let context = self.context();
        if self.text[context..self.line.start].ends_with(is_word_or_mark)
            && let Some(dashes) = dashes_before_word(rest)
        {
            return dashes;
        }
        for (at, char) in rest.char_indices().skip(1) {
            if is_blank(char) {
                return at;
            }
            if char != '-' {
                continue;
            }
            let head = &self.text[context..self.line.start + at];
            if ends_part(head) && starts_part(&rest[at + 1..]) {
                return at + 1;
            }
            if head.ends_with(is_word_or_mark) && dashes_before_word(&rest[at..]).is_some() {
                return at;
            }
        }
        rest.len()
    }

    /// Returns the position of the first character before the chunk that decides where the chunk is broken.
    fn context(&self) -> usize {
        let before = self.text[..self.line.start].char_indices().rev();
        before.take(LOOK_BEHIND).last().map_or(self.line.start, |(at, _)| at)
    }
}

/// The number of characters before a chunk that decide where it is broken.
const LOOK_BEHIND: usize = 4;

fn is_blank(char: char) -> bool {
    matches!(char, '\t'..='\r' | ' ')
}

fn is_word_or_mark(char: char) -> bool {
    is_word(char) || matches!(char, '!' | '"' | '\'' | '&' | '.' | ',' | '?')
}

fn is_letter(char: char) -> bool {
    char == '_' || char.is_alphabetic()
}

/// Returns the length of the dash that a text starts with, if it is at least two hyphens before a word.
fn dashes_before_word(text: &str) -> Option<usize> {
    let word = text.trim_start_matches('-');
    let dashes = text.len() - word.len();
    (dashes >= 2 && word.starts_with(is_word)).then_some(dashes)
}

/// Returns whether a hyphen after this text can end a part of a hyphenated word: `ab-`, or `a-b-`.
fn ends_part(text: &str) -> bool {
    let mut chars = text.chars().rev();
    let (last, before) = (chars.next(), chars.next());
    let is_letters = last.is_some_and(is_letter) && before.is_some_and(is_letter);
    let is_short_part = last.is_some_and(is_word_or_mark) && before == Some('-') && chars.next().is_some_and(is_letter);
    is_letters || is_short_part
}

/// Returns whether this text can follow the hyphen of a hyphenated word: `ab`, or `a-b`.
fn starts_part(text: &str) -> bool {
    let mut chars = text.chars();
    let first = chars.next().is_some_and(is_letter);
    let second = chars.next().and_then(|char| if char == '-' { chars.next() } else { Some(char) });
    first && second.is_some_and(is_letter)
}
