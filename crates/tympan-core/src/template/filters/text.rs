//! Filters on text.

use std::ops::Range;
use std::rc::Rc;

use super::super::eval::Eval;
use super::super::print;
use super::super::value::{ListKind, Repr, Text, Value, ValueKind};
use super::params::{Params, as_count};
use crate::error::Result;
use crate::origin::Origin;
use crate::rendered::TracedText;

pub(super) fn apply<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    value: Value<'a>,
    params: &mut Params<'_, 'a>,
) -> Result<Value<'a>> {
    let value = if name == "string" && value.kind() == ValueKind::String { value } else { text(eval, value)? };
    match name {
        "upper" => change_case(eval, &value, |text| text.to_uppercase()),
        "lower" => change_case(eval, &value, |text| text.to_lowercase()),
        "capitalize" => {
            let text = value.as_str().unwrap_or_default();
            let mut chars = text.chars();
            let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
            Ok(Value::string(first + &chars.as_str().to_lowercase(), value.whole_origin()))
        }
        "replace" => {
            let from = params.required("old")?;
            let from = text_arg(eval, from)?;
            let to = params.required("new")?;
            let to = text_arg(eval, to)?;
            replace(eval, &value, &from, &to, usize::MAX)
        }
        "trim" => {
            let chars = params.next("chars").filter(|chars| !chars.is_none() && !chars.is_undefined());
            Ok(trim(&value, chars.as_ref(), true, true))
        }
        "indent" => indent(eval, &value, params),
        "escape" | "e" => {
            if value.is_safe() {
                return Ok(value);
            }
            let mut traced = TracedText::default();
            value.push_pieces(&mut traced);
            eval.budget.make(traced.as_str().len())?;
            Ok(safe(escape_html(&traced)))
        }
        "safe" => {
            let mut traced = TracedText::default();
            value.push_pieces(&mut traced);
            eval.budget.make(traced.as_str().len())?;
            Ok(safe(traced))
        }
        "split" => {
            let separator = params.next("sep").filter(|separator| !separator.is_none() && !separator.is_undefined());
            let limit = params.next("maxsplit").and_then(|limit| limit.as_int()).filter(|limit| *limit >= 0);
            split(eval, &value, separator.as_ref(), limit.and_then(|limit| usize::try_from(limit).ok()))
        }
        "lines" => {
            let text = value.as_str().unwrap_or_default();
            let ranges: Vec<_> = text.lines().map(|line| range_in(text, line)).collect();
            slices(eval, &value, &ranges, Origin::AUTHOR)
        }
        _ => Ok(value),
    }
}

/// A value as text, with the origins of its parts.
pub(crate) fn text<'a>(eval: &mut Eval<'a>, value: Value<'a>) -> Result<Value<'a>> {
    if value.kind() == ValueKind::String {
        return Ok(value);
    }
    let mut traced = TracedText::default();
    eval.budget.print(&value)?;
    print::print(&value, &mut traced)?;
    eval.budget.make(traced.as_str().len())?;
    Ok(Value::traced(traced, Origin::AUTHOR))
}

fn text_arg<'a>(eval: &mut Eval<'a>, value: Value<'a>) -> Result<Value<'a>> {
    text(eval, value)
}

fn safe<'a>(traced: TracedText) -> Value<'a> {
    Value::author(Repr::Text(Rc::new(Text { traced, safe: true })))
}

/// Changes the case of text. Where the change depends on what stands around a piece, the pieces
/// can no longer be told apart.
fn change_case<'a>(eval: &mut Eval<'a>, value: &Value<'a>, change: impl Fn(&str) -> String) -> Result<Value<'a>> {
    let text = value.as_str().unwrap_or_default();
    eval.budget.make(text.len())?;
    let whole = change(text);
    let Repr::Text(traced) = &value.repr else {
        return Ok(Value::string(whole, value.origin));
    };
    let mut pieces = TracedText::with_capacity(whole.len(), 4);
    for (piece, origin) in traced.traced.pieces() {
        pieces.push(&change(piece), origin);
    }
    if pieces.as_str() == whole {
        return Ok(Value::traced(pieces, value.origin));
    }
    Ok(Value::string(whole, value.whole_origin()))
}

/// Trims white space, or any of these characters, off the ends of a text.
pub(crate) fn trim<'a>(value: &Value<'a>, chars: Option<&Value<'a>>, start: bool, end: bool) -> Value<'a> {
    let text = value.as_str().unwrap_or_default();
    let set: Option<Vec<char>> = chars.map(|chars| chars.as_str().unwrap_or_default().chars().collect());
    let trimmed = |char: char| set.as_ref().map_or_else(|| char.is_whitespace(), |set| set.contains(&char));
    let mut rest = text;
    if start {
        rest = rest.trim_start_matches(trimmed);
    }
    if end {
        rest = rest.trim_end_matches(trimmed);
    }
    let origin = chars.map_or(Origin::AUTHOR, |chars| chars.whole_origin());
    slice(value, range_in(text, rest)).also(origin)
}

