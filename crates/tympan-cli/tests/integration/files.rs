//! Links, pipes, devices and oversized files: the command does not follow, overwrite or wait for them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

const PROMPT: &str = "---\nmodel:\n  id: gpt-4o\n  provider: echo\n  connection: {kind: key, apiKey: '${env:A_KEY:none}'}\n---\nuser:\nHi {{ name }}!\n";

/// A folder with a prompt, and a file outside of it.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        fs::create_dir(folder.path("in")).expect("a folder");
        folder.write("in/hi.prompty", PROMPT);
        folder.write("outside", "NAME=from-outside\n");
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("it can be written");
    }

    fn pipe(&self, name: &str) {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().expect("mkfifo runs").success());
    }

    /// Creates a huge sparse file.
    fn large(&self, name: &str) {
        let file = fs::File::create(self.path(name)).expect("it can be made");
        file.set_len(1 << 40).expect("it can be large");
    }

    /// Runs the command in the folder `in`.
    fn run(&self, arguments: &[&str]) -> Output {
        self.run_in("in", Command::new(env!("CARGO_BIN_EXE_tympan")).args(arguments))
    }

    fn run_in(&self, directory: &str, command: &mut Command) -> Output {
        command.current_dir(self.path(directory)).env_remove("NO_COLOR").stdin(Stdio::null());
        command.output().expect("it runs")
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

/// Expects a failure with this message.
fn refused(output: &Output, reason: &str, what: &str) {
    // `check` and `verify` print their findings to standard output.
    let error = text(&output.stdout) + &text(&output.stderr);
    assert!(!output.status.success() && error.contains(reason), "{what}: {error}");
}

const UNUSABLE: [(&str, &str); 4] = [
    ("pipe", "not a regular file"),
    ("/dev/zero", "not a regular file"),
    ("large", "larger than"),
    ("directory", "is a directory"),
];

#[test]
fn every_option_that_names_a_file_refuses_what_is_not_one() {
    let folder = Folder::new();
    folder.pipe("in/pipe");
    folder.large("in/large");
    fs::set_permissions(folder.path("in/large"), fs::Permissions::from_mode(0o600)).expect("it is changed");
    fs::create_dir(folder.path("in/directory")).expect("a folder");
    for (name, reason) in UNUSABLE {
        let set = format!("name=@{name}");
        for arguments in [
            &["render", name][..],
            &["inspect", name],
            &["hash", name],
            &["render", "hi.prompty", "--inputs", name],
            &["render", "hi.prompty", "--set", &set],
            &["run", "hi.prompty", "--set", "name=Ada", "--tools", name],
            &["process", "hi.prompty", "--response", name],
            &["parse", "--threads", name],
            &["resume", name],
            &["trace", name],
            &["sign", "--key", name, "hi.prompty"],
            &["verify", "--trust", ".", name],
        ] {
            refused(&folder.run(arguments), reason, &format!("{arguments:?}"));
        }
        if name != "directory" {
            refused(&folder.run(&["check", name]), reason, name);
        }
    }
}

#[test]
fn journals_that_are_not_files_are_refused() {
    let folder = Folder::new();
    for name in ["pipe", "pipe.db"] {
        folder.pipe(&format!("in/{name}"));
        refused(&folder.run(&["resume", name]), "not a regular file", name);
        let run = folder.run(&["run", "hi.prompty", "--set", "name=Ada", "--journal", name]);
        assert!(!run.status.success(), "{name}");
    }
    folder.large("in/large.db");
    refused(&folder.run(&["resume", "large.db"]), "larger than", "large.db");
    refused(&folder.run(&["resume", "/dev/stdin"]), "not a regular file", "/dev/stdin");
}

#[test]
fn a_dotenv_file_is_read_only_where_it_is() {
    let shown = |folder: &Folder| {
        let script = "---\nname: ${env:NAME:unset}\n---\nuser:\nHi\n";
        folder.write("in/env.prompty", script);
        let output = folder.run(&["inspect", "env.prompty"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout).lines().next().unwrap_or_default().to_owned(), text(&output.stderr))
    };
    let folder = Folder::new();
    folder.write("in/.env", "NAME=from-inside\n");
    assert_eq!(shown(&folder), ("name:        from-inside".to_owned(), String::new()));
    // A link that stays within the folder is accepted.
    fs::rename(folder.path("in/.env"), folder.path("in/other")).expect("it moves");
    symlink("other", folder.path("in/.env")).expect("a link");
    assert_eq!(shown(&folder).0, "name:        from-inside");
    let reasons = [
        ("../outside", "symbolic link points outside its directory"),
        ("/dev/zero", "symbolic link points outside its directory"),
        ("pipe", "not a regular file"),
        ("large", "larger than 1048576 bytes"),
    ];
    folder.pipe("in/pipe");
    folder.large("in/large");
    for (target, reason) in reasons {
        fs::remove_file(folder.path("in/.env")).expect("it was there");
        symlink(target, folder.path("in/.env")).expect("a link");
        let (name, warning) = shown(&folder);
        assert_eq!(name, "name:        unset", "{target}");
        assert!(warning.contains(reason), "{target}: {warning}");
    }
}

#[test]
fn a_lock_file_is_not_written_through_a_link_and_never_waited_for() {
    for (make, reason) in [
        (
            (|folder| symlink("../outside", folder.path("in/tympan.lock")).expect("a link")) as fn(&Folder),
            "symbolic link",
        ),
        (|folder| symlink("../nowhere", folder.path("in/tympan.lock")).expect("a link"), "symbolic link"),
        (|folder| folder.pipe("in/tympan.lock"), "not a regular file"),
        (|folder| fs::create_dir(folder.path("in/tympan.lock")).expect("a folder"), "not a regular file"),
    ] {
        let folder = Folder::new();
        make(&folder);
        refused(&folder.run(&["lock", "."]), reason, reason);
        assert!(!folder.run(&["lock", ".", "--check"]).status.success());
        assert_eq!(fs::read_to_string(folder.path("outside")).expect("it is there"), "NAME=from-outside\n");
        assert!(!folder.path("nowhere").exists());
        let left = fs::read_dir(folder.path("in")).expect("it is there").count();
        assert_eq!(left, 2, "no half of a file is left");
    }
}

#[test]
fn a_lock_file_is_not_read_through_a_link_either() {
    let folder = Folder::new();
    assert!(folder.run(&["lock", "."]).status.success());
    fs::rename(folder.path("in/tympan.lock"), folder.path("moved")).expect("it moves");
    symlink("../moved", folder.path("in/tympan.lock")).expect("a link");
    refused(&folder.run(&["lock", ".", "--check"]), "symbolic link points outside its directory", "a link");
}

#[test]
fn prompts_that_are_links_or_pipes_are_not_locked() {
    let folder = Folder::new();
    folder.write("secret.prompty", PROMPT);
    symlink("../secret.prompty", folder.path("in/link.prompty")).expect("a link");
    folder.pipe("in/pipe.prompty");
    folder.large("in/large.md");
    let locked = folder.run(&["lock", ".", "--json"]);
    let json: Value = serde_json::from_slice(&locked.stdout).expect("it is JSON");
    assert_eq!(json["prompts"], 1);
}

#[test]
fn what_a_shell_passes_is_read() {
    let folder = Folder::new();
    let tympan = env!("CARGO_BIN_EXE_tympan");
    for script in [
        "$0 render <(cat hi.prompty) --set name=Ada",
        "$0 render /dev/stdin --set name=Ada < hi.prompty",
        "cat hi.prompty | $0 render /dev/stdin --set name=Ada",
        "$0 render hi.prompty --inputs <(echo 'name: Ada')",
        "$0 render hi.prompty --set name=@<(printf Ada)",
        "ln -s hi.prompty link; $0 render link --set name=Ada; rm link",
    ] {
        let output = folder.run_in("in", Command::new("bash").args(["-c", script, tympan]));
        assert_eq!(text(&output.stdout), "user:\nHi Ada!\n", "{script}: {}", text(&output.stderr));
    }
    for script in ["$0 render /dev/stdin < /dev/zero", "$0 render hi.prompty --inputs <(cat /dev/zero)"] {
        let output = folder.run_in("in", Command::new("bash").args(["-c", script, tympan]));
        refused(&output, "larger than 8388608 bytes", script);
    }
}

/// Returns the output of `lock --check` after a change to the prompt.
fn change(folder: &Folder, from: &str, to: &str) -> String {
    folder.write("in/hi.prompty", &PROMPT.replace(from, to));
    let checked = folder.run(&["lock", ".", "--check"]);
    assert_eq!(checked.status.code(), Some(1), "{to}: {}", text(&checked.stdout));
    text(&checked.stdout)
}

#[test]
fn a_check_covers_all_that_decides_where_a_request_goes() {
    let folder = Folder::new();
    assert!(folder.run(&["lock", "."]).status.success());
    for (from, to, expected) in [
        ("gpt-4o", "gpt-4o-mini", "model changed"),
        ("echo", "openai", "model changed"),
        ("{kind: key,", "{kind: key, endpoint: 'https://evil.example',", "connection changed"),
        ("A_KEY", "GITHUB_TOKEN", "connection changed"),
        ("  provider: echo\n", "  provider: echo\n  options: {temperature: 2}\n", "options changed"),
        ("---\nuser", "metadata: {a: 1}\n---\nuser", "other settings changed"),
        ("Hi", "Bye", "template of `default` changed"),
    ] {
        assert_eq!(change(&folder, from, to), format!("hi.prompty: {expected}\n"));
    }
    folder.write("in/hi.prompty", PROMPT);
    assert!(folder.run(&["lock", ".", "--check"]).status.success());
}

#[test]
fn a_check_covers_how_tools_are_reached_and_approved() {
    let folder = Folder::new();
    let prompt =
        |tool: &str| format!("---\ntools:\n  - name: t\n    kind: mcp\n    serverName: s\n{tool}---\nuser:\nHi\n");
    let lines = |mode: &str, endpoint: &str| {
        let connection = format!("    connection: {{kind: anonymous, endpoint: '{endpoint}'}}\n");
        prompt(&format!("    approvalMode: {{kind: {mode}}}\n{connection}"))
    };
    folder.write("in/hi.prompty", &lines("always", "https://a.example"));
    assert!(folder.run(&["lock", "."]).status.success());
    for (mode, endpoint) in [("never", "https://a.example"), ("always", "https://b.example")] {
        folder.write("in/hi.prompty", &lines(mode, endpoint));
        let checked = folder.run(&["lock", ".", "--check"]);
        assert_eq!(text(&checked.stdout), "hi.prompty: tools changed\n", "{}", text(&checked.stderr));
    }
}

#[test]
fn a_lock_file_of_an_earlier_version_is_read_and_what_it_leaves_out_is_said() {
    let folder = Folder::new();
    assert!(folder.run(&["lock", "."]).status.success());
    let path = folder.path("in/tympan.lock");
    let mut lock: Value = serde_json::from_slice(&fs::read(&path).expect("it is there")).expect("it is JSON");
    let entry = lock["prompts"]["hi.prompty"].as_object_mut().expect("a map");
    let settings = entry.remove("settings_hashes").expect("they are there");
    assert!(!settings.to_string().contains("KEY"), "{settings}");
    folder.write("in/tympan.lock", &lock.to_string());
    let checked = folder.run(&["lock", ".", "--check"]);
    assert!(checked.status.success(), "{}", text(&checked.stdout));
    let warning = text(&checked.stderr);
    assert!(warning.contains("1 of 1 prompts were locked without model, connection, options and tools"), "{warning}");
    let json: Value = serde_json::from_slice(&folder.run(&["lock", ".", "--check", "--json"]).stdout).expect("JSON");
    assert_eq!(json["without_settings"], 1);
    assert_eq!(change(&folder, "Hi", "Bye"), "hi.prompty: template of `default` changed\n");
}

#[test]
fn a_folder_of_keys_is_read_without_its_links() {
    let folder = Folder::new();
    let keys = folder.path("in/keys");
    assert!(folder.run(&["keygen", "me.pem", "--owner", "me", "--trust", "keys"]).status.success());
    let name = fs::read_dir(&keys).expect("a folder").next().expect("a key").expect("a key").file_name();
    fs::rename(keys.join(&name), folder.path("theirs.toml")).expect("it moves");
    symlink("../../theirs.toml", keys.join(&name)).expect("a link");
    folder
        .write("in/d.md", "# D\n\n```xml\n<directive name=\"d\" version=\"1.0.0\">\n<metadata/>\n</directive>\n```\n");
    assert!(folder.run(&["sign", "--key", "me.pem", "d.md"]).status.success());
    let verify = ["verify", "--trust", "keys", "d.md"];
    refused(&folder.run(&verify), "symbolic link points outside its directory", "a link");
    fs::remove_file(keys.join(&name)).expect("it is there");
    folder.pipe(&format!("in/keys/{}", Path::new(&name).display()));
    refused(&folder.run(&verify), "not a regular file", "a pipe");
}
