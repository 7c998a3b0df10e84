//! `tympan batch submit`, `status`, `collect` and `cancel`, against a server with the batch APIs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::batch_server::{Faults, Server};

const KEY: &str = "sk-test-0123456789abcdef";
const ROWS: u64 = 6;

/// A prepared job.
struct Job {
    _home: TempDir,
    directory: PathBuf,
    provider: &'static str,
}

impl Job {
    fn prepare(provider: &'static str) -> Self {
        let home = TempDir::new().expect("a temporary directory");
        let (rows, prompt) = (home.path().join("rows.csv"), home.path().join("greet.prompty"));
        let names: String = (0..ROWS).map(|row| format!("n{row}\n")).collect();
        std::fs::write(&rows, format!("name\n{names}")).expect("writable");
        let source = "---\nmodel: any-model\ninputs:\n  - {name: name, kind: string}\n---\nuser:\nHi {{ name }}\n";
        std::fs::write(&prompt, source).expect("writable");
        let directory = home.path().join("job");
        let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
        command.args(["batch", "prepare"]).arg(&rows).arg("--prompt").arg(&prompt).arg("--output").arg(&directory);
        command.args(["--to", provider, "--provider", provider, "--max-requests", "3"]);
        let output = command.stdin(Stdio::null()).output().expect("the command runs");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        Self { _home: home, directory, provider }
    }

    /// Copies the directory of the job.
    fn copy_to(&self, directory: &Path) {
        std::fs::create_dir_all(directory).expect("writable");
        for entry in std::fs::read_dir(&self.directory).expect("readable") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), directory.join(entry.file_name())).expect("writable");
        }
    }

    fn command(&self, directory: &Path, server: &Server, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
        command.arg("batch").arg(args[0]).arg(directory).args(&args[1..]).args(["--base-url", &server.url]);
        command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY).stdin(Stdio::null());
        command
    }

    fn run(&self, server: &Server, args: &[&str]) -> Output {
        self.command(&self.directory, server, args).output().expect("the command runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the lines of all files with answers.
fn answers(directory: &Path) -> Vec<Json> {
    let mut paths: Vec<_> =
        std::fs::read_dir(directory).expect("readable").map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("answers-")));
    paths.sort();
    assert!(paths.iter().all(|path| path.extension().is_some_and(|ending| ending == "jsonl")), "{paths:?}");
    let lines = paths.iter().flat_map(|path| {
        let lines = std::fs::read_to_string(path).expect("readable");
        lines.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect::<Vec<Json>>()
    });
    lines.collect()
}

fn assert_complete(directory: &Path) {
    let answers = answers(directory);
    let rows: Vec<_> = answers.iter().map(|line| line["row"].as_u64().expect("a row")).collect();
    assert_eq!(rows, (0..ROWS).collect::<Vec<_>>());
    assert!(answers.iter().all(|line| line["body"].is_object()), "{answers:?}");
}

#[test]
fn a_job_runs_from_its_files_to_its_answers() {
    for provider in ["openai", "anthropic"] {
        let job = Job::prepare(provider);
        let server = Server::start(Faults { polls: 1, failing: [4].into(), unknown: 1, busy: 1, ..Faults::default() });
        let submitted = job.run(&server, &["submit"]);
        assert_eq!(submitted.status.code(), Some(0), "{}", text(&submitted.stderr));
        assert_eq!(text(&submitted.stdout).lines().count(), 2);
        assert!(
            text(&submitted.stdout).starts_with("requests-00001.jsonl: in_progress, 3 requests"),
            "{}",
            text(&submitted.stdout)
        );

        let early = job.run(&server, &["collect", "--json"]);
        assert_eq!(early.status.code(), Some(1), "the batches have not ended");
        let report: Json = serde_json::from_slice(&early.stdout).expect("JSON");
        assert_eq!((&report["files"][0]["state"], &report["provider"]), (&"submitted".into(), &job.provider.into()));

        let status = job.run(&server, &["status", "--wait"]);
        assert_eq!(status.status.code(), Some(0), "{}", text(&status.stderr));
        let collected = job.run(&server, &["collect"]);
        assert_eq!(collected.status.code(), Some(1), "a row has failed");
        assert!(
            text(&collected.stdout).contains("requests-00002.jsonl: collected, 3 requests, 2 answered, 1 failed"),
            "{}",
            text(&collected.stdout)
        );
        server.state().faults.polls = 0;
        let retried = job.run(&server, &["collect", "--retry"]);
        assert!(text(&retried.stderr).contains("sent 1 request again"), "{}", text(&retried.stderr));
        let done = job.run(&server, &["collect", "--wait", "--json"]);
        assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
        assert_complete(&job.directory);
        assert_eq!(server.state().batches.len(), 3);
        let status = job.run(&server, &["status"]);
        assert!(
            text(&status.stdout).contains("requests-00002.jsonl: collected, 3 requests, attempt 2, 3 answered"),
            "{}",
            text(&status.stdout)
        );
    }
}

#[test]
fn the_batches_of_a_job_are_cancelled() {
    let job = Job::prepare("openai");
    let server = Server::start(Faults { polls: 1, ..Faults::default() });
    job.run(&server, &["submit"]);
    let cancelled = job.run(&server, &["cancel"]);
    assert_eq!(cancelled.status.code(), Some(0), "{}", text(&cancelled.stderr));
    assert!(server.state().batches.iter().all(|batch| batch.is_cancelled));
    assert_eq!(job.run(&server, &["collect", "--wait"]).status.code(), Some(0));
    assert_complete(&job.directory);
}

