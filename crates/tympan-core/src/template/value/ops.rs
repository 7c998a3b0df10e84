//! Arithmetic, comparison and containment, with the semantics of minijinja.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::error::{Error, Kind, Result};
use crate::template::tree::BinaryOp;
use crate::template::value::limits::{Budget, Meter};
use crate::template::value::{Items, ListKind, Repr, Value, ValueKind};
use crate::text::origin::Origin;
use crate::text::traced::TracedText;

/// The number of bytes of text that are processed per step.
pub(crate) const BYTES_PER_STEP: usize = 64;

/// Two numbers converted to the same type.
enum Numbers {
    Ints(i128, i128),
    Floats(f64, f64),
}

fn numbers(left: &Value<'_>, right: &Value<'_>) -> Option<Numbers> {
    if matches!(left.repr, Repr::Float(_)) || matches!(right.repr, Repr::Float(_)) {
        return Some(Numbers::Floats(left.as_float()?, right.as_float()?));
    }
    Some(Numbers::Ints(left.as_int()?, right.as_int()?))
}

/// Applies an arithmetic operator.
pub(crate) fn arithmetic<'a>(
    op: BinaryOp,
    left: &Value<'a>,
    right: &Value<'a>,
    budget: &mut Budget,
) -> Result<Value<'a>> {
    match op {
        BinaryOp::Add => add(left, right, budget),
        BinaryOp::Mul => multiply(left, right, budget),
        BinaryOp::Div => divide(left, right),
        _ => numeric(op, left, right),
    }
}

fn numeric<'a>(op: BinaryOp, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
    let origin = left.origin | right.origin;
    let result = match numbers(left, right).ok_or_else(|| unsupported(op, left, right))? {
        Numbers::Ints(a, b) => match op {
            BinaryOp::Add => a.checked_add(b),
            BinaryOp::Sub => a.checked_sub(b),
            BinaryOp::Mul => a.checked_mul(b),
            BinaryOp::FloorDiv => floor_div_rem(a, b).map(|(quotient, _)| quotient),
            BinaryOp::Rem => floor_div_rem(a, b).map(|(_, remainder)| remainder),
            BinaryOp::Pow if b < 0 && a != 0 => return Ok(Value::float((a as f64).powf(b as f64), origin)),
            BinaryOp::Pow => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
            _ => None,
        }
        .map(|int| Value::int(int, origin)),
        Numbers::Floats(a, b) => match op {
            BinaryOp::Add => Some(a + b),
            BinaryOp::Sub => Some(a - b),
            BinaryOp::Mul => Some(a * b),
            BinaryOp::FloorDiv if b != 0.0 => Some(float_floor_div_rem(a, b).0),
            BinaryOp::Rem if b != 0.0 => Some(float_floor_div_rem(a, b).1),
            BinaryOp::Pow if !(a == 0.0 && b < 0.0) => Some(a.powf(b)),
            _ => None,
        }
        .map(|float| Value::float(float, origin)),
    };
    result.ok_or_else(|| impossible(op))
}

fn floor_div_rem(a: i128, b: i128) -> Option<(i128, i128)> {
    let (quotient, remainder) = (a.checked_div(b)?, a.checked_rem(b)?);
    if remainder != 0 && (remainder < 0) != (b < 0) {
        return Some((quotient.checked_sub(1)?, remainder.checked_add(b)?));
    }
    Some((quotient, remainder))
}

/// Divides floats and rounds down as Python does, including the signs of zeros.
fn float_floor_div_rem(a: f64, b: f64) -> (f64, f64) {
    let mut remainder = a % b;
    let mut quotient = (a - remainder) / b;
    if remainder == 0.0 {
        remainder = 0.0_f64.copysign(b);
    } else if (remainder < 0.0) != (b < 0.0) {
        remainder += b;
        quotient -= 1.0;
    }
    if quotient == 0.0 {
        return (0.0_f64.copysign(a / b), remainder);
    }
    let floor = quotient.floor();
    (if quotient - floor > 0.5 { floor + 1.0 } else { floor }, remainder)
}

fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>> {
    let (Some(a), Some(b)) = (left.as_float(), right.as_float()) else {
        return Err(unsupported(BinaryOp::Div, left, right));
    };
    if b == 0.0 {
        return Err(impossible(BinaryOp::Div));
    }
    Ok(Value::float(a / b, left.origin | right.origin))
}

