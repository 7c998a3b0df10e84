//! Filters for text.

use std::collections::HashSet;
use std::ops::Range;

use crate::error::Result;
use crate::template::eval::Eval;
use crate::template::eval::filters::params::{Params, as_count};
use crate::template::eval::filters::slice::{self, PieceCursor};
use crate::template::value::print;
use crate::template::value::{ListKind, Repr, Value, ValueKind};
use crate::text::traced::TracedText;

pub(super) fn apply<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    value: Value<'a>,
    params: &mut Params<'_, 'a>,
) -> Result<Value<'a>> {
    if matches!(name, "split" | "lines") && value.kind() != ValueKind::String && !value.is_undefined() {
        return Err(params.fail(format_args!("expected a string, found {}", value.kind().name())));
    }
    let value = if name == "string" && value.kind() == ValueKind::String { value } else { text(eval, value)? };
    match name {
        "upper" => change_case(eval, &value, char::to_uppercase, str::to_uppercase),
        "lower" => change_case(eval, &value, char::to_lowercase, str::to_lowercase),
        "capitalize" => {
            let text = value.as_str().unwrap_or_default();
            eval.budget.make(text.len().saturating_mul(2))?;
            let mut chars = text.chars();
            let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
            let text = first + &chars.as_str().to_lowercase();
            Ok(Value::string_like(&value, text, value.whole_origin()))
        }
        "replace" => {
            let from = params.required("old")?;
            let from = text_arg(eval, from)?;
            let to = params.required("new")?;
            let to = text_arg(eval, to)?;
            // As in `join`, safe text is combined with escaped text if everything is escaped when it is written.
            if eval.escapes() && [&value, &from, &to].into_iter().any(Value::is_safe) {
                let (value, to) = (eval.escaped_text(&value)?, eval.escaped_text(&to)?);
                return replace(eval, &value, &from, &to, None, true);
            }
            replace(eval, &value, &from, &to, None, false)
        }
        "trim" => {
            let chars = params.next("chars").filter(|chars| !chars.is_none() && !chars.is_undefined());
            trim(eval, &value, chars.as_ref(), true, true)
        }
        "indent" => indent(eval, &value, params),
        "escape" | "e" => escape(eval, value),
        "safe" => {
            let mut traced = TracedText::default();
            eval.budget.make_text(value.as_str().map_or(0, str::len), value.pieces())?;
            value.push_pieces(&mut traced);
            Ok(Value::safe_text(traced))
        }
        "split" => {
            let separator = params.next("sep").filter(|separator| !separator.is_none() && !separator.is_undefined());
            let limit = params.next("maxsplit").filter(|limit| !limit.is_none() && !limit.is_undefined());
            if let Some(separator) = separator.as_ref().filter(|separator| separator.kind() != ValueKind::String) {
                return Err(params.fail(format_args!("`sep`: expected a string, found {}", separator.kind().name())));
            }
            if let Some(limit) = limit.as_ref().filter(|limit| limit.as_int().is_none()) {
                return Err(params.fail(format_args!("`maxsplit`: expected an integer, found {}", limit.kind().name())));
            }
            split(eval, &value, separator.as_ref(), limit.as_ref())
        }
        "lines" => lines(eval, &value, false),
        _ => Ok(value),
    }
}

/// Converts a value to text, with the origins of its parts.
pub(crate) fn text<'a>(eval: &mut Eval<'a>, value: Value<'a>) -> Result<Value<'a>> {
    if value.kind() == ValueKind::String {
        return Ok(value);
    }
    let mut traced = TracedText::default();
    eval.budget.print(&value)?;
    print::print(&value, &mut traced)?;
    eval.budget.make(traced.as_str().len())?;
    Ok(Value::text(traced))
}

fn text_arg<'a>(eval: &mut Eval<'a>, value: Value<'a>) -> Result<Value<'a>> {
    text(eval, value)
}

/// Escapes text, unless it is safe.
pub(super) fn escape<'a>(eval: &mut Eval<'a>, value: Value<'a>) -> Result<Value<'a>> {
    if value.is_safe() {
        return Ok(value);
    }
    let mut traced = TracedText::default();
    eval.budget.make_text(value.as_str().map_or(0, str::len), value.pieces())?;
    value.push_pieces(&mut traced);
    eval.budget.make(escaped_len(&traced))?;
    Ok(Value::safe_text(escape_html(&traced)))
}

