//! `tympan batch`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/batch").join(name)
}

/// Runs `tympan batch prepare` with the prompt of the fixtures.
fn prepare(rows: &[&str], directory: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.args(["batch", "prepare"]).args(rows).arg("--prompt").arg(fixture("ticket.prompty"));
    command.arg("--output").arg(directory).args(more).stdin(Stdio::null());
    command.output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn rejected_rows_are_reported_and_can_be_accepted() {
    let directory = TempDir::new().expect("a temporary directory");
    let job = directory.path().join("job");
    let rows = fixture("tickets.csv");
    let rows = [rows.to_str().expect("UTF-8")];
    let first = prepare(&rows, &job, &[]);
    assert_eq!(first.status.code(), Some(1), "{}", text(&first.stderr));
    assert!(text(&first.stderr).contains("2 rows were rejected: see"), "{}", text(&first.stderr));
    assert!(text(&first.stdout).starts_with("4 requests in 1 file ("), "{}", text(&first.stdout));

    let again = prepare(&rows, &job, &["--max-rejects", "2", "--json"]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let report: Json = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!((&report["rows"], &report["rejects"], &report["resumed_files"]), (&6.into(), &2.into(), &1.into()));
}

#[test]
fn patterns_and_directories_name_several_files() {
    let directory = TempDir::new().expect("a temporary directory");
    for name in ["b.csv", "a.csv"] {
        std::fs::write(directory.path().join(name), format!("text\nfrom {name}\n")).expect("writable");
    }
    std::fs::write(directory.path().join("notes.txt"), "not rows").expect("writable");
    let root = directory.path().display().to_string();
    for (index, rows) in [root.clone(), format!("{root}/*.csv")].iter().enumerate() {
        let job = directory.path().join(format!("job{index}"));
        let output = prepare(&[rows], &job, &["--to", "jsonl", "--quiet"]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let lines = std::fs::read_to_string(job.join("requests-00001.jsonl")).expect("readable");
        let found: Vec<_> = lines.lines().map(|line| line.contains("from a.csv")).collect();
        assert_eq!(found, [true, false], "files are read by name");
    }
    let output = prepare(&[&format!("{root}/*.parquet")], &directory.path().join("job"), &[]);
    assert!(text(&output.stderr).contains("no file matches"), "{}", text(&output.stderr));
}

#[test]
fn standard_input_is_saved_with_the_job() {
    let directory = TempDir::new().expect("a temporary directory");
    let job = directory.path().join("job");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.args(["batch", "prepare", "-", "--format", "csv", "--prompt"]).arg(fixture("ticket.prompty"));
    command.arg("--output").arg(&job);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command starts");
    let mut stdin = child.stdin.take().expect("standard input");
    std::io::Write::write_all(&mut stdin, b"text\nhello\n").expect("writable");
    drop(stdin);
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(std::fs::read_to_string(job.join("rows.csv")).expect("readable"), "text\nhello\n");
    assert_eq!(prepare(&["-"], &job, &[]).status.code(), Some(2), "standard input needs a format");
}

#[test]
fn errors_name_the_columns_and_the_file_that_they_are_about() {
    let directory = TempDir::new().expect("a temporary directory");
    let rows = fixture("letters.csv");
    let output = prepare(&[rows.to_str().expect("UTF-8")], &directory.path().join("job"), &[]);
    let error = text(&output.stderr);
    assert!(error.contains("no column for the required input `text`"), "{error}");
    assert!(error.contains("map one with `--map text=letter`"), "{error}");
    assert!(!error.contains("ticket.prompty"), "the prompt is not the reason: {error}");
}
