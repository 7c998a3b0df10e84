//! Prompt definitions: the attacks on hashes, and loading from files.

use serde_json::{Value, json};
use tympan_core::{Kind, Prompt};
use tympan_runtime::{Inputs, PromptLoader, load, load_str, prepare};

use crate::shared;

/// Returns the hashes of a value that must differ from those of another, according to an attack.
fn hashes(value: &Value) -> Vec<String> {
    let definition = |role: &str, body: &str| {
        let variables = json!({"q": {"type": "string", "trusted": false}});
        Prompt::from_json(&json!({"name": "n", "role": role, "body": body, "variables": variables}).to_string())
            .expect("the definition is sound")
    };
    if let Some([body, variant]) = value.as_array().map(Vec::as_slice) {
        let definition = json!({"name": "n", "role": "user", "body": body, "variants": {"v": {"body": variant}}});
        let prompt = Prompt::from_json(&definition.to_string()).expect("the definition is sound");
        return vec![prompt.definition_hash().to_owned()];
    }
    let Some(map) = value.as_object() else {
        let text = value.as_str().expect("text");
        let prompt = definition("user", text);
        return vec![prompt.definition_hash().to_owned(), prompt.template_hash().to_owned()];
    };
    if let (Some(role), Some(body)) = (map.get("role"), map.get("body")) {
        return vec![
            definition(role.as_str().expect("a role"), body.as_str().expect("text")).definition_hash().to_owned(),
        ];
    }
    if let Some(template) = map.get("t").and_then(Value::as_str) {
        return vec![definition("user", template).template_hash().to_owned()];
    }
    // The guard changes the text, but not the definition.
    Vec::new()
}

#[test]
fn hashes_do_not_lie() {
    for case in shared::attacks().iter().filter(|case| case["surface"] == "hash") {
        assert_eq!(case["expect"]["kind"], "differs", "{}", case["id"]);
        let (a, b) = (hashes(&case["inputs"]["a"]), hashes(&case["inputs"]["b"]));
        assert!(a.iter().zip(&b).all(|(a, b)| a != b), "{}", case["id"]);
    }
}

#[test]
fn definitions_are_known_by_their_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let cases = [
        ("a.yaml", "name: a\nrole: assistant\nbody: |\n  user:\n  Hi\n"),
        ("a.json", r#"{"name": "a", "role": "assistant", "body": "user:\nHi\n"}"#),
        ("a.TOML", "name = 'a'\nrole = 'assistant'\nbody = \"user:\\nHi\\n\""),
    ];
    for (name, text) in cases {
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("it can be written");
        let prompt = load(&path).expect("it loads");
        let messages = prepare(&prompt, Inputs::new()).expect("it renders");
        let said: Vec<_> = messages.iter().map(|message| (message.role.as_str(), message.to_text())).collect();
        assert_eq!(said, [("assistant", "user:\nHi".to_owned())], "{name}");
    }
    let error = load_str("{}", "b.json", ".").expect_err("it is no definition");
    assert_eq!((error.kind(), error.others().len()), (Kind::InvalidDefinition, 2));
}

/// A test file is not a prompt, even if it has the keys of one.
#[test]
fn test_files_are_not_prompts() {
    let directory = tempfile::tempdir().expect("a directory");
    let prompt = "name: a\nrole: user\nbody: Hi\n";
    std::fs::write(directory.path().join("a.yaml"), prompt).expect("it can be written");
    let path = directory.path().join("a.test.yaml");
    std::fs::write(&path, prompt).expect("it can be written");
    let error = load(&path).expect_err("it is not a prompt");
    assert_eq!(error.kind(), Kind::InvalidDefinition);
    assert!(error.message().contains("found a test file"), "{error}");
    assert!(error.help().is_some_and(|help| help.contains("tympan test")), "{error:?}");
    let loader = PromptLoader::folder(directory.path());
    assert_eq!(loader.names().expect("the folder can be read"), ["a"]);
}
