//! The test files in `fixtures/eval/answers`, whose cases have known verdicts.

use std::fmt::Write as _;

use crate::runs;

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
