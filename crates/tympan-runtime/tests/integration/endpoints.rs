//! Where keys and other values from the environment are sent: the cases of `fixtures/endpoints`, against a real server.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Value, json};
use tympan_core::wire::compatible::PROVIDERS;
use tympan_runtime::tool::ToolAddresses;
use tympan_runtime::{
    Cassette, EnvFile, Error, Inputs, Journal, Kind, LoadOptions, Result, RunOptions, Runtime, RuntimeOptions,
    TurnSettings,
};

use crate::faults::Server;
use crate::faults::client::{Waits, options, shown};
use crate::runs;
use crate::runs::say;

/// Returns the cases. A case that applies to all providers is repeated for each of them.
fn cases(server: &str) -> Vec<(String, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/endpoints/endpoints.json");
    let text = std::fs::read_to_string(path).expect("the cases are there");
    let data: Value = serde_json::from_str(&text).expect("they are JSON");
    let providers = data["providers"].as_array().expect("a list");
    let port = server.rsplit(':').next().unwrap_or_default();
    let mut cases = Vec::new();
    for case in data["cases"].as_array().expect("a list") {
        let text = case.to_string().replace("{server}", server).replace("{port}", port);
        let needs = |what: &str| text.contains(what);
        for row in providers {
            if needs("{address}") && row["address"].is_null() {
                continue;
            }
            let fill = |text: &str, name: &str| text.replace(&format!("{{{name}}}"), row[name].as_str().unwrap_or(""));
            let filled = ["provider", "key", "address"].iter().fold(text.clone(), |text, name| fill(&text, name));
            let case: Value = serde_json::from_str(&filled).expect("it is JSON still");
            cases.push((format!("{}, {} {}", case["name"], row["provider"], row["key"]), case));
            if !needs("{provider}") {
                break;
            }
        }
    }
    assert!(cases.len() > 100, "{}", cases.len());
    cases
}

fn variables(map: &Value) -> HashMap<String, String> {
    serde_json::from_value(map.clone()).unwrap_or_default()
}

fn runtime_of(case: &Value) -> Runtime {
    let files = case["files"].as_array().into_iter().flatten().enumerate();
    let env_files = files.map(|(at, file)| EnvFile { name: format!("{at}/.env"), variables: variables(file) });
    Runtime::new(RuntimeOptions {
        load: LoadOptions {
            env_vars: Some(variables(&case["host"])),
            env_files: env_files.collect(),
            ..LoadOptions::default()
        },
        http: options(&Waits::default()),
        tool_addresses: ToolAddresses { allow_private: true, ..ToolAddresses::default() },
        allow_endpoints: serde_json::from_value(case["allow"].clone()).unwrap_or_default(),
        ..RuntimeOptions::default()
    })
}

/// Runs every operation that sends a request for a case. Returns the outcomes in order.
fn attempts(case: &Value) -> Vec<Result<()>> {
    let runtime = runtime_of(case);
    let template = case["template"].as_str().unwrap_or("user:\nHello.\n");
    let text = format!("---\n{}\n---\n{template}", case["front"]);
    let prompt = runtime.load_str(&text, "case.prompty", ".").expect("it is a prompt");
    let run = RunOptions { base_url: case["base_url"].as_str().map(str::to_owned), ..RunOptions::default() };
    let settings = TurnSettings { run: run.clone(), ..TurnSettings::default() };
    let turn = || runtime.turn(&prompt, Inputs::new(), &settings).map(|_| ());
    if case["tools"] == true {
        return vec![turn()];
    }
    let messages = runtime.prepare(&prompt, Inputs::new()).expect("it renders");
    let mut attempts = vec![
        runtime.run_with(&prompt, &messages, &run).map(|_| ()),
        runtime.stream(&prompt, &messages, &run).map(|_| ()),
        runtime.list_models(Some(&prompt), &run).map(|_| ()),
    ];
    if prompt.spec().tools.is_empty() {
        attempts.push(turn());
    }
    attempts
}

#[test]
fn values_go_where_their_source_or_the_host_says() {
    // A 400 response is never retried.
    let server = Server::start(|exchange| exchange.answer(400, "", "no"));
    for (name, case) in cases(&format!("http://127.0.0.1:{}", server.port)) {
        for (at, attempt) in attempts(&case).into_iter().enumerate() {
            let is_refused = attempt.as_ref().is_err_and(|error| error.kind() == Kind::UntrustedEndpoint);
            match case["expect"].as_str() {
                Some("sent") => assert!(!is_refused, "{name}, {at}: {attempt:?}"),
                Some("refused") => {
                    assert!(is_refused, "{name}, {at}: {attempt:?}");
                    check_error(&name, &case, &attempt.expect_err("it is refused"), server.port);
                }
                other => panic!("{name}: {other:?}"),
            }
        }
    }
}

/// Checks that the error names the variables, the address and the flag, but no value.
fn check_error(name: &str, case: &Value, error: &Error, port: u16) {
    let text = shown(error);
    assert!(!text.to_ascii_lowercase().contains("canary"), "{name}: {text}");
    let flag = format!("--allow-endpoint http://127.0.0.1:{port}");
    let names = case["names"].as_array().expect("a refusal names something").iter().filter_map(Value::as_str);
    for part in names.chain([flag.as_str(), "RuntimeOptions::allow_endpoints"]) {
        assert!(text.contains(part), "{name}: {part}: {text}");
    }
}