#[test]
fn text_of_a_provider_does_not_reach_the_terminal() {
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}done";
    let job = Job::prepare("openai");
    let server = Server::start(Faults { refused: 1, error_text: hostile.to_owned(), ..Faults::default() });
    let refused = job.run(&server, &["submit"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("refused"), "{}", text(&refused.stderr));
    let status = job.run(&server, &["status"]);
    server.state().faults.broken = Some(hostile.to_owned());
    let submitted = job.run(&server, &["submit"]);
    let collected = job.run(&server, &["collect"]);
    assert!(text(&collected.stdout).contains("done"), "{}", text(&collected.stdout));
    for output in [refused, status, submitted, collected] {
        for shown in [text(&output.stdout), text(&output.stderr)] {
            assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{shown:?}");
        }
    }
}

#[test]
fn a_key_is_needed_and_is_not_saved() {
    let job = Job::prepare("anthropic");
    let server = Server::start(Faults::default());
    let mut command = job.command(&job.directory, &server, &["submit"]);
    let output = command.env_remove("ANTHROPIC_API_KEY").output().expect("the command runs");
    assert!(text(&output.stderr).contains("ANTHROPIC_API_KEY"), "{}", text(&output.stderr));
    assert_eq!(job.run(&server, &["submit"]).status.code(), Some(0));
    for entry in std::fs::read_dir(&job.directory).expect("readable") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("readable");
        assert!(!bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes()));
    }
}

/// Runs the commands of a job. Each is killed at this point of its writes to the manifest, and then called again.
/// Returns whether any was killed.
fn run_killed(job: &Job, directory: &Path, server: &Server, point: usize, steps: &[&[&str]]) -> bool {
    use std::os::unix::process::ExitStatusExt;

    let mut is_killed = false;
    for step in steps {
        let mut command = job.command(directory, server, step);
        let output = command.env("TYMPAN_TEST_ABORT_AT", point.to_string()).output().expect("the command runs");
        if output.status.signal().is_some() {
            is_killed = true;
            let again = job.command(directory, server, step).output().expect("the command runs");
            assert!(again.status.code().is_some(), "{point} {step:?}: {}", text(&again.stderr));
        }
    }
    is_killed
}

#[test]
fn a_job_killed_at_any_write_of_its_manifest_loses_and_repeats_nothing() {
    let job = Job::prepare("openai");
    let mut points = 0;
    loop {
        let point = points + 1;
        let home = TempDir::new().expect("a temporary directory");
        let directory = home.path().join("job");
        job.copy_to(&directory);
        let server = Server::start(Faults { failing: [4].into(), ..Faults::default() });
        let steps: [&[&str]; 3] = [&["submit"], &["collect", "--wait", "--retry"], &["collect", "--wait"]];
        let is_killed = run_killed(&job, &directory, &server, point, &steps);
        assert_complete(&directory);
        let sent = server.sent();
        assert_eq!(sent.len() as u64, ROWS, "{point}");
        for (id, count) in &sent {
            assert_eq!(*count, if id.ends_with("-4") { 2 } else { 1 }, "{point}: {id}");
        }
        assert_eq!(server.state().batches.len(), 3, "{point}");
        if !is_killed {
            break;
        }
        points = point;
    }
    // Two files are sent with three writes each, and there is a point before and after each commit.
    assert!(points >= 12, "{points}");
}

#[test]
fn where_nothing_can_be_looked_up_a_killed_job_repeats_nothing_by_itself() {
    let job = Job::prepare("anthropic");
    let mut unknown = BTreeSet::new();
    let mut point = 1;
    loop {
        let home = TempDir::new().expect("a temporary directory");
        let directory = home.path().join("job");
        job.copy_to(&directory);
        let server = Server::start(Faults::default());
        let is_killed = run_killed(&job, &directory, &server, point, &[&["submit"], &["collect", "--wait"]]);
        assert!(server.sent().values().all(|count| *count == 1), "{point}");
        let status = job.command(&directory, &server, &["status", "--json"]).output().expect("the command runs");
        let report: Json = serde_json::from_slice(&status.stdout).expect("JSON");
        if report["files"].as_array().expect("a list").iter().any(|file| file["is_unknown"] == true) {
            unknown.insert(point);
            let submit = job.command(&directory, &server, &["submit"]).output().expect("the command runs");
            assert_eq!(submit.status.code(), Some(1));
            assert!(text(&submit.stderr).contains("--retry-unknown"), "{}", text(&submit.stderr));
            let submit =
                job.command(&directory, &server, &["submit", "--retry-unknown"]).output().expect("the command runs");
            assert_eq!(submit.status.code(), Some(0), "{}", text(&submit.stderr));
            let collect = job.command(&directory, &server, &["collect", "--wait"]).output().expect("the command runs");
            assert_eq!(collect.status.code(), Some(0), "{}", text(&collect.stderr));
        }
        assert_complete(&directory);
        if !is_killed {
            break;
        }
        point += 1;
    }
    // Only after the intent was recorded, and before the batch was.
    assert!(!unknown.is_empty() && unknown.len() < point / 2, "{unknown:?} of {point}");
}
