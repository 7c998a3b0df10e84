//! Calls to filters, tests and functions that the host has registered.
//!
//! Values cross the border as JSON. Converting them is charged for like printing them, and the result like a value that
//! the template creates.

use serde_json::{Number, Value as Json};

use crate::error::{Error, Kind, Result};
use crate::template::eval::expr::{Arguments, shallow};
use crate::template::eval::{Eval, filters, predicates};
use crate::template::functions::{self, FunctionArgs, FunctionError, TemplateFunctions};
use crate::template::input::InputRef;
use crate::template::tree::Function;
use crate::template::value::dict::Dict;
use crate::template::value::limits::MAX_VALUE_DEPTH;
use crate::template::value::print;
use crate::template::value::{ListKind, Repr, Value};
use crate::text::origin::Origin;

type Callable<T> = dyn Fn(&FunctionArgs) -> Result<T, FunctionError> + Send + Sync;

/// Applies a filter of the host, or fails because there is none of this name.
pub(super) fn apply_filter<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    value: Value<'a>,
    mut args: Arguments<'a>,
) -> Result<Value<'a>> {
    let Some(filter) = eval.functions.and_then(|functions| functions.filter(name)) else {
        return Err(unknown_filter(eval, name, Origin::default()));
    };
    args.positional.insert(0, value);
    run(eval, "filter", name, &*filter, &args)
}

/// Applies a test of the host, or fails because there is none of this name. `named_by` is the origin of the name.
pub(super) fn check<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    named_by: Origin,
    value: &Value<'a>,
    args: &Arguments<'a>,
) -> Result<bool> {
    let Some(test) = eval.functions.and_then(|functions| functions.test(name)) else {
        let registered = eval.functions.map(TemplateFunctions::tests).unwrap_or_default();
        return Err(unknown(Kind::UnknownTest, name, named_by, predicates::NAMES, &registered));
    };
    require_defined(eval, "test", name, [value].into_iter().chain(args.values()))?;
    let mut positional = args.positional.clone();
    positional.insert(0, value.clone());
    let args = Arguments { positional, named: args.named.clone(), spread: args.spread };
    functions::call("test", name, &*test, &to_args(eval, "test", name, &args)?)
}

/// Calls a function of the host.
pub(super) fn call_function<'a>(
    eval: &mut Eval<'a>,
    name: &str,
    function: &Callable<Json>,
    args: Arguments<'a>,
) -> Result<Value<'a>> {
    require_defined(eval, "function", name, args.values())?;
    run(eval, "function", name, function, &args)
}

fn run<'a>(
    eval: &mut Eval<'a>,
    what: &str,
    name: &str,
    function: &Callable<Json>,
    args: &Arguments<'a>,
) -> Result<Value<'a>> {
    let origin = args.origin();
    let result = functions::call(what, name, function, &to_args(eval, what, name, args)?)?;
    let result = from_json(eval, &result, origin, 0)?;
    shallow(result.also(origin))
}

fn require_defined<'v, 'a: 'v>(
    eval: &Eval<'a>,
    what: &str,
    name: &str,
    mut values: impl Iterator<Item = &'v Value<'a>>,
) -> Result<()> {
    if !eval.lenient && values.any(|value| matches!(value.repr, Repr::Undefined | Repr::Unset)) {
        return Err(Error::new(Kind::UndefinedVariable, format_args!("an argument of the {what} `{name}`")));
    }
    Ok(())
}

/// Converts arguments to JSON, and charges for them.
fn to_args<'a>(eval: &mut Eval<'a>, what: &str, name: &str, args: &Arguments<'a>) -> Result<FunctionArgs> {
    let mut converted = FunctionArgs::default();
    let mut json = |value: &Value<'a>| {
        eval.budget.print_indented(value, 0)?;
        let refused =
            |reason: &str| Error::new(Kind::InvalidOperation, format_args!("{what} `{name}`: an argument is {reason}"));
        to_json(value, 0, &refused)
    };
    for value in &args.positional {
        converted.positional.push(json(value)?);
    }
    for (name, value) in &args.named {
        let value = json(value)?;
        converted.named.insert(name.as_str().unwrap_or_default().to_owned(), value);
    }
    Ok(converted)
}

