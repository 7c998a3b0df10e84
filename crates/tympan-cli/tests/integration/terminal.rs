//! Output for terminals and output for programs.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the command in the repository's root, with this standard input.
fn tympan(args: &[&str], stdin: &str, env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE").envs(env.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("it has an input").write_all(stdin.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is UTF-8")
}

/// A hostile value: a window title, a C1 sequence, and a bidirectional override.
const HOSTILE: &str = "x\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}y\r";

const GREETING: &str =
    "---\ninputs:\n  - {name: own, kind: string, trusted: true}\n---\nuser:\n{{ own }} and {{ other }}\n";

#[test]
fn text_is_coloured_by_who_wrote_it() {
    for env in [&[][..], &[("NO_COLOR", "1")]] {
        let args = ["render", "-", "--set", "own=A", "--set", "other=B", "--color", "always"];
        let output = tympan(&args, GREETING, env);
        assert_eq!(text(&output.stdout), "  user:\n│ \u{1b}[32mA\u{1b}[0m and \u{1b}[33mB\u{1b}[0m\n");
        let legend = "author  \u{1b}[32mtrusted input\u{1b}[0m  \u{1b}[33muntrusted input\u{1b}[0m\n";
        assert_eq!(text(&output.stderr), legend);
    }
    let args = ["messages", "-", "--set", "own=A", "--set", "other=B", "--color", "always", "--quiet"];
    let output = tympan(&args, GREETING, &[]);
    assert_eq!(text(&output.stdout), "\u{1b}[1muser:\u{1b}[0m\n  \u{1b}[32mA\u{1b}[0m and \u{1b}[33mB\u{1b}[0m\n");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn the_messages_of_a_thread_have_the_colour_of_their_input() {
    let args = ["messages", "examples/support.prompty", "--sample", "--color", "always"];
    let output = tympan(&args, "", &[]);
    assert!(text(&output.stdout).contains("\n  \u{1b}[33mI ordered two books last week.\u{1b}[0m\n"));
}

#[test]
fn the_environment_decides_about_colours_too() {
    let args = ["render", "-", "--set", "own=A", "--set", "other=B"];
    let plain = "user:\nA and B\n";
    let coloured = |env: &[(&str, &str)], more: &[&str]| {
        let output = tympan(&[&args[..], more].concat(), GREETING, env);
        text(&output.stdout) != plain
    };
    assert!(!coloured(&[], &[]));
    assert!(coloured(&[("CLICOLOR_FORCE", "1")], &[]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[]));
    assert!(!coloured(&[("CLICOLOR_FORCE", "1")], &["--color", "never"]));
}

#[test]
fn a_value_cannot_drive_a_terminal() {
    for command in ["render", "messages"] {
        for name in ["own", "other"] {
            let setting = format!("{name}={HOSTILE}");
            let args = [command, "-", "--lenient", "--set", &setting, "--color", "always"];
            let output = tympan(&args, GREETING, &[]);
            let shown = text(&output.stdout);
            assert!(shown.contains(r"\u{1b}") && shown.contains(r"\u{9b}") && shown.contains(r"\u{202e}"), "{shown:?}");
            assert!(!shown.contains("\u{1b}]") && !shown.contains(['\u{7}', '\u{9b}', '\u{202e}', '\r']), "{shown:?}");
        }
    }
    let setting = format!("n={HOSTILE}");
    let output = tympan(&["messages", "-", "--set", &setting, "--color", "always"], "user[name={{ n }}]:\nhi", &[]);
    assert!(text(&output.stdout).contains(r"\u{9b}2J\u{202e}y"), "{}", text(&output.stdout));
    assert!(!text(&output.stdout).contains(['\u{7}', '\u{9b}', '\u{202e}', '\r']));
    let output = tympan(&["parse", "--color", "always"], &format!("user:\n{HOSTILE}\n"), &[]);
    assert!(!text(&output.stdout).contains(['\u{7}', '\u{9b}', '\u{202e}', '\r']));
}

/// Comparisons and counts are for people, so control characters are escaped even in a file.
#[cfg(unix)]
#[test]
fn comparisons_and_counts_cannot_drive_a_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let prompt = |words: &str| {
        let quoted = serde_json::Value::from(HOSTILE).to_string();
        let quoted = quoted.replace('\u{9b}', r"\u009b").replace('\u{202e}', r"\u202e");
        format!(
            "---\nname: {quoted}\ndescription: {quoted}\nmodel: {{id: {quoted}}}\nmetadata: {{{quoted}: {words}}}\n\
             inputs:\n  - {{name: own, kind: string, trusted: true, example: {quoted}}}\n  - {{name: {quoted}, kind: string}}\n\
             tools:\n  - {{name: {quoted}, kind: function, description: {words}, parameters: []}}\n---\n\
             user[name={words}{HOSTILE}]:\n{words} {{{{ own }}}} {HOSTILE} {words}\n"
        )
    };
    std::fs::write(path("a.prompty"), prompt("one")).expect("it is written");
    std::fs::write(path("b.prompty"), prompt("two").replace("trusted: true", "trusted: false")).expect("it is written");
    let strange = path(&format!("{HOSTILE}.prompty"));
    std::fs::write(&strange, "user:\nhi").expect("it is written");
    for colors in ["never", "always"] {
        for args in [
            &["diff", &*path("a.prompty"), &*path("b.prompty")][..],
            &["diff", &*path("b.prompty"), &*path("a.prompty"), "--set", &format!("own=x{HOSTILE}")],
            &["diff", &*path("a.prompty"), &strange],
            &["diff", "--", &format!("-{HOSTILE}:a.prompty"), &strange],
            &["diff", &format!("{HOSTILE}:a.prompty"), &strange],
            &["diff", &format!("HEAD:{HOSTILE}"), &strange],
            &["count", &*path("a.prompty"), "--sample"],
            &["count", &*path("a.prompty"), "--sample", "--model", HOSTILE],
        ] {
            let output = tympan(&[&["--color", colors], args].concat(), "", &[]);
            let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
            assert!(shown.contains(r"\u{1b}") && shown.contains(r"\u{9b}"), "{args:?}: {shown}");
            let own = shown.replace("\u{1b}[", "");
            assert!(!own.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}', '\r']), "{args:?}: {shown:?}");
            assert!(colors == "always" || own == shown, "{args:?}: {shown:?}");
        }
    }
}

