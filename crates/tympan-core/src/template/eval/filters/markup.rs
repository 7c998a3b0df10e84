//! Filters for HTML and XML: `striptags` and `xmlattr`.

use std::ops::Range;

use crate::error::Result;
use crate::template::eval::filters::entities;
use crate::template::eval::filters::params::Params;
use crate::template::eval::filters::rewrite::{Rewrite, changeable};
use crate::template::eval::filters::text::{BYTES_OF_LETTERS, escape_html, escaped_len, text};
use crate::template::eval::{Escape, Eval};
use crate::template::value::{Value, ValueKind};
use crate::text::traced::TracedText;

pub(super) fn apply<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    value: Value<'a>,
    params: &mut Params<'_, 'a>,
) -> Result<Value<'a>> {
    if name == "xmlattr" {
        return xml_attributes(eval, &value, params);
    }
    let value = text(eval, value)?;
    let value = changeable(eval, value)?;
    strip_tags(eval, &value)
}

/// Removes comments and tags, joins what white space separates with single spaces, and resolves character references.
fn strip_tags<'a>(eval: &mut Eval<'a>, value: &Value<'a>) -> Result<Value<'a>> {
    let text = value.as_str().unwrap_or_default();
    eval.budget.step(text.len() / BYTES_OF_LETTERS)?;
    let tags = memchr::memchr_iter(b'<', text.as_bytes()).count();
    let words = text.split_whitespace().count();
    eval.budget.make(tags.saturating_mul(2 * size_of::<Range<usize>>()))?;
    let pieces = value.pieces().saturating_mul(2).saturating_add(words);
    eval.budget.make_text(text.len(), pieces.min(text.len()).max(value.pieces()))?;
    let kept = without_tags(text, without_comments(text));
    let joined = join_words(value, text, &kept);
    if memchr::memchr(b'&', joined.as_str().unwrap_or_default().as_bytes()).is_none() {
        return Ok(joined);
    }
    eval.budget.make_text(joined.as_str().map_or(0, str::len), joined.pieces())?;
    Ok(resolve_references(&joined))
}

const COMMENT: &str = "<!--";
const COMMENT_END: &str = "-->";

/// Returns the parts of a text outside of comments. A comment that starts before a removed comment and goes on after it
/// is a comment too.
fn without_comments(text: &str) -> Vec<Range<usize>> {
    let mut kept = Kept { text, ranges: Vec::new() };
    let mut at = 0;
    loop {
        if let Some((len, end)) = kept.across(at) {
            let Some(end) = end.or_else(|| find(text, at, COMMENT_END)) else { break };
            kept.remove_last(len);
            at = end;
            continue;
        }
        let Some(start) = text[at..].find(COMMENT).map(|start| at + start) else { break };
        let Some(end) = find(text, start, COMMENT_END) else { break };
        kept.push(at..start);
        at = end;
    }
    kept.push(at..text.len());
    kept.ranges
}

/// Returns the end of the first match at or after a position.
fn find(text: &str, from: usize, wanted: &str) -> Option<usize> {
    text[from..].find(wanted).map(|at| from + at + wanted.len())
}

/// The parts of a text that are left before the current position.
struct Kept<'t> {
    text: &'t str,
    ranges: Vec<Range<usize>>,
}

impl Kept<'_> {
    fn push(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.ranges.push(range);
        }
    }

    /// Finds the start of a comment that consists of the last bytes that are left and the first ones at a position.
    /// Returns how many bytes are before the position. Also returns the end of the comment if it starts before the
    /// position as well.
    fn across(&self, at: usize) -> Option<(usize, Option<usize>)> {
        if self.ranges.is_empty() {
            return None;
        }
        let bytes = self.text.as_bytes();
        let last = self.ranges.iter().rev().flat_map(|range| bytes[range.clone()].iter().rev());
        let mut window: Vec<u8> = last.take(COMMENT.len() - 1).copied().collect();
        window.reverse();
        let before = window.len();
        window.extend(bytes[at..].iter().take(COMMENT.len() - 1));
        let start = window.windows(COMMENT.len()).position(|part| part == COMMENT.as_bytes())?;
        let end = window[start..].windows(COMMENT_END.len()).position(|part| part == COMMENT_END.as_bytes());
        let end = end.map(|end| start + end).filter(|end| *end < before);
        Some((before - start, end.map(|end| at + end + COMMENT_END.len() - before)))
    }

    fn remove_last(&mut self, mut len: usize) {
        while let Some(last) = self.ranges.last_mut().filter(|_| len > 0) {
            let removed = len.min(last.len());
            last.end -= removed;
            len -= removed;
            if last.start == last.end {
                self.ranges.pop();
            }
        }
    }
}

