//! OpenAPI tools with malicious servers, documents and models.

use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tympan_core::spec::{Connection, ConnectionKind, Secret};
use tympan_core::{ContentPart, Inputs};
use tympan_runtime::tool::openapi::{self, Service, ServiceOptions};
use tympan_runtime::{Kind, Runtime, TurnSettings};

use crate::faults;
use crate::faults::{Exchange, Server};
use crate::runs::{Kept, PLAIN_KEY};
use crate::services::{call, call_one, parts, prompt, runtime, runtime_with, status};
use crate::shared;

/// Returns the document of a service with one operation, `go`, that takes a path, a header and a query, and requires a
/// key.
fn document(server: &Server) -> Value {
    json!({
        "openapi": "3.1.0",
        "info": { "title": "t", "version": "1" },
        "servers": [{ "url": server.url("/v1") }],
        "security": [{ "key": [] }, {}],
        "paths": {
            "/go": { "get": { "operationId": "go" }, "post": { "operationId": "post" } },
            "/go/{id}": { "get": { "operationId": "go_to", "parameters": [
                { "name": "id", "in": "path", "required": true, "schema": { "type": "string" } },
                { "name": "X-Note", "in": "header", "schema": { "type": "string" } },
                { "name": "q", "in": "query", "schema": { "type": "string" } },
            ] } },
        },
        "components": { "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } } },
    })
}

fn tool(server: &Server) -> Value {
    let connection = json!({ "kind": "key", "apiKey": PLAIN_KEY });
    json!({ "specification": document(server), "connection": connection })
}

#[test]
fn nobody_is_followed_elsewhere() {
    let other = Server::start(|exchange| exchange.json("{}"));
    let to = other.url("/elsewhere?token=SECRET-TOKEN");
    let server = Server::start(move |exchange: &mut Exchange<'_>| {
        let code = [301, 302, 303, 307, 308, 304][exchange.number % 6];
        exchange.answer(code, &format!("Location: {to}\r\n"), "");
    });
    for code in [301, 302, 303, 307, 308] {
        let (told, is_error) = status(&runtime(), &tool(&server), "go", json!({}));
        assert!(is_error && told.contains(&format!("status {code}")), "{told}");
        assert!(
            told.contains(&format!("to http://localhost:{}/elsewhere: redirects are not followed", other.port)),
            "{told}"
        );
        assert!(!told.contains("SECRET"), "{told}");
    }
    assert_eq!((other.connections(), server.requests().len()), (0, 5));
}

