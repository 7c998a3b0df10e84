//! Journals, lock files and traces that earlier versions wrote. Nothing in `fixtures/compatibility` may be written anew.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Copies the files of a version, because commands write to them.
fn copy_of(version: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/compatibility").join(version);
    for entry in fs::read_dir(source).expect("the version has files") {
        let entry = entry.expect("it can be listed");
        fs::copy(entry.path(), folder.path().join(entry.file_name())).expect("it can be copied");
    }
    folder
}

fn tympan(folder: &TempDir, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(folder.path()).args(arguments).stdin(Stdio::null()).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

#[test]
fn runs_that_were_killed_go_on() {
    for (journal, ran) in
        [("killed.journal", true), ("killed.db", true), ("guarded.journal", true), ("finished.journal", false)]
    {
        let folder = copy_of("0.1.0");
        let resumed = tympan(&folder, &["resume", journal, "--tools", "tools.toml"]);
        let told = text(&resumed.stderr);
        assert_eq!(text(&resumed.stdout), "It is clear in Paris, at 21 degrees.\n", "{journal}: {told}");
        assert_eq!(told.contains("← get_weather "), ran, "{journal}: {told}");
    }
}

#[test]
fn lock_files_hold() {
    let folder = copy_of("0.1.0");
    let checked = tympan(&folder, &["lock", "--check"]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn traces_are_shown() {
    let folder = copy_of("0.1.0");
    let shown = tympan(&folder, &["trace", "run.tracy"]);
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    let shown = text(&shown.stdout);
    for wanted in ["invoke", "└─ turn", "execute_tool"] {
        assert!(shown.contains(wanted), "{shown}");
    }
}
