//! References to variables that are not set, with `LoadOptions::defer_env`.

use std::collections::HashMap;

use serde_json::json;
use tympan_core::spec::{Secret, ToolKind};
use tympan_runtime::{EnvPolicy, Error, LoadOptions, Prompt, RunOptions, Runtime, RuntimeOptions, TurnSettings};

fn runtime(load: LoadOptions) -> Runtime {
    let env_vars = Some(HashMap::from([("SET".to_owned(), "set".to_owned())]));
    Runtime::new(RuntimeOptions { load: LoadOptions { env_vars, ..load }, ..RuntimeOptions::default() })
}

fn deferring() -> Runtime {
    runtime(LoadOptions { defer_env: true, ..LoadOptions::default() })
}

fn load(runtime: &Runtime, front: &str) -> Prompt {
    let text = format!("---\n{front}\n---\nuser:\nHi {{{{ name }}}}\n");
    runtime.load_str(&text, "test.prompty", ".").expect("it loads")
}

fn assert_unset(error: &Error, name: &str, line: usize) {
    assert_eq!(error.code(), "env_not_set");
    assert_eq!(error.message(), format!("Environment variable '{name}' not set"));
    assert_eq!(error.line_column().map(|place| place.line), Some(line), "{name}");
}

#[test]
fn loading_fails_unless_references_are_deferred() {
    let text = "---\nname: ${env:UNSET}\n---\nHi\n";
    let error = runtime(LoadOptions::default()).load_str(text, "a.prompty", ".").expect_err("it is not set");
    assert_unset(&error, "UNSET", 2);
    let prompt = deferring().load_str(text, "a.prompty", ".").expect("it loads");
    assert_eq!(prompt.name(), Some("${env:UNSET}"));
    let found: Vec<_> = prompt.unresolved_env().iter().map(|found| found.variable.as_str()).collect();
    assert_eq!(found, ["UNSET"]);
}

#[test]
fn what_is_set_or_has_a_default_is_resolved() {
    let prompt = load(&deferring(), "name: ${env:SET}\ndescription: ${env:UNSET:default}");
    assert_eq!((prompt.name(), prompt.spec().description.as_deref()), (Some("set"), Some("default")));
    assert!(prompt.unresolved_env().is_empty());
}

#[test]
fn what_is_not_allowed_stays_an_error() {
    let options = LoadOptions { defer_env: true, env: EnvPolicy::allow(["SET"]), ..LoadOptions::default() };
    let text = "---\nname: ${env:UNSET}\n---\nHi\n";
    let error = runtime(options).load_str(text, "a.prompty", ".").expect_err("it is not allowed");
    assert_eq!(error.code(), "env_not_allowed");
}

#[test]
fn rendering_needs_only_the_defaults_that_it_uses() {
    let runtime = deferring();
    let front = "model: {id: m, provider: openai, connection: {kind: key, apiKey: '${env:KEY}'}}\ninputs:\n  name: {kind: \
                 string, default: '${env:NAME}'}";
    let prompt = load(&runtime, front);
    let rendered = runtime.render(&prompt, json!({"name": "Ada"})).expect("it renders");
    assert_eq!(rendered.text(), "user:\nHi Ada\n");
    assert_unset(&runtime.render(&prompt, json!({})).expect_err("the default is not known"), "NAME", 4);
    assert_unset(&prompt.validate_inputs(json!({})).expect_err("the default is not known"), "NAME", 4);
}

#[test]
fn requests_need_the_model_its_connection_and_the_declarations() {
    let cases = [
        ("model: {id: m, provider: openai, connection: {kind: key, apiKey: '${env:KEY}'}}", "KEY"),
        ("model: {id: '${env:ID}', provider: openai, connection: {kind: key, apiKey: k}}", "ID"),
        ("model: {id: m, provider: openai, options: {temperature: '${env:T}', stop: '${env:SET}'}}", "T"),
        ("model: {id: m, provider: openai, options: {cache: '${env:CACHE}'}}", "CACHE"),
        ("outputs: {a: {kind: string, description: '${env:D}'}}\nmodel: {id: m, provider: openai}", "D"),
        ("tools: [{name: f, kind: function, parameters: [], bindings: {a: '${env:B}'}}]\nmodel: m", "B"),
    ];
    for (front, name) in cases {
        let runtime = deferring();
        let prompt = load(&runtime, front);
        let messages = runtime.prepare(&prompt, json!({"name": "Ada"})).expect("it is prepared");
        let error = runtime.request(&prompt, &messages, &RunOptions::default(), false).expect_err(front);
        assert_unset(&error, name, 2);
        let error = runtime.run(&prompt, &messages).expect_err(front);
        assert_unset(&error, name, 2);
    }
    let runtime = deferring();
    let prompt = load(&runtime, "name: ${env:N}\nmetadata: {a: '${env:A}'}\nmodel: {id: m, provider: openai}");
    let messages = runtime.prepare(&prompt, json!({"name": "Ada"})).expect("it is prepared");
    let options = RunOptions { api_key: Some(Secret::new("key")), ..RunOptions::default() };
    runtime.request(&prompt, &messages, &options, false).expect("a request needs neither");
}

#[test]
fn a_tool_with_an_unresolved_connection_is_not_opened() {
    let runtime = deferring();
    let front = "model: {id: m, provider: echo}\ntools:\n  - name: docs\n    kind: mcp\n    serverName: docs\n    \
                 connection: {kind: key, endpoint: 'http://127.0.0.1:9', apiKey: '${env:TOKEN}'}";
    let prompt = load(&runtime, front);
    assert!(matches!(prompt.spec().tools[0].kind, ToolKind::Mcp { .. }));
    let error =
        runtime.turn(&prompt, json!({"name": "Ada"}), &TurnSettings::default()).expect_err("the token is not known");
    assert_unset(&error, "TOKEN", 7);
}

#[test]
fn unresolved_values_hash_like_references_as_written() {
    let front = "model: {id: '${ENV:ID}', options: {temperature: '${env:T}'}}\ntools: [{name: f, kind: function, \
                 description: '${env:D}', parameters: []}]";
    let deferred = load(&deferring(), front);
    let written = load(&runtime(LoadOptions { env: EnvPolicy::AsWritten, ..LoadOptions::default() }), front);
    assert_eq!(deferred.definition_hash(), written.definition_hash());
    assert_eq!(deferred.settings_hashes(), written.settings_hashes());
    assert_eq!(deferred.spec().to_json()["model"]["options"]["temperature"], "${env:T}");
}