#[test]
fn answers_without_end_are_cut_off() {
    let server = Server::start(|exchange: &mut Exchange<'_>| match exchange.number {
        // A response with a huge length, one without a length, and one with endless text.
        0 => drop(exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n")),
        _ => {
            exchange.write("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
            while exchange.chunk([b'a'; 65_536]) {}
            exchange.close();
        }
    });
    for _ in 0..2 {
        let (told, is_error) = status(&runtime(), &tool(&server), "go", json!({}));
        assert!(is_error && told.contains("too large"), "{told}");
    }
    // The limit includes data in socket buffers.
    assert!(server.written() < 64 << 20, "{} bytes", server.written());
}

#[test]
fn a_bomb_does_not_go_off() {
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..64 {
        bomb.write_all(&[b' '; 1 << 20]).expect("there is room");
    }
    let bomb = bomb.finish().expect("there is room");
    let server = Server::start(move |exchange| {
        exchange.answer(200, "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", &bomb);
    });
    let (told, is_error) = status(&runtime(), &tool(&server), "go", json!({}));
    assert!(is_error && told.contains("more than 8388608 bytes"), "{told}");
    let mut fetched = tool(&server);
    fetched["specification"] = json!(server.url("/openapi.json"));
    let error = call(&runtime(), &fetched, &[]).expect_err("it is too large");
    assert_eq!(error.kind(), Kind::ToolUnavailable, "{error}");
}

#[test]
fn compression_is_undone() {
    let server = Server::start(move |exchange| {
        let mut body = GzEncoder::new(Vec::new(), Compression::fast());
        body.write_all(b"{\n  \"a\": [1,  2]\n}\n").expect("there is room");
        let body = body.finish().expect("there is room");
        exchange.answer(200, "Content-Type: application/json\r\nContent-Encoding: gzip\r\n", body);
    });
    assert_eq!(call_one(&runtime(), &tool(&server), "go", json!({})), r#"{"a":[1,2]}"#);
}

#[test]
fn a_server_that_hangs_is_left() {
    let silent = Server::start(|exchange| exchange.stall());
    let runtime = runtime_with(|options| options.http.first_byte_timeout = Duration::from_millis(50));
    let (told, is_error) = status(&runtime, &tool(&silent), "go", json!({}));
    assert!(is_error && told.contains("after 0.05 s"), "{told}");
    // On a busy machine, the time limit may expire before the request is sent. A request that may have been processed
    // is not retried.
    assert!(silent.requests().len() <= 1);
    let halting = Server::start(|exchange: &mut Exchange<'_>| {
        exchange.write("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
        exchange.stall();
    });
    let runtime = runtime_with(|options| options.http.idle_timeout = Duration::from_millis(50));
    let (told, is_error) = status(&runtime, &tool(&halting), "go", json!({}));
    assert!(is_error && told.contains("after 0.05 s"), "{told}");
    halting.wait_until_left();
    assert_eq!(halting.requests().len(), 1);
}

#[test]
fn connections_that_break_are_told() {
    let server = Server::start(|exchange: &mut Exchange<'_>| exchange.reset());
    for name in ["go", "post"] {
        let (told, is_error) = status(&runtime(), &tool(&server), name, json!({}));
        assert!(is_error && told.contains("localhost"), "{told}");
    }
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn arguments_change_neither_path_nor_headers() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let (runtime, tool) = (runtime(), tool(&server));
    let hostile = ["..", ".", "../admin", "a/../../admin", "/../x", "..\\x", "x/..", "..;/x", "", "a/./b"];
    for id in hostile {
        let (told, is_error) = status(&runtime, &tool, "go_to", json!({ "id": id }));
        assert!(is_error && told.contains("a path parameter cannot"), "{id}: {told}");
    }
    for note in ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b", "é"] {
        let (told, is_error) = status(&runtime, &tool, "go_to", json!({ "id": "x", "X-Note": note }));
        assert!(is_error && told.contains("a header must be one line of ASCII"), "{told}");
    }
    let (told, is_error) = status(&runtime, &tool, "go_to", json!({ "id": "x", "q": "é".repeat(4_000) }));
    assert!(is_error && told.contains("the URL would be too long"), "{told}");
    assert_eq!(server.requests().len(), 0);
    let odd = [
        "%2e%2e",
        "%2e%2e%2fadmin",
        "a b",
        "x?y=z",
        "x#y",
        "@evil.example",
        "//evil.example/",
        "http://evil.example",
        "\u{2025}",
        "\u{ff0e}\u{ff0e}",
        "a\r\nHost: evil",
        "{id}",
        "a:b",
        "[x]",
        "'\"<>|^`",
        "%",
        "%zz",
        "\u{0}",
        "é",
    ];
    for id in odd {
        assert_eq!(call_one(&runtime, &tool, "go_to", json!({ "id": id, "q": id })), "{}", "{id}");
        let request = server.requests().pop().expect("it was sent");
        let line = request.head.lines().next().unwrap_or_default();
        let path = line.strip_prefix("GET /v1/go/").and_then(|line| line.strip_suffix(" HTTP/1.1")).expect(line);
        let (path, query) = path.split_once("?q=").expect(line);
        assert!(!path.contains(['/', '?', '#', '\\', ' ']) && !query.contains(['&', '=', '#', ' ']), "{id}: {line}");
        assert_eq!(percent_decoded(path), id, "{line}");
        assert_eq!(percent_decoded(query), id, "{line}");
        assert_eq!(request.header("host"), Some(format!("localhost:{}", server.port).as_str()));
    }
}

fn percent_decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().expect("it is UTF-8").into_owned()
}

#[test]
fn the_key_goes_out_and_never_comes_back() {
    use base64::Engine;
    let server = Server::start(|exchange: &mut Exchange<'_>| {
        let sent = exchange.request.header("authorization").unwrap_or_default().to_owned();
        let encoded = base64::engine::general_purpose::STANDARD.encode(&sent);
        let path = exchange.request.head.clone();
        let json = json!({ "headers": { "authorization": sent }, sent.clone(): 1, "base64": encoded, "path": path });
        match exchange.number % 6 {
            0 => exchange.json(&json.to_string()),
            1 => exchange.answer(401, "Content-Type: application/json\r\n", json.to_string()),
            2 => exchange.answer(302, &format!("Location: http://evil.example/{PLAIN_KEY}?k={PLAIN_KEY}\r\n"), ""),
            3 => exchange.answer(200, "Content-Type: text/plain\r\n", format!("it is {PLAIN_KEY}.")),
            4 => exchange.answer(500, "", format!("{}{PLAIN_KEY}", "x".repeat(3_990))),
            _ => exchange.answer(200, &format!("Content-Type: {PLAIN_KEY}\r\n"), [0xff, 0x00]),
        }
    });
    let runtime = runtime();
    let kept = Kept::default();
    runtime.tracer().add("kept", kept.clone()).expect("there are threads");
    let mut seen = String::new();
    for _ in 0..6 {
        seen += &format!("{:?}", status(&runtime, &tool(&server), "go", json!({})));
    }
    assert!(runtime.tracer().flush(Duration::from_secs(60)));
    assert!(
        server
            .requests()
            .iter()
            .all(|request| { request.header("authorization") == Some(format!("Bearer {PLAIN_KEY}").as_str()) })
    );
    let spans = format!("{:?}", kept.records());
    assert!(spans.contains("execute_tool"), "{spans}");
    for leak in [PLAIN_KEY, "battery", "Y29ycmVjdC1ob3"] {
        assert!(!seen.contains(leak), "{leak}: {seen}");
        assert!(!spans.contains(leak), "{leak}: {spans}");
    }
    assert!(seen.contains("[REDACTED]"), "{seen}");
}

