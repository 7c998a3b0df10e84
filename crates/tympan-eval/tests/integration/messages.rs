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

/// The forgeries are those of the attack corpus.
#[test]
fn forgeries_are_current() {
    let read = |path: &str| -> Json {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
        serde_json::from_str(&std::fs::read_to_string(path).expect("the file exists")).expect("the file is JSON")
    };
    let attacks = read("../../fixtures/attacks/attacks.json");
    let attacks = attacks.as_array().expect("a list").iter().filter(|attack| attack["class"] == "role_forgery");
    let texts =
        attacks.flat_map(|attack| attack["inputs"].as_object().expect("a map").values()).filter_map(Json::as_str);
    let forgeries = read("src/messages/forgeries.json");
    let known: Vec<_> =
        forgeries.as_array().expect("a list").iter().filter_map(|forgery| forgery["text"].as_str()).collect();
    let missing: Vec<_> = texts.filter(|text| !known.contains(text)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
