//! The attack corpus, and the third-party test vectors next to the checkout.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tympan_core::spec::PromptSpec;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::{Inputs, Prompt};
use tympan_runtime::Runtime;

/// Returns the attack corpus. All of it is there, or the test fails.
pub(crate) fn attacks() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/attacks/attacks.json");
    let text = std::fs::read_to_string(path).expect("the attack corpus");
    let cases: Vec<Value> = serde_json::from_str(&text).expect("a list of cases");
    assert_eq!(cases.len(), 458, "the attack corpus has another number of cases");
    cases
}

/// Returns the path of the third-party test vectors, which are not part of the repository.
pub(crate) fn conformance_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance")
}

/// Returns a file of the third-party test vectors.
pub(crate) fn conformance(file: &str) -> Value {
    let text = std::fs::read_to_string(conformance_dir().join(file)).expect("the test vectors");
    serde_json::from_str(&text).expect("test vectors are JSON")
}

/// Iterates over a list, or over nothing if the value is not a list.
pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns a prompt that consists of tools.
pub(crate) fn prompt_with_tools(name: &str, tools: &Value) -> Prompt {
    let front = json!({"tools": tools});
    let prompt = Runtime::default().load_str(&format!("---\n{front}\n---\n"), name, ".");
    prompt.unwrap_or_else(|error| panic!("{name}: {error:?}"))
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