fn registered(endpoint: Option<&str>) -> Connection {
    Connection {
        kind: ConnectionKind::Key,
        name: None,
        endpoint: endpoint.map(str::to_owned),
        api_key: Some(Secret::new(PLAIN_KEY)),
        extra: Default::default(),
    }
}

/// A prompt names a connection that the host registered. Its document must not decide where the key is sent.
#[test]
fn a_key_of_the_host_goes_where_the_host_says() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let runtime = runtime();
    let mut tool = tool(&server);
    tool["connection"] = json!({ "kind": "reference", "name": "shop", "endpoint": server.url("") });
    let attempt = |endpoint: Option<&str>| {
        runtime.register_connection("shop", registered(endpoint));
        call(&runtime, &tool, &[("go", json!({}))])
    };
    assert_eq!(attempt(None).expect_err("nobody vouches").kind(), Kind::UntrustedEndpoint);
    // The address of the host wins over those of the document and of the prompt.
    let other = Server::start(|exchange| exchange.json("[]"));
    let key = format!("Bearer {PLAIN_KEY}");
    assert_eq!(attempt(Some(&other.url(""))).expect("the host says so"), ["[]"]);
    assert_eq!(other.requests()[0].header("authorization"), Some(key.as_str()));
    assert_eq!(server.connections(), 0);
    assert_eq!(attempt(Some(&server.url(""))).expect("it is the host"), ["{}"]);
    assert_eq!(server.requests()[0].header("authorization"), Some(key.as_str()));
}

/// The server of a document must not receive a key that is meant for another server.
#[test]
fn a_document_from_elsewhere_does_not_say_where_a_key_goes() {
    let service = Server::start(|exchange| exchange.json("{}"));
    let text = document(&service).to_string();
    let documents = Server::start(move |exchange| exchange.json(&text));
    let runtime = runtime();
    let mut tool = tool(&service);
    tool["specification"] = json!(documents.url("/openapi.json?token=SECRET"));
    let error = call(&runtime, &tool, &[("go", json!({}))]).expect_err("nobody vouches");
    assert_eq!(error.kind(), Kind::UntrustedEndpoint, "{error}");
    assert_eq!(service.connections(), 0);
    // The key is for the service, so the server of the document does not receive it either.
    assert!(documents.requests().iter().all(|request| request.header("authorization").is_none()));
    tool["connection"]["endpoint"] = json!(service.url(""));
    assert_eq!(call(&runtime, &tool, &[("go", json!({}))]).expect("the author says so"), ["{}"]);
    tool["connection"] = json!({ "kind": "anonymous", "apiKey": PLAIN_KEY });
    assert_eq!(call(&runtime, &tool, &[("go", json!({}))]).expect("there is no key"), ["{}"]);
    assert_eq!(service.requests()[1].header("authorization"), None);
}

