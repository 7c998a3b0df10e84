//! Counts, tests, revisions, traces and journals.

use std::process::Command;

use serde_json::json;
use tympan_runtime::{Journal, Runtime, TurnSettings};

use crate::client::{ECHO, Server};

#[test]
fn tokens_are_counted_by_writer() {
    let server = Server::start(&[("a.prompty", "---\nmodel: {id: gpt-4o}\n---\nsystem:\nBe brief.\n\nuser:\n{{ q }}")]);
    let page = server.page();
    let counted = page.post("/api/count", &json!({"path": "a.prompty", "inputs": {"q": "Who are you?"}})).json();
    let model = &counted["models"][0];
    assert_eq!((&model["model"], &model["exact"]), (&json!("gpt-4o"), &json!(true)));
    assert_eq!(model["messages"][1]["writers"][0]["inputs"], json!(["q"]));
    assert!(model["context_share"].is_f64() && model["cost"].is_f64() && counted["prices_date"].is_string());
    let failed = page.post("/api/count", &json!({"path": "a.prompty"}));
    assert_eq!((failed.status, &failed.json()["error"]["code"]), (422, &json!("undefined_variable")));
}

#[test]
fn tests_run_with_their_verdicts() {
    let tests = "cases:\n- {name: good, inputs: {q: Ada}, expect: [{message: {in: user, contains: Ada}}]}\n\
        - {name: bad, inputs: {q: Ada}, answer: echo, expect: [{result: {contains: Bo}}]}\n\
        - {name: later, skip: not yet, inputs: {q: Ada}, expect: [{result: {contains: Ada}}]}\n\
        - {name: live, provider: openai, model: m, inputs: {q: Ada}, expect: [{result: {contains: Ada}}]}";
    let outside = "prompt: ../outside.prompty\ncases: [{expect: [{result: {contains: x}}]}]";
    let server = Server::start(&[("a.prompty", ECHO), ("a.test.yaml", tests), ("b.test.yaml", outside)]);
    let page = server.page();
    let mut events = page.stream("POST", "/api/test", &json!({"path": "a.test.yaml"}));
    let mut verdicts = Vec::new();
    let summary = loop {
        match events.next().expect("it goes on") {
            (name, data) if name == "case" => verdicts.push((data["name"].clone(), data["verdict"].clone())),
            (_, data) => break data["summary"].clone(),
        }
    };
    let expected = [("good", "passed"), ("bad", "failed"), ("later", "skipped"), ("live", "not_run")];
    assert_eq!(verdicts, expected.map(|(name, verdict)| (json!(name), json!(verdict))));
    assert_eq!(summary, json!({"total": 4, "passed": 1, "failed": 1, "not_run": 1, "skipped": 1}));
    assert!(matches!(page.post("/api/test", &json!({"path": "b.test.yaml"})).status, 403 | 404 | 422));
    assert_eq!(page.post("/api/test", &json!({"path": "a.prompty"})).status, 400);
}

#[test]
fn files_of_revisions_are_read() {
    let server = Server::start(&[("sub/a.prompty", "user:\nBefore"), ("secret.txt", "hidden"), ("package.json", "{}")]);
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(server.folder.path()).args(["-c", "user.name=t", "-c", "user.email=t@example.com"]);
        let output = command.args(arguments).output().expect("git runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    let page = server.page();
    let diff = |path: &str, revision: &str| page.get(&format!("/api/diff?path={path}&rev={revision}"));
    assert_eq!(diff("sub/a.prompty", "HEAD").status, 400, "it is not a repository");
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "x"]);
    server.write("sub/a.prompty", "user:\nAfter");
    let found = diff("sub/a.prompty", "HEAD").json();
    assert_eq!((&found["text"], found["commit"].as_str().map(str::len)), (&json!("user:\nBefore"), Some(40)));
    assert_eq!(diff("sub/missing.prompty", "HEAD").status, 404);
    for (path, revision) in [
        ("sub/a.prompty", "--output=x"),
        ("sub/a.prompty", "-h"),
        ("sub/a.prompty", "HEAD:secret.txt"),
        ("sub/a.prompty", "HEAD%20x"),
        ("sub/a.prompty", "nothing"),
        ("sub/a.prompty", ""),
        ("package.json", "HEAD"),
        ("secret.txt", "HEAD"),
    ] {
        let response = diff(path, revision);
        assert!(
            (400..500).contains(&response.status) && !response.body.contains("hidden"),
            "{path} {revision}: {response:?}"
        );
    }
}

#[test]
fn traces_are_trees_of_spans() {
    let trace = r#"{"runtime": "rust", "version": "1", "trace": {"name": "run", "inputs": {"q": "Hi"},
        "__time": {"start": "2026-01-01T00:00:01.500000Z", "duration": 5.0}, "__frames": [{"name": "call",
        "__time": {"start": "2026-01-01T00:00:01.750000Z", "duration": 2.0}, "__frames": [],
        "result": {"usage": {"input_tokens": 3, "output_tokens": 4}, "model": "gpt-4o"}},
        {"name": "bad", "result": {"exception": "ValueError", "message": "no"}}]}}"#;
    let deep = format!("{{\"trace\": {}{}}}", "{\"__frames\": [".repeat(120), "]}".repeat(120));
    let files = [("t.tracy", trace), ("deep.tracy", &deep), ("bad.tracy", "[]"), ("a.prompty", "user:\nHi")];
    let server = Server::start(&files);
    let page = server.page();
    let root = page.get("/api/trace?path=t.tracy").json()["spans"][0].clone();
    assert_eq!((&root["name"], &root["start_ms"], &root["inputs"]), (&json!("run"), &json!(0.0), &json!({"q": "Hi"})));
    let call = &root["children"][0];
    assert_eq!((&call["start_ms"], &call["tokens"]), (&json!(250.0), &json!({"input": 3, "output": 4})));
    assert!(call["cost"].is_f64());
    assert_eq!(root["children"][1]["error"], "ValueError: no");
    for path in ["deep.tracy", "bad.tracy", "a.prompty"] {
        assert_eq!(page.get(&format!("/api/trace?path={path}")).status, 400, "{path}");
    }
}

#[test]
fn journals_are_lists_of_events() {
    let server = Server::start(&[("a.prompty", ECHO), ("bad.journal", "nothing")]);
    let path = server.folder.path().join("a.journal");
    let settings = TurnSettings { journal: Some(Journal::file(&path)), ..TurnSettings::default() };
    let prompt = server.folder.path().join("a.prompty");
    Runtime::default().turn(prompt.as_path(), json!({"q": "Hi"}), &settings).expect("it answers");
    let page = server.page();
    let journal = page.get("/api/journal?path=a.journal").json();
    assert_eq!(journal["inputs"], json!({"q": "Hi"}));
    let kinds: Vec<_> =
        journal["events"].as_array().expect("a list").iter().map(|event| event["type"].clone()).collect();
    assert!(kinds.contains(&json!("responded")), "{kinds:?}");
    assert_eq!(page.get("/api/journal?path=bad.journal").status, 422);
}