#[test]
fn what_is_refused_is_not_sent_and_what_is_not_refused_is() {
    let refused = Server::start(|exchange| exchange.answer(400, "", "no"));
    for (_, case) in cases(&format!("http://127.0.0.1:{}", refused.port)) {
        if case["expect"] == "refused" {
            attempts(&case);
        }
    }
    assert_eq!(refused.connections(), 0);
    let server = Server::start(|exchange| exchange.answer(400, "", "no"));
    for (name, case) in cases(&format!("http://127.0.0.1:{}", server.port)) {
        if case["expect"] == "sent" {
            let before = server.requests().len();
            attempts(&case);
            assert!(server.requests().len() > before, "{name}");
        }
    }
}

#[test]
fn every_provider_is_among_the_cases() {
    let tried: HashSet<_> = cases("http://127.0.0.1:1")
        .into_iter()
        .filter_map(|(_, case)| case["front"]["model"]["provider"].as_str().map(str::to_owned))
        .collect();
    for row in PROVIDERS {
        assert!(tried.contains(row.name), "{}", row.name);
    }
    let text = cases("http://127.0.0.1:1").into_iter().map(|(_, case)| case.to_string()).collect::<String>();
    for name in PROVIDERS.iter().flat_map(|row| row.key_variables.iter().chain(&row.base_url_variable)) {
        assert!(text.contains(&format!("\"{name}\"")), "{name}");
    }
}

/// A replay sends nothing, so there is nothing to reject.
#[test]
fn a_replay_needs_no_leave() {
    let empty = tempfile::tempdir().expect("a directory");
    let runtime = runs::runtime_with(&[("TOKEN", "canary")], |options| {
        options.cassette = Some(Cassette::Replay(empty.path().to_owned()));
    });
    let connection = json!({ "kind": "key", "endpoint": "http://127.0.0.1:1", "apiKey": "${env:TOKEN}" });
    let prompt = runs::prompt(&runtime, &json!({ "id": "m", "connection": connection }), runs::TEMPLATE);
    let error = runtime.invoke(&prompt, runs::inputs()).expect_err("nothing is recorded");
    assert_ne!(error.kind(), Kind::UntrustedEndpoint, "{error:?}");
}

/// A recording is sent like any other request, and the host does not receive a request that it must not send.
#[test]
fn recordings_and_requests_go_through_the_same_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let runtime = runs::runtime_with(&[("TOKEN", "canary")], |options| {
        options.cassette = Some(Cassette::Record(directory.path().to_owned()));
    });
    let connection = json!({ "kind": "key", "endpoint": "http://127.0.0.1:1", "apiKey": "${env:TOKEN}" });
    let prompt = runs::prompt(&runtime, &json!({ "id": "m", "connection": connection }), runs::TEMPLATE);
    let error = runtime.invoke(&prompt, runs::inputs()).expect_err("it is refused");
    assert_eq!(error.kind(), Kind::UntrustedEndpoint);
    let request = runtime.request(&prompt, &[], &RunOptions::default(), false);
    assert_eq!(request.expect_err("it is refused").kind(), Kind::UntrustedEndpoint);
}

/// A key passed by the caller is not sent to an address that only the prompt names.
#[test]
fn a_key_of_the_caller_needs_an_address_of_the_caller() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let runtime = runs::runtime(&[]);
    let connection = json!({ "kind": "key", "endpoint": server.url("/v1") });
    let prompt = runs::prompt(&runtime, &json!({ "id": "m", "connection": connection }), runs::TEMPLATE);
    let mut run = RunOptions { api_key: Some(tympan_core::spec::Secret::new("canary")), ..RunOptions::default() };
    let error = runtime.invoke_with(&prompt, runs::inputs(), &run).expect_err("it is refused");
    assert_eq!(error.kind(), Kind::UntrustedEndpoint);
    assert_eq!(server.connections(), 0);
    run.base_url = Some(server.url("/v1"));
    runtime.invoke_with(&prompt, runs::inputs(), &run).expect("it is sent");
}

fn write(directory: &Path, name: &str, front: &Value, template: &str) {
    std::fs::write(directory.join(name), format!("---\n{front}\n---\n{template}")).expect("it can be written");
}