/// Whoever writes the document describes the tools to the model.
#[test]
fn a_document_from_elsewhere_is_untrusted_content() {
    let service = Server::start(|exchange| exchange.json("{}"));
    let text = document(&service).to_string();
    let documents = Server::start(move |exchange| exchange.json(&text));
    for (specification, is_trusted) in [(document(&service), true), (json!(documents.url("/openapi.json")), false)] {
        let tool = json!({ "specification": specification });
        let runtime = runtime();
        let prompt = prompt(&runtime, &tool, &[("go", json!({}))]);
        let run = runtime.turn(&prompt, Inputs::new(), &TurnSettings::default()).expect("it ends well");
        let before = run.labels[1].union();
        assert_eq!(before.trusted, is_trusted, "before the model called anything: {before:?}");
    }
}

#[test]
fn a_document_that_cannot_be_fetched_is_an_error_before_the_model_is_called() {
    let server = Server::start(|exchange: &mut Exchange<'_>| match exchange.number {
        0 => exchange.answer(404, "", "SECRET"),
        1 => exchange.answer(302, "Location: http://169.254.169.254/\r\n", ""),
        2 => exchange.answer(200, "", "<html>SECRET"),
        3 => exchange.answer(200, "", [0xff, 0xfe]),
        _ => exchange.reset(),
    });
    for number in 0..5 {
        let tool = json!({ "specification": server.url("/openapi.json?token=SECRET") });
        let error = call(&runtime(), &tool, &[]).expect_err("there is no document");
        assert_eq!(error.kind(), Kind::ToolUnavailable, "{number}: {error}");
        assert!(error.message().contains("/openapi.json"), "{number}: {error}");
        assert!(!faults::client::shown(&error).contains("SECRET"), "{number}: {error:?}");
    }
}

/// The addresses of the corpus: as a server, as the connection's endpoint, and as the address of the document.
#[test]
fn private_addresses_are_blocked() {
    let runtime = Runtime::default();
    let mut count = 0;
    for case in shared::attacks().iter().filter(|case| case["surface"] == "tool_url") {
        let Some(address) = case["inputs"]["openapi_server_url"].as_str() else { continue };
        count += 1;
        let paths = json!({ "/": { "get": { "operationId": "go" } } });
        let with_server = json!({ "openapi": "3.1.0", "info": {}, "servers": [{ "url": address }], "paths": paths });
        let without = json!({ "openapi": "3.1.0", "info": {}, "paths": paths });
        let mut tools = vec![
            json!({ "specification": with_server }),
            json!({ "specification": without, "connection": { "kind": "key", "endpoint": address } }),
        ];
        if address.starts_with("http://") {
            tools.push(json!({ "specification": address }));
        }
        for tool in tools {
            let error = call(&runtime, &tool, &[("go", json!({}))]).expect_err(address);
            assert_eq!(json!(error.code()), case["expect"]["code"], "{}: {error}", case["id"]);
        }
    }
    assert!(count == 0 || count >= 8, "{count} cases");
    // A name for this machine, in an otherwise harmless document.
    let server = Server::start(|exchange| exchange.json("{}"));
    let error = call(&runtime, &tool(&server), &[("go", json!({}))]).expect_err("it is private");
    assert_eq!((error.kind(), server.connections()), (Kind::BlockedDestination, 0));
}

#[test]
fn files_are_read_by_the_rules_for_references() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).expect("there is room");
    let server = Server::start(|exchange| exchange.json("{}"));
    std::fs::write(inner.join("service.json"), document(&server).to_string()).expect("there is room");
    std::fs::write(folder.path().join("outside.json"), document(&server).to_string()).expect("there is room");
    std::fs::write(inner.join("broken.yaml"), "openapi: 3.1.0\npaths: {a: [}\n").expect("there is room");
    std::os::unix::fs::symlink("../outside.json", inner.join("link.json")).expect("links work here");
    let file = inner.join("test.prompty");
    let runtime = runtime();
    let turn = |specification: &str| {
        let script = json!([{ "tool_calls": [{ "name": "go", "arguments": {} }] }, { "text": "Done." }]);
        let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
        let tool = json!({ "name": "service", "kind": "openapi", "specification": specification });
        let front = json!({ "name": "test", "model": model, "tools": [tool] });
        std::fs::write(&file, format!("---\n{front}\n---\nuser:\nGo on.\n")).expect("there is room");
        let run = runtime.turn(file.as_path(), Inputs::new(), &TurnSettings::default())?;
        Ok::<_, tympan_runtime::Error>(run.messages.len())
    };
    assert_eq!(turn("service.json").expect("it is there"), 4);
    assert_eq!(turn("./service.json").expect("it is there"), 4);
    for (path, kind) in [
        ("../outside.json", Kind::FileOutsideRoot),
        ("link.json", Kind::FileOutsideRoot),
        ("/etc/hostname", Kind::FileOutsideRoot),
        ("missing.json", Kind::ReferencedFileNotFound),
        ("file:///etc/hostname", Kind::InvalidReferencedFile),
        ("broken.yaml", Kind::ToolUnavailable),
    ] {
        let error = turn(path).expect_err(path);
        assert_eq!(error.kind(), kind, "{path}: {error}");
    }
    let error = turn("broken.yaml").expect_err("it is broken");
    assert!(error.message().contains("broken.yaml, line 2"), "{error}");
}