fn add<'a>(left: &Value<'a>, right: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        let pieces = left.pieces() + right.pieces();
        budget.make_text(a.len() + b.len(), pieces)?;
        let mut text = TracedText::with_capacity(a.len() + b.len(), pieces);
        left.push_pieces(&mut text);
        right.push_pieces(&mut text);
        return Ok(Value::text(text));
    }
    if left.is_absent() || right.is_absent() {
        return add_absent(left, right, budget);
    }
    let (Some(a), Some(b)) = (sequence(left), sequence(right)) else {
        return numeric(BinaryOp::Add, left, right);
    };
    let kind = match (is_tuple(left), is_tuple(right)) {
        (true, true) => ListKind::Tuple,
        (false, false) => ListKind::List,
        _ => return Err(unsupported(BinaryOp::Add, left, right)),
    };
    budget.make_list(a.len() + b.len())?;
    Ok(Value::list(a.iter().chain(b.iter()).collect(), kind, a.shape() | b.shape()))
}

pub(crate) fn is_tuple(value: &Value<'_>) -> bool {
    matches!(&value.repr, Repr::List(list) if list.kind == ListKind::Tuple)
}

/// Returns the elements of a list of any kind.
pub(crate) fn sequence<'a>(value: &Value<'a>) -> Option<Items<'a>> {
    match &value.repr {
        Repr::InputList(items) => Some(Items::Input(*items, value.origin)),
        Repr::List(list) => Some(Items::List(list.clone(), value.origin)),
        _ => None,
    }
}

/// Adds an optional input without a value, which is empty text or an empty list.
fn add_absent<'a>(left: &Value<'a>, right: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>> {
    let (absent, other) = if left.is_absent() { (left, right) } else { (right, left) };
    if other.is_absent() || sequence(other).is_some() {
        return Ok(other.clone().also(absent.origin));
    }
    let Some(text) = other.as_str() else { return numeric(BinaryOp::Add, left, right) };
    budget.make_text(text.len(), other.pieces() + 1)?;
    let mut text = TracedText::with_capacity(text.len(), other.pieces() + 1);
    for value in [left, right] {
        // Empty text leaves a mark of the input, too.
        if !value.push_pieces(&mut text) {
            text.push("", value.origin);
        }
    }
    Ok(Value::text(text))
}

fn multiply<'a>(left: &Value<'a>, right: &Value<'a>, budget: &mut Budget) -> Result<Value<'a>> {
    let origin = left.origin | right.origin;
    for (repeated, times) in [(left, right), (right, left)] {
        if let Some(text) = repeated.as_str() {
            let times = repetitions(times)?;
            let bytes = text.len().saturating_mul(times);
            let Repr::Text(_) = &repeated.repr else {
                budget.make(bytes)?;
                return Ok(Value::string(text.repeat(times), origin));
            };
            // Empty text stays empty, and no time is spent on repeating it.
            if bytes == 0 {
                budget.make_text(0, repeated.pieces())?;
                return Ok(Value::new(Repr::Str(""), origin | repeated.whole_origin()));
            }
            let pieces = repeated.pieces().saturating_mul(times);
            budget.make_text(bytes, pieces)?;
            let mut traced = TracedText::with_capacity(bytes, pieces);
            for _ in 0..times {
                repeated.push_pieces(&mut traced);
            }
            return Ok(Value::text(traced).also(origin));
        }
    }
    for (repeated, times) in [(left, right), (right, left)] {
        if let Some(items) = sequence(repeated) {
            let times = repetitions(times)?;
            budget.make_list(items.len().saturating_mul(times))?;
            let kind = if is_tuple(repeated) { ListKind::Tuple } else { ListKind::List };
            let shape = items.shape();
            // An empty list stays empty, and no time is spent on repeating it.
            let times = if items.len() == 0 { 0 } else { times };
            let items = (0..times).flat_map(|_| items.iter()).collect();
            return Ok(Value::list(items, kind, shape).also(origin));
        }
    }
    numeric(BinaryOp::Mul, left, right)
}

fn repetitions(times: &Value<'_>) -> Result<usize> {
    times.as_int().filter(|_| times.kind() != ValueKind::String).and_then(|int| usize::try_from(int).ok()).ok_or_else(
        || {
            let details = format!("repetition: expected an integer, found {}", times.kind().name());
            Error::new(Kind::InvalidOperation, details)
        },
    )
}

pub(crate) fn negate<'a>(value: &Value<'a>) -> Result<Value<'a>> {
    match &value.repr {
        Repr::Float(float) => Ok(Value::float(-float, value.origin)),
        Repr::Int(_) | Repr::Big(_) => value
            .as_int()
            .and_then(i128::checked_neg)
            .map(|int| Value::int(int, value.origin))
            .ok_or_else(|| impossible(BinaryOp::Sub)),
        _ => Err(Error::new(Kind::InvalidOperation, format_args!("cannot negate {}", value.kind().name()))),
    }
}

