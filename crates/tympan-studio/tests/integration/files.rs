//! Files: lists, texts, changes and conflicts.

use serde_json::json;

use crate::client::{ECHO, Server};

#[test]
fn the_project_lists_files_providers_and_models() {
    let cassette = r#"{"version": 1, "request": {}, "response": {}}"#;
    let files = [
        ("a.prompty", "user:\nHi"),
        ("b.yaml", "name: b\nrole: user\nbody: Hi\nvariables: {}"),
        ("a.test.yaml", "cases: []"),
        ("cassettes/1.json", cassette),
        ("t.tracy", "{}"),
        ("j.journal", ""),
        ("other.json", "{}"),
        ("ignored/x.prompty", ""),
        (".gitignore", "ignored\n"),
        ("node_modules/x.prompty", ""),
    ];
    let server = Server::start(&files);
    let project = server.page().get("/api/project").json();
    let kinds =
        project["files"].as_array().expect("a list").iter().map(|file| (file["path"].clone(), file["kind"].clone()));
    let expected = [
        ("a.prompty", "prompt"),
        ("a.test.yaml", "test"),
        ("b.yaml", "prompt"),
        ("cassettes/1.json", "cassette"),
        ("j.journal", "journal"),
        ("t.tracy", "trace"),
    ];
    let expected: Vec<_> = expected.iter().map(|(path, kind)| (json!(path), json!(kind))).collect();
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by_key(|(path, _)| path.to_string());
    assert_eq!(kinds, expected);
    assert_eq!(project["providers"][0], json!({"name": "echo", "has_key": true}));
    assert!(project["models"].as_array().expect("a list").iter().any(|model| model["context_window"].is_u64()));
}

#[test]
fn changes_are_based_on_what_the_page_has_seen() {
    let server = Server::start(&[("a.prompty", "user:\nHi"), ("data.txt", "from a file")]);
    let page = server.page();
    let file = page.get("/api/file?path=a.prompty").json();
    assert_eq!((&file["text"], &file["kind"]), (&json!("user:\nHi"), &json!("prompt")));
    let put = |path: &str, text: &str, base: &serde_json::Value| {
        page.send("PUT", "/api/file", &json!({"path": path, "text": text, "base_hash": base}))
    };
    let written = put("a.prompty", "user:\nHello", &file["hash"]).json();
    assert_eq!(server.text("a.prompty").as_deref(), Some("user:\nHello"));
    // Somebody else changes the file.
    server.write("a.prompty", "user:\nTheirs");
    let conflict = put("a.prompty", "user:\nMine", &written["hash"]);
    assert_eq!((conflict.status, &conflict.json()["text"]), (409, &json!("user:\nTheirs")));
    assert_eq!(server.text("a.prompty").as_deref(), Some("user:\nTheirs"));
    assert_eq!(put("a.prompty", "user:\nMine", &conflict.json()["hash"]).status, 200);
    // A new file must not exist, and a deleted one is not new.
    assert_eq!(put("a.prompty", "user:\nNew", &json!(null)).status, 409);
    let gone = put("gone.prompty", "user:\nNew", &written["hash"]);
    assert_eq!((gone.status, &gone.json()["text"]), (409, &json!(null)));
    assert_eq!(put("new.prompty", "---\nname: ${file:data.txt}\n---\nuser:\nNew", &json!(null)).status, 200);
    assert_eq!(put("drafts/x/new.prompty", "user:\nNew", &json!(null)).status, 200);
    assert_eq!(put("other/new.py", "x", &json!(null)).status, 403);
    assert_eq!(page.get("/api/file?path=new.prompty").json()["files"], json!({"data.txt": "from a file"}));
    let names = server.folder.path().read_dir().expect("it is there").map(|entry| entry.expect("it is").file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["a.prompty", "data.txt", "drafts", "new.prompty"], "no temporary file is left");
}

