//! The life cycle of a session, and messages that are not as they should be.

use serde_json::json;
use tympan_lsp::Exit;
use tympan_lsp::lsp_server::{ErrorCode, Request};

use crate::client::{Client, usual_params};

const URI: &str = "file:///workspace/a.prompty";

#[test]
fn requests_before_initialize_are_refused() {
    let mut client = Client::start();
    let error = client.request("textDocument/hover", json!({})).expect_err("it is too early");
    assert_eq!(error.code, ErrorCode::ServerNotInitialized as i32);
    client.open(URI, "Hi");
    let result = client.request("initialize", usual_params()).expect("it initializes");
    assert_eq!(result["serverInfo"]["name"], "tympan");
    let error = client.request("initialize", usual_params()).expect_err("once is enough");
    assert_eq!(error.code, ErrorCode::InvalidRequest as i32);
    client.shut_down();
}

#[test]
fn the_exit_is_clean_only_after_shutdown() {
    assert_eq!(Client::usual().exit(), Exit::Unclean);
    assert_eq!(Client::start().exit(), Exit::Unclean);
    assert_eq!(Client::usual().disconnect(), Exit::Unclean);
    let mut client = Client::usual();
    client.request("shutdown", json!(null)).expect("it shuts down");
    let error = client.request("textDocument/hover", json!({})).expect_err("it is shut down");
    assert_eq!(error.code, ErrorCode::InvalidRequest as i32);
    assert_eq!(client.exit(), Exit::Clean);
}

#[test]
fn unknown_methods_and_invalid_parameters_are_errors() {
    let mut client = Client::usual();
    let error = client.request("textDocument/moniker", json!({})).expect_err("it is unknown");
    assert_eq!(error.code, ErrorCode::MethodNotFound as i32);
    let error = client.request("textDocument/codeAction", json!({"textDocument": 5})).expect_err("it is invalid");
    assert_eq!(error.code, ErrorCode::InvalidParams as i32);
    let error = client.request("textDocument/codeAction", json!(null)).expect_err("it is invalid");
    assert_eq!(error.code, ErrorCode::InvalidParams as i32);
    client.notify("$/unknown", json!([1]));
    client.shut_down();
}

#[test]
fn requests_for_closed_documents_are_errors() {
    let mut client = Client::usual();
    let position = json!({"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0},
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}},
        "context": {"diagnostics": [], "includeDeclaration": true, "triggerKind": 1}, "newName": "x",
        "options": {"tabSize": 2, "insertSpaces": true}});
    let methods = METHODS;
    for method in methods {
        let error = client.request(method, position.clone()).expect_err("it is not open");
        assert_eq!(error.code, ErrorCode::InvalidParams as i32, "{method}: {error:?}");
    }
    client.change(URI, 2, json!([{"text": "Hi"}]));
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
    client.open(URI, "Hi {{ x");
    assert_eq!(client.diagnostics(URI)["version"], 1);
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": URI}}));
    assert_eq!(client.diagnostics(URI)["diagnostics"], json!([]));
    for method in methods {
        client.request(method, position.clone()).expect_err("it is closed");
    }
    client.shut_down();
}

/// The requests about a document.
const METHODS: &[&str] = &[
    "textDocument/codeAction",
    "textDocument/hover",
    "textDocument/completion",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/documentSymbol",
    "textDocument/semanticTokens/full",
    "textDocument/semanticTokens/range",
    "textDocument/inlayHint",
    "textDocument/codeLens",
    "textDocument/formatting",
];

#[test]
fn cancelled_requests_are_answered() {
    let mut client = Client::start();
    // All messages are in the queue before the server starts to answer.
    for message in [("initialize", 1), ("textDocument/codeAction", 2), ("shutdown", 3)] {
        let params = if message.0 == "initialize" { usual_params() } else { json!({}) };
        client.send(Request::new(message.1.into(), message.0.to_owned(), params));
    }
    client.notify("$/cancelRequest", json!({"id": 2}));
    client.notify("$/cancelRequest", json!({"id": "unknown"}));
    client.notify("$/cancelRequest", json!(null));
    client.answer(1).expect("it initializes");
    // Whether the cancellation arrived in time is up to the threads. There is one answer in both cases.
    let error = client.answer(2).expect_err("its parameters are invalid");
    assert!([ErrorCode::RequestCanceled as i32, ErrorCode::InvalidParams as i32].contains(&error.code), "{error:?}");
    client.answer(3).expect("it shuts down");
    assert_eq!(client.exit(), Exit::Clean);
}

