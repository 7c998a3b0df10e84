//! minijinja as an oracle: the same templates and inputs, with values printed as the engine prints them.

use std::fmt::Write as _;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, ValueKind};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, HtmlEscape, Output, State, UndefinedBehavior, Value};
use tympan::JsonMap;

/// Renders a template with minijinja.
pub(crate) fn render(template: &str, inputs: &JsonMap, lenient: bool) -> Result<String, Error> {
    let mut environment = Environment::new();
    // An undefined value may be tested for truth, and nothing else.
    let behavior = if lenient { UndefinedBehavior::Lenient } else { UndefinedBehavior::SemiStrict };
    environment.set_undefined_behavior(behavior);
    environment.set_unknown_method_callback(call_method);
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the default delimiters are valid"));
    environment.set_formatter(format);
    environment.render_str(template, Value::from(Serde(inputs)))
}

/// Calls a method of a string, list or map, with two differences from minijinja, as in Jinja2: methods that add nothing to
/// safe text keep it safe (in minijinja, only `capitalize` and `split` do), and `get` returns its default even if that is
/// undefined (in minijinja, it returns none then).
fn call_method(state: &mut State<'_, '_>, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let result = minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args)?;
    if let ("get", [key, default]) = (method, args)
        && default.is_undefined()
        && value.get_item(key)?.is_undefined()
    {
        return Ok(default.clone());
    }
    let safe = |value: Value| Value::from_safe_string(value.as_str().unwrap_or_default().to_owned());
    Ok(match method {
        _ if !value.is_safe() => result,
        "upper" | "lower" | "title" | "strip" | "lstrip" | "rstrip" => safe(result),
        "splitlines" => result.try_iter()?.map(safe).collect(),
        _ => result,
    })
}

fn format(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    let mut text = String::new();
    match state.auto_escape() {
        AutoEscape::None => print(value, &mut text)?,
        AutoEscape::Html if value.is_safe() || value.kind() != ValueKind::String => print(value, &mut text)?,
        AutoEscape::Html => {
            let _ = write!(text, "{}", HtmlEscape(value.as_str().unwrap_or_default()));
        }
        _ => return minijinja::escape_formatter(out, state, value),
    }
    out.write_str(&text).map_err(|_| Error::from(ErrorKind::WriteFailure))
}

/// Prints a value as JSON, except that strings are bare and none is empty.
fn print(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => {}
        ValueKind::String => out.push_str(value.as_str().unwrap_or_default()),
        _ => print_nested(value, out)?,
    }
    Ok(())
}

fn print_nested(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => print_number(value, out),
        ValueKind::String => print_string(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (index, item) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                print_nested(&item, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                print_key(&key, out)?;
                out.push_str(": ");
                print_nested(&value.get_item(&key)?, out)?;
            }
            out.push('}');
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
    Ok(())
}

/// Prints a key. JSON keys are strings, whatever the template used.
fn print_key(key: &Value, out: &mut String) -> Result<(), Error> {
    if key.kind() == ValueKind::String {
        return print_nested(key, out);
    }
    out.push('"');
    print_nested(key, out)?;
    out.push('"');
    Ok(())
}

fn print_number(value: &Value, out: &mut String) {
    let float = f64::try_from(value.clone()).ok().filter(|float| !value.is_integer() && float.is_finite());
    let _ = match float.and_then(serde_json::Number::from_f64) {
        Some(number) => write!(out, "{number}"),
        None => write!(out, "{value}"),
    };
}

fn print_string(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
