//! Methods of Python's strings, dicts and lists that templates use.

use crate::error::{Error, Kind, Result};
use crate::template::eval::Eval;
use crate::template::eval::expr::Arguments;
use crate::template::eval::filters::{self, text};
use crate::template::value::ops;
use crate::template::value::{ListKind, Repr, Value, ValueKind};
use crate::text::origin::Origin;

/// Calls a method of a value.
pub(crate) fn call<'a>(eval: &mut Eval<'a>, value: &Value<'a>, name: &str, args: Arguments<'a>) -> Result<Value<'a>> {
    let work = args.values().map(ops::weight).fold(ops::weight(value), usize::saturating_add);
    eval.budget.step(work.saturating_add(1))?;
    let has_names = !args.named.is_empty() && name != "format";
    let result = match value.kind() {
        ValueKind::String => string_method(eval, value, name, &args)?,
        ValueKind::Map => map_method(eval, value, name, &args)?,
        ValueKind::Sequence => list_method(eval, value, name, &args)?,
        _ => None,
    };
    match result {
        None => Err(unknown(value, name)),
        Some(_) if has_names => {
            Err(Error::new(Kind::InvalidOperation, format_args!("method `{name}` does not accept named arguments")))
        }
        Some(result) => Ok(result),
    }
}

/// Builds the error for an unknown method. The name is the author's text; the value is not shown.
fn unknown(value: &Value<'_>, name: &str) -> Error {
    let details = format!("`{name}` is not a method of {}", value.kind().name());
    Error::new(Kind::UnknownFunction, details)
}

fn string_method<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    name: &str,
    args: &Arguments<'a>,
) -> Result<Option<Value<'a>>> {
    let text = value.as_str().unwrap_or_default();
    let origin = value.whole_origin() | args.origin();
    let first = args.positional.first().filter(|arg| !arg.is_none() && !arg.is_undefined());
    let flag = |flag: bool| Ok(Some(Value::bool(flag, origin)));
    let all = |test: fn(char) -> bool| !text.is_empty() && text.chars().all(test);
    match name {
        "upper" | "lower" | "capitalize" | "title" => {
            let args = Arguments { positional: args.positional.clone(), named: Vec::new(), spread: args.spread };
            let changed = filters::apply(eval, name, value.clone(), args)?;
            if name == "title" && value.is_safe() {
                // Unlike the filter, the method keeps text safe, as all methods do that add nothing to it.
                let origin = changed.whole_origin();
                return Ok(Some(Value::string_like(value, plain(&changed), origin)));
            }
            Ok(Some(changed))
        }
        "islower" => flag(text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)),
        "isupper" => flag(text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)),
        "isspace" => flag(all(char::is_whitespace)),
        "isdigit" | "isnumeric" => flag(all(char::is_numeric)),
        "isalnum" => flag(all(char::is_alphanumeric)),
        "isalpha" => flag(all(char::is_alphabetic)),
        "isascii" => flag(text.is_ascii()),
        "strip" | "lstrip" | "rstrip" => {
            let chars = first.map(|_| string_arg(name, args, 0)).transpose()?;
            let (start, end) = (name != "rstrip", name != "lstrip");
            text::trim(eval, value, chars, start, end).map(|text| Some(text.also(args.origin())))
        }
        "replace" => {
            let (from, to) = (string_arg(name, args, 0)?, string_arg(name, args, 1)?);
            text::replace(eval, value, from, to, args.positional.get(2), false).map(Some)
        }
        "split" => {
            let separator = first.map(|_| string_arg(name, args, 0)).transpose()?;
            let parts = text::split(eval, value, separator, args.positional.get(1))?;
            Ok(Some(parts.also(args.origin())))
        }
        "splitlines" => {
            let lines = text::lines(eval, value, first.is_some_and(Value::is_true))?;
            Ok(Some(lines.also(args.origin())))
        }
        "count" => {
            let count = text.matches(plain(string_arg(name, args, 0)?)).count();
            Ok(Some(Value::int(count as i128, origin)))
        }
        "find" => found(text, text.find(plain(string_arg(name, args, 0)?)), origin),
        "rfind" => found(text, text.rfind(plain(string_arg(name, args, 0)?)), origin),
        "startswith" => flag(any_affix(eval, name, args, |affix| text.starts_with(affix))?),
        "endswith" => flag(any_affix(eval, name, args, |affix| text.ends_with(affix))?),
        "join" => {
            let items = args.positional.first().ok_or_else(|| lacks(name))?;
            filters::join_with(eval, items, Some(value), None, false).map(Some)
        }
        "format" => filters::str_format(eval, value, args).map(Some),
        _ => Ok(None),
    }
}

