//! Inputs from the command line.

use std::path::Path;

use serde_json::Value as Json;
use tympan::diagnostic::Diagnostic;
use tympan::file::read as file;
use tympan::format::parse_inputs;
use tympan::load::DEFAULT_MAX_FILE_BYTES;
use tympan::prompt::kinds::mismatches;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::text::source::SourceFile;
use tympan::{Error, Inputs, Kind, Prompt};

use crate::args::InputArgs;
use crate::prompt_file::{is_stdin, read_stdin};
use crate::report::Failure;

/// Collects the inputs. `--set` overrides the values of a file, which override the declared examples.
///
/// # Errors
/// Returns an error if a value does not match its kind or if a file cannot be read.
pub(crate) fn collect(args: &InputArgs, prompt: &Prompt) -> Result<Inputs, Failure> {
    let mut inputs = if args.sample { examples(prompt) } else { Inputs::new() };
    if let Some(path) = &args.inputs {
        inputs.extend(parse_inputs(&read(path, "--inputs")?)?);
    }
    for (name, value) in &args.set {
        let input = prompt.spec().inputs.iter().find(|input| input.name == *name);
        let kinds = input.map_or_else(Vec::new, kinds_of);
        let value = setting(name, value, &kinds)?;
        inputs.insert(name.clone(), value);
    }
    Ok(inputs)
}

/// Returns the kinds that a value may have. Text comes last, because any value can be parsed as text.
fn kinds_of(input: &Property) -> Vec<PropertyKind> {
    let mut kinds = if input.kinds.is_empty() { vec![input.kind] } else { input.kinds.clone() };
    kinds.sort_by_key(|kind| *kind == PropertyKind::String);
    kinds
}

/// Returns warnings about settings. A name that the prompt does not use is probably a typo.
pub(crate) fn warnings(args: &InputArgs, prompt: &Prompt) -> Vec<String> {
    let set: Inputs = args.set.iter().map(|(name, _)| (name.clone(), Json::Null)).collect();
    let warning = |finding: &Diagnostic| {
        let hint = finding.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
        format!("--set: {}{hint}", finding.message)
    };
    prompt.unknown_inputs((&set).into()).iter().map(warning).collect()
}

/// Returns the examples that a prompt declares, except for references to variables that are not set.
fn examples(prompt: &Prompt) -> Inputs {
    let is_unresolved =
        |example: &Json| prompt.unresolved_env().iter().any(|found| *example == format!("${{env:{}}}", found.variable));
    let declared = prompt.spec().inputs.iter();
    let declared = declared.filter_map(|input| Some((input.name.clone(), input.example.clone()?)));
    declared.filter(|(_, example)| !is_unresolved(example)).collect()
}

/// Reads a file named on the command line, or standard input.
///
/// # Errors
/// Returns a usage error if the file cannot be read, because the command line is at fault and not the prompt.
pub(crate) fn read(path: &Path, option: &str) -> Result<SourceFile, Failure> {
    if is_stdin(path) {
        return Ok(SourceFile::new("<stdin>", read_stdin()?));
    }
    let name = path.display().to_string();
    let text = file::open(path)
        .and_then(|opened| file::text(opened, DEFAULT_MAX_FILE_BYTES))
        .map_err(|error| Failure::Usage(format!("{option}: cannot read `{name}`: {error}")))?;
    Ok(SourceFile::new(name, text))
}

/// Parses the value of `--set`. A leading `@` reads it from a file, and `@@` escapes a single `@`.
fn setting(name: &str, value: &str, kinds: &[PropertyKind]) -> Result<Json, Failure> {
    match value.strip_prefix('@') {
        Some(rest) if rest.starts_with('@') => Ok(typed_any(name, rest, kinds)?),
        Some(path) => {
            let source = read(Path::new(path), &format!("--set {name}"))?;
            Ok(typed_any(name, source.text(), kinds)?)
        }
        None => Ok(typed_any(name, value, kinds)?),
    }
}

/// Parses text as the first of these kinds that it is written as, or else as the first that it can be read as.
fn typed_any(name: &str, text: &str, kinds: &[PropertyKind]) -> Result<Json, Error> {
    let kinds = if kinds.is_empty() { &[PropertyKind::String] } else { kinds };
    let written = kinds.iter().find_map(|kind| written_as(text, *kind));
    let value = written.or_else(|| kinds.iter().find_map(|kind| readable_as(name, text, *kind)));
    value.ok_or_else(|| mismatch(name, text, kinds[kinds.len() - 1]))
}

fn json(text: &str) -> Option<Json> {
    serde_json::from_str(text.trim()).ok()
}

/// Parses text that is written as a value of this kind.
fn written_as(text: &str, kind: PropertyKind) -> Option<Json> {
    match kind {
        PropertyKind::Integer => json(text).filter(|value| value.is_i64() || value.is_u64()),
        PropertyKind::Float => json(text).filter(Json::is_number),
        PropertyKind::Boolean => json(text).filter(Json::is_boolean),
        PropertyKind::Array => json(text).filter(Json::is_array),
        PropertyKind::Object => json(text).filter(Json::is_object),
        PropertyKind::Thread => json(text).filter(|value| value.is_array() || value.is_object()),
        // Strings, and media as their path or address.
        _ => Some(Json::String(text.to_owned())),
    }
}

