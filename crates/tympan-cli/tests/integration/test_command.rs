//! `tympan test`: interrupted runs, hostile content, and exit statuses.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;

use serde_json::Value as Json;
use tempfile::TempDir;

use crate::server::{Server, respond};

const PROMPT: &str =
    "---\nname: greeting\nmodel: gpt-4o-mini\ninputs:\n  - {name: name, kind: string}\n---\nuser:\nHello {{ name }}!\n";

fn tympan(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(directory).arg("test").args(arguments).env_remove("GITHUB_STEP_SUMMARY");
    command.output().expect("the command runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Creates a directory with a prompt and a test file.
fn project(tests: &str) -> TempDir {
    let directory = TempDir::new().expect("a directory");
    fs::write(directory.path().join("greeting.prompty"), PROMPT).expect("the prompt is written");
    fs::write(directory.path().join("greeting.test.yaml"), tests).expect("the tests are written");
    directory
}

fn results(output: &Output) -> Vec<Json> {
    let lines = stdout(output);
    let results = lines.lines().map(|line| serde_json::from_str::<Json>(line).expect("a line is JSON"));
    results.filter(|result| result["kind"] == "case").collect()
}

#[test]
fn a_killed_run_loses_no_finished_case() {
    let directory = project("cases:\n  - {name: rows, rows: rows.jsonl, expect: [{forge: all}]}\n");
    let rows: String = (0..3000).map(|row| format!("{{\"name\": \"n{row}\"}}\n")).collect();
    fs::write(directory.path().join("rows.jsonl"), rows).expect("the rows are written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(directory.path()).args(["test", "--json"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let seen: Vec<Json> = lines
        .by_ref()
        .take(500)
        .map(|line| serde_json::from_str(&line.expect("a line")).expect("a line is JSON"))
        .collect();
    child.kill().expect("the command is killed");
    child.wait().expect("the command ends");
    let log = directory.path().join(".tympan/last-test.jsonl");
    let before = fs::read_to_string(&log).expect("there is a log");
    let complete = before.lines().filter(|line| serde_json::from_str::<Json>(line).is_ok()).count();
    assert!(complete >= seen.len() && complete < 3000, "{complete} cases are in the log");

    let resumed = tympan(directory.path(), &["--json", "--resume"]);
    assert!(resumed.status.success(), "{}", stdout(&resumed));
    let results = results(&resumed);
    assert_eq!(results.len(), 3000);
    // Cases that were finished keep their results, down to the time that they took.
    for (seen, resumed) in seen.iter().zip(&results) {
        assert_eq!((&seen["id"], &seen["seconds"]), (&resumed["id"], &resumed["seconds"]));
    }
    let ids = fs::read_to_string(&log).expect("there is a log");
    let ids: std::collections::HashSet<_> =
        ids.lines().map(|line| serde_json::from_str::<Json>(line).expect("JSON")["id"].to_string()).collect();
    assert_eq!(ids.len(), 3000);
}

#[test]
fn cases_of_a_changed_judge_run_again() {
    let directory = project(
        "cases:\n  - name: judged\n    inputs: {name: Ada}\n    answer: {text: Hi}\n    expect: [{judge: {rubric: tone.prompty}}]\n",
    );
    let rubric = |pass: bool| {
        let script = format!("script: [{{text: '{{\"pass\": {pass}}}'}}]");
        let text = format!(
            "---\nname: tone\nmodel: {{provider: echo, options: {{additionalProperties: {{{script}}}}}}}\n\
            inputs: [{{name: answer, kind: string}}]\noutputs: [{{name: pass, kind: boolean}}]\n---\nuser:\n{{{{ answer }}}}\n",
        );
        fs::write(directory.path().join("tone.prompty"), text).expect("the rubric is written");
    };
    rubric(true);
    assert_eq!(tympan(directory.path(), &[]).status.code(), Some(0));
    rubric(false);
    let output = tympan(directory.path(), &["--resume"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
}

#[test]
fn a_killed_run_loses_no_case_that_finished_before_an_earlier_one() {
    let answer = serde_json::json!({"choices": [
        {"index": 0, "message": {"role": "assistant", "content": "Hello Ada"}, "finish_reason": "stop"},
    ]});
    // The first and the last of ten requests get no answer until the command is killed.
    let waiting = Mutex::new(Vec::new());
    let server = Server::start(move |stream, number| match number {
        0 | 9 => waiting.lock().expect("no thread panics").push(stream.try_clone().expect("a connection")),
        _ => respond(stream, "200 OK", "application/json", &answer.to_string()),
    });
    let directory = project("cases:\n  - {name: live, rows: rows.jsonl, expect: [{result: {contains: Ada}}]}\n");
    fs::write(directory.path().join("rows.jsonl"), "{\"name\": \"Ada\"}\n".repeat(10)).expect("the rows are written");
    let live = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
        command.current_dir(directory.path()).args(["test", "--json", "--live", "--jobs", "2"]).args(arguments);
        command.env("OPENAI_API_KEY", crate::server::KEY).env("OPENAI_BASE_URL", &server.url).env("NO_PROXY", "*");
        command
    };
    let mut child = live(&[]).stdout(Stdio::null()).spawn().expect("the command runs");
    // One thread waits for the first answer. The other one had finished eight cases when it sent the last request.
    assert_eq!(server.requests.iter().take(10).count(), 10);
    child.kill().expect("the command is killed");
    child.wait().expect("the command ends");
    let log = || fs::read_to_string(directory.path().join(".tympan/last-test.jsonl")).expect("there is a log");
    assert_eq!(log().lines().count(), 8);

    let resumed = live(&["--resume"]).output().expect("the command runs");
    assert!(resumed.status.success(), "{}", stdout(&resumed));
    assert_eq!(results(&resumed).len(), 10);
    assert_eq!(server.requests.try_iter().count(), 2);
    // Results from the log are not written again.
    assert_eq!(log().lines().count(), 10);
}

#[test]
fn the_status_says_whether_cases_passed() {
    let good = project("cases: [{name: good, inputs: {name: Ada}, expect: [{messages: 1}]}]");
    assert_eq!(tympan(good.path(), &[]).status.code(), Some(0));
    let bad = project("cases: [{name: bad, inputs: {name: Ada}, expect: [{messages: 2}]}]");
    assert_eq!(tympan(bad.path(), &[]).status.code(), Some(1));
    assert_eq!(tympan(bad.path(), &["--output-format", "none"]).status.code(), Some(2));
    // Without a recording, the case cannot run.
    let open = project("cases: [{name: open, inputs: {name: Ada}, expect: [{result: {contains: Ada}}]}]");
    let output = tympan(open.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("--record"), "{}", stdout(&output));
    assert_eq!(tympan(open.path(), &["--allow-missing"]).status.code(), Some(0));
    // A run that tests nothing does not pass.
    assert_eq!(tympan(TempDir::new().expect("a directory").path(), &[]).status.code(), Some(2));
    let broken = project("cases: [{name: broken, expcet: []}]");
    let output = tympan(broken.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("greeting.test.yaml:1:24"), "{}", stdout(&output));
}

#[test]
fn failures_can_be_repeated_and_end_a_run() {
    let directory = project(
        "cases:\n  - {name: a, inputs: {name: Ada}, expect: [{messages: 2}]}\n  \
        - {name: b, inputs: {name: Ada}, expect: [{messages: 1}]}\n  \
        - {name: c, inputs: {name: Ada}, expect: [{messages: 2}]}\n",
    );
    let names = |arguments: &[&str]| {
        let output = tympan(directory.path(), &[&["--json", "-j", "1"], arguments].concat());
        results(&output).iter().map(|result| result["name"].as_str().expect("a name").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--fail-fast"]), ["a"]);
    assert_eq!(names(&[]), ["a", "b", "c"]);
    assert_eq!(names(&["--last-failed"]), ["a", "c"]);
    assert_eq!(names(&["-k", "::b"]), ["b"]);
    let output = tympan(directory.path(), &["-k", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("-k: no case has `nothing` in its name or file"), "{message}");
}

#[test]
fn a_file_that_cannot_be_read_fails_whatever_is_selected() {
    let directory = project("cases: [{name: a, inputs: {name: Ada}, expect: [{messages: 1}]}]");
    fs::write(directory.path().join("other.test.yaml"), "cases: [{name: b, expcet: []}]").expect("it is written");
    for arguments in [&["-k", "greeting"][..], &["--last-failed"], &["--resume"], &["--cost"]] {
        let output = tympan(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let shown = stdout(&output) + &String::from_utf8_lossy(&output.stderr);
        assert!(shown.contains("other.test.yaml:1:19: Invalid tests: unknown key `cases[0].expcet`"), "{shown}");
    }
}

#[test]
fn assertions_that_are_wrong_themselves_always_fail() {
    for assertion in [
        "{message: {matches: '('}}",
        "{no_origin: nmae}",
        "{no_origin: {input: name, in: assistant}}",
        "{only_from: {inputs: [nmae]}}",
        "{share: {input: nmae, max: 0.5}}",
        "{guarded: nmae}",
        "{verbatim: nmae}",
        "{request: {path: messages}}",
        "{result: {matches: '('}}",
        "{judge: {rubric: ../../../../greeting.prompty}}",
    ] {
        for expectation in [assertion.to_owned(), format!("{{not: {assertion}}}")] {
            let case = format!("cases: [{{name: a, answer: echo, inputs: {{name: Ada}}, expect: [{expectation}]}}]");
            let output = tympan(project(&case).path(), &["--allow-missing"]);
            assert_eq!(output.status.code(), Some(1), "{expectation}: {}", stdout(&output));
        }
    }
}

#[test]
fn snapshots_are_accepted() {
    let directory = project("cases: [{name: greets, inputs: {name: Ada}, expect: [{message: {snapshot: true}}]}]");
    assert_eq!(tympan(directory.path(), &[]).status.code(), Some(1));
    assert_eq!(tympan(directory.path(), &["--accept"]).status.code(), Some(0));
    let snapshot = fs::read_to_string(directory.path().join("snapshots/greeting/greets.txt"));
    assert_eq!(snapshot.expect("there is a snapshot"), "user:\n  Hello Ada!\n");
    assert_eq!(tympan(directory.path(), &[]).status.code(), Some(0));
}

#[test]
fn messages_of_each_role_have_their_own_snapshot() {
    let directory = project(
        "cases:\n  - name: greets\n    inputs: {name: Ada}\n    expect:\n      \
        - message: {in: user, snapshot: true}\n      - message: {in: 0, snapshot: true}\n",
    );
    fs::write(directory.path().join("greeting.prompty"), PROMPT.replace("user:\n", "system:\nHi.\n\nuser:\n"))
        .expect("changed");
    assert_eq!(tympan(directory.path(), &["--accept"]).status.code(), Some(0));
    let output = tympan(directory.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

#[test]
fn watch_runs_again_after_changes_of_others() {
    let directory = project("cases: [{name: greets, inputs: {name: Ada}, expect: [{message: {snapshot: true}}]}]");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    // The command writes to the directory that it watches.
    command.current_dir(directory.path()).args(["test", "--watch", "--accept", "--report", "tap=report.tap"]);
    command.args(["--save", "base.jsonl", "--output-format", "concise"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("the command runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("a line"));
    let mut next = || (lines.next().expect("a case"), lines.next().expect("a summary"));
    assert_eq!(next().0, "PASS greeting.test.yaml::greets");
    // What it wrote itself is no reason to run again, so the next results are those after the change.
    fs::write(directory.path().join("greeting.prompty"), "user:\n{{ nobody }}").expect("changed");
    assert_eq!(next().0, "FAIL greeting.test.yaml::greets");
    child.kill().expect("it can be stopped");
    child.wait().expect("it ends");
}

#[test]
fn programs_run_only_if_the_user_allows_it() {
    let directory = project(
        "cases:\n  - name: program\n    inputs: {name: Ada}\n    answer: echo\n    expect:\n      \
        - program: {command: [sh, -c, \"touch ran; echo '{\\\"pass\\\": true}'\"]}\n",
    );
    let output = tympan(directory.path(), &[]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("--allow-programs"), "{}", stdout(&output));
    assert!(!directory.path().join("ran").exists());
    let output = tympan(directory.path(), &["--allow-programs"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    assert!(directory.path().join("ran").exists());
}

#[test]
fn the_policy_of_the_project_applies_to_tool_calls() {
    let directory = project(
        "prompt: agent.prompty\ncases:\n  - name: asks\n    inputs: {question: Mail Ann.}\n    tools: {send: sent}\n    \
        expect:\n      - program: {command: [sh, -c, \"grep -q '\\\"asked\\\"' && echo '{\\\"pass\\\": true}'\"]}\n",
    );
    let script = "[{tool_calls: [{name: send, arguments: {to: ann}}]}, {text: Done.}]";
    let prompt = format!(
        "---\nname: agent\nmodel: {{provider: echo, options: {{additionalProperties: {{script: {script}}}}}}}\ninputs:\n  \
        - {{name: question, kind: string}}\ntools:\n  - {{name: send, kind: function, parameters: [{{name: to, kind: string}}]}}\n\
        ---\nuser:\n{{{{ question }}}}\n",
    );
    fs::write(directory.path().join("agent.prompty"), prompt).expect("the prompt is written");
    let output = tympan(directory.path(), &["--allow-programs"]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    fs::write(directory.path().join("tympan.toml"), "[policy.tools]\nmode = \"strict\"\n").expect("settings");
    let output = tympan(directory.path(), &["--allow-programs"]);
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
}

#[test]
fn nothing_that_a_file_or_a_model_wrote_controls_the_terminal() {
    let directory = project(
        "cases:\n  - name: \"evil\\e[2J\\u202e\"\n    inputs: {name: \"\\e]0;title\\a\\n\\r\"}\n    answer: {text: \"\\e[31mred\\n\\u202e\"}\n    \
        expect: [{message: {equals: none}}, {result: {equals: none}}]\n",
    );
    for format in ["full", "concise", "junit", "tap", "github", "markdown"] {
        let output = tympan(directory.path(), &["--output-format", format]);
        let text = stdout(&output);
        assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}', '\r']), "{format}: {text:?}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn a_run_is_compared_with_a_saved_one() {
    let directory = project("cases: [{name: a, inputs: {name: Ada}, expect: [{messages: 1}]}]");
    assert_eq!(tympan(directory.path(), &["--save", "base.jsonl"]).status.code(), Some(0));
    fs::write(directory.path().join("greeting.prompty"), PROMPT.replace("user:\n", "user:\nHi.\n\nuser:\n"))
        .expect("changed");
    let output = tympan(directory.path(), &["--baseline", "base.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("Compared with base.jsonl: 1 worse, 0 better, 0 the same"), "{}", stdout(&output));
    // No model has a part in it, so the change is real.
    assert!(!stdout(&output).contains("McNemar"), "{}", stdout(&output));
    let output = tympan(directory.path(), &["--baseline", "missing.jsonl"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn prompts_of_a_revision_are_compared() {
    let directory = project("cases: [{name: a, inputs: {name: Ada}, expect: [{messages: 1}]}]");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        let done = Command::new("git").current_dir(directory.path()).args(identity).args(arguments).output();
        assert!(done.as_ref().is_ok_and(|done| done.status.success()), "{done:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "--message", "one"]);
    fs::write(directory.path().join("greeting.prompty"), PROMPT.replace("user:\n", "user:\nHi.\n\nuser:\n"))
        .expect("changed");
    let output = tympan(directory.path(), &["--against", "HEAD"]);
    assert!(stdout(&output).contains("Compared with HEAD: 1 worse, 0 better, 0 the same"), "{output:?}");
    assert!(!stdout(&output).contains("McNemar"), "{output:?}");
    // What changed besides the verdicts, for the inputs of the first case.
    let changes =
        ["--- HEAD:greeting.prompty\n+++ greeting.prompty\n", "  1 user (added):\n", "~ template: ", "tokens:\n"];
    changes.iter().for_each(|change| assert!(stdout(&output).contains(change), "{change}: {output:?}"));
    let unchanged = stdout(&tympan(directory.path(), &["--against", "HEAD", "--json"]));
    assert!(!unchanged.contains("--- HEAD"), "{unchanged}");
    assert_eq!(tympan(directory.path(), &["--against", "--all"]).status.code(), Some(2));
    assert_eq!(tympan(directory.path(), &["--against", "nowhere"]).status.code(), Some(2));
    // A prompt that does not load can be repaired.
    fs::write(directory.path().join("greeting.prompty"), "---\ninputs: 5\n---\n").expect("broken");
    git(&["commit", "--quiet", "--all", "--message", "two"]);
    fs::write(directory.path().join("greeting.prompty"), PROMPT).expect("repaired");
    let output = tympan(directory.path(), &["--against", "HEAD"]);
    assert!(stdout(&output).contains("Compared with HEAD: 0 worse, 1 better, 0 the same"), "{output:?}");
    let warning = String::from_utf8_lossy(&output.stderr);
    assert!(warning.contains("greeting.prompty does not load in the revision"), "{warning}");
}

#[test]
fn changed_answers_of_a_model_are_tested_for_significance() {
    let answer = |text: &str| {
        let message = serde_json::json!({"role": "assistant", "content": text});
        serde_json::json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).to_string()
    };
    let (good, bad) = (answer("Hello Ada"), answer("Go away"));
    let server = Server::start(move |stream, number| {
        respond(stream, "200 OK", "application/json", if number < 6 { &good } else { &bad });
    });
    let directory = project(
        "cases:\n  - {name: fixed, inputs: {name: Ada}, expect: [{messages: 1}]}\n  \
        - {name: live, rows: rows.jsonl, expect: [{result: {contains: Ada}}]}\n",
    );
    fs::write(directory.path().join("rows.jsonl"), "{\"name\": \"Ada\"}\n".repeat(6)).expect("the rows are written");
    let live = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
        command.current_dir(directory.path()).args(["test", "--live"]).args(arguments).env("NO_PROXY", "*");
        command.env("OPENAI_API_KEY", crate::server::KEY).env("OPENAI_BASE_URL", &server.url);
        stdout(&command.output().expect("the command runs"))
    };
    live(&["--save", "base.jsonl"]);
    let shown = live(&["--baseline", "base.jsonl"]);
    assert!(shown.contains("Compared with base.jsonl: 6 worse, 0 better, 1 the same"), "{shown}");
    let expected = "6 cases with answers of a model, which vary: worse (6 worse, 0 better; McNemar's test, p = 0.031)";
    assert!(shown.contains(expected), "{shown}");
    let shown = live(&["--baseline", "base.jsonl", "-k", "live[1]"]);
    assert!(shown.contains("1 case with answers of a model, which vary: no difference shown (1 worse"), "{shown}");
}

/// Returns the most memory that a run over this many rows needs, in KiB. Its last lines are not read before, so it is
/// still running.
#[cfg(target_os = "linux")]
fn peak_memory(rows: usize) -> u64 {
    let directory = project(
        "cases:\n  - {name: rows, rows: rows.jsonl, expect: [{roles: [user]}, {message: {contains: \"${row:name}\"}}]}\n",
    );
    let text: String = (0..rows).map(|row| format!("{{\"name\": \"n{row}\"}}\n")).collect();
    fs::write(directory.path().join("rows.jsonl"), text).expect("the rows are written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(directory.path()).args(["test", "--json", "--jobs", "1"]).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the command runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    // More than a pipe holds remains.
    assert_eq!(lines.by_ref().take(rows - 500).count(), rows - 500);
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it is running");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("there is a peak");
    let peak = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert_eq!(lines.count(), 501);
    assert!(child.wait().expect("the command ends").success());
    peak
}

#[cfg(target_os = "linux")]
#[test]
fn ten_times_as_many_rows_need_no_more_memory() {
    let (few, many) = (peak_memory(1_500), peak_memory(15_000));
    assert!(many * 10 <= few * 11, "{few} KiB for 1,500 rows, {many} KiB for 15,000");
}