#[test]
fn encodings_are_negotiated() {
    let cases = [
        (json!(["utf-16", "utf-8"]), "utf-8"),
        (json!(["utf-16"]), "utf-16"),
        (json!(["utf-32", "utf-16"]), "utf-16"),
        (json!(["utf-32"]), "utf-32"),
        (json!(["latin-1"]), "utf-16"),
        (json!(null), "utf-16"),
    ];
    for (offered, expected) in cases {
        let mut client = Client::start();
        let params = json!({"capabilities": {"general": {"positionEncodings": offered}}});
        let result = client.request("initialize", params).expect("it initializes");
        assert_eq!(result["capabilities"]["positionEncoding"], expected);
        client.open(URI, "---\nname: a\n---\nuser:\n🎈 {{ zz | nope }}");
        let diagnostics = client.diagnostics(URI);
        let filters = diagnostics["diagnostics"].as_array().expect("a list").iter();
        let mut filters = filters;
        let filter = filters.find(|diagnostic| diagnostic["code"] == "TY102").expect("the filter is unknown");
        let column = match expected {
            "utf-8" => 13,
            "utf-16" => 11,
            _ => 10,
        };
        assert_eq!(filter["range"]["start"], json!({"line": 4, "character": column}));
        client.shut_down();
    }
}

#[test]
fn fast_changes_are_checked_together() {
    let mut client = Client::usual();
    client.open(URI, "Hi");
    for version in 2..200 {
        client.change(URI, version, json!([{"text": format!("Hi {version}")}]));
    }
    client.change(URI, 200, json!([{"text": "{{ name"}]));
    let mut checks = 1;
    while client.diagnostics(URI)["version"] != 200 {
        checks += 1;
    }
    // How many depends on the threads. It is never more than one for each version.
    assert!(checks <= 200);
    client.shut_down();
}