/// The number of bytes of non-ASCII text that are looked up character by character per step.
pub(super) const BYTES_OF_LETTERS: usize = 8;

/// Changes the case of text, piece by piece. The characters around a letter can affect which letter it becomes, but
/// never its length.
fn change_case<'a, I: Iterator<Item = char>>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    change_char: impl Fn(char) -> I,
    change: impl Fn(&str) -> String,
) -> Result<Value<'a>> {
    let text = value.as_str().unwrap_or_default();
    let changed_len = |text: &str| -> usize {
        if text.is_ascii() { text.len() } else { text.chars().flat_map(&change_char).map(char::len_utf8).sum() }
    };
    if !text.is_ascii() {
        eval.budget.step(text.len() / BYTES_OF_LETTERS)?;
    }
    eval.budget.make_text(changed_len(text), value.pieces())?;
    let whole = change(text);
    let Repr::Text(traced) = &value.repr else {
        return Ok(Value::string(whole, value.origin));
    };
    let mut changed = TracedText::with_capacity(whole.len(), value.pieces());
    let mut rest = whole.as_str();
    for (piece, origin) in traced.traced.pieces() {
        let Some((text, behind)) = rest.split_at_checked(changed_len(piece)) else { break };
        changed.push(text, origin);
        rest = behind;
    }
    if changed.as_str() == whole {
        return Ok(Value::text_like(value, changed).also(value.origin));
    }
    Ok(Value::string_like(value, whole, value.whole_origin()))
}

/// A set of characters for many lookups.
enum CharSet {
    WhiteSpace,
    These { ascii: [bool; 128], others: HashSet<char> },
}

impl CharSet {
    fn new(chars: Option<&Value<'_>>) -> Self {
        let Some(chars) = chars.map(|chars| chars.as_str().unwrap_or_default()) else { return Self::WhiteSpace };
        let mut ascii = [false; 128];
        let mut others = HashSet::new();
        for char in chars.chars() {
            match ascii.get_mut(char as usize) {
                Some(known) => *known = true,
                None => {
                    others.insert(char);
                }
            }
        }
        Self::These { ascii, others }
    }

    fn has(&self, char: char) -> bool {
        match self {
            Self::WhiteSpace => char.is_whitespace(),
            Self::These { ascii, others } => {
                ascii.get(char as usize).map_or_else(|| others.contains(&char), |known| *known)
            }
        }
    }
}

/// Trims white space, or any of these characters, from the ends of a text.
pub(crate) fn trim<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    chars: Option<&Value<'a>>,
    start: bool,
    end: bool,
) -> Result<Value<'a>> {
    let text = value.as_str().unwrap_or_default();
    let set = CharSet::new(chars);
    let mut rest = text;
    if start {
        rest = rest.trim_start_matches(|char| set.has(char));
    }
    if end {
        rest = rest.trim_end_matches(|char| set.has(char));
    }
    let range = range_in(text, rest);
    if let Repr::Text(_) = &value.repr {
        eval.budget.make_text(range.len(), value.pieces())?;
    }
    if let (Some(chars), CharSet::These { others, .. }) = (chars, &set)
        && !others.is_empty()
    {
        let looked_up = (text.len() - rest.len()).saturating_add(chars.as_str().map_or(0, str::len));
        eval.budget.step(looked_up / BYTES_OF_LETTERS)?;
    }
    let origin = chars.map(Value::whole_origin).unwrap_or_default();
    let is_blank = |chars: &Value<'_>| chars.as_str().is_some_and(|chars| chars.trim().is_empty());
    if !chars.is_none_or(is_blank) && !slice::delicate(value, eval.notable()).is_empty() {
        return Ok(Value::string_like(value, rest, value.whole_origin() | origin));
    }
    let range = slice::protect(value, range, (start, end), eval.notable());
    Ok(slice::slice(value, range).also(origin))
}

/// Returns the range of a part in its text.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// The cost of a part of a text that the template created, in list elements.
const PART: usize = 5;

