//! Runs against the test server: runtimes with their own environment, prompts that name the server, and answers.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tympan_core::wire::Protocol;
use tympan_core::{Inputs, Message, Prompt};
use tympan_runtime::trace::{Backend, BackendError, SpanRecord};
use tympan_runtime::{LoadOptions, Runtime, RuntimeOptions};

use crate::faults::client::{Waits, options};
use crate::faults::{Exchange, Server};

/// A key that does not look like one, so it can only be redacted by its value.
pub(crate) const PLAIN_KEY: &str = "correct-horse-battery-staple";

/// Creates a runtime that does not wait, and whose environment has only these variables.
pub(crate) fn runtime(variables: &[(&str, &str)]) -> Runtime {
    runtime_with(variables, |_| ())
}

pub(crate) fn runtime_with(variables: &[(&str, &str)], change: impl FnOnce(&mut RuntimeOptions)) -> Runtime {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let load = LoadOptions { env_vars: Some(variables), ..LoadOptions::default() };
    let mut options = RuntimeOptions { load, http: options(&Waits::default()), ..RuntimeOptions::default() };
    change(&mut options);
    Runtime::new(options)
}

/// Returns a prompt with this model.
pub(crate) fn prompt(runtime: &Runtime, model: &Value, template: &str) -> Prompt {
    let front = json!({ "name": "test", "model": model, "inputs": [{ "name": "q", "kind": "string" }] });
    runtime.load_str(&format!("---\n{front}\n---\n{template}"), "test.prompty", ".").expect("it is a prompt")
}

/// Returns a model on the server, whose connection has the key.
pub(crate) fn model(server: &Server, protocol: Protocol) -> Value {
    let provider = if protocol == Protocol::AnthropicMessages { "anthropic" } else { "openai" };
    let connection = json!({ "kind": "key", "endpoint": server.url("/v1"), "apiKey": PLAIN_KEY });
    json!({ "id": "m", "provider": provider, "apiType": protocol.api_type(), "connection": connection })
}

/// Returns a prompt for the server's chat, with its messages.
pub(crate) fn chat(runtime: &Runtime, server: &Server) -> (Prompt, Vec<Message>) {
    let prompt = prompt(runtime, &model(server, Protocol::OpenAiChat), TEMPLATE);
    let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
    (prompt, messages)
}

pub(crate) const TEMPLATE: &str = "system:\nYou are kind.\n\nuser:\n{{ q }}\n";

pub(crate) fn inputs() -> Inputs {
    json!({ "q": "How are you?" }).as_object().cloned().expect("a map")
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// Returns the body of a complete answer in `fixtures/response`.
pub(crate) fn whole(protocol: Protocol, name: &str) -> String {
    let path = fixtures().join("response").join(protocol.as_str()).join(format!("{name}.json"));
    let case: Value = serde_json::from_slice(&std::fs::read(path).expect("the case is there")).expect("it is JSON");
    case["response"].to_string()
}

/// Returns the bytes of a stream in `fixtures/stream`.
pub(crate) fn streamed(protocol: Protocol, name: &str) -> Vec<u8> {
    let path = fixtures().join("stream").join(protocol.as_str()).join(format!("{name}.sse"));
    std::fs::read(path).expect("the stream is there")
}

/// Returns all streams in `fixtures/stream`, with their expected results.
pub(crate) fn streams() -> Vec<(Protocol, PathBuf, Vec<u8>, Value)> {
    let mut all = Vec::new();
    for protocol in [Protocol::OpenAiChat, Protocol::OpenAiResponses, Protocol::AnthropicMessages] {
        let entries = std::fs::read_dir(fixtures().join("stream").join(protocol.as_str())).expect("it is there");
        for path in entries.map(|entry| entry.expect("it can be read").path()) {
            if path.extension().is_some_and(|extension| extension == "sse") {
                let expected = std::fs::read(path.with_extension("json")).expect("what it comes to is there");
                let expected = serde_json::from_slice(&expected).expect("it is JSON");
                all.push((protocol, path.clone(), std::fs::read(&path).expect("it is there"), expected));
            }
        }
    }
    assert!(all.len() >= 40, "{} streams", all.len());
    all
}

/// Returns a chat answer with this text.
pub(crate) fn saying(text: &str) -> String {
    json!({
        "id": "chatcmpl-1", "model": "m-1",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": text }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 },
    })
    .to_string()
}

/// Returns an event of a chat stream with this text.
pub(crate) fn event(text: &str) -> String {
    let event =
        json!({ "id": "chatcmpl-1", "model": "m-1", "choices": [{ "index": 0, "delta": { "content": text } }] });
    format!("data: {event}\n\n")
}

/// Returns the last events of a chat stream.
pub(crate) fn last_events() -> String {
    let end = json!({
        "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 },
    });
    format!("data: {end}\n\ndata: [DONE]\n\n")
}

/// Returns whether the client asks for a stream.
pub(crate) fn wants_stream(exchange: &Exchange<'_>) -> bool {
    serde_json::from_str::<Value>(&exchange.request.body).is_ok_and(|body| body["stream"] == true)
}

/// Answers with the text, as a stream if the client asks for one.
pub(crate) fn say(exchange: &mut Exchange<'_>, text: &str) {
    if !wants_stream(exchange) {
        return exchange.json(&saying(text));
    }
    exchange.events();
    for word in text.split_inclusive(' ') {
        exchange.chunk(event(word));
    }
    exchange.chunk(last_events());
    exchange.end();
}

/// Records the spans that have ended.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<Vec<SpanRecord>>>);

impl Kept {
    pub(crate) fn records(&self) -> Vec<SpanRecord> {
        self.0.lock().expect("nobody panicked").clone()
    }
}

impl Backend for Kept {
    fn ended(&mut self, span: &SpanRecord) -> Result<(), BackendError> {
        self.0.lock().expect("nobody panicked").push(span.clone());
        Ok(())
    }
}
