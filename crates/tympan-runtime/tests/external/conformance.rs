//! The published test vectors of Prompty, from a template to messages. The vectors for loading are in `load.rs`.

use serde_json::{Value, json};
use tympan_core::chat::thread::{ThreadRoles, parse_thread};
use tympan_core::spec::PromptSpec;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::turn::outcome;
use tympan_core::wire::{self, EncodeOptions, encode};
use tympan_core::{Inputs, Prompt, Rendered, Result};
use tympan_runtime::{ParseTextOptions, Runtime, RuntimeOptions, parse_text};

use crate::shared;

fn cases(operation: &str) -> Vec<Value> {
    let cases = shared::conformance("prompty.json");
    let cases: Vec<_> = shared::list(&cases).filter(|case| case["operation"] == operation).cloned().collect();
    assert!(!cases.is_empty(), "there are no vectors for {operation}");
    cases
}

/// Builds the prompt of a case. Inputs with the `_kind` `thread` are threads, and `strict_props` are strict.
fn prompt(input: &Value) -> (Prompt, Inputs) {
    let inputs = input["inputs"].as_object().cloned().unwrap_or_default();
    let instructions = input["template"].as_str().unwrap_or_default().to_owned();
    let mut spec = PromptSpec { instructions, ..PromptSpec::default() };
    spec.template.format = input["engine"].as_str().unwrap_or("jinja2").to_owned();
    for (name, value) in &inputs {
        let is_thread = value["_kind"] == "thread";
        let mut property = Property::new(name, if is_thread { PropertyKind::Thread } else { PropertyKind::default() });
        property.strict = input["strict_props"].as_array().is_some_and(|strict| strict.contains(&json!(name)));
        spec.inputs.push(property);
    }
    (Prompt::from_spec(spec), inputs)
}

fn render(input: &Value, options: RuntimeOptions) -> Result<Rendered> {
    let (prompt, inputs) = prompt(input);
    Runtime::new(options).render(&prompt, &inputs)
}

pub(crate) fn render_vectors_hold() {
    for case in cases("render") {
        let (input, expected) = (&case["input"], &case["expected"]);
        let outcome = render(input, RuntimeOptions::default());
        match (case["name"].as_str().unwrap_or_default(), outcome) {
            // By design, an undefined variable is an error unless the host or the prompt is lenient.
            ("missing_variable_renders_empty", outcome) => {
                assert_eq!(outcome.expect_err("it is undefined").code(), "undefined_variable");
                let lenient = RuntimeOptions { lenient: Some(true), ..RuntimeOptions::default() };
                assert_eq!(render(input, lenient).expect("it renders").text(), expected["rendered"]);
            }
            (name, Err(error)) => assert_eq!(json!(error.class().as_str()), expected["error"], "{name}: {error}"),
            (name, Ok(rendered)) if expected["nonce_pattern"].is_string() => {
                assert_nonce(name, rendered.text(), expected["nonce_pattern"].as_str().unwrap_or_default());
            }
            (name, Ok(rendered)) => assert_eq!(json!(rendered.text()), expected["rendered"], "{name}"),
        }
    }
}

