//! `fixtures/openapi`: documents, the functions built from them, and the requests of calls.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tympan_core::{Inputs, JsonMap};
use tympan_runtime::tool::openapi::{self, Service, ServiceOptions};
use tympan_runtime::{Runtime, TurnSettings};

use crate::faults;
use crate::faults::{Request, Server};
use crate::services::{call, call_one, prompt, runtime, runtime_with};

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

/// The endpoint of a connection overrides the servers of the document, whose paths are kept.
#[test]
fn an_endpoint_or_variables_say_where_a_service_is() {
    let hosted = json!([{
        "url": "{protocol}://{hostname}/api/v3",
        "variables": { "hostname": { "default": "HOSTNAME" }, "protocol": { "default": "http" } },
    }]);
    let bare = json!([{ "url": "{protocol}://{hostname}/api/v3" }]);
    let public = json!([{ "url": "https://api.example.com/v2" }, { "url": "https://eu.example.com/eu" }]);
    let cases = [
        (&hosted, Some("https://git.corp.example"), json!({}), "https://git.corp.example/api/v3/a"),
        (&hosted, Some("https://git.corp.example/api/v4/"), json!({}), "https://git.corp.example/api/v4/a"),
        (
            &hosted,
            None,
            json!({ "hostname": "git.corp.example", "protocol": "https" }),
            "https://git.corp.example/api/v3/a",
        ),
        (&hosted, None, json!({}), "http://hostname/api/v3/a"),
        (&bare, Some("https://git.corp.example:8443"), json!({}), "https://git.corp.example:8443/api/v3/a"),
        (&public, Some("https://staging.example.com"), json!({}), "https://staging.example.com/v2/a"),
        (&public, Some("https://eu.example.com"), json!({}), "https://eu.example.com/eu/a"),
        (&json!([]), Some("https://staging.example.com"), json!({}), "https://staging.example.com/a"),
    ];
    for (servers, endpoint, variables, expected) in cases {
        let document = json!({
            "openapi": "3.1.0", "info": {}, "servers": servers, "paths": { "/a": { "get": { "operationId": "a" } } },
        });
        let options = ServiceOptions {
            endpoint: endpoint.map(|endpoint| endpoint.parse().expect("an address")),
            variables: variables.as_object().cloned().expect("a map"),
            ..ServiceOptions::default()
        };
        let service = Service::new(&document, &options).expect("it is a service");
        let request = service.request("a", &JsonMap::new()).expect("it is a request");
        assert_eq!(request.url.as_str(), expected);
    }
}

/// Operations with a server of their own go to the endpoint if their server is the one that it overrides.
#[test]
fn servers_of_operations_are_overridden_too() {
    let operation = |id: &str, url: &str| json!({ "get": { "operationId": id, "servers": [{ "url": url }] } });
    let document = json!({
        "openapi": "3.1.0", "info": {}, "servers": [{ "url": "https://api.example.com/v2" }], "paths": {
            "/a": operation("a", "https://api.example.com/uploads"),
            "/b": operation("b", "https://uploads.example.com"),
            "/c": operation("c", "https://staging.example.com/own"),
        },
    });
    let endpoint = Some("https://staging.example.com".parse().expect("an address"));
    let service =
        Service::new(&document, &ServiceOptions { endpoint, ..ServiceOptions::default() }).expect("a service");
    let url = |name: &str| service.request(name, &JsonMap::new()).map(|request| request.url.to_string());
    assert_eq!(url("a").expect("it is there"), "https://staging.example.com/uploads/a");
    assert_eq!(url("c").expect("it is there"), "https://staging.example.com/own/c");
    assert_eq!(service.left_out()[0].reason, "the operation has its own server on another host");
}

/// A file comes from an input or a folder that the host allowed, and goes to the service as it is.
#[test]
fn files_are_uploaded() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("notes.txt"), "some notes").expect("it can be written");
    let runtime = runtime_with(|options| options.load.file_roots = vec![folder.path().to_path_buf()]);
    let schema = json!({ "type": "object", "properties": { "file": { "type": "string", "format": "binary" } } });
    let tool = json!({ "name": "service", "kind": "openapi", "specification": {
        "openapi": "3.0.0", "info": {}, "servers": [{ "url": server.url("") }], "paths": { "/a": { "post": {
            "operationId": "keep", "requestBody": { "content": { "multipart/form-data": { "schema": schema } } },
        } } },
    } });
    for (name, expected) in [("notes.txt", "some notes"), ("photo", "hi")] {
        let call = json!({ "name": "keep", "arguments": { "body": { "file": name } } });
        let script = json!([{ "tool_calls": [call] }, { "text": "Done." }]);
        let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
        let inputs = json!([{ "name": "photo", "kind": "image" }]);
        let front = json!({ "model": model, "inputs": inputs, "tools": [tool] });
        let text = format!("---\n{front}\n---\nuser:\n{{{{ photo }}}}\n");
        let prompt = runtime.load_str(&text, "p.prompty", ".").expect("it is a prompt");
        let inputs = json!({ "photo": "data:image/png;base64,aGk=" });
        runtime.turn(&prompt, inputs, &TurnSettings::default()).expect("it ends");
        let requests = server.requests();
        let sent = requests.last().expect("a request");
        assert!(sent.header("content-type").is_some_and(|kind| kind.starts_with("multipart/form-data; boundary=")));
        assert!(sent.body.contains(&format!("\r\n\r\n{expected}\r\n--")), "{}", sent.body);
    }
}

/// Attacks: a model names an input that is not a file, and a file's own type writes headers.
#[test]
fn only_rich_inputs_are_uploaded_and_their_types_write_no_headers() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let schema = json!({ "type": "object", "properties": { "file": { "type": "string", "format": "binary" } } });
    let tool = json!({ "name": "service", "kind": "openapi", "specification": {
        "openapi": "3.0.0", "info": {}, "servers": [{ "url": server.url("") }], "paths": { "/a": { "post": {
            "operationId": "keep", "requestBody": { "content": { "multipart/form-data": { "schema": schema } } },
        } } },
    } });
    let calls = ["note", "report"].map(|name| json!({ "name": "keep", "arguments": { "body": { "file": name } } }));
    let script = json!([{ "tool_calls": calls }, { "text": "Done." }]);
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let inputs = json!([{ "name": "note", "kind": "string" }, { "name": "report", "kind": "file" }]);
    let front = json!({ "model": model, "inputs": inputs, "tools": [tool] });
    let text = format!("---\n{front}\n---\nuser:\n{{{{ note }}}} {{{{ report }}}}\n");
    let runtime = runtime();
    let prompt = runtime.load_str(&text, "p.prompty", ".").expect("it is a prompt");
    let report = json!({ "value": "aGk=", "mediaType": "text/plain\r\nX-Evil: 1", "filename": "a\"\r\nX-Evil: 2" });
    let inputs = json!({ "note": "c2VjcmV0", "report": report });
    runtime.turn(&prompt, inputs, &TurnSettings::default()).expect("it ends");
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(!requests[0].body.contains("\nX-Evil") && !requests[0].body.contains("secret"), "{}", requests[0].body);
}