#[test]
fn hostile_documents_are_bounded() {
    let service = |text: &str| {
        let document = openapi::read("hostile", text)?;
        let options = ServiceOptions { name: "hostile".into(), ..ServiceOptions::default() };
        Service::new(&document, &options)
    };
    // Aliases that multiply, and deep nesting.
    let mut bomb = "openapi: 3.1.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{below}]\n");
    }
    let deep_yaml = format!("openapi: 3.1.0\nx: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_json = format!(r#"{{"openapi": "3.1.0", "x": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let many = format!(r#"{{"openapi": "3.1.0", "x": [{}0]}}"#, "[],".repeat(2_000_000));
    let long = format!("openapi: 3.1.0\nx: '{}'", "y".repeat(9 << 20));
    let cases = [
        (bomb, "more than 100000 values, including those repeated by aliases"),
        (deep_yaml, "cannot parse the document"),
        (deep_json, "cannot parse the document"),
        (many, "more than 1000000 values"),
        (long, "larger than 8388608 bytes"),
        ("[1]".to_owned(), "cannot parse the document"),
        ("just text".to_owned(), "cannot parse the document"),
        (String::new(), "not an OpenAPI document"),
    ];
    for (text, reason) in cases {
        let error = service(&text).expect_err("it is too much");
        assert!(error.kind() == Kind::ToolUnavailable && error.message().contains(reason), "{error}");
        assert!(faults::client::shown(&error).len() < 2_000);
    }
    // References that double at each level: 2^64 schemas if they were expanded.
    let mut schemas = serde_json::Map::new();
    for level in 0..64 {
        let next = json!({ "$ref": format!("#/components/schemas/s{}", level + 1) });
        schemas.insert(format!("s{level}"), json!({ "type": "object", "properties": { "a": next, "b": next } }));
    }
    schemas.insert("s64".into(), json!({ "type": "string" }));
    schemas.insert("loop".into(), json!({ "$ref": "#/components/schemas/loop" }));
    // Very many properties, and very long names and lists, each repeated many times.
    let wide: serde_json::Map<_, _> = (0..50_000).map(|number| (format!("m{number}"), json!({}))).collect();
    schemas.insert("wide".into(), json!({ "properties": wide }));
    schemas.insert("name".into(), json!({ "properties": { "n".repeat(100_000): {} }, "type": "t".repeat(100_000) }));
    schemas.insert("names".into(), json!({ "required": ["r".repeat(100_000)], "enum": ["e".repeat(100_000)] }));
    schemas.insert("list".into(), json!({ "anyOf": vec![json!(true); 200_000] }));
    let beside = json!({ "$ref": "#/components/schemas/s64", "default": "d".repeat(100_000), "k".repeat(100_000): 1 });
    schemas.insert("beside".into(), json!({ "properties": { "a": beside } }));
    for name in ["wide", "name", "names", "list", "beside"] {
        let one = json!({ "$ref": format!("#/components/schemas/{name}") });
        schemas.insert(format!("many_{name}"), json!({ "anyOf": vec![one; 1_000] }));
    }
    let body = |name: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "content": { "application/json": { "schema": schema } } })
    };
    let mut document = json!({
        "openapi": "3.0.0", "servers": [{ "url": "https://a.example.com" }],
        "paths": { "/a": {
            "post": { "operationId": "doubles", "requestBody": body("s0") },
            "put": { "operationId": "loops", "requestBody": body("loop") },
            "get": { "operationId": "wide", "requestBody": body("many_wide") },
            "head": { "operationId": "name", "requestBody": body("many_name") },
            "patch": { "operationId": "names", "requestBody": body("many_names") },
            "delete": { "operationId": "list", "requestBody": body("many_list") },
            "options": { "operationId": "beside", "requestBody": body("many_beside") },
        } },
        "components": { "schemas": schemas },
    });
    for version in ["3.0.0", "3.1.0"] {
        document["openapi"] = json!(version);
        let service = service(&document.to_string()).expect("it is a service");
        for function in service.functions() {
            let size = function.parameters.to_string().len();
            assert!(size < 300_000, "{}: {size} bytes", function.name);
        }
        assert_eq!(service.functions().count(), 7);
    }
    // As many operations as a document can have, all with the same name.
    let paths: serde_json::Map<_, _> =
        (0..100_000).map(|number| (format!("/{number}"), json!({ "put": { "operationId": "same" } }))).collect();
    let document = json!({ "openapi": "3.0.0", "servers": [{ "url": "https://a.example.com" }], "paths": paths });
    let options = ServiceOptions { operations: Some(vec!["same_7".into()]), ..ServiceOptions::default() };
    let error = Service::new(&document, &options).expect_err("there are too many");
    assert!(error.message().contains("more than 2000 operations"), "{error}");
}

