//! `tympan run --journal` and `tympan resume`, with processes that are really killed.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with a prompt that calls a tool once, and the tool.
struct Folder(TempDir);

impl Folder {
    /// Creates a tool that records its key and then runs this shell code.
    fn new(tool: &str, idempotent: bool) -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/weather");
        for name in ["weather.prompty", "script.yaml"] {
            fs::copy(examples.join(name), folder.path(name)).expect("it can be copied");
        }
        let script = format!("echo $TYMPAN_IDEMPOTENCY_KEY >> keys\n{tool}\n");
        fs::write(folder.path("tool.sh"), script).expect("it can be written");
        let tools = format!("[get_weather]\ncommand = [\"sh\", \"tool.sh\"]\nidempotent = {idempotent}\n");
        fs::write(folder.path("tools.toml"), tools).expect("it can be written");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
        command.current_dir(self.0.path()).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("it runs")
    }

    fn keys(&self) -> Vec<String> {
        fs::read_to_string(self.path("keys")).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

/// A tool that kills its parent process, once.
const DEADLY: &str = "if [ ! -e dead ]; then touch dead; kill -9 $PPID; fi; echo clear";

const RUN: [&str; 7] = ["run", "weather.prompty", "--sample", "--tools", "tools.toml", "--journal", "j"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

#[test]
fn a_run_that_was_killed_in_a_tool_goes_on() {
    for (idempotent, ran, heard) in [(true, 2, "← get_weather clear"), (false, 1, "its outcome is unknown")] {
        for journal in ["turn.journal", "turn.db"] {
            let folder = Folder::new(DEADLY, idempotent);
            let mut run = RUN;
            run[6] = journal;
            assert_eq!(folder.run(&run).status.signal(), Some(9));
            let resumed = folder.run(&["resume", journal, "--tools", "tools.toml"]);
            assert_eq!(text(&resumed.stdout), "It is clear in Paris, at 21 degrees.\n", "{}", text(&resumed.stderr));
            assert!(text(&resumed.stderr).contains(heard), "{}", text(&resumed.stderr));
            let keys = folder.keys();
            assert_eq!((keys.len(), &keys[0]), (ran, keys.last().expect("it ran")), "{journal}");
            // The run is finished: nothing runs again, even though the tool would fail now.
            fs::write(folder.path("tool.sh"), "exit 1").expect("it can be written");
            let again = folder.run(&["resume", journal, "--tools", "tools.toml", "--json"]);
            let json: Value = serde_json::from_slice(&again.stdout).expect("it is JSON");
            assert_eq!((&json["result"], &json["rounds"]), (&"It is clear in Paris, at 21 degrees.".into(), &2.into()));
            assert_eq!(folder.keys(), keys);
        }
    }
}

#[test]
fn an_interrupted_run_says_how_to_go_on() {
    // The tool signals that it has started and then waits forever. Once `begun` is removed, it does neither.
    let waits = "echo > begun; exec cat waits";
    let folder = Folder::new(&format!("if [ -e begun ]; then {waits}; fi; echo clear"), true);
    for pipe in ["begun", "waits"] {
        let made = Command::new("mkfifo").arg(folder.path(pipe)).status().expect("it runs");
        assert!(made.success());
    }
    let child = folder.command(&RUN).spawn().expect("it runs");
    let mut told = String::new();
    let mut begun = fs::File::open(folder.path("begun")).expect("it begins");
    begun.read_to_string(&mut told).expect("it tells");
    fs::remove_file(folder.path("begun")).expect("it is there");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(killed.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130));
    assert!(
        text(&output.stderr).ends_with("interrupted\nresume with: tympan resume j --tools tools.toml\n"),
        "{}",
        text(&output.stderr)
    );
    let resumed = folder.run(&["resume", "j", "--tools", "tools.toml"]);
    assert_eq!(text(&resumed.stdout), "It is clear in Paris, at 21 degrees.\n", "{}", text(&resumed.stderr));
}

#[test]
fn a_journal_without_tools_keeps_the_answer() {
    let folder = Folder::new("", false);
    fs::write(folder.path("hi.prompty"), "---\nmodel: {provider: echo}\n---\nuser:\nHi {{ name }}!\n")
        .expect("written");
    let run = folder.run(&["run", "hi.prompty", "--set", "name=Ada", "--journal", "hi.journal"]);
    assert_eq!(text(&run.stdout), "Hi Ada!\n", "{}", text(&run.stderr));
    assert_eq!(text(&folder.run(&["resume", "hi.journal"]).stdout), "Hi Ada!\n");
}

#[test]
fn prompts_that_changed_or_moved_are_noticed() {
    let folder = Folder::new("echo clear", false);
    assert!(folder.run(&RUN).status.success());
    fs::rename(folder.path("weather.prompty"), folder.path("moved.prompty")).expect("it moves");
    let lost = folder.run(&["resume", "j", "--tools", "tools.toml", "--json"]);
    assert_eq!(lost.status.code(), Some(1));
    let found = folder.run(&["resume", "j", "--tools", "tools.toml", "--prompt", "moved.prompty"]);
    assert_eq!(text(&found.stdout), "It is clear in Paris, at 21 degrees.\n", "{}", text(&found.stderr));
    let prompt = fs::read_to_string(folder.path("moved.prompty")).expect("it is there");
    fs::write(folder.path("weather.prompty"), prompt.replace("like in", "like near")).expect("it can be written");
    let changed = folder.run(&["resume", "j", "--tools", "tools.toml", "--json"]);
    let json: Value = serde_json::from_slice(&changed.stderr).expect("it is JSON");
    assert_eq!((&json["error"]["code"], changed.status.code()), (&"journal_mismatch".into(), Some(1)));
}

/// A person who can write to a journal must not be able to choose which programs run.
#[test]
fn a_resumed_run_has_a_policy() {
    // The city is in the user message.
    for (run, resume, is_allowed) in [
        (None, None, true),
        (None, Some("user"), true),
        (None, Some("assistant"), false),
        (Some("user"), None, true),
        // A journal that names another policy than the command line: what both allow counts.
        (Some("user,assistant"), Some("assistant,tool"), false),
        (Some("user,assistant"), Some("user,tool"), true),
    ] {
        let folder = Folder::new("echo clear", true);
        let run: Vec<_> = RUN.into_iter().chain(run.into_iter().flat_map(|roles| ["--policy", roles])).collect();
        let done = folder.run(&run);
        assert!(done.status.success(), "{}", text(&done.stderr));
        let resume: Vec<_> = ["resume", "j", "--tools", "tools.toml"]
            .into_iter()
            .chain(resume.into_iter().flat_map(|roles| ["--policy", roles]))
            .collect();
        let resumed = folder.run(&resume);
        assert_eq!(resumed.status.success(), is_allowed, "{run:?} {resume:?}: {}", text(&resumed.stderr));
        assert_eq!(text(&resumed.stderr).contains("policy_violation"), !is_allowed);
    }
}

#[test]
fn a_resumed_run_has_the_policy_of_the_run() {
    let folder = Folder::new("echo clear", true);
    let run: Vec<_> = RUN.into_iter().chain(["--policy", "user"]).collect();
    assert!(folder.run(&run).status.success());
    // The prompt is the same for a model, but its input has moved to a message that the policy forbids.
    let prompt = fs::read_to_string(folder.path("weather.prompty")).expect("a prompt");
    let moved = prompt.replace("\nuser:\n", "\ndeveloper:\n");
    assert_ne!(moved, prompt);
    fs::write(folder.path("moved.prompty"), moved).expect("it can be written");
    let resume = ["resume", "j", "--tools", "tools.toml", "--prompt", "moved.prompty"];
    // The command line cannot allow what the run did not.
    for more in [&[][..], &["--policy", "user,developer"]] {
        let resumed = folder.run(&[&resume[..], more].concat());
        assert!(text(&resumed.stderr).contains("policy_violation"), "{}", text(&resumed.stderr));
    }
}

#[test]
fn a_journal_does_not_name_the_file_of_tools() {
    let folder = Folder::new(DEADLY, true);
    assert_eq!(folder.run(&RUN).status.signal(), Some(9));
    let before = folder.keys();
    let refused = folder.run(&["resume", "j", "--json"]);
    let json: Value = serde_json::from_slice(&refused.stderr).expect("it is JSON");
    assert_eq!((&json["error"]["code"], refused.status.code()), (&"journal_mismatch".into(), Some(1)));
    assert!(json["error"]["help"].as_str().is_some_and(|help| help.contains("--tools tools.toml")), "{json}");
    assert_eq!(folder.keys(), before);
    assert!(folder.run(&["resume", "j", "--tools", "tools.toml"]).status.success());
}

#[test]
fn what_cannot_be_found_again_is_refused() {
    let folder = Folder::new("echo clear", false);
    let output = folder.run(&["run", "-", "--journal", "j"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("must be files"), "{}", text(&output.stderr));
    assert!(!folder.path("j").exists());
    let begun_by_another = folder.run(&["resume", "tools.toml"]);
    assert!(text(&begun_by_another.stderr).contains("error[invalid_journal]"), "{}", text(&begun_by_another.stderr));
}

#[test]
fn a_run_that_is_stopped_ends_with_all_that_its_tools_began() {
    for (signal, status) in [("-INT", 130), ("-TERM", 143)] {
        let family = "(exec > alive 2>&1 < /dev/null; echo begun; sleep 20; echo survived) & wait";
        let folder = Folder::new(family, false);
        assert!(Command::new("mkfifo").arg(folder.path("alive")).status().expect("it runs").success());
        let child = folder.command(&RUN).spawn().expect("it runs");
        let mut told = String::new();
        let mut lines = BufReader::new(fs::File::open(folder.path("alive")).expect("it begins"));
        lines.read_line(&mut told).expect("it tells");
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill runs");
        assert!(killed.success());
        assert_eq!(child.wait_with_output().expect("it ends").status.code(), Some(status));
        // Reading ends when no writer is left.
        lines.read_to_string(&mut told).expect("it ends");
        assert_eq!(told, "begun\n", "{signal}");
    }
}

#[test]
fn tools_get_the_variables_that_their_file_names_and_no_others() {
    let folder = Folder::new("env > seen; echo \"clear $ITS_KEY\"", false);
    let tools = fs::read_to_string(folder.path("tools.toml")).expect("it is there") + "env = [\"ITS_KEY\"]\n";
    fs::write(folder.path("tools.toml"), tools).expect("it can be written");
    let mut command = folder.command(&RUN);
    command
        .env("OPENAI_API_KEY", "sk-0123456789abcdef")
        .env("AWS_SECRET_ACCESS_KEY", "aws")
        .env("ITS_KEY", "its-own-key");
    let output = command.output().expect("it runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let seen = fs::read_to_string(folder.path("seen")).expect("it ran");
    assert!(seen.contains("PATH=") && seen.contains("ITS_KEY=its-own-key"), "{seen}");
    assert!(!seen.contains("OPENAI_API_KEY") && !seen.contains("AWS_SECRET_ACCESS_KEY"), "{seen}");
    // The key is redacted in the tool's output.
    assert!(text(&output.stderr).contains("← get_weather clear [REDACTED]"), "{}", text(&output.stderr));
    assert!(!fs::read_to_string(folder.path("j")).expect("a journal").contains("its-own-key"));
}
