//! Assertions that need no model.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tympan_eval::runner::{Runner, RunnerOptions, jobs};
use tympan_eval::{CaseResult, Verdict};
use tympan_runtime::{Runtime, RuntimeOptions};

fn fixture(name: &str) -> PathBuf {
    crate::fixture("eval").join(name)
}

fn run(path: &Path) -> Vec<CaseResult> {
    let runner = Runner::new(Runtime::new(RuntimeOptions::default()), RunnerOptions::default());
    let loaded = runner.load(path).expect("the file is valid").expect("the file contains tests");
    let mut results = Vec::new();
    runner.run(jobs(&loaded), 2, |result| {
        results.push(result);
        ControlFlow::Continue(())
    });
    results
}

/// Compares the verdict of each case with the first word of its name.
#[track_caller]
fn check(name: &str) -> Vec<CaseResult> {
    let results = run(&fixture(name));
    for result in &results {
        let expected = match result.name.split([':', ' ']).next().unwrap_or_default() {
            "pass" => Verdict::Passed,
            "fail" | "line" => Verdict::Failed,
            "not_run" => Verdict::NotRun,
            _ => Verdict::Skipped,
        };
        assert_eq!(result.verdict, expected, "{result:#?}");
    }
    results
}

/// Returns the messages of all failures, which a snapshot pins.
fn messages(results: &[CaseResult]) -> String {
    let directory = fixture("").display().to_string();
    let lines = results.iter().flat_map(|result| {
        let failures = result.failures().map(|check| check.message.clone().unwrap_or_default());
        let failures: Vec<_> = failures.collect();
        let shown = if failures.is_empty() { result.reason.iter().cloned().collect() } else { failures };
        shown.into_iter().map(|message| format!("{}\n    {message}\n", result.name))
    });
    lines.collect::<String>().replace(&directory, "")
}

#[test]
fn every_assertion_passes_and_fails() {
    insta::assert_snapshot!(messages(&check("messages/support.test.yaml")));
}

#[test]
fn untrusted_text_and_forgeries_are_found() {
    insta::assert_snapshot!(messages(&check("messages/leaky.test.yaml")));
}

#[test]
fn tables_and_matrices_are_cases() {
    let results = check("messages/tables.test.yaml");
    let names: Vec<_> = results.iter().map(|result| result.name.as_str()).collect();
    insta::assert_snapshot!(names.join("\n"));
    insta::assert_snapshot!(messages(&results));
}

#[test]
fn prompt_files_can_contain_tests() {
    let results = check("messages/embedded.prompty");
    assert_eq!(results.len(), 2);
}

#[test]
fn forgeries_are_written_to_every_place() {
    insta::assert_snapshot!(messages(&check("messages/forge.test.yaml")));
}

/// The forgeries are those of the attack corpus.
#[test]
fn forgeries_are_current() {
    let read = |path: &str| -> Json {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        serde_json::from_str(&std::fs::read_to_string(path).expect("the file exists")).expect("the file is JSON")
    };
    let forgeries = read("src/messages/forge/forgeries.json");
    let known = |list: &str| -> Vec<String> {
        let list = forgeries[list].as_array().expect("a list").iter();
        list.flat_map(|forgery| [&forgery["text"], &forgery["then"]])
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect()
    };
    let attacks = [read("../../fixtures/attacks/attacks.json"), read("../../fixtures/attacks/provenance.json")];
    let attacks: Vec<_> = attacks.iter().flat_map(|attacks| attacks.as_array().expect("a list")).collect();
    let texts = |class: &str| -> Vec<String> {
        let mut found = Vec::new();
        let attacks = attacks.iter().filter(|attack| attack["class"] == class);
        attacks.for_each(|attack| texts_of(&attack["inputs"], &mut found));
        // Others are parts of the values around a forgery.
        let is_forgery = |text: &String| text.contains(':') || text.contains("THREAD") || text.starts_with('\n');
        found.retain(|text| class == "guard_breakout" || is_forgery(text) && !text.trim().is_empty());
        found
    };
    for (class, list) in
        [("role_forgery", "messages"), ("nonce", "messages"), ("thread", "messages"), ("guard_breakout", "guard")]
    {
        let (texts, known) = (texts(class), known(list));
        assert!(!texts.is_empty(), "{class}");
        let missing: Vec<_> = texts.iter().filter(|text| !known.contains(text)).collect();
        assert_eq!(missing, Vec::<&String>::new(), "{class}");
    }
}

/// Collects the keys and texts in a value, except for the names of inputs.
fn texts_of(inputs: &Json, found: &mut Vec<String>) {
    match inputs {
        Json::Object(map) => map.iter().for_each(|(_, value)| keys_and_texts(value, found)),
        other => keys_and_texts(other, found),
    }
}

fn keys_and_texts(value: &Json, found: &mut Vec<String>) {
    match value {
        Json::String(text) => found.push(text.clone()),
        Json::Array(items) => items.iter().for_each(|item| keys_and_texts(item, found)),
        Json::Object(map) => map.iter().for_each(|(key, value)| {
            found.push(key.clone());
            keys_and_texts(value, found);
        }),
        _ => {}
    }
}
