//! `fixtures/openapi`: documents, the functions built from them, and the requests of calls.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tympan_core::{Inputs, JsonMap};
use tympan_runtime::tool::openapi::{self, Service, ServiceOptions};
use tympan_runtime::{Runtime, TurnSettings};

use crate::faults;
use crate::faults::{Request, Server};
use crate::services::{call, call_one, prompt, runtime};

/// The server that the documents name.
const HOST: &str = "https://api.example.com";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/openapi")
}

fn cases(folder: &Path) -> Vec<(PathBuf, Value)> {
    let entries =
        std::fs::read_dir(folder).expect("the fixtures are there").map(|entry| entry.expect("it is there").path());
    let files = entries.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let read = |path: PathBuf| {
        let text = std::fs::read(&path).expect("it can be read");
        let case = serde_json::from_slice(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path, case)
    };
    files.map(read).collect()
}

/// Returns the document of a case, which is in the case itself or in a file next to it.
fn document(case: &Value) -> Value {
    let Some(file) = case["document"].as_str() else { return case["document"].clone() };
    let text = std::fs::read_to_string(folder().join(file)).expect("the document is there");
    openapi::read(file, &text).expect("it can be read")
}

fn service(case: &Value) -> Service {
    let strings = |key: &str| {
        let listed = case["tool"][key].as_array()?;
        Some(listed.iter().map(|name| name.as_str().expect("a name").to_owned()).collect())
    };
    let options = ServiceOptions {
        name: "the document".into(),
        operations: strings("operations"),
        prefix: case["tool"]["prefix"].as_str().unwrap_or_default().to_owned(),
        ..ServiceOptions::default()
    };
    Service::new(&document(case), &options).expect("it is a service")
}

#[test]
fn documents_become_functions() {
    let cases = cases(&folder());
    assert!(cases.len() >= 7, "{} cases", cases.len());
    for (path, case) in cases {
        let service = service(&case);
        let names: Vec<_> = service.functions().map(|function| function.name.clone()).collect();
        if let Some(expected) = case["names"].as_array() {
            assert_eq!(json!(names), json!(expected), "{}", path.display());
        }
        for expected in case["functions"].as_array().into_iter().flatten() {
            let name = expected["name"].as_str().expect("a name");
            let found = service.functions().find(|function| function.name == name);
            let found = found.unwrap_or_else(|| panic!("{}: no {name} in {names:?}", path.display()));
            assert_eq!(json!(found.description), expected["description"], "{} {name}", path.display());
            let (found, expected) = (&found.parameters, &expected["parameters"]);
            assert_eq!(found, expected, "{} {name}:\n{found:#}\nexpected:\n{expected:#}", path.display());
        }
        if case["names"].is_null() {
            assert_eq!(names.len(), case["functions"].as_array().map_or(0, Vec::len), "{}: {names:?}", path.display());
        }
        let left_out: JsonMap =
            service.left_out().iter().map(|left| (left.operation.clone(), json!(left.reason))).collect();
        let expected = case["left_out"].as_object().cloned().unwrap_or_default();
        assert_eq!(json!(left_out), json!(expected), "{}", path.display());
    }
}

