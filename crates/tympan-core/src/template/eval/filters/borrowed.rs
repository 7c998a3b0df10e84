//! Filters that call minijinja's own functions. They run on an empty state, so that they can read nothing but their
//! arguments. The origin of their results is the union of all origins.

use minijinja::value::{Kwargs, Value as MjValue};
use minijinja::{Environment, ErrorKind};

use crate::error::{Error, Kind, Result};
use crate::template::eval::Eval;
use crate::template::eval::expr::Arguments;
use crate::template::input::InputRef;
use crate::template::value::limits::MAX_VALUE_DEPTH;
use crate::template::value::print;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;
use crate::text::traced::TracedText;

pub(super) fn apply<'a>(eval: &mut Eval<'a>, name: &str, value: Value<'a>, args: Arguments<'a>) -> Result<Value<'a>> {
    let origin = value.whole_origin() | args.origin();
    if name == "format" {
        check_format(eval, &value, &args)?;
    }
    eval.budget.print_indented(&value, indent(name, &args).unwrap_or(0))?;
    let arguments = converted(eval, [&value].into_iter().chain(&args.positional), &args)?;
    if name == "urlencode" {
        eval.budget.make(value.as_str().map_or(0, |text| text.len().saturating_mul(3)))?;
    }
    let result = call(name, &arguments)?;
    let text = result.to_string();
    eval.budget.make(text.len())?;
    let text = TracedText::whole(text, origin);
    // minijinja escapes the arguments of a safe format.
    let is_safe = name == "tojson" || (name == "format" && value.is_safe());
    Ok(if is_safe { Value::safe_text(text) } else { Value::text(text) }.also(origin))
}

/// Converts arguments to minijinja's values, and charges for them.
fn converted<'v, 'a: 'v>(
    eval: &mut Eval<'a>,
    positional: impl Iterator<Item = &'v Value<'a>>,
    args: &Arguments<'a>,
) -> Result<Vec<MjValue>> {
    let mut arguments = Vec::new();
    for argument in positional {
        eval.budget.print_indented(argument, 0)?;
        arguments.push(convert(argument, 0)?);
    }
    if !args.named.is_empty() {
        let mut named = Vec::new();
        for (name, argument) in &args.named {
            eval.budget.print_indented(argument, 0)?;
            named.push((name.as_str().unwrap_or_default(), convert(argument, 0)?));
        }
        arguments.push(named.into_iter().collect::<Kwargs>().into());
    }
    Ok(arguments)
}

/// Returns how many spaces a filter writes for each level of nesting.
fn indent(filter: &str, args: &Arguments<'_>) -> Option<usize> {
    let named = || args.named.iter().find(|(name, _)| name.as_str() == Some("indent")).map(|(_, value)| value);
    let given = args.positional.first().or_else(named);
    match filter {
        "pprint" => Some(4),
        "tojson" => given.and_then(Value::as_int).and_then(|indent| usize::try_from(indent).ok()),
        _ => None,
    }
}

/// Appends a value to traced text as the JSON escaping mode prints it.
pub(crate) fn print_json(value: &Value<'_>, out: &mut TracedText) -> Result<()> {
    if value.is_safe() {
        value.push_pieces(out);
        return Ok(());
    }
    let json = call("tojson", &[convert(value, 0)?])?;
    out.push(&json.to_string(), value.whole_origin());
    Ok(())
}

/// Rounds a number.
pub(super) fn round<'a>(value: &Value<'a>, precision: i32, method: &str, origin: Origin) -> Result<Value<'a>> {
    let result = call("round", &[convert(value, 0)?, precision.into(), method.into()])?;
    if result.is_integer() {
        return Ok(Value::int(i128::try_from(result).unwrap_or_default(), origin));
    }
    Ok(Value::float(f64::try_from(result).unwrap_or(f64::NAN), origin))
}

/// Calls a filter of minijinja. Its error messages may quote values, so they are not passed on.
fn call(name: &str, arguments: &[MjValue]) -> Result<MjValue> {
    let environment = Environment::new();
    environment.empty_state().apply_filter(name, arguments).map_err(|error| {
        let reason = match error.kind() {
            ErrorKind::TooManyArguments => "unexpected argument",
            ErrorKind::MissingArgument => "missing argument",
            _ => "unsupported values",
        };
        Error::new(Kind::InvalidOperation, format_args!("filter `{name}`: {reason}"))
    })
}

