//! Third-party test data next to the checkout. Tests that use it pass without doing anything if it does not exist.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tympan_core::spec::PromptSpec;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::{Inputs, Prompt};

/// Returns the attack corpus. All of it is there, or the test fails.
pub(crate) fn attacks() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/attacks/attacks.json");
    let text = std::fs::read_to_string(path).expect("the attack corpus");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("a list of cases");
    assert_eq!(cases.len(), 458, "the attack corpus has another number of cases");
    cases
}

/// Returns the cases of a file of the shared data, if it exists.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else { return Vec::new() };
    let cases: Value = serde_json::from_str(&text).expect("shared data is JSON");
    cases.as_array().cloned().expect("shared data is a list of cases")
}

/// Returns a file of the shared data, if it exists.
pub(crate) fn document(file: &str) -> Option<Value> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(file);
    let text = std::fs::read_to_string(&path).ok()?;
    Some(serde_json::from_str(&text).expect("shared data is JSON"))
}

/// Replaces the generators of a case with what they generate.
pub(crate) fn expand(value: &Value) -> Value {
    match value {
        Value::Object(map) if map.len() == 1 => {
            let (name, args) = map.iter().next().expect("it has one entry");
            match (name.as_str(), args) {
                ("$repeat", Value::Array(args)) => json!(text(&expand(&args[0])).repeat(count(&args[1]))),
                ("$concat", Value::Array(parts)) => {
                    json!(parts.iter().map(|part| text(&expand(part))).collect::<String>())
                }
                ("$numbered", Value::Array(args)) => {
                    let (piece, count) = (text(&args[0]), count(&args[1]));
                    let pieces = (0..count).map(|number| piece.replace('#', &number.to_string()));
                    json!(pieces.collect::<String>().replace("%hash%", "#"))
                }
                ("$list", Value::Array(args)) => Value::Array(vec![expand(&args[0]); count(&args[1])]),
                ("$nest", Value::Array(args)) => {
                    let (open, close) = (text(&args[0]), text(&args[2]));
                    let times = count(&args[3]);
                    json!(format!("{}{}{}", open.repeat(times), text(&args[1]), close.repeat(times)))
                }
                _ => Value::Object(expand_map(map)),
            }
        }
        Value::Object(map) => Value::Object(expand_map(map)),
        Value::Array(items) => Value::Array(items.iter().map(expand).collect()),
        other => other.clone(),
    }
}

fn expand_map(map: &Map<String, Value>) -> Map<String, Value> {
    map.iter().map(|(name, value)| (name.clone(), expand(value))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a generator's argument is a string").to_owned()
}

fn count(value: &Value) -> usize {
    value.as_u64().and_then(|count| usize::try_from(count).ok()).expect("a generator's argument is a count")
}

/// Returns the prompt and the inputs of a case with a template as text.
pub(crate) fn prompt(case: &Value) -> (Prompt, Inputs) {
    let inputs = expand(&case["inputs"]).as_object().cloned().unwrap_or_default();
    let mut spec = PromptSpec { instructions: text(&expand(&case["template"])), ..PromptSpec::default() };
    if let Some(engine) = case["engine"].as_str() {
        spec.template.format = engine.to_owned();
    }
    for name in inputs.keys() {
        let kind = case["input_kinds"][name].as_str().and_then(PropertyKind::from_name).unwrap_or_default();
        let mut property = Property::new(name, kind);
        property.trusted = case["trust"][name].as_bool().unwrap_or(false);
        spec.inputs.push(property);
    }
    (Prompt::from_spec(spec), inputs)
}