#[test]
fn calls_become_requests() {
    for (path, case) in cases(&folder()) {
        let server = Server::start(|exchange| exchange.json("{}"));
        let runtime = runtime();
        let mut tool = if case["tool"].is_object() { case["tool"].clone() } else { json!({}) };
        let text = document(&case)
            .to_string()
            .replace(HOST, &server.url(""))
            .replace("https://{region}.example.com", &server.url("").replace("localhost", "{region}"));
        let text = text.replace(r#""default":"api""#, r#""default":"localhost""#);
        tool["specification"] = serde_json::from_str(&text).expect("it is still JSON");
        for request in case["requests"].as_array().into_iter().flatten() {
            let name = request["call"].as_str().expect("a name");
            let before = server.requests().len();
            let told = call_one(&runtime, &tool, name, request["arguments"].clone());
            let sent = server.requests().split_off(before);
            let place = format!("{} {name} {}", path.display(), request["arguments"]);
            match request["refused"].as_str() {
                Some(reason) => {
                    assert!(told.contains(reason), "{place}: {told}");
                    assert_eq!(sent.len(), 0, "{place}: {sent:?}");
                }
                None => {
                    assert_eq!((told.as_str(), sent.len()), ("{}", 1), "{place}");
                    check_request(&place, request, &sent[0]);
                }
            }
        }
    }
}

fn check_request(place: &str, expected: &Value, sent: &Request) {
    let line = sent.head.lines().next().and_then(|line| line.strip_suffix(" HTTP/1.1")).unwrap_or_default();
    assert_eq!(line, expected["line"].as_str().expect("a line"), "{place}");
    for (name, value) in expected["headers"].as_object().into_iter().flatten() {
        let found = sent.header(name);
        match value.as_str() {
            Some("*") => assert!(found.is_some(), "{place}: no {name}"),
            value => assert_eq!(found, value, "{place}: {name}"),
        }
    }
    if let Some(body) = expected["body"].as_str() {
        assert_eq!(sent.body, body, "{place}");
    }
    let is_repeatable = !line.starts_with("POST") && !line.starts_with("PATCH");
    assert_eq!(sent.header("idempotency-key").is_none(), is_repeatable, "{place}");
}

#[test]
fn what_is_wrong_is_said_before_a_model_is_called() {
    let cases = cases(&folder().join("errors"));
    assert!(cases.len() >= 20, "{} cases", cases.len());
    for (path, case) in cases {
        let mut tool = if case["tool"].is_object() { case["tool"].clone() } else { json!({}) };
        tool["specification"] = case["document"].clone();
        let error = call(&Runtime::default(), &tool, &[]).expect_err(&path.display().to_string());
        let shown = faults::client::shown(&error);
        assert_eq!(error.code(), case["code"].as_str().expect("a code"), "{}: {shown}", path.display());
        assert!(error.message().contains(case["says"].as_str().expect("what it says")), "{}: {shown}", path.display());
        let help = error.help().unwrap_or_default();
        assert!(help.contains(case["helps"].as_str().unwrap_or_default()), "{}: {shown}", path.display());
        assert!(!shown.contains("hidden-key"), "{}: {shown}", path.display());
    }
}

/// A model only sees the selected functions, and no other operation can be called.
#[test]
fn only_operations_that_were_chosen_can_be_called() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let runtime = runtime();
    let specification = json!({
        "openapi": "3.1.0", "info": {}, "servers": [{ "url": server.url("") }],
        "paths": { "/a": { "get": { "operationId": "look" }, "delete": { "operationId": "remove" } } },
    });
    for chosen in ["look", "GET /a"] {
        let tool = json!({ "specification": specification, "operations": [chosen] });
        let prompt = prompt(&runtime, &tool, &[("look", json!({})), ("remove", json!({}))]);
        let error = runtime.turn(&prompt, Inputs::new(), &TurnSettings::default()).expect_err("it is not declared");
        assert_eq!((error.code(), error.message()), ("tool_not_registered", "Tool not registered: remove"), "{chosen}");
        assert_eq!(call_one(&runtime, &tool, "look", json!({})), "{}");
    }
    let lines: Vec<_> =
        server.requests().iter().filter(|request| request.head.starts_with("DELETE")).cloned().collect();
    assert_eq!(lines.len(), 0, "{lines:?}");
}

/// A parameter that the prompt binds is neither shown to the model nor set by it.
#[test]
fn parameters_can_be_bound() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let tool = json!({
        "specification": {
            "openapi": "3.1.0", "info": {}, "servers": [{ "url": server.url("/v1") }],
            "paths": { "/a": { "get": { "operationId": "look", "parameters": [
                { "name": "tenant", "in": "query", "required": true, "schema": { "type": "string" } },
                { "name": "q", "in": "query", "schema": { "type": "string" } },
            ] } } },
        },
        "bindings": { "tenant": "ours" },
    });
    let told = call_one(&runtime(), &tool, "look", json!({ "q": "x", "tenant": "theirs" }));
    assert_eq!(told, "{}");
    let requests = server.requests();
    assert!(requests[0].head.starts_with("GET /v1/a?tenant=ours&q=x "), "{requests:?}");
}