/// Removes everything from `<` to the next `>`.
fn without_tags(text: &str, parts: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let last_end =
        parts.iter().rev().find_map(|part| memchr::memrchr(b'>', &bytes[part.clone()]).map(|at| part.start + at));
    let Some(last_end) = last_end else { return parts };
    let mut kept = Vec::with_capacity(parts.len());
    let mut in_tag = false;
    for part in parts {
        let mut at = part.start;
        while at < part.end {
            let wanted = if in_tag { b'>' } else { b'<' };
            let found = memchr::memchr(wanted, &bytes[at..part.end]).map(|found| at + found);
            // What is not closed is not a tag.
            let found = found.filter(|found| in_tag || *found < last_end);
            let end = found.unwrap_or(part.end);
            if !in_tag && at < end {
                kept.push(at..end);
            }
            at = found.map_or(part.end, |found| found + 1);
            in_tag ^= found.is_some();
        }
    }
    kept
}

/// Joins the words of the kept parts with single spaces.
fn join_words<'a>(value: &Value<'a>, text: &str, kept: &[Range<usize>]) -> Value<'a> {
    let mut rewrite = Rewrite::new(value);
    let mut has_word = false;
    // The white space that the next space stands for.
    let mut space: Option<Range<usize>> = None;
    for part in kept {
        let mut at = part.start;
        while at < part.end {
            let rest = &text[at..part.end];
            let word = rest.trim_start();
            let start = part.end - word.len();
            if at < start {
                space.get_or_insert(at..start);
            }
            if word.is_empty() {
                break;
            }
            let end = start + word.find(char::is_whitespace).unwrap_or(word.len());
            if let Some(space) = space.take().filter(|_| has_word) {
                rewrite.replace_to(space.start, "");
                rewrite.replace_to(space.end, " ");
            }
            rewrite.replace_to(start, "");
            rewrite.copy_to(end);
            (has_word, at) = (true, end);
        }
    }
    Value::text(rewrite.finish())
}

fn resolve_references<'a>(value: &Value<'a>) -> Value<'a> {
    let text = value.as_str().unwrap_or_default();
    let mut rewrite = Rewrite::new(value);
    let mut at = 0;
    while let Some(found) = entities::next(text, at) {
        rewrite.copy_to(found.range.start);
        rewrite.replace_to(found.range.end, &found.text);
        at = found.range.end;
    }
    rewrite.copy_to(text.len());
    Value::text(rewrite.finish())
}

/// Writes a map as attributes: ` class="a" id="b"`. Entries that are none or undefined are left out.
fn xml_attributes<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let starts_with_space = params.next("autospace").is_none_or(|flag| flag.is_true());
    let Some(entries) = eval.entries(value)?.filter(|_| value.kind() == ValueKind::Map) else {
        return Err(params.fail(format_args!("expected a map, found {}", value.kind().name())));
    };
    let shape = eval.keys_origin(value) | value.origin;
    let mut out = TracedText::default();
    for (key, item) in entries {
        if item.is_none() || item.is_undefined() {
            out.mark(item.origin);
            continue;
        }
        let key = text(eval, key)?;
        let is_invalid = |char: char| char.is_ascii_whitespace() || matches!(char, '\x0b' | '/' | '>' | '=');
        if key.as_str().is_some_and(|key| key.contains(is_invalid)) {
            return Err(params.fail("the name of an attribute contains white space, `/`, `>` or `=`"));
        }
        let item = text(eval, item)?;
        if starts_with_space || !out.as_str().is_empty() {
            out.push(" ", shape);
        }
        push_escaped(eval, &key, &mut out)?;
        out.push("=\"", shape);
        push_escaped(eval, &item, &mut out)?;
        out.push("\"", shape);
        if out.as_str().len() > eval.budget.operation_bytes() {
            // The operation as a whole is subject to the limit for one operation.
            eval.budget.make(out.as_str().len())?;
        }
    }
    Ok(if eval.escape == Escape::None { Value::text(out) } else { Value::safe_text(out) }.also(value.origin))
}

fn push_escaped<'a>(eval: &mut Eval<'a>, value: &Value<'a>, out: &mut TracedText) -> Result<()> {
    eval.budget.make_text(value.as_str().map_or(0, str::len), value.pieces().saturating_add(4))?;
    if value.is_safe() {
        value.push_pieces(out);
        return Ok(());
    }
    let mut traced = TracedText::default();
    value.push_pieces(&mut traced);
    eval.budget.make(escaped_len(&traced))?;
    out.append(&escape_html(&traced));
    Ok(())
}
