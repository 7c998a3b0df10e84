//! A key that is repeated in an answer is not saved to the journal, and the turn can still be resumed.

use std::fs;

use serde_json::{Value, json};
use tympan_core::Prompt;
use tympan_core::wire::Protocol;
use tympan_runtime::{Journal, Runtime, TurnSettings, tool};

use crate::faults::Server;
use crate::runs;
use crate::runs::{event, inputs, last_events, model, prompt, runtime_with, wants_stream};

/// A secret that does not look like one, so it must be recognized by its value.
const KEY: &str = "Horse/Battery+staple";

const TEMPLATE: &str = "user:\nHi\n";

fn runtime() -> Runtime {
    runtime_with(&[("OPENAI_API_KEY", KEY)], |_| {})
}

/// Returns a prompt without a key, which uses the one from the environment.
fn keyless(runtime: &Runtime, server: &Server) -> (Prompt, TurnSettings) {
    let mut model = model(server, Protocol::OpenAiChat);
    let endpoint = model["connection"]["endpoint"].as_str().expect("an address").to_owned();
    model.as_object_mut().expect("a map").remove("connection");
    let mut settings = TurnSettings::default();
    settings.run.base_url = Some(endpoint);
    (prompt(runtime, &model, TEMPLATE), settings)
}

/// Returns the key in the forms in which a provider might repeat it.
fn forms() -> [String; 5] {
    let escaped: String = KEY.chars().map(|char| format!("\\u{:04x}", u32::from(char))).collect();
    let percent: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    [KEY.to_owned(), KEY.to_uppercase(), escaped, percent, "SG9yc2UvQmF0dGVyeStzdGFwbGU=".to_owned()]
}

fn holds_no_key(journal: &str, form: &str) {
    assert!(journal.contains("[REDACTED]"), "{form}: {journal}");
    for leak in ["orse/", "ORSE/", "attery", "ATTERY", "%48%6F", "u0048", "SG9yc2"] {
        assert!(!journal.contains(leak), "{form}: {leak} in {journal}");
    }
}

#[test]
fn an_answer_that_repeats_the_key_is_resumed_without_it() {
    for form in forms() {
        for streams in [false, true] {
            let text = format!("Your key is {form}.");
            let answer = text.clone();
            let server = Server::start(move |exchange| {
                if !wants_stream(exchange) {
                    return exchange.json(&runs::saying(&answer));
                }
                exchange.events();
                // One letter at a time, so that no event contains the key.
                let mut letters = [0; 4];
                answer.chars().for_each(|char| _ = exchange.chunk(event(char.encode_utf8(&mut letters)).as_bytes()));
                exchange.chunk(last_events().as_bytes());
                exchange.end();
            });
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("turn.journal");
            let runtime = runtime();
            let (prompt, mut settings) = keyless(&runtime, &server);
            settings.journal = Some(Journal::file(&path));
            if streams {
                settings.on_event = Some(std::sync::Arc::new(|_| {}));
            }
            let turn = runtime.turn(&prompt, inputs(), &settings).expect("it succeeds");
            // The caller receives the actual answer.
            assert_eq!(turn.run.outcome.to_json(), Value::from(text));
            holds_no_key(&fs::read_to_string(&path).expect("it is text"), &form);
            let resumed = runtime.resume(&prompt, &settings).expect("it goes on");
            // In base64, the last characters depend on the text that follows.
            let said = resumed.run.outcome.to_json().to_string();
            assert!(said.starts_with("\"Your key is [REDACTED]") && said.len() <= 28, "{form}: {said}");
        }
    }
}

#[test]
fn neither_errors_nor_tools_bring_the_key_into_a_journal() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = runtime();
    let failing = Server::start(|exchange| {
        let body = json!({ "error": { "message": format!("Incorrect key provided: {}", KEY.to_uppercase()) } });
        exchange.answer(401, "content-type: application/json\r\n", body.to_string());
    });
    let (prompt, mut settings) = keyless(&runtime, &failing);
    let path = folder.path().join("failed.journal");
    settings.journal = Some(Journal::file(&path));
    let error = runtime.turn(&prompt, inputs(), &settings).expect_err("it fails");
    assert!(!error.to_string().contains("HORSE"), "{error}");
    let journal = fs::read_to_string(&path).expect("it is text");
    assert!(!journal.contains("HORSE") && !journal.contains("Horse"), "{journal}");

    // A tool that repeats the prompt's key.
    let script = json!([{ "tool_calls": [{ "name": "t", "arguments": {} }] }, { "text": "done" }]);
    let model = json!({
        "provider": "echo", "connection": { "kind": "key", "apiKey": KEY },
        "options": { "additionalProperties": { "script": script } },
    });
    let front = json!({ "model": model, "tools": [{ "name": "t", "kind": "function", "parameters": [] }] });
    let prompt = runtime.load_str(&format!("---\n{front}\n---\nuser:\nHi\n"), "p.prompty", ".").expect("it loads");
    let path = folder.path().join("tool.journal");
    let telling = tool::function(|_| Ok::<_, String>(format!("It is {KEY}.")));
    let tools = [("t".to_owned(), telling)].into();
    let settings = TurnSettings { tools, journal: Some(Journal::file(&path)), ..TurnSettings::default() };
    runtime.turn(&prompt, inputs(), &settings).expect("it succeeds");
    holds_no_key(&fs::read_to_string(&path).expect("it is text"), "a tool");
    assert_eq!(runtime.resume(&prompt, &settings).expect("it goes on").rounds, 2);
}