#[test]
fn changes_of_files_and_folders_are_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = tempfile::tempdir().expect("a folder");
    std::fs::write(other.path().join("secret.json"), "{}").expect("it is written");
    let uri = |path: &std::path::Path| format!("file://{}", path.display());
    let mut params = usual_params();
    params["workspaceFolders"] = json!([{"uri": uri(folder.path()), "name": "w"}]);
    params["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] = json!(true);
    let mut client = Client::initialized(params);

    let codes = |client: &mut Client, uri: &str| {
        let params = client.diagnostics(uri);
        let found = params["diagnostics"].as_array().expect("a list").iter();
        found.map(|found| found["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>()
    };
    let text = |path: &str| format!("---\nname: a\nmetadata: ${{file:{path}}}\n---\nuser:\nHi");
    let document = uri(&folder.path().join("a.prompty"));
    client.open(&document, &text("b.json"));
    let missing = codes(&mut client, &document);
    assert_eq!(missing, ["TY014"]);
    std::fs::write(folder.path().join("b.json"), "{}").expect("it is written");
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": []}));
    assert!(codes(&mut client, &document).is_empty());

    // Neither a document nor a reference may leave the workspace.
    let outside = format!("{}/secret.json", other.path().display());
    client.change(&document, 2, json!([{"text": text(&outside)}]));
    assert_eq!(codes(&mut client, &document), ["TY015"]);
    let document = uri(&other.path().join("a.prompty"));
    client.open(&document, &text("secret.json"));
    assert_eq!(codes(&mut client, &document), ["TY015"]);
    let added = json!({"event": {"added": [{"uri": uri(other.path()), "name": "o"}], "removed": []}});
    client.notify("workspace/didChangeWorkspaceFolders", added);
    assert!(codes(&mut client, &document).is_empty());
    client.shut_down();
}

#[test]
fn findings_of_tests_follow_the_unsaved_prompt() {
    let folder = tempfile::tempdir().expect("a folder");
    let prompt_text =
        |name: &str| format!("---\ninputs: [{{name: {name}, kind: string}}]\n---\nuser:\n{{{{ {name} }}}}");
    std::fs::write(folder.path().join("a.prompty"), prompt_text("page")).expect("it is written");
    let uri = |name: &str| format!("file://{}/{name}", folder.path().display());
    let (prompt, tests, other) = (uri("a.prompty"), uri("a.test.yaml"), uri("b.prompty"));
    let mut client = Client::usual();
    let codes = |client: &mut Client| {
        let params = client.diagnostics(&tests);
        let found = params["diagnostics"].as_array().expect("a list").iter();
        found.map(|found| found["code"].as_str().expect("a code").to_owned()).collect::<Vec<_>>()
    };
    client.open(&other, "user:\nHi");
    client.open(&tests, "cases:\n  - inputs: {page: x}\n    expect: [{messages: 1}]\n");
    assert!(codes(&mut client).is_empty(), "the file on disk has this input");
    client.open(&prompt, &prompt_text("page"));
    assert!(codes(&mut client).is_empty());
    client.diagnostics(&prompt);

    client.change(&prompt, 2, json!([{"text": prompt_text("title")}]));
    assert_eq!(codes(&mut client), ["TY504"]);
    client.change(&prompt, 3, json!([{"text": "---\ninputs: [\n---\nuser:\nHi"}]));
    assert_eq!(codes(&mut client), ["TY503"]);
    client.change(&tests, 2, json!([{"text": "cases:\n  - inputs: {page: x}\n    expect: [{messages: [}]\n"}]));
    assert_eq!(codes(&mut client), ["TY501"]);
    client.change(&tests, 3, json!([{"text": "cases:\n  - inputs: {page: x}\n    expect: [{messages: 1}]\n"}]));
    assert_eq!(codes(&mut client), ["TY503"]);
    // Without the unsaved text, the file counts again.
    client.notify("textDocument/didClose", json!({"textDocument": {"uri": prompt}}));
    assert!(codes(&mut client).is_empty());

    // A change of another document is no reason to check the tests again.
    client.diagnostics(&other);
    client.change(&other, 2, json!([{"text": "user:\nHello"}]));
    client.diagnostics(&other);
    client.request("shutdown", json!(null)).expect("it shuts down");
    let published = client.notifications("textDocument/publishDiagnostics");
    assert!(published.iter().all(|params| params["uri"] != tests), "{published:?}");
    assert_eq!(client.exit(), Exit::Clean);
}

#[test]
fn a_changed_prompt_is_checked_before_its_tests() {
    let folder = tempfile::tempdir().expect("a folder");
    let uri = |name: &str| format!("file://{}/{name}", folder.path().display());
    let (prompt, tests) = (uri("z.prompty"), uri("z.test.yaml"));
    let mut client = Client::usual();
    client.open(&prompt, "user:\n{{ a }}");
    client.diagnostics(&prompt);
    client.open(&tests, "cases:\n  - inputs: {a: x}\n    expect: [{messages: 1}]\n");
    client.diagnostics(&tests);
    client.change(&prompt, 2, json!([{"text": "user:\n{{ b }}"}]));
    assert_eq!(client.diagnostics(&tests)["diagnostics"][0]["code"], "TY505");
    let published = client.notifications("textDocument/publishDiagnostics");
    assert!(published.iter().any(|params| params["uri"] == prompt && params["version"] == 2), "{published:?}");
    client.shut_down();
}

#[test]
fn unsaved_files_outside_of_the_workspace_are_not_read() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("workspace");
    std::fs::create_dir_all(&folder).expect("a folder");
    let uri = |path: &std::path::Path| format!("file://{}", path.display());
    let mut params = usual_params();
    params["workspaceFolders"] = json!([{"uri": uri(&folder), "name": "w"}]);
    for is_saved in [false, true] {
        let secret = outer.path().join("secret.prompty");
        if is_saved {
            std::fs::write(&secret, "user:\n{{ secret }}").expect("it is written");
        }
        let mut client = Client::initialized(params.clone());
        client.open(&uri(&secret), "user:\n{{ secret }}");
        let tests = uri(&folder.join("a.test.yaml"));
        client.open(&tests, "prompt: ../secret.prompty\ncases:\n  - inputs: {nope: x}\n    expect: [{messages: 1}]\n");
        assert_eq!(client.diagnostics(&tests)["diagnostics"][0]["code"], "TY015");
        let position = json!({"textDocument": {"uri": tests}, "position": {"line": 2, "character": 15}});
        let found = client.request("textDocument/completion", position).expect("completions");
        assert_eq!(found["items"], json!([]));
        client.shut_down();
    }
}

#[test]
fn tests_run_only_in_a_trusted_workspace() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("a.prompty"), "user:\nHi").expect("it is written");
    let uri = format!("file://{}/a.test.yaml", folder.path().display());
    for trusted in [true, false] {
        let mut params = usual_params();
        params["initializationOptions"] = json!({"trusted": trusted});
        let mut client = Client::initialized(params);
        client.open(&uri, "cases:\n  - expect: [{messages: 1}]\n");
        let lenses = client.request("textDocument/codeLens", json!({"textDocument": {"uri": uri}})).expect("lenses");
        let commands = lenses.as_array().expect("a list").iter().map(|lens| lens["command"]["command"].clone());
        let expected: &[&str] = if trusted { &["tympan.test", "tympan.test"] } else { &[] };
        assert_eq!(commands.collect::<Vec<_>>(), expected);
        // The server itself runs no tests.
        let params = json!({"command": "tympan.test", "arguments": [uri]});
        let error = client.request("workspace/executeCommand", params).expect_err("it does not run tests");
        assert_eq!(error.code, ErrorCode::InvalidParams as i32);
        client.shut_down();
    }
}

