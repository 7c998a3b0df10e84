//! The result of a directive: the model's `directive_return` call, checked against the declared outputs.

use serde_json::Value as Json;

use crate::error::{Error, Kind, Result};
use crate::format::directive::{RETURN_TOOL, matches_kind, of_kind, placeholder};
use crate::json::JsonMap;
use crate::spec::schema::{Property, PropertyKind};

/// The tool that runs other tools. `directive_return` is usually called through it.
const EXECUTE: &str = "rye_execute";

/// Returns the result in a tool call, or `None` if the call is not a `directive_return` call.
///
/// ```
/// use serde_json::json;
/// use tympan::directive::result;
/// use tympan::spec::schema::{Property, PropertyKind};
///
/// let outputs = [Property::new("score", PropertyKind::Integer)];
/// let arguments = json!({
///     "item_type": "tool",
///     "item_id": "rye/agent/threads/directive_return",
///     "parameters": {"score": "42"},
/// });
/// let result = result::from_tool_call(&outputs, "rye_execute", &arguments).expect("it is one")?;
/// assert_eq!(result["score"], 42);
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a declared output is missing, if an output is not declared, or if a value does not have the
/// declared type.
pub fn from_tool_call(outputs: &[Property], name: &str, arguments: &Json) -> Option<Result<JsonMap>> {
    // Providers replace characters that are not allowed in their tool names.
    if [RETURN_TOOL, "directive_return"].contains(&name) || name == RETURN_TOOL.replace('/', "_") {
        return Some(check(outputs, arguments));
    }
    let is_return = name == EXECUTE && arguments.get("item_id").is_some_and(|item| item == RETURN_TOOL);
    is_return.then(|| check(outputs, arguments.get("parameters").unwrap_or(&Json::Null)))
}

/// Returns the result in a text that contains a call in the form that the prompt's instruction shows, or `None` if
/// there is no such call.
///
/// The text may repeat the same call. Calls with different parameters are an error, because it is unclear which one
/// the model means.
///
/// # Errors
/// Returns an error if the call's parameters are not JSON or if there are several different calls. The outputs are
/// checked as in [`from_tool_call`].
pub fn from_text(outputs: &[Property], text: &str) -> Option<Result<JsonMap>> {
    let mut found: Option<Json> = None;
    for (at, _) in text.match_indices(EXECUTE) {
        match read_call(&text[at + EXECUTE.len()..]) {
            None => {}
            Some(Err(error)) => return Some(Err(error)),
            Some(Ok(parameters)) if found.as_ref().is_none_or(|first| *first == parameters) => found = Some(parameters),
            Some(Ok(_)) => {
                let error = Error::new(Kind::InvalidReturn, "found several different calls of directive_return");
                return Some(Err(error));
            }
        }
    }
    found.map(|parameters| check(outputs, &parameters))
}

/// Parses the arguments after the tool name and returns the call's parameters, or `None` if this is not a call of
/// `directive_return`.
fn read_call(text: &str) -> Option<Result<Json>> {
    let mut rest = text.trim_start().strip_prefix('(')?;
    let (mut is_return, mut parameters) = (false, None);
    loop {
        rest = rest.trim_start();
        if rest.starts_with(')') {
            break;
        }
        let (name, value) = rest.split_at(rest.find(|char: char| char != '_' && !char.is_alphanumeric())?);
        let value = value.trim_start().strip_prefix('=')?;
        let mut values = serde_json::Deserializer::from_str(value).into_iter::<Json>();
        let Some(Ok(read)) = values.next() else {
            let error = Error::new(Kind::InvalidReturn, "expected the parameters of directive_return to be JSON");
            return (is_return && name == "parameters").then_some(Err(error));
        };
        rest = value[values.byte_offset()..].trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest);
        match name {
            "item_id" => is_return = read == RETURN_TOOL,
            "parameters" => parameters = Some(read),
            _ => {}
        }
    }
    is_return.then(|| Ok(parameters.unwrap_or(Json::Null)))
}