/// By design, nonces have 16 hexadecimal digits. Those of the vectors have 8.
fn assert_nonce(name: &str, text: &str, pattern: &str) {
    let plain = pattern.replace('\\', "");
    let plain = plain.trim_start_matches('^').trim_end_matches('$');
    let (before, after) = plain.split_once("[a-f0-9]{8}").expect("the pattern has one nonce");
    let rest = text.strip_prefix(before).unwrap_or_else(|| panic!("{name}: {text}"));
    let nonce = rest.strip_suffix(after).unwrap_or_else(|| panic!("{name}: {text}"));
    assert_eq!(nonce.len(), 16, "{name}: {text}");
    assert!(nonce.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{name}: {text}");
}

pub(crate) fn segment_vectors_hold() {
    for case in cases("renderSegments") {
        let expected = &case["expected"];
        match render(&case["input"], RuntimeOptions::default()) {
            Ok(rendered) => assert_eq!(segments(&rendered), expected["segments"], "{}", case["name"]),
            Err(error) => assert_eq!(json!(error.class().as_str()), expected["error"], "{}: {error}", case["name"]),
        }
    }
}

/// Converts segments to the format of the vectors.
fn segments(rendered: &Rendered) -> Value {
    let inputs = rendered.inputs();
    let segments = rendered.segments().map(|segment| {
        let source = inputs.names(segment.origin).next();
        let kind = if source.is_some() { "interp" } else { "literal" };
        json!({"kind": kind, "text": segment.text, "source": source, "strict": inputs.is_strict(segment.origin)})
    });
    segments.collect()
}

/// Returns the placeholder of an input's thread.
fn place_of<'t>(rendered: &'t str, name: &str) -> &'t str {
    let end = format!("_{name}__");
    let start = rendered.find("__PROMPTY_THREAD_").expect("there is a thread");
    let length = rendered[start..].find(&end).expect("it is of this input") + end.len();
    &rendered[start..start + length]
}

pub(crate) fn parse_vectors_hold() {
    for case in cases("parse") {
        let (input, expected) = (&case["input"], &case["expected"]);
        let threads = input["thread_inputs"].as_object().cloned().unwrap_or_default();
        let rendered = input["rendered"].as_str().unwrap_or_default();
        let threads = threads.iter().map(|(name, thread)| {
            let messages = parse_thread(thread, ThreadRoles::Any).unwrap_or_else(|error| panic!("{error:?}"));
            // The vectors' nonces have 8 digits, so their threads cannot be passed by name and are passed by
            // placeholder.
            (place_of(rendered, name).to_owned(), messages)
        });
        let nonce = input["nonce"].as_str().map(str::to_owned);
        let options = ParseTextOptions { nonce, threads: threads.collect() };
        match parse_text(rendered, &options) {
            Ok(messages) => assert_eq!(json!(messages), expected["messages"], "{}", case["name"]),
            Err(error) => assert_eq!(json!(error.class().as_str()), expected["error"], "{}: {error}", case["name"]),
        }
    }
}

pub(crate) fn process_vectors_hold() {
    for case in cases("process") {
        let (input, expected) = (&case["input"], &case["expected"]);
        let mut spec = PromptSpec::default();
        if input["has_outputs"] == true {
            spec.outputs.push(Property::new("city", PropertyKind::String));
        }
        let text = |key: &str| input[key].as_str().unwrap_or_default();
        let protocol = wire::protocol(text("provider"), text("apiType")).expect("the provider has it");
        let body = input["response"].to_string();
        match outcome::process(&Prompt::from_spec(spec), protocol, body.as_bytes()) {
            Ok(outcome) => assert_eq!(outcome.to_json(), expected["result"], "{}", case["name"]),
            Err(error) => assert_eq!(json!(error.class().as_str()), expected["error"], "{}: {error}", case["name"]),
        }
    }
}

pub(crate) fn request_vectors_hold() {
    for case in cases("toRequest") {
        let (name, input) = (case["name"].as_str().unwrap_or_default(), &case["input"]);
        let front = json!({
            "model": {
                "id": input["model_id"],
                "provider": input["provider"],
                "apiType": input["apiType"],
                "options": input["options"],
            },
            "tools": input["tools"],
            "outputs": input["outputs"],
        });
        let prompt = Runtime::default().load_str(&format!("---\n{front}\n---\n"), name, ".");
        let prompt = prompt.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let messages = parse_thread(&input["messages"], ThreadRoles::Any).unwrap_or_else(|error| panic!("{error:?}"));
        let request = encode(&prompt, &messages, &EncodeOptions::default());
        let request = request.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let body: Value = serde_json::from_str(&request.body).expect("a body is JSON");
        assert_eq!(body, case["expected"]["request_body"], "{name}");
    }
}