fn plain<'v>(value: &'v Value<'_>) -> &'v str {
    value.as_str().unwrap_or_default()
}

fn lacks(method: &str) -> Error {
    Error::new(Kind::InvalidOperation, format_args!("method `{method}`: missing argument"))
}

fn string_arg<'v, 'a>(method: &str, args: &'v Arguments<'a>, index: usize) -> Result<&'v Value<'a>> {
    let argument = args.positional.get(index).ok_or_else(|| lacks(method))?;
    if argument.kind() == ValueKind::String {
        return Ok(argument);
    }
    let details = format!("method `{method}`: expected a string, found {}", argument.kind().name());
    Err(Error::new(Kind::InvalidOperation, details))
}

/// Converts a byte offset to a character offset, or -1 if there is none.
fn found<'a>(text: &str, at: Option<usize>, origin: Origin) -> Result<Option<Value<'a>>> {
    let at = at.map_or(-1, |at| text[..at].chars().count() as i128);
    Ok(Some(Value::int(at, origin)))
}

fn any_affix<'a>(
    eval: &mut Eval<'a>,
    method: &str,
    args: &Arguments<'a>,
    mut matches: impl FnMut(&str) -> bool,
) -> Result<bool> {
    let argument = args.positional.first().ok_or_else(|| lacks(method))?;
    if let Some(affix) = argument.as_str() {
        return Ok(matches(affix));
    }
    if !matches!(argument.kind(), ValueKind::Sequence | ValueKind::Iterable) {
        let details =
            format!("method `{method}`: expected a string or a list of strings, found {}", argument.kind().name());
        return Err(Error::new(Kind::InvalidOperation, details));
    }
    let items = eval.iterate(argument)?;
    eval.budget.step(items.len())?;
    for item in items.iter() {
        let Some(affix) = item.as_str() else {
            let details = format!("method `{method}`: expected strings, found {}", item.kind().name());
            return Err(Error::new(Kind::InvalidOperation, details));
        };
        if matches(affix) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn map_method<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    name: &str,
    args: &Arguments<'a>,
) -> Result<Option<Value<'a>>> {
    let shape = eval.keys_origin(value);
    let list = |items: Vec<Value<'a>>| Ok(Some(Value::list(items, ListKind::Iterable, shape)));
    match name {
        "keys" => list(eval.entries(value)?.unwrap_or_default().into_iter().map(|(key, _)| key).collect()),
        "values" => list(eval.entries(value)?.unwrap_or_default().into_iter().map(|(_, value)| value).collect()),
        "items" => filters::apply(eval, "items", value.clone(), Arguments::default()).map(Some),
        "get" => {
            let key = args.positional.first().ok_or_else(|| lacks(name))?;
            let decided = shape | key.whole_origin();
            if let Some(found) = eval.get(value, key)? {
                return Ok(Some(found.also(key.whole_origin())));
            }
            let default = args.positional.get(1).cloned().unwrap_or(Value::new(Repr::None, decided));
            eval.chosen(default, decided).map(Some)
        }
        _ => Ok(None),
    }
}

fn list_method<'a>(
    eval: &mut Eval<'a>,
    value: &Value<'a>,
    name: &str,
    args: &Arguments<'a>,
) -> Result<Option<Value<'a>>> {
    if name != "count" {
        return Ok(None);
    }
    let wanted = args.positional.first().ok_or_else(|| lacks(name))?;
    let items = eval.iterate(value)?;
    let mut meter = eval.budget.meter();
    let count = items.iter().filter(|item| meter.spend(1) && ops::equal(item, wanted, &mut meter)).count();
    eval.budget.pay(&meter)?;
    Ok(Some(Value::int(count as i128, value.whole_origin() | args.origin())))
}

#[cfg(test)]
mod tests {
    use crate::error::{Error, Kind};
    use crate::template::{CompileOptions, Template};

    fn error_of(source: &str) -> Error {
        let template = Template::compile(source, CompileOptions::default()).expect("it compiles");
        template.render_json(&crate::JsonMap::new(), false).expect_err("it fails")
    }

    /// Named arguments are rejected rather than ignored.
    #[test]
    fn methods_take_no_named_arguments() {
        let error = error_of("{{ 'a,b'.split(sep=',') }}");
        assert_eq!(error.message(), "Invalid operation: method `split` does not accept named arguments");
        assert_eq!(error_of("{{ 'a'.nope(x=1) }}").kind(), Kind::UnknownFunction);
    }

    #[test]
    fn errors_in_writing_have_a_place() {
        let error = error_of("ab {{ range(100000) | join('x' * 400) }}");
        assert_eq!((error.kind(), error.span().map(|span| span.start > 0)), (Kind::LimitExceeded, Some(true)));
    }
}
