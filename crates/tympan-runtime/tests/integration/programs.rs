//! Programs as tools: their environment, and how they are stopped.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tympan_core::spec::Secret;
use tympan_core::{Inputs, Prompt};
use tympan_runtime::net::io;
use tympan_runtime::tool::{ProgramRun, run_program};
use tympan_runtime::{CancelToken, McpServer, Runtime, Tool, TurnRun, TurnSettings, tool};

/// Returns a prompt whose model calls the tool `act` once.
fn prompt() -> Prompt {
    let script = json!([{ "tool_calls": [{ "name": "act", "arguments": {} }] }, { "text": "done" }]);
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let front = json!({ "model": model, "tools": [{ "name": "act", "kind": "function", "parameters": [] }] });
    Runtime::default().load_str(&format!("---\n{front}\n---\nuser:\nHi\n"), "p.prompty", ".").expect("it loads")
}

fn settings(tool: Arc<dyn Tool>) -> TurnSettings {
    TurnSettings { tools: [("act".to_owned(), tool)].into(), ..TurnSettings::default() }
}

fn turn(settings: &TurnSettings) -> TurnRun {
    Runtime::default().turn(&prompt(), Inputs::new(), settings).expect("it comes to its end")
}

/// Returns the result of the tool.
fn result(turn: &TurnRun) -> String {
    turn.messages[2].to_text()
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

#[test]
fn a_program_gets_no_variables_that_nobody_gave_it() {
    // Cargo sets this variable for every test.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let environment = result(&turn(&settings(tool::command(shell("env | cut -d= -f1 | sort"), None))));
    assert!(environment.lines().any(|name| name == "PATH"), "{environment}");
    assert!(environment.contains("TYMPAN_IDEMPOTENCY_KEY") && !environment.contains("CARGO"), "{environment}");
}

#[test]
fn what_it_is_given_is_taken_out_of_what_it_prints() {
    let given = || vec![("ITS_KEY".to_owned(), Secret::new("key-0123456789"))];
    let echo = tool::command_with_env(shell("echo \"has $ITS_KEY\" | tr a-z A-Z"), None, given());
    assert_eq!(result(&turn(&settings(echo))), "HAS [REDACTED]");
    let complain = tool::command_with_env(shell("echo \"no $ITS_KEY\" >&2; exit 1"), None, given());
    let said = result(&turn(&settings(complain)));
    assert!(said.contains("no [REDACTED]"), "{said}");
}

/// A program that has started another one, which reports that it is running, and again after a long time.
struct Family {
    folder: TempDir,
}

impl Family {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(Command::new("mkfifo").arg(folder.path().join("alive")).status().expect("mkfifo runs").success());
        Self { folder }
    }

    fn pipe(&self) -> PathBuf {
        self.folder.path().join("alive")
    }

    fn script(&self) -> Vec<String> {
        let pipe = self.pipe();
        shell(&format!(
            "(exec >{pipe} 2>&1 </dev/null; echo begun; sleep 20; echo survived) & wait",
            pipe = pipe.display()
        ))
    }
}

#[test]
fn a_turn_that_is_stopped_ends_with_all_that_it_began() {
    let family = Family::new();
    let pipe = family.pipe();
    let cancel = CancelToken::default();
    let settings = TurnSettings { cancel: cancel.clone(), ..settings(tool::command(family.script(), None)) };
    let running = std::thread::spawn(move || {
        Runtime::default().turn(&prompt(), Inputs::new(), &settings).map(|turn| turn.rounds)
    });
    let mut told = String::new();
    let mut lines = BufReader::new(fs::File::open(&pipe).expect("somebody begins"));
    lines.read_line(&mut told).expect("it tells");
    cancel.cancel();
    // Reading ends when no writer is left.
    lines.read_to_string(&mut told).expect("it ends");
    assert_eq!(told, "begun\n");
    assert!(running.join().expect("it ends").is_err());
}