#[test]
fn other_files_are_left_alone() {
    let mut client = Client::usual();
    for (uri, text) in [("file:///w/a.yaml", "a: [1\n"), ("file:///w/a.md", "# Hi"), ("file:///w/a.json", "{")] {
        client.open(uri, text);
        assert_eq!(client.diagnostics(uri)["diagnostics"], json!([]), "{uri}");
    }
    // A definition that is broken while it is open is still one.
    let uri = "file:///w/b.yaml";
    client.open(uri, "name: a\nrole: user\nbody: Hi\n");
    assert_eq!(client.diagnostics(uri)["diagnostics"], json!([]));
    client.change(uri, 2, json!([{"text": "name: a\nrole: user\nbody: [Hi\n"}]));
    assert_ne!(client.diagnostics(uri)["diagnostics"], json!([]));
    client.shut_down();
}

#[test]
fn settings_are_read_up_to_the_folder_of_the_workspace() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("workspace");
    std::fs::create_dir_all(folder.join("prompts")).expect("a folder");
    std::fs::write(outer.path().join("tympan.toml"), "[check]\nignore = [\"TY102\"]\n").expect("it is written");
    let uri = |path: &std::path::Path| format!("file://{}", path.display());
    let mut params = usual_params();
    params["workspaceFolders"] = json!([{"uri": uri(&folder), "name": "w"}]);
    let mut client = Client::initialized(params);
    let document = uri(&folder.join("prompts/a.prompty"));
    client.open(&document, "user:\n{{ 'x' | shout }}");
    // The file above the workspace does not count.
    assert_eq!(client.diagnostics(&document)["diagnostics"][0]["code"], "TY102");
    let settings = "[check]\nfilters = [\"shout\"]\n";
    std::fs::write(folder.join("tympan.toml"), settings).expect("it is written");
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": []}));
    assert_eq!(client.diagnostics(&document)["diagnostics"], json!([]));
    let position = json!({"textDocument": {"uri": document}, "position": {"line": 1, "character": 9}});
    let found = client.request("textDocument/completion", position).expect("completions");
    let mut labels = found["items"].as_array().expect("a list").iter().map(|item| &item["label"]);
    assert!(labels.any(|label| label == "shout"));

    let policy = "[check]\nfilters = [\"shout\"]\n\n[policy.messages]\nuntrusted = [\"assistant\"]\n";
    std::fs::write(folder.join("tympan.toml"), policy).expect("it is written");
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": []}));
    client.diagnostics(&document);
    client.change(&document, 2, json!([{"text": "user:\n{{ question }}"}]));
    assert_eq!(client.diagnostics(&document)["diagnostics"][0]["code"], "TY320");

    let models = "[models.house-model]\ncontext = 1\n";
    std::fs::write(folder.join("tympan.toml"), models).expect("it is written");
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": []}));
    client.diagnostics(&document);
    client.change(&document, 3, json!([{"text": "---\nmodel:\n  id: house-model\n---\nuser:\nHello there"}]));
    assert_eq!(client.diagnostics(&document)["diagnostics"][0]["code"], "TY402");
    let position = json!({"textDocument": {"uri": document}, "position": {"line": 2, "character": 6}});
    let found = client.request("textDocument/completion", position).expect("completions");
    let labels: Vec<_> = found["items"].as_array().expect("a list").iter().map(|item| &item["label"]).collect();
    assert!(["gpt-4o", "claude-sonnet-4-5", "house-model"].iter().all(|model| labels.contains(&&json!(model))));

    let settings = uri(&folder.join("tympan.toml"));
    client.open(&settings, "[check]\nfiltres = []\n");
    let found = client.diagnostics(&settings);
    assert_eq!(found["diagnostics"][0]["range"]["start"], json!({"line": 1, "character": 0}));
    assert_eq!(found["diagnostics"].as_array().map(Vec::len), Some(1));
    client.shut_down();
}