fn to_json(value: &Value<'_>, depth: u16, refused: &dyn Fn(&str) -> Error) -> Result<Json> {
    if depth > MAX_VALUE_DEPTH {
        return Err(print::too_deep());
    }
    Ok(match &value.repr {
        Repr::Unset | Repr::Undefined | Repr::Silent | Repr::Absent | Repr::None => Json::Null,
        Repr::Bool(flag) => Json::Bool(*flag),
        Repr::Int(int) => Json::from(*int),
        Repr::Big(int) => match u64::try_from(**int) {
            Ok(int) => Json::from(int),
            Err(_) => Json::from(**int as f64),
        },
        Repr::Float(float) => {
            Number::from_f64(*float).map(Json::Number).ok_or_else(|| refused("not a finite number"))?
        }
        Repr::Str(_) | Repr::Text(_) => Json::from(value.as_str().unwrap_or_default()),
        Repr::InputList(items) => {
            let items = items.iter().map(|item| input_to_json(item, depth + 1, refused));
            Json::Array(items.collect::<Result<_>>()?)
        }
        Repr::InputMap(map) => {
            let entries = map.iter().map(|(key, item)| Ok((key.to_owned(), input_to_json(item, depth + 1, refused)?)));
            Json::Object(entries.collect::<Result<_>>()?)
        }
        Repr::List(list) => {
            let items = list.items.iter().map(|item| to_json(item, depth + 1, refused));
            Json::Array(items.collect::<Result<_>>()?)
        }
        Repr::Dict(dict) => {
            let entry = |(key, item): &(Value<'_>, Value<'_>)| {
                Ok((print::to_plain_string(key)?, to_json(item, depth + 1, refused)?))
            };
            Json::Object(dict.entries().iter().map(entry).collect::<Result<_>>()?)
        }
        Repr::Rich(_) => return Err(print::rich_in_text()),
        Repr::Namespace(_) => return Err(refused("a namespace")),
        Repr::Loop(_) => return Err(refused("a loop")),
        Repr::Macro(_) | Repr::Function(_) => return Err(refused("a macro or a function")),
    })
}

fn input_to_json(input: InputRef<'_>, depth: u16, refused: &dyn Fn(&str) -> Error) -> Result<Json> {
    to_json(&Value::from_input(input, Origin::default()), depth, refused)
}

/// Converts a result, and charges for it.
fn from_json<'a>(eval: &mut Eval<'a>, json: &Json, origin: Origin, depth: u16) -> Result<Value<'a>> {
    if depth > MAX_VALUE_DEPTH {
        return Err(print::too_deep());
    }
    Ok(match json {
        Json::Null => Value::new(Repr::None, origin),
        Json::Bool(flag) => Value::bool(*flag, origin),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Value::int(int.into(), origin),
            (None, Some(int)) => Value::int(int.into(), origin),
            (None, None) => Value::float(number.as_f64().unwrap_or(f64::NAN), origin),
        },
        Json::String(text) => {
            eval.budget.make(text.len())?;
            Value::string(text.as_str(), origin)
        }
        Json::Array(items) => {
            eval.budget.make_list(items.len())?;
            let items = items.iter().map(|item| from_json(eval, item, origin, depth + 1)).collect::<Result<_>>()?;
            Value::list(items, ListKind::List, origin)
        }
        Json::Object(map) => {
            eval.budget.make_list(map.len().saturating_mul(2))?;
            let mut dict = Dict::shaped_by(origin);
            for (key, item) in map {
                eval.budget.make(key.len())?;
                let item = from_json(eval, item, origin, depth + 1)?;
                let mut meter = eval.budget.meter();
                dict.insert(Value::string(key.as_str(), origin), item, &mut meter);
                eval.budget.pay(&meter)?;
            }
            Value::dict(dict)
        }
    })
}

/// Returns whether there is a filter of this name, built in or registered.
pub(super) fn has_filter(eval: &Eval<'_>, name: &str) -> bool {
    filters::NAMES.contains(&name) || eval.functions.is_some_and(|functions| functions.filter(name).is_some())
}

/// Returns whether there is a test of this name, built in or registered.
pub(super) fn has_test(eval: &Eval<'_>, name: &str) -> bool {
    predicates::NAMES.contains(&name) || eval.functions.is_some_and(|functions| functions.test(name).is_some())
}

/// Builds the error for a filter that does not exist. The name is only shown if the author wrote it.
pub(super) fn unknown_filter(eval: &Eval<'_>, name: &str, origin: Origin) -> Error {
    let registered = eval.functions.map(TemplateFunctions::filters).unwrap_or_default();
    unknown(Kind::UnknownFilter, name, origin, filters::NAMES, &registered)
}

/// Builds the error for a function that does not exist.
pub(super) fn unknown_function(eval: &Eval<'_>, name: &str) -> Error {
    let registered = eval.functions.map(TemplateFunctions::functions).unwrap_or_default();
    let error = Error::new(Kind::UnknownFunction, name);
    let known: Vec<&str> = Function::NAMES.iter().copied().chain(registered.iter().map(String::as_str)).collect();
    match filters::suggestion(name, &known) {
        Some(known) => error.with_help(format!("did you mean `{known}`?")),
        None => error.with_help(format!(
            "known functions: {}, and the macros of the template; the application can register more",
            known.join(", ")
        )),
    }
}

fn unknown(kind: Kind, name: &str, origin: Origin, built_in: &[&str], registered: &[String]) -> Error {
    let known: Vec<&str> = built_in.iter().copied().chain(registered.iter().map(String::as_str)).collect();
    filters::unknown_name(kind, name, origin, &known)
}