/// Calls minijinja's version of Python's `str.format`.
pub(crate) fn str_format<'a>(eval: &mut Eval<'a>, value: &Value<'a>, args: &Arguments<'a>) -> Result<Value<'a>> {
    check_format(eval, value, args)?;
    let origin = value.whole_origin() | args.origin();
    let arguments = converted(eval, args.positional.iter(), args)?;
    let style = minijinja::formatting::FormatStyle::StrFormat;
    let text = minijinja::formatting::format(style, value.as_str().unwrap_or_default(), &arguments)
        .map_err(|_| Error::new(Kind::InvalidOperation, "filter `format`: unsupported values"))?;
    Ok(Value::string(text, origin))
}

/// Charges for formatting in advance, because it allocates whatever widths and precisions ask for.
fn check_format(eval: &mut Eval<'_>, format: &Value<'_>, args: &Arguments<'_>) -> Result<()> {
    let format = format.as_str().unwrap_or_default();
    let mut wanted = format.len();
    for placeholder in format.split(['%', '{']).skip(1) {
        for digits in numbers(placeholder) {
            wanted = wanted.saturating_add(digits.parse().unwrap_or(usize::MAX));
        }
    }
    if format.contains('*') {
        for int in args.positional.iter().filter_map(Value::as_int) {
            wanted = wanted.saturating_add(usize::try_from(int.unsigned_abs()).unwrap_or(usize::MAX));
        }
    }
    let placeholders = format.matches(['%', '{']).count().max(1);
    let most = eval.budget.operation_bytes();
    let length = |value: &Value<'_>| value.as_str().map_or_else(|| print::cost(value, 0, most), str::len);
    let longest = args.values().map(length).max().unwrap_or(0);
    eval.budget.make(wanted.saturating_add(longest.saturating_mul(placeholders)))
}

/// Returns the numbers after the start of a placeholder, up to the end of its width and precision.
fn numbers(placeholder: &str) -> impl Iterator<Item = &str> {
    let end = match placeholder.find(['}', ')']) {
        Some(end) => end + placeholder[end..].find(|char: char| char.is_ascii_alphabetic()).unwrap_or(1),
        None => placeholder.find(|char: char| char.is_ascii_alphabetic()).unwrap_or(placeholder.len()),
    };
    placeholder[..end].split(|char: char| !char.is_ascii_digit()).filter(|digits| !digits.is_empty())
}

/// Converts a value to one of minijinja's.
fn convert(value: &Value<'_>, depth: u16) -> Result<MjValue> {
    if depth > MAX_VALUE_DEPTH {
        return Err(print::too_deep());
    }
    Ok(match &value.repr {
        Repr::Unset | Repr::Undefined | Repr::Silent | Repr::Absent => MjValue::UNDEFINED,
        Repr::None => MjValue::from(()),
        Repr::Bool(flag) => MjValue::from(*flag),
        Repr::Int(int) => MjValue::from(*int),
        Repr::Big(int) => MjValue::from(**int),
        Repr::Float(float) => MjValue::from(*float),
        Repr::Str(text) => MjValue::from(*text),
        Repr::Text(text) if text.safe => MjValue::from_safe_string(text.traced.as_str().to_owned()),
        Repr::Text(text) => MjValue::from(text.traced.as_str()),
        Repr::InputList(items) => {
            items.iter().map(|item| convert_given(item, depth + 1)).collect::<Result<Vec<_>>>()?.into()
        }
        Repr::InputMap(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map.iter() {
                entries.push((MjValue::from(key), convert_given(value, depth + 1)?));
            }
            MjValue::from_pairs(entries)
        }
        Repr::List(list) => list.items.iter().map(|item| convert(item, depth + 1)).collect::<Result<Vec<_>>>()?.into(),
        Repr::Dict(dict) => {
            let mut entries = Vec::with_capacity(dict.len());
            for (key, value) in dict.entries() {
                entries.push((convert(key, depth + 1)?, convert(value, depth + 1)?));
            }
            MjValue::from_pairs(entries)
        }
        Repr::Rich(_) => return Err(print::rich_in_text()),
        Repr::Namespace(_) | Repr::Loop(_) | Repr::Macro(_) | Repr::Function(_) => {
            MjValue::from(print::to_plain_string(value)?)
        }
    })
}

fn convert_given(given: InputRef<'_>, depth: u16) -> Result<MjValue> {
    convert(&Value::from_input(given, Origin::default()), depth)
}
