//! Filters for numbers.

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
        _ => Ok(Value::bool(value.is_true(), origin)),
    }
}

fn not_a_number(params: &Params<'_, '_>, value: &Value<'_>) -> crate::error::Error {
    params.fail(format_args!("expected a number, found {}", value.kind().name()))
}

fn int<'a>(value: &Value<'a>, origin: Origin, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let default = params.next("default");
    let base = params.next("base").and_then(|base| base.as_int()).unwrap_or(10);
    let parsed = match &value.repr {
        Repr::Bool(flag) => Some(i128::from(*flag)),
        Repr::Int(_) | Repr::Big(_) => value.as_int(),
        #[expect(clippy::cast_possible_truncation, reason = "the fraction is to go, and the cast saturates")]
        Repr::Float(float) => Some(*float as i128),
        Repr::Str(_) | Repr::Text(_) => parse_int(value.as_str().unwrap_or_default(), base),
        Repr::None | Repr::Undefined | Repr::Silent | Repr::Absent => {
            return Ok(default.map_or(Value::int(0, origin), |default| default.also(origin)));
        }
        _ => None,
    };
    match (parsed, default) {
        (Some(int), _) => Ok(Value::int(int, origin)),
        (None, Some(default)) => Ok(default.also(origin)),
        (None, None) => Err(params.fail("cannot convert the value to an integer").with_help("add a default: `int(0)`")),
    }
}

fn parse_int(text: &str, base: i128) -> Option<i128> {
    let prefix = match base {
        2 => "0b",
        8 => "0o",
        16 => "0x",
        3..=36 => "",
        _ => return None,
    };
    let base = u32::try_from(base).ok()?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let has_prefix =
        !prefix.is_empty() && digits.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
    let digits = if has_prefix { &digits[prefix.len()..] } else { digits };
    if !digits.starts_with(['+', '-'])
        && let Ok(int) = i128::from_str_radix(digits, base)
    {
        return Some(if negative { -int } else { int });
    }
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is to go, and the cast saturates")]
    text.parse::<f64>().ok().map(|float| float as i128)
}

fn float<'a>(value: &Value<'a>, origin: Origin, params: &mut Params<'_, 'a>) -> Result<Value<'a>> {
    let default = params.next("default");
    let parsed = match &value.repr {
        Repr::None | Repr::Undefined | Repr::Silent | Repr::Absent => {
            return Ok(default.map_or(Value::float(0.0, origin), |default| default.also(origin)));
        }
        Repr::Str(_) | Repr::Text(_) => value.as_str().and_then(|text| text.parse().ok()),
        _ => value.as_float(),
    };
    match (parsed, default) {
        (Some(float), _) => Ok(Value::float(float, origin)),
        (None, Some(default)) => Ok(default.also(origin)),
        (None, None) => Err(params.fail("cannot convert the value to a number").with_help("add a default: `float(0)`")),
    }
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