#[cfg(unix)]
#[test]
fn permissions_stay_the_same() {
    use std::os::unix::fs::PermissionsExt;

    let server = Server::start(&[("a.prompty", "user:\nHi")]);
    let path = server.folder.path().join("a.prompty");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("they are set");
    let page = server.page();
    let hash = page.get("/api/file?path=a.prompty").json()["hash"].clone();
    page.send("PUT", "/api/file", &json!({"path": "a.prompty", "text": "user:\nHo", "base_hash": hash}));
    assert_eq!(server.text("a.prompty").as_deref(), Some("user:\nHo"));
    assert_eq!(path.metadata().expect("it is there").permissions().mode() & 0o777, 0o640);
}

#[test]
fn other_files_do_not_become_prompts() {
    let yaml = "role: user\nbody: Hi\nname: x\nvariables: {}";
    let server = Server::start(&[("a.yaml", "key: value"), ("b.yaml", yaml)]);
    let page = server.page();
    let hash = |text: &str| json!(tympan_core::text::hash::sha256_hex(text));
    let put = |path: &str, text: &str, base: serde_json::Value| {
        page.send("PUT", "/api/file", &json!({"path": path, "text": text, "base_hash": base})).status
    };
    assert_eq!(put("a.yaml", yaml, hash("key: value")), 403);
    assert_eq!(put("b.yaml", "key: value", hash(yaml)), 403);
    assert_eq!(put("c.yaml", "key: value", json!(null)), 403);
    assert_eq!(put("c.json", "{\"scripts\": {}}", json!(null)), 403);
    assert_eq!(put("t.tracy", "{}", json!(null)), 403);
    assert_eq!(put("b.yaml", &yaml.replace("Hi", "Ho"), hash(yaml)), 200);
    assert_eq!(put("c.yaml", yaml, json!(null)), 200);
    assert_eq!(server.text("a.yaml").as_deref(), Some("key: value"));
}

#[test]
fn changes_of_others_are_reported() {
    let server = Server::start(&[("a.prompty", "user:\nHi")]);
    let page = server.page();
    let mut events = page.stream("GET", "/api/watch", &json!(null));
    events.until("ready");
    // The page knows what it writes itself.
    let put = page.send("PUT", "/api/file", &json!({"path": "own.prompty", "text": "user:\nHi", "base_hash": null}));
    assert_eq!(put.status, 200);
    server.write("notes.txt", "not a prompt");
    server.write("a.prompty", "user:\nTheirs");
    let mut changed = events.until("changed");
    // A file may be seen before all of it is written.
    while changed["hash"] != tympan_core::text::hash::sha256_hex("user:\nTheirs") {
        assert_eq!(changed["path"], "a.prompty");
        changed = events.until("changed");
    }
    std::fs::remove_file(server.folder.path().join("a.prompty")).expect("it is removed");
    assert_eq!(events.until("changed"), json!({"path": "a.prompty", "hash": null}));
}

#[test]
fn samples_are_the_inputs_of_tests() {
    let tests = "defaults: {inputs: {a: 1}}\ncases:\n- {name: one, inputs: {q: Ada}, expect: [{result: {contains: Ada}}]}\n\
        - {rows: rows.csv, expect: [{result: {contains: x}}]}";
    let other = "prompt: ../hello.prompty\ncases:\n- {inputs: {q: Bo}, expect: [{result: {contains: Bo}}]}";
    let embedded =
        ECHO.replace("\n---\nuser", "\ntests:\n- {inputs: {q: Cy}, expect: [{result: {contains: Cy}}]}\n---\nuser");
    let files = [("hello.prompty", embedded.as_str()), ("hello.test.yaml", tests), ("tests/more.test.yaml", other)];
    let server = Server::start(&files);
    let samples = server.page().get("/api/samples?path=hello.prompty").json();
    assert_eq!(
        samples["samples"],
        json!([
            {"name": "case 1", "source": "hello.prompty", "inputs": {"q": "Cy"}},
            {"name": "one", "source": "hello.test.yaml", "inputs": {"a": 1, "q": "Ada"}},
            {"name": "case 1", "source": "tests/more.test.yaml", "inputs": {"q": "Bo"}},
        ])
    );
}