/// A value that a prompt read from the environment taints the conversations of all related prompts.
#[test]
fn prompts_that_call_each_other_share_what_they_carry() {
    let server = Server::start(|exchange| exchange.answer(400, "", "no"));
    let literal = json!({ "kind": "key", "endpoint": server.url("/v1"), "apiKey": "own" });
    let own = json!({ "id": "m", "provider": "openai", "connection": literal });
    let echo = json!({ "id": "m", "provider": "echo" });
    let call = json!({ "tool_calls": [{ "name": "child", "arguments": {} }] });
    let script = json!({ "script": [call, { "text": "Done." }] });
    let calling = json!({ "id": "m", "provider": "echo", "options": { "additionalProperties": script }});
    let token = json!([{ "name": "token", "kind": "string", "default": "${env:TOKEN}" }]);
    let child = json!([{ "name": "child", "kind": "prompty", "path": "child.prompty", "mode": "agentic" }]);
    let grandchild = json!([{ "name": "child", "kind": "prompty", "path": "grandchild.prompty", "mode": "agentic" }]);
    let plain = json!({ "model": echo });
    let secret = json!({ "model": echo, "inputs": token });
    let families = [
        // The child's result is visible to the parent's model.
        (
            json!({ "model": own, "tools": child }),
            json!({ "model": echo, "description": "${env:TOKEN}" }),
            plain.clone(),
        ),
        // The parent has the value, and its child has a different address.
        (json!({ "model": calling, "tools": child, "inputs": token }), json!({ "model": own }), plain.clone()),
        // The value comes from or goes to a more distant descendant.
        (
            json!({ "model": calling, "tools": child, "inputs": token }),
            json!({ "model": calling, "tools": grandchild }),
            json!({ "model": own }),
        ),
        (json!({ "model": calling, "tools": child }), json!({ "model": own, "tools": grandchild }), secret),
    ];
    for (at, (parent, child, grandchild)) in families.into_iter().enumerate() {
        for (variables, is_refused) in [(vec![("TOKEN", "canary-token")], true), (vec![], false)] {
            let directory = tempfile::tempdir().expect("a directory");
            let without = |front: &Value| match is_refused {
                true => front.clone(),
                // The same prompts without the value are accepted.
                false => front.to_string().replace("${env:TOKEN}", "none").parse().expect("it is JSON"),
            };
            write(directory.path(), "parent.prompty", &without(&parent), "user:\nGo. {{ token|default('') }}\n");
            write(directory.path(), "child.prompty", &without(&child), "user:\nGo. {{ token|default('') }}\n");
            write(directory.path(), "grandchild.prompty", &without(&grandchild), "user:\n{{ token|default('') }}\n");
            let runtime = runs::runtime(&variables);
            let before = server.connections();
            let prompt = runtime.load(directory.path().join("parent.prompty")).expect("it loads");
            let turn = runtime.turn(&prompt, Inputs::new(), &TurnSettings::default());
            assert_eq!(server.connections() == before, is_refused, "{at}: {turn:?}");
        }
    }
}

#[test]
fn a_journal_does_not_name_an_address() {
    let server = Server::start(|exchange| say(exchange, "Fine."));
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("turn.journal");
    let variables = [("OPENAI_API_KEY", "canary-key")];
    let model = json!({ "id": "m", "provider": "openai" });
    let settings = |base_url: Option<&str>| TurnSettings {
        run: RunOptions { base_url: base_url.map(str::to_owned), ..RunOptions::default() },
        journal: Some(Journal::at(&path).expect("a journal")),
        ..TurnSettings::default()
    };
    let url = server.url("/v1");
    let runtime = runs::runtime(&variables);
    let prompt = |runtime: &Runtime| runs::prompt(runtime, &model, runs::TEMPLATE);
    runtime.turn(&prompt(&runtime), runs::inputs(), &settings(Some(&url))).expect("it is sent");
    let error = runtime.resume(&prompt(&runtime), &settings(None)).expect_err("only the journal names it");
    assert_eq!(error.kind(), Kind::UntrustedEndpoint);
    let text = shown(&error);
    assert!(text.contains(&url) && text.contains("--base-url") && text.contains("--allow-endpoint"), "{text}");
    runtime.resume(&prompt(&runtime), &settings(Some(&url))).expect("it is named again");
    let allowing = runs::runtime_with(&variables, |options| options.allow_endpoints = vec![server.url("")]);
    allowing.resume(&prompt(&allowing), &settings(None)).expect("it is allowed");
    let usual = runs::runtime(&[variables[0], ("OPENAI_BASE_URL", &url)]);
    usual.resume(&prompt(&usual), &settings(None)).expect("it is the host's anyway");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn earlier_files_go_before_later_ones() {
    let file = |name: &str, value: &str| EnvFile {
        name: name.to_owned(),
        variables: HashMap::from([("A".to_owned(), value.to_owned()), (name.to_owned(), String::new())]),
    };
    let options = LoadOptions {
        env_vars: Some(HashMap::from([("B".to_owned(), String::new())])),
        env_files: vec![file("first", "secret-1"), file("second", "secret-2")],
        env_defaults: HashMap::from([("A".to_owned(), "3".to_owned()), ("C".to_owned(), "3".to_owned())]),
        ..LoadOptions::default()
    };
    let found = |name: &str| options.variable(name).map(|(value, source)| format!("{value} {source}"));
    assert_eq!(found("A").as_deref(), Some("secret-1 `first`"));
    assert_eq!(found("second").as_deref(), Some(" `second`"));
    assert_eq!(found("B").as_deref(), Some(" the environment"));
    assert_eq!(found("C").as_deref(), Some("3 `env_defaults`"));
    assert!(!format!("{options:?}").contains("secret-1"));
}
