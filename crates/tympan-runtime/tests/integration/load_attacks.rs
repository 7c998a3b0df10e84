//! The attacks on loading.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value as Json;
use tympan_core::Result;
use tympan_runtime::{EnvPolicy, LoadOptions, LoadedDocument, load_document_str};

use crate::shared;

/// Returns a text, which may be written as a generator.
fn generate(value: &Json) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    if let Some(parts) = value["$concat"].as_array() {
        return parts.iter().map(generate).collect();
    }
    let repeat = value["$repeat"].as_array().expect("the generators of this surface are $concat and $repeat");
    generate(&repeat[0]).repeat(repeat[1].as_u64().expect("a number") as usize)
}

/// Creates `prompts` with the files of a case, and `outside/secret.txt` next to it.
fn lay_out(case: &Json, dir: &Path) -> PathBuf {
    let prompts = dir.join("prompts");
    fs::create_dir_all(&prompts).and_then(|()| fs::create_dir_all(dir.join("outside"))).expect("directories");
    fs::write(dir.join("outside/secret.txt"), "OUTSIDE-SECRET").expect("a file");
    for (name, what) in case["files"].as_object().into_iter().flatten() {
        let path = prompts.join(name);
        if let Some(text) = what["text"].as_str() {
            fs::write(path, text).expect("a file");
        } else if what["dir"] == true {
            fs::create_dir(path).expect("a directory");
        } else if let Some(_target) = what["symlink"].as_str().or(what["race"][1].as_str()) {
            // `load_files.rs` tests the race itself. This is a snapshot of its worst moment.
            #[cfg(unix)]
            std::os::unix::fs::symlink(_target, path).expect("a link");
        }
    }
    prompts
}

/// The attacks on the environment are about an untrusted file, so the host allows only the variables that the case
/// names. An unset variable is allowed, because otherwise its error would not be visible.
fn options(case: &Json) -> LoadOptions {
    let vars: HashMap<String, String> = case["env"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let mut allowed: Vec<String> = vec!["NOT_SET_VAR".into(), "NOPE".into()];
    allowed.extend(case["policy"]["env_allow"].as_array().into_iter().flatten().map(generate));
    LoadOptions { env: EnvPolicy::AllowList(allowed), env_vars: Some(vars), ..LoadOptions::default() }
}

/// Formats everything visible about an outcome.
fn visible(outcome: &Result<LoadedDocument>) -> String {
    match outcome {
        Ok((_, document, diagnostics)) => format!("{} {document:?} {diagnostics:?}", document.spec.to_json()),
        Err(error) => format!("{error} {error:?} {:?} {:?}", error.help(), error.others()),
    }
}

fn check_attack(case: &Json) {
    let id = case["id"].as_str().expect("it has an id");
    let dir = tempfile::tempdir().expect("a directory");
    let prompts = lay_out(case, dir.path());
    let inputs = &case["inputs"];
    let front_matter = generate(&inputs["frontmatter"]);
    let end = if front_matter.ends_with('\n') { "" } else { "\n" };
    let text = format!("---\n{front_matter}{end}---\n{}", generate(&inputs["body"]));

    let start = Instant::now();
    let outcome = load_document_str(&text, "attack.prompty", &prompts, &options(case));
    // The corpus assumes an idle machine and a release build. The attacks would take minutes.
    let most = 20 * case["expect"]["max_ms"].as_u64().unwrap_or(1000);
    assert!(start.elapsed() < Duration::from_millis(most), "{id}: too slow");

    let expect = &case["expect"];
    for canary in [&expect["no_leak"], &expect["canary"]].into_iter().filter_map(Json::as_str) {
        assert!(!visible(&outcome).contains(canary), "{id} leaks: {outcome:?}");
    }
    match expect["kind"].as_str().expect("it expects something") {
        "error" => {
            let error = outcome.expect_err(id);
            if let Some(code) = expect["code"].as_str() {
                assert_eq!(error.code(), code, "{id}");
            }
        }
        // The policy is to resolve merge keys, as other YAML parsers do.
        "error_or_policy" if id == "yaml.merge" => {
            let (_, document, _) = outcome.expect(id);
            assert_eq!(document.spec.description.as_deref(), Some("merged"));
        }
        // No host enables any of these.
        "error_or_policy" => assert!(outcome.is_err(), "{id}"),
        "error_or_inside" => assert!(!visible(&outcome).contains("OUTSIDE-SECRET"), "{id}"),
        // In YAML 1.2's core schema, `yes` is text and `010` is ten.
        "ok" | "same_as_spec" => assert!(outcome.is_ok(), "{id}: {outcome:?}"),
        "no_leak" => {}
        other => panic!("{id}: nobody knows how to check {other}"),
    }
}

#[test]
fn attacks_on_loading_fail() {
    for case in shared::attacks().iter().filter(|case| case["surface"] == "load") {
        check_attack(case);
    }
}

#[test]
fn deep_nesting_does_not_overflow_a_small_stack() {
    let deep = |open: &str, close: &str| format!("---\nmetadata: {}{}\n---\n", open.repeat(5000), close.repeat(5000));
    let texts = [deep("[", "]"), deep("{a: ", "}"), format!("---\nmetadata:\n{}\n---\n", "- ".repeat(5000))];
    let nested = format!("---\nmetadata: {{a: {}1{}}}\n---\n", "[".repeat(60), "]".repeat(60));
    std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(move || {
            for text in texts {
                let error =
                    load_document_str(&text, "deep.prompty", ".", &LoadOptions::default()).expect_err("too deep");
                assert_eq!(error.code(), "invalid_frontmatter");
            }
            let (_, document, _) =
                load_document_str(&nested, "nested.prompty", ".", &LoadOptions::default()).expect("deep enough");
            drop((document.clone(), document.spec.to_json_redacted()));
        })
        .expect("a thread")
        .join()
        .expect("no overflow");
}