/// Returns parts of a text as a list. They are counted and charged for before the first one is created.
fn parts<'a, I: Iterator<Item = Range<usize>>>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    ranges: impl Fn() -> I,
    one_char_ends: bool,
) -> Result<Value<'a>> {
    let most = eval.budget.operation_bytes() / size_of::<Range<usize>>();
    let count = ranges().take(most.saturating_add(1)).count();
    match &value.repr {
        Repr::Text(_) => {
            eval.budget.make_list(count.saturating_mul(PART))?;
            eval.budget.make_text(value.as_str().map_or(0, str::len), value.pieces())?;
        }
        _ => eval.budget.make_list(count.saturating_mul(2))?,
    }
    let ranges: Vec<_> = ranges().collect();
    Ok(Value::list(slice::parts(value, &ranges, one_char_ends), ListKind::List, value.whole_origin()))
}

/// Returns the lines of a text, with or without their line ends.
pub(crate) fn lines<'a>(eval: &mut Eval<'a>, value: &Value<'a>, keep_ends: bool) -> Result<Value<'a>> {
    let text = value.as_str().unwrap_or_default();
    let line = |line| range_in(text, line);
    if keep_ends {
        return parts(eval, value, || text.split_inclusive('\n').map(line), false);
    }
    parts(eval, value, || text.lines().map(line), false)
}

/// Replaces all occurrences, or as many as `limit` allows. The replacement keeps its own origins. The caller decides
/// whether the result is safe.
///
/// In a prompt with role markers, a match that spans text of the author and of an input is not replaced. Otherwise the
/// value of the input would decide what happens to the author's lines.
pub(crate) fn replace<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    from: &Value<'a>,
    to: &Value<'a>,
    limit: Option<&Value<'a>>,
    is_safe: bool,
) -> Result<Value<'a>> {
    let result = |traced| if is_safe { Value::safe_text(traced) } else { Value::text(traced) };
    let (text, pattern) = (value.as_str().unwrap_or_default(), from.as_str().unwrap_or_default());
    let whole = value.whole_origin();
    let decided = from.whole_origin() | limit.map(Value::whole_origin).unwrap_or_default();
    // A line end that is inserted into an input's text does not count as the author's.
    let breaks_lines = to.as_str().is_some_and(|to| to.contains('\n'));
    let put_in = if breaks_lines { to.clone().also(whole) } else { eval.chosen(to.clone(), whole)? };
    let new = put_in.as_str().unwrap_or_default();
    let most = limit.and_then(as_limit).unwrap_or(usize::MAX);
    let count = text.match_indices(pattern).take(most).count();
    let bytes = text.len().saturating_add(count.saturating_mul(new.len()));
    let pieces = value.pieces().saturating_add(count.saturating_mul(put_in.pieces().saturating_add(2)));
    eval.budget.make_text(bytes, pieces)?;
    let authored = slice::author_pieces(value, eval.notable());
    if !authored.is_empty() && (limit.is_some() || pattern.is_empty()) {
        let origin = whole | decided | to.whole_origin();
        return Ok(result(TracedText::whole(text.replacen(pattern, new, most), origin)).also(origin));
    }
    let mut out = TracedText::with_capacity(bytes, pieces);
    let mut cursor = PieceCursor::new(value);
    for (range, is_author) in regions(text.len(), &authored) {
        let put_in = if is_author { to } else { &put_in };
        let start = range.start;
        for (at, _) in text[range].match_indices(pattern).take(most) {
            cursor.copy_to(start + at, &mut out);
            let cut = cursor.skip_to(start + at + pattern.len());
            out.mark(cut);
            put_in.push_pieces(&mut out);
        }
    }
    cursor.copy_to(text.len(), &mut out);
    if out.as_str().is_empty() {
        let origin = whole | decided | to.whole_origin();
        return Ok(result(TracedText::whole("", origin)).also(origin));
    }
    Ok(result(out).also(decided))
}

/// Splits a text into regions: the author's pieces, and the text between them.
fn regions(len: usize, authored: &[Range<usize>]) -> impl Iterator<Item = (Range<usize>, bool)> {
    let ends = authored.iter().map(|range| range.end);
    let starts = [0].into_iter().chain(ends);
    let nexts = authored.iter().cloned().map(Some).chain([None]);
    starts.zip(nexts).flat_map(move |(start, next)| {
        let between = start..next.as_ref().map_or(len, |next| next.start);
        [Some((between, false)), next.map(|next| (next, true))].into_iter().flatten()
    })
}

