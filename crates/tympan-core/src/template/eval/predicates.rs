//! Tests, such as `x is odd`.

pub(crate) use crate::template::names::TESTS as NAMES;

use crate::error::{Error, Kind, Result};
use crate::template::eval::Eval;
use crate::template::eval::expr::{Arguments, compare};
use crate::template::eval::host;
use crate::template::tree::BinaryOp;
use crate::template::value::ops;
use crate::template::value::{Repr, Value, ValueKind};
use crate::text::origin::Origin;

/// Applies a test that the author named.
pub(crate) fn apply<'a>(eval: &mut Eval<'a>, name: &str, value: &Value<'a>, args: &Arguments<'a>) -> Result<Value<'a>> {
    let origin = value.whole_origin() | args.origin();
    Ok(Value::bool(check(eval, name, Origin::default(), value, args)?, origin))
}

/// Applies a test. `named_by` is the origin of its name.
pub(crate) fn check<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    named_by: Origin,
    value: &Value<'a>,
    args: &Arguments<'a>,
) -> Result<bool> {
    let work = args.values().map(ops::weight).fold(ops::weight(value), usize::saturating_add);
    eval.budget.step(work.saturating_add(1))?;
    let is_rich = matches!(value.repr, Repr::Rich(_));
    if is_rich && !matches!(name, "defined" | "undefined" | "none") {
        return Err(super::print::rich_in_text());
    }
    if let Some(op) = comparison(name) {
        let other = argument(name, args)?;
        let mut meter = eval.budget.meter();
        let holds =
            if op == BinaryOp::In && !is_container(other) { false } else { compare(op, value, other, &mut meter)? };
        eval.budget.pay(&meter)?;
        return Ok(holds);
    }
    Ok(match name {
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "none" => value.is_none(),
        "safe" | "escaped" => value.is_safe(),
        "boolean" => value.kind() == ValueKind::Bool,
        "true" => matches!(value.repr, Repr::Bool(true)),
        "false" => matches!(value.repr, Repr::Bool(false)),
        "odd" => value.as_int().is_some_and(|int| int % 2 != 0),
        "even" => value.as_int().is_some_and(|int| int % 2 == 0),
        "number" => matches!(value.kind(), ValueKind::Number | ValueKind::Bool),
        "integer" | "int" => value.is_integer(),
        "float" => matches!(value.repr, Repr::Float(_)),
        "string" => value.kind() == ValueKind::String,
        "sequence" => value.is_undefined() || value.kind() == ValueKind::Sequence,
        "mapping" => value.kind() == ValueKind::Map,
        "iterable" => is_container(value) || value.is_undefined(),
        "lower" => value.as_str().is_some_and(|text| has_only_case(text, char::is_lowercase)),
        "upper" => value.as_str().is_some_and(|text| has_only_case(text, char::is_uppercase)),
        "startingwith" => {
            let (text, start) = text_pair(eval, value, name, args)?;
            text.starts_with(&start)
        }
        "endingwith" => {
            let (text, end) = text_pair(eval, value, name, args)?;
            text.ends_with(&end)
        }
        "divisibleby" => divisible(value, argument(name, args)?),
        "sameas" => same(eval, value, argument(name, args)?),
        "filter" => value.as_str().is_some_and(|name| host::has_filter(eval, name)),
        "test" => value.as_str().is_some_and(|name| host::has_test(eval, name)),
        _ => return host::check(eval, name, named_by, value, args),
    })
}

fn comparison(name: &str) -> Option<BinaryOp> {
    Some(match name {
        "eq" | "equalto" | "==" => BinaryOp::Eq,
        "ne" | "!=" => BinaryOp::Ne,
        "lt" | "lessthan" | "<" => BinaryOp::Lt,
        "le" | "<=" => BinaryOp::Le,
        "gt" | "greaterthan" | ">" => BinaryOp::Gt,
        "ge" | ">=" => BinaryOp::Ge,
        "in" => BinaryOp::In,
        _ => return None,
    })
}

fn argument<'v, 'a>(test: &str, args: &'v Arguments<'a>) -> Result<&'v Value<'a>> {
    args.positional
        .first()
        .ok_or_else(|| Error::new(Kind::InvalidOperation, format_args!("test `{test}` needs a value to compare with")))
}

fn is_container(value: &Value<'_>) -> bool {
    let kind = value.kind();
    matches!(kind, ValueKind::String | ValueKind::Sequence | ValueKind::Map | ValueKind::Iterable)
}

/// Returns whether a text has cased letters, and all of them have this case.
fn has_only_case(text: &str, wanted: fn(char) -> bool) -> bool {
    let mut found = false;
    for char in text.chars() {
        let is_cased = char.is_lowercase() || char.is_uppercase();
        if is_cased && !wanted(char) {
            return false;
        }
        found |= is_cased;
    }
    found
}

fn text_pair<'a>(eval: &mut Eval<'a>, value: &Value<'a>, test: &str, args: &Arguments<'a>) -> Result<(String, String)> {
    let other = argument(test, args)?;
    let is_missing = |value: &Value<'_>| value.is_undefined() && !value.is_absent();
    if !eval.lenient && (is_missing(value) || is_missing(other)) {
        return Err(Error::new(Kind::UndefinedVariable, format_args!("an operand of the test `{test}`")));
    }
    eval.budget.print_indented(value, 0)?;
    eval.budget.print_indented(other, 0)?;
    Ok((super::print::to_plain_string(value)?, crate::template::value::print::to_plain_string(other)?))
}

fn divisible(value: &Value<'_>, by: &Value<'_>) -> bool {
    match (value.as_int(), by.as_int()) {
        (Some(value), Some(by)) => value.checked_rem(by) == Some(0),
        _ => match (value.as_float(), by.as_float()) {
            (Some(value), Some(by)) => value % by == 0.0,
            _ => false,
        },
    }
}

fn same<'a>(eval: &mut Eval<'a>, a: &Value<'a>, b: &Value<'a>) -> bool {
    match (&a.repr, &b.repr) {
        (Repr::InputList(a), Repr::InputList(b)) => a.is(*b),
        (Repr::InputMap(a), Repr::InputMap(b)) => a.is(*b),
        (Repr::List(a), Repr::List(b)) => std::rc::Rc::ptr_eq(a, b),
        (Repr::Dict(a), Repr::Dict(b)) => std::rc::Rc::ptr_eq(a, b),
        _ => {
            let mut meter = eval.budget.meter();
            let same_type = a.kind() == b.kind() && a.is_integer() == b.is_integer();
            same_type && ops::equal(a, b, &mut meter) && eval.budget.pay(&meter).is_ok()
        }
    }
}