/// Descriptions for people and models contain no terminal control characters and are limited in length.
#[test]
fn descriptions_are_bounded() {
    let document = json!({
        "openapi": "3.1.0", "servers": [{ "url": "https://a.example.com" }],
        "paths": { "/a": { "get": {
            "description": format!("\u{1b}[31m{}", "x".repeat(100_000)),
            "parameters": [{ "name": "p", "in": "query", "description": "y".repeat(100_000), "schema": {} }],
        } } },
    });
    let service = Service::new(&document, &ServiceOptions::default()).expect("it is a service");
    let function = service.functions().next().expect("there is one");
    let text = format!("{:?}{}", function.description, function.parameters);
    assert!(text.len() < 3_000 && !text.contains('\u{1b}'), "{} bytes", text.len());
}

#[test]
fn pictures_and_other_bytes() {
    let server = Server::start(|exchange: &mut Exchange<'_>| match exchange.number {
        0 => exchange.answer(200, "Content-Type: image/PNG; x=y\r\n", [0x89, b'P', b'N', b'G']),
        1 => exchange.answer(200, "Content-Type: image/svg+xml\r\n", "<svg/>"),
        2 => exchange.answer(200, "Content-Type: application/octet-stream\r\n", [0xff, 0x00]),
        3 => exchange.answer(200, "", "{\"a\": [1.00, 12345678901234567890123 ], \"b \\\" \\\\\": \"c  d\"\n}"),
        _ => exchange.answer(204, "", ""),
    });
    let one = || parts(&runtime(), &tool(&server), &[("go", json!({}))]).expect("the turn ends well").remove(0);
    match one() {
        ContentPart::Image(image) => {
            assert_eq!((image.value.as_str(), image.media_type.as_deref()), ("iVBORw==", Some("image/png")));
        }
        other => panic!("expected a picture, found {other:?}"),
    }
    assert_eq!(one().as_text(), Some("<svg/>"));
    assert!(one().as_text().is_some_and(|text| text.contains("2 bytes of `application/octet-stream`")));
    assert_eq!(one().as_text(), Some(r#"{"a":[1.00,12345678901234567890123],"b \" \\":"c  d"}"#));
    assert_eq!(one().as_text(), Some("Done: status 204, empty response."));
}

/// No output of a document or a connection contains the key.
#[test]
fn nothing_prints_the_key() {
    let server = Server::start(|exchange| exchange.json("{}"));
    let runtime = runtime();
    let mut broken = tool(&server);
    broken["connection"]["apiKey"] = json!(format!("{PLAIN_KEY}\nX-Evil: 1"));
    let (told, is_error) = status(&runtime, &broken, "go", json!({}));
    assert!(is_error && told.contains("the key contains characters that are not allowed in HTTP headers"), "{told}");
    assert!(!told.contains(PLAIN_KEY), "{told}");
    let shown = format!("{:?}", prompt(&runtime, &tool(&server), &[]));
    assert!(!shown.contains(PLAIN_KEY), "{shown}");
    assert_eq!(server.connections(), 0);
}
