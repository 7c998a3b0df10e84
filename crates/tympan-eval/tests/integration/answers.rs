//! The test files in `fixtures/eval/answers`, whose cases have known verdicts.

use std::fmt::Write as _;

use serde_json::json;
use tympan_eval::CheckStatus;
use tympan_eval::answer::AnswerMode;
use tympan_eval::judge::Judges;

use crate::models::Scripted;
use crate::runs::{self, Asked};

#[test]
fn cases_have_their_known_verdicts() {
    let entries = std::fs::read_dir(runs::fixtures()).expect("the fixtures exist");
    let names = entries.map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".test.yaml")).collect();
    names.sort();
    let (mut all, mut wrong) = (String::new(), Vec::new());
    for file in names {
        // The programs of the fixtures are shell scripts.
        if cfg!(not(unix)) && file == "program.test.yaml" {
            continue;
        }
        let (verdicts, report) = runs::run(&file);
        write!(all, "# {file}\n\n{report}\n").expect("it is written");
        let is_wrong = |(name, verdict): &&(String, &str)| !name.starts_with(verdict);
        wrong.extend(verdicts.iter().filter(is_wrong).map(|(name, verdict)| format!("{file}: `{name}` {verdict}")));
    }
    assert!(wrong.is_empty(), "{}\n\n{all}", wrong.join("\n"));
    if cfg!(unix) {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_path(runs::fixtures().join("snapshots"));
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!("messages", all));
    }
}

#[test]
fn the_time_of_a_model_counts_if_it_was_called() {
    let runtime = runs::runtime();
    runtime.register_provider("own", Scripted::new(&["Hello, Ada!"]));
    let prompt = runtime.load(runs::fixtures().join("greeting.prompty")).expect("it loads");
    let case = json!({"inputs": {"name": "Ada"}, "provider": "own", "expect": [
        {"latency": {"max_seconds": 0}}, {"latency": {"max_seconds": 3600}}, {"not": {"latency": {"max_seconds": 0}}},
    ]});
    let asked = Asked::new(&runtime, prompt, runs::settings(case), &runs::fixtures().join("cassettes"));
    let checks = asked.check(&asked.answer(AnswerMode::Live), &Judges::default(), AnswerMode::Live, false);
    let statuses: Vec<_> = checks.iter().map(|check| check.status).collect();
    assert_eq!(statuses, [CheckStatus::Failed, CheckStatus::Passed, CheckStatus::Passed], "{checks:?}");
    assert!(checks[0].message.as_ref().is_some_and(|message| message.starts_with("expected an answer within 0 s")));
}