/// Where a part of a text is in it.
fn range_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// A part of a text, with the origins of its pieces.
pub(crate) fn slice<'a>(value: &Value<'a>, range: Range<usize>) -> Value<'a> {
    match &value.repr {
        Repr::Str(text) => Value::new(Repr::Str(&text[range]), value.origin),
        Repr::Text(_) if range.is_empty() => Value::new(Repr::Str(""), value.whole_origin()),
        Repr::Text(text) => {
            let mut traced = TracedText::default();
            push_range(&text.traced, range, value.origin, &mut traced);
            Value::author(Repr::Text(Rc::new(Text { traced, safe: text.safe })))
        }
        _ => value.clone(),
    }
}

/// Adds a part of traced text to other traced text.
fn push_range(text: &TracedText, range: Range<usize>, also: Origin, out: &mut TracedText) {
    for (piece, origin) in text.ranges() {
        let overlap = piece.start.max(range.start)..piece.end.min(range.end);
        if overlap.start < overlap.end {
            out.push(&text.as_str()[overlap], origin | also);
        }
    }
}

/// Adds a part of a text value to traced text.
fn push_slice(value: &Value<'_>, range: Range<usize>, out: &mut TracedText) {
    match &value.repr {
        Repr::Str(text) => out.push(&text[range], value.origin),
        Repr::Text(text) => push_range(&text.traced, range, value.origin, out),
        _ => {}
    }
}

/// Several parts of a text, as a list.
fn slices<'a>(eval: &mut Eval<'a>, value: &Value<'a>, ranges: &[Range<usize>], also: Origin) -> Result<Value<'a>> {
    eval.budget.make_list(ranges.len())?;
    eval.budget.make(value.as_str().map_or(0, str::len))?;
    // Every slice of a text in many pieces looks at all of them.
    if let Repr::Text(text) = &value.repr {
        eval.budget.step(ranges.len().saturating_mul(text.traced.pieces().count()))?;
    }
    let items = ranges.iter().map(|range| slice(value, range.clone())).collect();
    Ok(Value::list(items, ListKind::List, also))
}

/// Replaces up to `limit` occurrences. What is put in keeps its own origins.
pub(crate) fn replace<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    from: &Value<'a>,
    to: &Value<'a>,
    limit: usize,
) -> Result<Value<'a>> {
    let (text, pattern) = (value.as_str().unwrap_or_default(), from.as_str().unwrap_or_default());
    let found: Vec<usize> = text.match_indices(pattern).take(limit).map(|(at, _)| at).collect();
    let put_in = to.as_str().map_or(0, str::len);
    eval.budget.make(text.len().saturating_add(found.len().saturating_mul(put_in)))?;
    let pieces = if let Repr::Text(text) = &value.repr { text.traced.pieces().count() } else { 1 };
    eval.budget.step(found.len().saturating_mul(pieces))?;
    let mut out = TracedText::with_capacity(text.len(), 2 * found.len() + 1);
    let mut copied = 0;
    for at in found {
        push_slice(value, copied..at, &mut out);
        to.push_pieces(&mut out);
        copied = at + pattern.len();
    }
    push_slice(value, copied..text.len(), &mut out);
    if out.as_str().is_empty() {
        return Ok(Value::new(Repr::Str(""), value.whole_origin() | to.whole_origin()));
    }
    Ok(Value::traced(out, from.whole_origin()))
}

pub(crate) fn split<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    separator: Option<&Value<'a>>,
    limit: Option<usize>,
) -> Result<Value<'a>> {
    let text = value.as_str().unwrap_or_default();
    let origin = separator.map_or(Origin::AUTHOR, |separator| separator.whole_origin());
    let separator = separator.and_then(Value::as_str);
    let ranges: Vec<Range<usize>> = match (separator, limit) {
        (Some(separator), None) => text.split(separator).map(|part| range_in(text, part)).collect(),
        (Some(separator), Some(limit)) => text.splitn(limit + 1, separator).map(|part| range_in(text, part)).collect(),
        (None, limit) => split_white_space(text, limit.unwrap_or(usize::MAX)),
    };
    slices(eval, value, &ranges, origin)
}

/// Splits at white space, at most `limit` times; what is left then is one last part.
fn split_white_space(text: &str, limit: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = if ranges.len() >= limit { None } else { rest.find(char::is_whitespace) };
        let part = &rest[..end.unwrap_or(rest.len())];
        ranges.push(range_in(text, part));
        rest = rest[part.len()..].trim_start();
    }
    ranges
}

fn indent<'a>(eval: &mut Eval<'a>, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let width = params.count("width")?;
    let (first, blank) = (params.flag("first"), params.flag("blank"));
    let width_origin = width.as_ref().map_or(Origin::AUTHOR, |width| width.origin);
    let width = width.as_ref().map_or(4, as_count);
    let text = value.as_str().unwrap_or_default();
    let text = text.strip_suffix('\n').unwrap_or(text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    let lines = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
    eval.budget.make(width.saturating_mul(lines).saturating_add(text.len()))?;
    let spaces = " ".repeat(width);
    let mut out = TracedText::with_capacity(text.len() + width * lines, lines);
    let mut start = 0;
    for (number, line) in text.split('\n').enumerate() {
        let is_blank = line.is_empty() || line == "\r";
        let indented = if number == 0 { first && (blank || !is_blank) } else { blank || !is_blank };
        if indented {
            out.push(&spaces, width_origin);
        }
        let end = (start + line.len() + 1).min(text.len());
        push_slice(value, start..end, &mut out);
        start = end;
    }
    Ok(Value::traced(out, Origin::AUTHOR))
}

/// Escapes what HTML would read as markup.
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