/// Converts a value to a limit. A negative number means no limit.
fn as_limit(value: &Value<'_>) -> Option<usize> {
    let limit = value.as_int().filter(|limit| *limit >= 0)?;
    Some(usize::try_from(limit).unwrap_or(usize::MAX))
}

pub(crate) fn split<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    separator: Option<&Value<'a>>,
    limit: Option<&Value<'a>>,
) -> Result<Value<'a>> {
    let text = value.as_str().unwrap_or_default();
    let origin = [separator, limit].into_iter().flatten().map(Value::whole_origin).collect();
    let limit = limit.and_then(as_limit).unwrap_or(usize::MAX);
    match separator.and_then(Value::as_str) {
        Some(separator) => {
            let split = || text.splitn(limit.saturating_add(1), separator).map(|part| range_in(text, part));
            parts(eval, value, split, false)
        }
        None => parts(eval, value, || split_white_space(text, limit), true),
    }
    .map(|parts| parts.also(origin))
}

/// Splits at white space, at most `limit` times. The rest is the last part.
fn split_white_space(text: &str, limit: usize) -> impl Iterator<Item = Range<usize>> {
    let mut rest = text.trim_start();
    let mut found = 0;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = if found >= limit { None } else { rest.find(char::is_whitespace) };
        let part = &rest[..end.unwrap_or(rest.len())];
        found += 1;
        rest = rest[part.len()..].trim_start();
        Some(range_in(text, part))
    })
}

fn indent<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let width = params.count("width")?;
    let (first, blank) = (params.flag("first"), params.flag("blank"));
    let width_origin = width.as_ref().map(|width| width.origin).unwrap_or_default();
    let width = width.as_ref().map_or(4, as_count);
    let text = value.as_str().unwrap_or_default();
    let stripped = text.strip_suffix('\n').unwrap_or(text);
    let stripped = stripped.strip_suffix('\r').unwrap_or(stripped);
    let kept = slice::protect(value, 0..stripped.len(), (false, true), eval.notable());
    let text = &text[..kept.end];
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    let pieces = value.pieces().saturating_add(lines.saturating_mul(2));
    eval.budget.make_text(width.saturating_mul(lines).saturating_add(text.len()), pieces)?;
    let spaces = " ".repeat(width);
    let mut out = TracedText::with_capacity(text.len() + width * lines, pieces);
    let mut cursor = PieceCursor::new(value);
    let mut start = 0;
    for (number, line) in text.split('\n').enumerate() {
        let is_last = start + line.len() >= text.len();
        let is_blank = line.is_empty() || line == "\r";
        let indented = if number == 0 { first && (blank || !is_blank) } else { blank || !is_blank };
        if indented {
            out.push(&spaces, width_origin);
        }
        let end = if is_last { text.len() } else { start + line.len() + 1 };
        cursor.copy_to(end, &mut out);
        start = end;
    }
    out.mark(cursor.rest());
    Ok(Value::text_like(value, out))
}

/// Returns the maximum number of bytes that [`escape_html`] writes.
pub(crate) fn escaped_len(traced: &TracedText) -> usize {
    let escaped = |byte: &u8| matches!(*byte, b'<' | b'>' | b'&' | b'"' | b'\'' | b'/');
    traced.as_str().len().saturating_add(5 * traced.as_str().bytes().filter(escaped).count())
}

/// Escapes HTML's special characters.
pub(crate) fn escape_html(traced: &TracedText) -> TracedText {
    let mut out = TracedText::with_capacity(traced.as_str().len(), 2);
    for (piece, origin) in traced.pieces() {
        out.push_with(origin, |out| {
            for char in piece.chars() {
                match char {
                    '<' => out.push_str("&lt;"),
                    '>' => out.push_str("&gt;"),
                    '&' => out.push_str("&amp;"),
                    '"' => out.push_str("&quot;"),
                    '\'' => out.push_str("&#x27;"),
                    '/' => out.push_str("&#x2f;"),
                    other => out.push(other),
                }
            }
        });
    }
    out
}