/// Parses text that can be read as this kind, by the same rule as all other inputs: `3.0` and `"3"` are integers, and
/// `True` is a boolean. A number that is written as one is not changed.
fn readable_as(name: &str, text: &str, kind: PropertyKind) -> Option<Json> {
    let is_readable = |value: &Json| mismatches(&Property::new(name, kind), value).is_empty();
    let word = match json(text) {
        // The digits of an integer that is too large for a number are kept as text.
        Some(number @ Json::Number(_)) if text.contains(['.', 'e', 'E']) => return Some(number).filter(is_readable),
        Some(Json::String(word)) => word,
        _ => text.to_owned(),
    };
    let word = word.trim();
    let read = match kind {
        PropertyKind::Integer | PropertyKind::Float => number(word),
        PropertyKind::Boolean => word.to_ascii_lowercase().parse().map(Json::Bool).ok(),
        _ => None,
    };
    read.filter(|_| is_readable(&word.into()))
}

/// Converts the text of a number. The digits of an integer that is too large are kept as text.
fn number(word: &str) -> Option<Json> {
    let integer = word.parse().map(|number: i64| number.into());
    let integer = integer.or_else(|_| word.parse().map(|number: u64| number.into()));
    integer.ok().or_else(|| match word.contains(['.', 'e', 'E']) {
        true => word.parse().ok().map(|number: f64| number.into()),
        false => Some(word.into()),
    })
}

/// Returns an error for text that is not of this kind. It does not quote the text, which may be a secret.
fn mismatch(name: &str, text: &str, kind: PropertyKind) -> Error {
    let expected = match kind {
        PropertyKind::Integer => "an integer such as 3",
        PropertyKind::Float => "a number such as 0.5",
        PropertyKind::Boolean => "true or false",
        PropertyKind::Array => "a JSON list such as [\"a\", \"b\"]",
        PropertyKind::Object => "a JSON object such as {\"key\": 1}",
        PropertyKind::Thread => "a JSON list of messages such as [{\"role\": \"user\", \"content\": \"Hi\"}]",
        // Any text is a string.
        _ => "text",
    };
    let found = found(json(text));
    Error::new(Kind::InvalidInput, format_args!("`{name}`: expected {}, found {found}", article(kind)))
        .with_help(format!("write {expected}"))
}

/// The type of a value that does not match. Text that is not JSON is a string.
fn found(value: Option<Json>) -> &'static str {
    match value {
        None | Some(Json::String(_)) => "a string",
        Some(Json::Null) => "null",
        Some(Json::Bool(_)) => "a boolean",
        Some(Json::Number(number)) if number.is_f64() => "a float",
        Some(Json::Number(_)) => "an integer",
        Some(Json::Array(_)) => "a list",
        Some(Json::Object(_)) => "an object",
    }
}

fn article(kind: PropertyKind) -> String {
    let name = kind.as_str();
    let article = if name.starts_with(['a', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_read_as_their_kind() {
        use PropertyKind::*;
        let fits = [
            (String, "3", json!("3")),
            (Integer, " 3\n", json!(3)),
            (Integer, "3.0", json!(3.0)),
            (Integer, "1e3", json!(1000.0)),
            (Integer, "\"3\"", json!(3)),
            (Integer, "+3", json!(3)),
            (Integer, "18446744073709551616", json!("18446744073709551616")),
            (Float, "3", json!(3)),
            (Float, "1e3", json!(1000.0)),
            (Float, ".5", json!(0.5)),
            (Float, "\"0.5\"", json!(0.5)),
            (Boolean, "true", json!(true)),
            (Boolean, "False", json!(false)),
            (Boolean, "\"true\"", json!(true)),
            (Array, "[1]", json!([1])),
            (Object, "{}", json!({})),
            (Thread, "[]", json!([])),
            (Image, "https://example.com/a.png", json!("https://example.com/a.png")),
        ];
        for (kind, text, expected) in fits {
            assert_eq!(typed_any("x", text, &[kind]).ok(), Some(expected), "{kind:?} {text}");
        }
        for (kind, text) in [
            (Integer, "3.5"),
            (Integer, "three"),
            (Integer, "\"three\""),
            (Integer, "1e999"),
            (Integer, ""),
            (Float, "NaN"),
            (Float, "[1]"),
            (Boolean, "yes"),
            (Boolean, "1"),
            (Array, "{}"),
            (Object, "[]"),
            (Thread, "hi"),
        ] {
            let error = typed_any("x", text, &[kind]).expect_err("it does not fit");
            assert_eq!(error.kind(), Kind::InvalidInput, "{kind:?} {text}");
        }
    }

    #[test]
    fn one_of_several_kinds_is_the_one_that_the_value_is_written_as() {
        use PropertyKind::*;
        let fits: [(&[PropertyKind], _, _); 5] = [
            (&[Integer, String], "3", json!(3)),
            (&[Integer, String], "3.0", json!("3.0")),
            (&[Integer, Float], "3.5", json!(3.5)),
            (&[Integer, Boolean], "True", json!(true)),
            (&[Boolean, Integer], "3.0", json!(3.0)),
        ];
        for (kinds, text, expected) in fits {
            assert_eq!(typed_any("x", text, kinds).ok(), Some(expected), "{kinds:?} {text}");
        }
    }
}