#[test]
fn a_server_ends_with_all_that_it_began() {
    let family = Family::new();
    let runtime = Runtime::default();
    // The server never answers and is killed when nobody waits for it anymore.
    let server = McpServer::stdio(family.script()).connect_timeout(std::time::Duration::from_secs(3600));
    runtime.register_mcp_server("family", server);
    let model = json!({ "provider": "echo" });
    let front = json!({ "model": model, "tools": [{ "name": "t", "kind": "mcp", "serverName": "family" }] });
    let prompt = runtime.load_str(&format!("---\n{front}\n---\nuser:\nHi\n"), "p.prompty", ".").expect("it loads");
    let (pipe, mut told) = (family.pipe(), String::new());
    let driver = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
    driver.block_on(async {
        let turn = async { runtime.turn_async(&prompt, &Inputs::new(), &TurnSettings::default()).await.map(drop) };
        let begun = tokio::task::spawn_blocking(move || {
            let (mut lines, mut told) =
                (BufReader::new(fs::File::open(&pipe).expect("somebody begins")), String::new());
            lines.read_line(&mut told).expect("it tells");
            (lines, told)
        });
        // The turn is dropped as soon as the server has started.
        let (mut lines, begun) = tokio::select! {
            turn = turn => panic!("{turn:?}"),
            begun = begun => begun.expect("it is read"),
        };
        told = begun;
        lines.read_to_string(&mut told).expect("it ends");
    });
    assert_eq!(told, "begun\n");
}

fn program(script: &str, timeout: Duration) -> ProgramRun {
    let directory = std::env::temp_dir();
    ProgramRun { command: shell(script), directory, input: b"input".to_vec(), timeout, max_output: 1000 }
}

/// Nothing takes so long.
const LONG: Duration = Duration::from_secs(3600);

#[test]
fn a_program_reads_prints_and_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "cat; pwd -P; env | grep CARGO; seq 5000 >&2; exit 3";
    let run = ProgramRun { directory: folder.path().to_owned(), ..program(script, LONG) };
    let output = io::wait(run_program(run)).expect("it runs");
    let here = folder.path().canonicalize().expect("it exists");
    assert_eq!(String::from_utf8_lossy(&output.stdout), format!("input{}\n", here.display()));
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stderr.ends_with("\n4999\n5000\n") && output.stderr.len() <= 4096, "{}", output.stderr);
}

#[test]
fn relative_paths_start_in_the_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("check");
    fs::write(&path, "#!/bin/sh\necho here\n").expect("it is written");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it is executable");
    let mut run = ProgramRun { directory: folder.path().to_owned(), ..program("", LONG) };
    run.command = vec!["./check".to_owned()];
    assert_eq!(io::wait(run_program(run)).expect("it runs").stdout, b"here\n");
}

#[test]
fn a_program_is_bounded() {
    let error = |run: ProgramRun| io::wait(run_program(run)).expect_err("it fails").to_string();
    assert_eq!(error(program("yes", LONG)), "it printed more than 1000 bytes");
    assert_eq!(error(program("sleep 3600", Duration::from_millis(1))), "no result after 0.001 s");
    let missing = ProgramRun { command: vec!["no-such-program".to_owned()], ..program("", LONG) };
    assert!(error(missing).starts_with("cannot start `no-such-program`"));
    assert_eq!(error(ProgramRun { command: Vec::new(), ..program("", LONG) }), "empty command");
}

#[test]
fn a_program_ends_with_all_that_it_began() {
    for script_end in ["wait", "exit 0"] {
        let family = Family::new();
        let pipe = family.pipe();
        // The child keeps no pipe of the program open, so only the end of its group ends it.
        let child = "exec >&3 2>&3 </dev/null; echo begun; sleep 20; echo survived";
        let script = format!("exec 3>{}; ({child}) & {script_end}", pipe.display());
        let running = std::thread::spawn(move || {
            let timeout = if script_end == "wait" { Duration::from_millis(500) } else { LONG };
            io::wait(run_program(program(&script, timeout))).map(|output| output.status.success())
        });
        let mut told = String::new();
        fs::File::open(&pipe).expect("somebody begins").read_to_string(&mut told).expect("it ends");
        assert!(!told.contains("survived"), "{told}");
        assert_eq!(running.join().expect("it ends").is_ok(), script_end != "wait");
    }
}