/// Checks the values against the declared outputs and converts them. Errors quote names, but never values.
fn check(outputs: &[Property], parameters: &Json) -> Result<JsonMap> {
    let refuse = |details: String| {
        let names: Vec<_> = outputs.iter().map(|output| format!("`{}`", output.name)).collect();
        let help = match names.is_empty() {
            true => "no outputs are declared".to_owned(),
            false => format!("declared outputs: {}", names.join(", ")),
        };
        Error::new(Kind::InvalidReturn, details).with_help(help)
    };
    let given = match parameters {
        Json::Object(given) => given,
        Json::Null => &JsonMap::new(),
        _ => return Err(refuse("expected the parameters to be an object".to_owned())),
    };
    if let Some(name) = given.keys().find(|name| outputs.iter().all(|output| output.name != **name)) {
        return Err(refuse(format!("output `{name}` is not declared")));
    }
    let mut result = JsonMap::new();
    for output in outputs {
        let name = &output.name;
        let Some(value) = given.get(name) else {
            if output.required == Some(false) {
                continue;
            }
            return Err(refuse(format!("output `{name}` is missing")));
        };
        if *value == placeholder(name, output.description.as_deref().unwrap_or_default()) {
            return Err(refuse(format!("output `{name}` still contains the placeholder from the instruction")));
        }
        let Some(value) = typed(value, output.kind) else {
            let kind = output.kind.as_str();
            return Err(refuse(format!("output `{name}`: expected a value of type {kind}")));
        };
        result.insert(name.clone(), value);
    }
    Ok(result)
}

/// Converts a value to the declared type. Strings are parsed, because the instruction shows every value as a string.
/// An output that is declared as a string, or without a type, accepts any value.
fn typed(value: &Json, kind: PropertyKind) -> Option<Json> {
    match (kind, value) {
        (PropertyKind::String, value) => Some(value.clone()),
        (kind, Json::String(text)) => of_kind(text, kind),
        (kind, value) => Some(value.clone()).filter(|value| matches_kind(value, kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn outputs() -> Vec<Property> {
        let mut path = Property::new("path", PropertyKind::String);
        path.description = Some("Where it is".into());
        let mut note = Property::new("note", PropertyKind::String);
        note.required = Some(false);
        vec![path, Property::new("count", PropertyKind::Integer), note]
    }

    fn call(parameters: &str) -> String {
        format!("Done.\n`rye_execute(item_type=\"tool\", item_id=\"{RETURN_TOOL}\", parameters={parameters})`\n")
    }

    fn refused(text: &str) -> String {
        from_text(&outputs(), text).expect("it is a call").expect_err("it is refused").message().to_owned()
    }

    #[test]
    fn texts_are_read() {
        let result = from_text(&outputs(), &call(r#"{"path": "a) b", "count": "3"}"#)).expect("a call").expect("fits");
        assert_eq!(Json::Object(result), json!({"path": "a) b", "count": 3}));
        let other = "rye_execute(item_type=\"tool\", item_id=\"rye/bash\", parameters={})";
        let both = format!("{other} {} rye_execute( {}", call(r#"{"path":1,"count":2,"note":"n"}"#), "nothing");
        assert!(from_text(&outputs(), &both).expect("a call").is_ok());
        for text in ["", "rye_execute", other, "rye_execute(item_id=\"rye/agent/threads/directive_return\""] {
            assert!(from_text(&outputs(), text).is_none(), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let cases = [
            (call(r#"{"path": "a"}"#), "output `count` is missing"),
            (call(r#"{"path": "a", "count": 1, "x": 2}"#), "output `x` is not declared"),
            (call(r#"{"path": "a", "count": "many"}"#), "output `count`: expected a value of type integer"),
            (
                call(r#"{"path": "<Where it is>", "count": 1}"#),
                "output `path` still contains the placeholder from the instruction",
            ),
            (call("['a']"), "expected the parameters of directive_return to be JSON"),
            (call("[1]"), "expected the parameters to be an object"),
            (call(r#"{"path": "a", "count": 1}"#) + &call(r#"{"path": "b", "count": 1}"#), "several different calls"),
        ];
        for (text, expected) in cases {
            assert!(refused(&text).contains(expected), "{text}: {}", refused(&text));
        }
    }

    #[test]
    fn long_texts_take_linear_time() {
        for text in ["rye_execute(", "rye_execute ( a ", "rye_execute(a=1,", "rye_execute(a=\"", "rye_execute(a=[[1],"]
        {
            assert!(from_text(&outputs(), &text.repeat(200_000)).is_none(), "{text}");
        }
    }

    #[test]
    fn tool_calls_are_read() {
        let parameters = json!({"path": "a", "count": 3});
        let wrapped = json!({"item_id": RETURN_TOOL, "parameters": parameters});
        for (name, arguments) in [
            ("rye_execute", &wrapped),
            (RETURN_TOOL, &parameters),
            ("directive_return", &parameters),
            ("rye_agent_threads_directive_return", &parameters),
        ] {
            let result = from_tool_call(&outputs(), name, arguments).expect("a call").expect("it fits");
            assert_eq!(Json::Object(result), parameters, "{name}");
        }
        assert!(from_tool_call(&outputs(), "rye_execute", &json!({"item_id": "rye/bash"})).is_none());
        assert!(from_tool_call(&outputs(), "other", &wrapped).is_none());
    }
}
