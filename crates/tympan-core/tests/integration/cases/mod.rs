//! Runs the cases of a folder of fixtures.
#![expect(clippy::disallowed_methods, reason = "tests read their cases from files")]

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use serde::de::DeserializeOwned;

/// A case of a fixture.
pub(crate) trait Case: DeserializeOwned {
    /// Returns the name and the template.
    fn title(&self) -> (&str, &str);

    /// Describes how the outcome differs from the case, if it does.
    fn complaint(&self) -> Option<String>;
}

/// Runs the cases of all files in `fixtures/<stage>`, each of which is a list of cases, and reports all failures at
/// once. Too few cases are also a failure, because a folder that is not read would always pass.
pub(crate) fn run<C: Case>(stage: &str, at_least: usize) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(stage);
    let mut complaints = String::new();
    let mut names = HashSet::new();
    for entry in std::fs::read_dir(&directory).expect("the fixtures are there") {
        let path = entry.expect("the directory can be read").path();
        let file = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("the file can be read");
        let cases: Vec<C> = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        for case in cases {
            let (name, template) = case.title();
            if let Some(complaint) = case.complaint() {
                let _ = writeln!(complaints, "{file}, {name:?} {template:?}: {complaint}");
            }
            assert!(names.insert(format!("{file}/{name}")), "{file} has two cases named {name:?}");
        }
    }
    assert!(names.len() >= at_least, "{directory:?} has {} cases", names.len());
    assert!(complaints.is_empty(), "{complaints}");
}