#[test]
fn running_needs_a_trusted_workspace() {
    for trusted in [true, false] {
        let mut params = usual_params();
        params["initializationOptions"] = json!({"trusted": trusted});
        let mut client = Client::initialized(params);
        client.open(URI, "user:\nHi");
        let lenses = client.request("textDocument/codeLens", json!({"textDocument": {"uri": URI}})).expect("lenses");
        let commands: Vec<_> =
            lenses.as_array().expect("a list").iter().map(|lens| &lens["command"]["command"]).collect();
        let expected: &[&str] = if trusted { &["tympan.render", "tympan.run"] } else { &["tympan.render"] };
        assert_eq!(commands, expected);
        // The server itself never runs anything.
        let params = json!({"command": "tympan.run", "arguments": [URI]});
        let error = client.request("workspace/executeCommand", params).expect_err("it does not run prompts");
        assert_eq!(error.code, ErrorCode::InvalidParams as i32);
        client.shut_down();
    }
}

#[test]
fn files_of_the_workspace_are_suggested() {
    let outer = tempfile::tempdir().expect("a folder");
    let folder = outer.path().join("workspace");
    std::fs::create_dir_all(folder.join("data")).expect("a folder");
    std::fs::write(folder.join("data/a.json"), "{}").expect("it is written");
    std::fs::write(outer.path().join("secret.json"), "{}").expect("it is written");
    let uri = |path: &std::path::Path| format!("file://{}", path.display());
    let mut params = usual_params();
    params["workspaceFolders"] = json!([{"uri": uri(&folder), "name": "w"}]);
    let mut client = Client::initialized(params);
    let document = uri(&folder.join("a.prompty"));
    let mut labels = |written: &str| {
        client.open(&document, &format!("---\nmetadata: ${{file:{written}\n---\nuser:\nHi"));
        let character = "metadata: ${file:".len() + written.len();
        let position = json!({"textDocument": {"uri": document}, "position": {"line": 1, "character": character}});
        let found = client.request("textDocument/completion", position).expect("completions");
        let items = found["items"].as_array().expect("a list").iter();
        items.map(|item| item["label"].as_str().expect("a label").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(labels(""), ["data/"]);
    assert_eq!(labels("data/"), ["a.json"]);
    assert!(labels("../").is_empty());
    assert!(labels("/").is_empty());
    client.shut_down();
}