/// Compares for equality. Numbers are compared by value, whatever their type.
pub(crate) fn equal(left: &Value<'_>, right: &Value<'_>, meter: &mut Meter) -> bool {
    if meter.is_spent() {
        return false;
    }
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        return a.len() == b.len() && meter.spend(1 + a.len() / BYTES_PER_STEP) && a == b;
    }
    match (left.kind(), right.kind()) {
        (ValueKind::None, ValueKind::None) | (ValueKind::Undefined, ValueKind::Undefined) => return true,
        (ValueKind::Bool | ValueKind::Number, ValueKind::Bool | ValueKind::Number) => {
            return match numbers(left, right) {
                Some(Numbers::Ints(a, b)) => a == b,
                Some(Numbers::Floats(a, b)) => a == b,
                None => false,
            };
        }
        _ => {}
    }
    match (&left.repr, &right.repr) {
        (Repr::Namespace(a), Repr::Namespace(b)) => return a == b,
        (Repr::Function(a), Repr::Function(b)) => return a == b,
        (Repr::Rich(a), Repr::Rich(b)) => return a == b,
        (Repr::Macro(a), Repr::Macro(b)) => return Rc::as_ptr(a).cast::<()>() == Rc::as_ptr(b).cast(),
        (Repr::Loop(a), Repr::Loop(b)) => return Rc::as_ptr(a).cast::<()>() == Rc::as_ptr(b).cast(),
        _ => {}
    }
    if let (Some(a), Some(b)) = (sequence(left), sequence(right)) {
        if is_tuple(left) != is_tuple(right) || a.len() != b.len() || !meter.spend(a.len()) {
            return false;
        }
        return meter.deeper(false, |meter| a.iter().zip(b.iter()).all(|(a, b)| equal(&a, &b, meter)));
    }
    let are_maps = left.kind() == ValueKind::Map && right.kind() == ValueKind::Map;
    if !are_maps || left.len().is_none() || left.len() != right.len() {
        return false;
    }
    meter.deeper(false, |meter| {
        entries(left).all(|(key, value)| {
            meter.spend(1) && map_get(right, &key, meter).is_some_and(|other| equal(&value, &other, meter))
        })
    })
}

/// Iterates over the entries of a map.
fn entries<'v, 'a>(value: &'v Value<'a>) -> impl Iterator<Item = (Value<'a>, Value<'a>)> + use<'v, 'a> {
    let origin = value.origin;
    let (given, dict) = match &value.repr {
        Repr::InputMap(map) => (Some(*map), None),
        Repr::Dict(dict) => (None, Some(dict)),
        _ => (None, None),
    };
    let given = given.into_iter().flat_map(|map| map.iter());
    let given = given.map(move |(key, item)| (Value::new(Repr::Str(key), origin), Value::from_input(item, origin)));
    let dict = dict.into_iter().flat_map(|dict| dict.entries());
    given.chain(dict.map(move |(key, item)| (key.clone().also(origin), item.clone().also(origin))))
}

/// Collects the entries of a map. The caller has already charged for them.
pub(crate) fn pairs<'a>(value: &Value<'a>) -> Option<Vec<(Value<'a>, Value<'a>)>> {
    matches!(value.repr, Repr::InputMap(_) | Repr::Dict(_)).then(|| entries(value).collect())
}

/// Returns the value of a key in a map.
pub(crate) fn map_get<'a>(map: &Value<'a>, key: &Value<'_>, meter: &mut Meter) -> Option<Value<'a>> {
    match &map.repr {
        Repr::InputMap(entries) => {
            meter.spend(weight(key));
            entries.get(key.as_str()?).map(|item| Value::from_input(item, map.origin))
        }
        Repr::Dict(dict) => dict.get(key, meter).map(|item| item.also(map.origin)),
        _ => None,
    }
}

/// Returns the inputs that contributed to the keys of a map.
pub(crate) fn keys_origin(map: &Value<'_>) -> Origin {
    match &map.repr {
        Repr::Dict(dict) => map.origin | dict.keys_origin(),
        _ => map.origin,
    }
}

/// Orders values by kind, then within the kind.
pub(crate) fn compare(left: &Value<'_>, right: &Value<'_>, meter: &mut Meter) -> Ordering {
    if meter.is_spent() {
        return Ordering::Equal;
    }
    let by_kind = left.kind().cmp(&right.kind());
    if by_kind != Ordering::Equal {
        return by_kind;
    }
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        return compare_text(a, b, |byte| byte, meter);
    }
    match numbers(left, right) {
        Some(Numbers::Ints(a, b)) => return a.cmp(&b),
        Some(Numbers::Floats(a, b)) => return a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())),
        None => {}
    }
    match (sequence(left), sequence(right)) {
        (Some(a), Some(b)) => is_tuple(left).cmp(&is_tuple(right)).then_with(|| compare_sequences(&a, &b, meter)),
        _ => compare_maps(left, right, meter),
    }
}