#[test]
fn a_program_gets_exact_bytes() {
    let setting = format!("other={HOSTILE}");
    let output = tympan(&["render", "-", "--set", "own=", "--set", &setting], GREETING, &[]);
    assert_eq!(text(&output.stdout), format!("user:\n and {HOSTILE}\n"));
    let output = tympan(&["render", "-", "--set", "own=", "--set", &setting, "--json"], GREETING, &[]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(json["text"], format!("user:\n and {HOSTILE}\n"));
    assert!(!text(&output.stdout).contains(['\u{1b}', '\u{9b}', '\u{202e}']));
}

#[test]
fn an_error_cannot_drive_a_terminal() {
    let cases: [(&[&str], &str); 6] = [
        (&["dan\u{1b}[2Jce"], ""),
        (&["render", "-", "--set", "no\u{9b}2J"], ""),
        (&["render", "-"], "user:\n\u{1b}]0;owned\u{7} {{ x"),
        (&["check", "-"], "---\nname: [\u{9b}2J\u{202e}\n---\n"),
        (&["render", "no\u{1b}[2Jsuch.prompty"], ""),
        (&["render", "-", "--inputs", "no\u{1b}[2Jsuch.yaml"], "user:\nhi"),
    ];
    for (args, stdin) in cases {
        let output = tympan(args, stdin, &[]);
        assert!(!output.status.success(), "{args:?}");
        let shown = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{9b}', '\u{202e}']), "{shown:?}");
    }
    let output = tympan(&["inspect", "-"], "---\nname: \"a\\e]0;owned\\a\"\n---\nuser:\n\u{1b}]0;owned\u{7}\n", &[]);
    assert!(output.status.success());
    assert!(!text(&output.stdout).contains(['\u{1b}', '\u{7}']));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tympan"))
        .args(["render", "-", "--set", &format!("x={}", "line\n".repeat(10_000))])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    drop(child.stdout.take());
    // The reader is gone before rendering starts, and the output is much larger than a pipe's buffer.
    let template = "{% for i in range(20) %}{{ x }}{% endfor %}";
    child.stdin.take().expect("it has an input").write_all(template.as_bytes()).expect("it reads");
    let mut said = String::new();
    child.stderr.take().expect("it has an error stream").read_to_string(&mut said).expect("it is UTF-8");
    assert_eq!((said.as_str(), child.wait().expect("it ends").success()), ("", true));
}

const COMMANDS: [&str; 9] = ["render", "messages", "run", "chat", "parse", "inspect", "check", "completions", "man"];

#[test]
fn completions_and_manual_pages_know_every_command() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = tympan(&["completions", shell], "", &[]);
        let script = text(&output.stdout);
        assert!(output.status.success() && script.contains("threads"), "{shell}");
        assert!(COMMANDS.iter().all(|command| script.contains(command)), "{shell}");
    }
    let page = tympan(&["man"], "", &[]);
    assert!(text(&page.stdout).starts_with(".ie"), "{}", text(&page.stdout));
    assert!(COMMANDS.iter().all(|command| text(&page.stdout).contains(command)));
    for command in COMMANDS {
        let page = tympan(&["man", command], "", &[]);
        assert!(text(&page.stdout).contains(&format!("tympan\\-{command}")), "{command}");
    }
}

#[test]
fn every_command_and_option_is_explained() {
    for command in COMMANDS {
        let output = tympan(&[command, "--help"], "", &[]);
        let help = text(&output.stdout);
        assert!(help.contains("Example"), "{command} has no example");
        let mut lines = help.lines().peekable();
        while let Some(line) = lines.next() {
            if line.trim_start().starts_with("--") {
                assert!(lines.peek().is_some_and(|next| !next.trim().is_empty()), "{command}: {line}");
            }
        }
    }
}

#[test]
fn every_example_works_with_its_own_examples() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(examples).expect("there are examples") {
        let path = entry.expect("an entry").path();
        let path = path.to_str().expect("a path of ours");
        if path.ends_with(".prompty") {
            let output = tympan(&["messages", path, "--sample"], "", &[]);
            assert_eq!((text(&output.stderr), output.status.code()), ("", Some(0)), "{path}");
            assert!(!output.stdout.is_empty(), "{path}");
            count += 1;
        }
    }
    assert!(count >= 6, "only {count} examples were found");
}
