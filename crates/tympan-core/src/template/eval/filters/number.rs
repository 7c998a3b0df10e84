//! Filters for numbers.

use std::borrow::Cow;

use crate::error::Result;
use crate::template::eval::filters::params::Params;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;

pub(super) fn apply<'a>(name: &str, value: &Value<'a>, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let origin = value.whole_origin();
    match name {
        "abs" => match &value.repr {
            Repr::Float(float) => Ok(Value::float(float.abs(), origin)),
            Repr::Int(_) | Repr::Big(_) => match value.as_int().and_then(i128::checked_abs) {
                Some(int) => Ok(Value::int(int, origin)),
                None => Err(params.fail("the result is out of range")),
            },
            _ => Err(not_a_number(params, value)),
        },
        "int" => int(value, origin, params),
        "float" => float(value, origin, params),
        "round" => round(value, origin, params),
        "filesizeformat" => file_size(value, origin, params),
        _ => Ok(Value::bool(value.is_true(), origin)),
    }
}

fn not_a_number(params: &Params<'_, '_>, value: &Value<'_>) -> crate::error::Error {
    params.fail(format_args!("expected a number, found {}", value.kind().name()))
}

/// Converts a value to an integer. What is not a number is 0, or the default, as in Jinja2.
fn int<'a>(value: &Value<'a>, origin: Origin, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let default = params.next("default");
    let base = params.next("base").and_then(|base| base.as_int()).unwrap_or(10);
    let parsed = match &value.repr {
        Repr::Bool(flag) => Some(i128::from(*flag)),
        Repr::Int(_) | Repr::Big(_) => value.as_int(),
        Repr::Float(float) => whole_part(*float),
        Repr::Str(_) | Repr::Text(_) => parse_int(value.as_str().unwrap_or_default(), base),
        _ => None,
    };
    Ok(match (parsed, default) {
        (Some(int), _) => Value::int(int, origin),
        (None, Some(default)) => default.also(origin),
        (None, None) => Value::int(0, origin),
    })
}

/// Returns a number without its fraction, if it is finite.
#[expect(clippy::cast_possible_truncation, reason = "the fraction is to go, and the cast saturates")]
fn whole_part(float: f64) -> Option<i128> {
    float.is_finite().then_some(float as i128)
}

/// Parses an integer as Python does: with white space around it, underscores between digits, and the prefix of its base.
/// The base 0 means that the prefix decides. Other numbers lose their fraction.
fn parse_int(text: &str, base: i128) -> Option<i128> {
    let trimmed = text.trim();
    let (negative, digits) = match trimmed.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, trimmed.strip_prefix('+').unwrap_or(trimmed)),
    };
    let (base, digits) = without_prefix(digits, base);
    let digits = without_underscores(digits)?;
    if let Some(base) = base.filter(|_| !digits.starts_with(['+', '-']))
        && let Ok(int) = i128::from_str_radix(&digits, base)
    {
        return Some(if negative { -int } else { int });
    }
    parse_float(text).and_then(whole_part)
}

/// Removes the prefix of a base, and returns the base, if it is valid.
fn without_prefix(digits: &str, base: i128) -> (Option<u32>, &str) {
    let known = [("0b", 2), ("0o", 8), ("0x", 16)];
    let found = known.into_iter().find(|(prefix, of)| {
        let has_prefix = digits.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        has_prefix && (base == 0 || base == *of)
    });
    match (found, base) {
        (Some((_, base)), _) => {
            let digits = &digits[2..];
            (u32::try_from(base).ok(), digits.strip_prefix('_').unwrap_or(digits))
        }
        (None, 0) => (Some(10), digits),
        (None, 2..=36) => (u32::try_from(base).ok(), digits),
        (None, _) => (None, digits),
    }
}

/// Removes underscores between digits. Returns `None` if there are others.
fn without_underscores(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('_') {
        return Some(Cow::Borrowed(text));
    }
    let is_digit = |part: Option<char>| part.is_some_and(|char| char.is_ascii_alphanumeric());
    let parts: Vec<&str> = text.split('_').collect();
    let fits = |pair: &[&str]| is_digit(pair[0].chars().next_back()) && is_digit(pair[1].chars().next());
    parts.windows(2).all(fits).then(|| Cow::Owned(parts.concat()))
}

fn parse_float(text: &str) -> Option<f64> {
    without_underscores(text.trim())?.parse().ok()
}

/// Converts a value to a float. What is not a number is 0.0, or the default, as in Jinja2.
fn float<'a>(value: &Value<'a>, origin: Origin, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let default = params.next("default");
    let parsed = value.as_str().map_or_else(|| value.as_float(), parse_float);
    Ok(match (parsed, default) {
        (Some(float), _) => Value::float(float, origin),
        (None, Some(default)) => default.also(origin),
        (None, None) => Value::float(0.0, origin),
    })
}

/// Formats a number of bytes with a unit: `13 kB`, or `12.7 KiB`.
fn file_size<'a>(value: &Value<'a>, origin: Origin, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    const DECIMAL: [&str; 8] = ["kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
    const BINARY: [&str; 8] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    let is_binary = params.flag("binary");
    let Some(bytes) = value.as_str().map_or_else(|| value.as_float(), parse_float) else {
        return Err(not_a_number(params, value));
    };
    let (base, units) = if is_binary { (1024_i128, BINARY) } else { (1000, DECIMAL) };
    if bytes == 1.0 {
        return Ok(Value::string("1 Byte", origin));
    }
    if bytes < base as f64 {
        let whole = whole_part(bytes).ok_or_else(|| params.fail("the number is not finite"))?;
        return Ok(Value::string(format!("{whole} Bytes"), origin));
    }
    // The size of the next unit.
    let mut next = base * base;
    let mut units = units.into_iter().peekable();
    while let Some(unit) = units.next() {
        // The next unit may not have an exact float, so integers are compared.
        if whole_part(bytes).is_some_and(|bytes| bytes < next) || units.peek().is_none() {
            return Ok(Value::string(format!("{:.1} {unit}", base as f64 * bytes / next as f64), origin));
        }
        next *= base;
    }
    Err(not_a_number(params, value))
}

fn round<'a>(value: &Value<'a>, origin: Origin, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let precision = match params.next("precision").filter(|precision| !precision.is_none()) {
        Some(precision) => precision
            .as_int()
            .and_then(|precision| i32::try_from(precision).ok())
            .ok_or_else(|| params.fail("`precision` must be an integer"))?,
        None => 0,
    };
    let method = params.next("method");
    let method = method.as_ref().and_then(Value::as_str).unwrap_or("common");
    if !matches!(method, "common" | "ceil" | "floor") {
        return Err(params.fail("`method` must be \"common\", \"ceil\" or \"floor\""));
    }
    match &value.repr {
        Repr::Int(_) | Repr::Big(_) if precision >= 0 => Ok(value.clone()),
        Repr::Int(_) | Repr::Big(_) | Repr::Float(_) => {
            crate::template::eval::filters::borrowed::round(value, precision, method, origin)
        }
        _ => Err(not_a_number(params, value)),
    }
}