/// Orders texts by their bytes after applying `fold` to each. It charges for the bytes that it reads, and stops at the
/// first chunk that differs.
pub(crate) fn compare_text(a: &str, b: &str, fold: impl Fn(u8) -> u8, meter: &mut Meter) -> Ordering {
    const CHUNK: usize = 64 * BYTES_PER_STEP;
    for (a, b) in a.as_bytes().chunks(CHUNK).zip(b.as_bytes().chunks(CHUNK)) {
        if !meter.spend(1 + a.len().min(b.len()) / BYTES_PER_STEP) {
            return Ordering::Equal;
        }
        if a == b {
            continue;
        }
        let different = a.iter().zip(b).map(|(a, b)| fold(*a).cmp(&fold(*b))).find(|order| order.is_ne());
        if let Some(order) = different {
            return order;
        }
    }
    a.len().cmp(&b.len())
}

fn compare_sequences(a: &Items<'_>, b: &Items<'_>, meter: &mut Meter) -> Ordering {
    meter.deeper(Ordering::Equal, |meter| {
        for (a, b) in a.iter().zip(b.iter()) {
            let order = if meter.spend(1) { compare(&a, &b, meter) } else { return Ordering::Equal };
            if order.is_ne() {
                return order;
            }
        }
        a.len().cmp(&b.len())
    })
}

fn compare_maps(left: &Value<'_>, right: &Value<'_>, meter: &mut Meter) -> Ordering {
    let (Some(a_len), Some(b_len)) = (left.len(), right.len()) else { return Ordering::Equal };
    meter.deeper(Ordering::Equal, |meter| {
        for (a, b) in entries(left).zip(entries(right)) {
            let order = if meter.spend(2) { compare(&a.0, &b.0, meter) } else { return Ordering::Equal };
            let order = order.then_with(|| compare(&a.1, &b.1, meter));
            if order.is_ne() {
                return order;
            }
        }
        a_len.cmp(&b_len)
    })
}

/// Returns whether a container contains a value.
pub(crate) fn contains(container: &Value<'_>, value: &Value<'_>, meter: &mut Meter) -> Result<bool> {
    if container.is_undefined() {
        return Ok(false);
    }
    if let Some(text) = container.as_str() {
        meter.spend(1 + text.len() / BYTES_PER_STEP);
        return Ok(match value.as_str() {
            Some(part) => text.contains(part),
            None if value.is_none() => false,
            None => meter.print(value) && text.contains(super::print::to_plain_string(value)?.as_str()),
        });
    }
    if let Some(items) = sequence(container) {
        let mut places = 0..items.len();
        return Ok(places.any(|place| {
            // When the budget is used up, report a match to end the search. Paying for the meter fails later.
            !meter.spend(1) || items.get(place).is_some_and(|item| equal(&item, value, meter))
        }));
    }
    if container.kind() == ValueKind::Map {
        return Ok(map_get(container, value, meter).is_some());
    }
    let details = format!("`in`: expected a string, list or map on the right, found {}", container.kind().name());
    Err(Error::new(Kind::InvalidOperation, details))
}

/// Returns the cost of reading a value once, without the contents of its elements.
pub(crate) fn weight(value: &Value<'_>) -> usize {
    match &value.repr {
        Repr::Str(text) => text.len() / BYTES_PER_STEP,
        Repr::Text(text) => {
            text.traced.as_str().len() / BYTES_PER_STEP + text.traced.piece_ends().len().saturating_sub(1)
        }
        Repr::InputList(_) | Repr::InputMap(_) | Repr::List(_) | Repr::Dict(_) => value.len().unwrap_or(0),
        _ => 0,
    }
}

fn unsupported(op: BinaryOp, left: &Value<'_>, right: &Value<'_>) -> Error {
    let details = format!("`{}` does not support {} and {}", op.symbol(), left.kind().name(), right.kind().name());
    Error::new(Kind::InvalidOperation, details)
}

/// Builds the error for operands that have the right types but no result. It does not quote their values.
fn impossible(op: BinaryOp) -> Error {
    Error::new(
        Kind::InvalidOperation,
        format_args!("`{}`: division by zero, or the result is out of range", op.symbol()),
    )
}
