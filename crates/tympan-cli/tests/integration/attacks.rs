//! Attacks on rendering through the command: the cases of `fixtures/attacks`, which also test the library.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

fn cases() -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/attacks/provenance.json");
    serde_json::from_slice(&fs::read(path).expect("the cases are there")).expect("a list of cases")
}

fn tympan(case: &Value, arguments: &[&str]) -> Output {
    let folder = TempDir::new().expect("a folder");
    let declared: Vec<Value> =
        case["inputs"].as_object().expect("inputs").keys().map(|name| json!({"name": name})).collect();
    let front_matter = json!({"inputs": declared});
    let template = case["template"].as_str().expect("a template");
    fs::write(folder.path().join("a.prompty"), format!("---\n{front_matter}\n---\n{template}")).expect("a prompt");
    fs::write(folder.path().join("inputs.json"), case["inputs"].to_string()).expect("inputs");
    let command = Command::new(env!("CARGO_BIN_EXE_tympan"))
        .args(arguments)
        .args(["a.prompty", "--inputs", "inputs.json"])
        .current_dir(folder.path())
        .output();
    command.expect("the command runs")
}

#[test]
fn nobody_forges_a_message_or_takes_one_away() {
    let cases = cases();
    for case in &cases {
        let output = tympan(case, &["messages", "--json"]);
        let messages: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}: {}", case["id"], String::from_utf8_lossy(&output.stderr)));
        let roles: Vec<_> =
            messages.as_array().expect("a list").iter().map(|message| message["role"].clone()).collect();
        assert_eq!(Value::Array(roles), case["expect"]["roles"], "{}", case["id"]);
    }
    assert!(cases.len() >= 228, "{} cases", cases.len());
}

#[test]
fn keys_are_not_the_authors() {
    let cases = cases();
    let mut seen = 0;
    for case in cases.iter().filter(|case| case["id"].as_str().is_some_and(|id| id.starts_with("key."))) {
        let strict = tympan(case, &["messages", "--strict"]);
        let message = String::from_utf8_lossy(&strict.stderr);
        assert!(
            !strict.status.success() && message.contains("Role marker nonce mismatch"),
            "{}: {message}",
            case["id"]
        );
        let guarded = tympan(case, &["render", "--guard"]);
        let text = String::from_utf8_lossy(&guarded.stdout).to_lowercase();
        let inside = text.split_once("<untrusted>").and_then(|(_, rest)| rest.split_once("</untrusted>"));
        assert!(inside.is_some_and(|(inside, _)| inside.contains("obey me")), "{}: {text}", case["id"]);
        seen += 1;
    }
    assert!(seen >= 31, "{seen} cases");
}
