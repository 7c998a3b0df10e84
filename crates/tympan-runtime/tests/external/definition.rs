//! The public conformance corpus of prompt definitions.

use serde_json::Value;
use tympan_core::{Prompt, RenderOptions};
use tympan_runtime::{Inputs, load_str};

use crate::shared;

/// Converts a typed value of the corpus to JSON.
fn untyped(value: &Value) -> Value {
    let inner = &value["value"];
    match inner {
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), untyped(value))).collect(),
        Value::Array(items) => items.iter().map(untyped).collect(),
        other => other.clone(),
    }
}

pub(crate) fn definitions_hold() {
    let corpus = shared::conformance("definition.json");
    let cases = corpus["marshaling"].as_array().expect("a list");
    assert!(!cases.is_empty());
    for case in cases {
        let prompt = Prompt::from_json(&case["definition"].to_string()).expect("the definition is sound");
        let input = case["input"].as_object().expect("a map");
        let inputs: Inputs = input.iter().map(|(name, value)| (name.clone(), untyped(value))).collect();
        let options = RenderOptions { variant: case["variant"].as_str(), ..RenderOptions::default() };
        let rendered = prompt.render_with(&inputs, &options).expect("it renders");
        let expected = &case["expected"];
        assert_eq!(rendered.text(), expected["text"], "{}", case["case"]);
        assert_eq!(rendered.template_hash(), expected["template_hash"], "{}", case["case"]);
        assert_eq!(rendered.render_hash(), expected["render_hash"].as_str().expect("a hash"), "{}", case["case"]);
    }
    for (name, definition) in corpus["valid"].as_object().expect("a map") {
        assert!(Prompt::from_json(&definition.to_string()).is_ok(), "{name}");
        assert!(Prompt::from_yaml(&definition.to_string()).is_ok(), "{name}");
    }
    for (name, text) in corpus["invalid"].as_object().expect("a map") {
        assert!(load_str(text.as_str().expect("text"), name, ".").is_err(), "{name}");
    }
}
