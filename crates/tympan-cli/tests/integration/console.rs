//! Runs the console examples of the guide, the README and `fixtures/cli`.
//!
//! In a block marked `console`, a line that starts with `$ ` is a shell command, and the lines after it are its output
//! on both streams. If its exit status is not 0, a line such as `? 1` comes first. A line `...` matches any number of
//! lines, and `[..]` matches anything within a line. `UPDATE_CONSOLE=1` writes the actual output to the files.
//!
//! This does not use trycmd, because trycmd replaces every backslash of the output with a slash, which breaks JSON, and
//! because the examples contain pipes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A command of an example, and the lines of the file with its output.
struct Example {
    /// The line number of the command, counted from 1.
    line: usize,
    command: String,
    /// The lines with the status and the output, counted from 0.
    answer: std::ops::Range<usize>,
}

#[test]
fn examples_do_what_they_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut failures = Vec::new();
    let mut count = 0;
    for (file, directory) in files(&root) {
        let text = fs::read_to_string(&file).expect("the file can be read");
        let (ran, updated) = check(&file, &text, &directory, &mut failures);
        count += ran;
        if updated != text && std::env::var_os("UPDATE_CONSOLE").is_some() {
            fs::write(&file, updated).expect("the file can be written");
            failures.clear();
        }
    }
    assert!(count > 50, "only {count} examples were found");
    assert!(failures.is_empty(), "{}\n{} examples failed", failures.join("\n"), failures.len());
}

/// Returns the files with examples, and the directory in which each of them runs.
fn files(root: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut files = vec![(root.join("README.md"), root.to_owned())];
    for (directory, runs_in) in [("docs/guide", root.to_owned()), ("fixtures/cli", root.join("fixtures/cli"))] {
        let entries = fs::read_dir(root.join(directory)).expect("the directory is there");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        files.extend(
            paths.filter(|path| path.extension().is_some_and(|e| e == "md")).map(|path| (path, runs_in.clone())),
        );
    }
    files.retain(|(path, _)| path.exists());
    files.sort();
    files
}

/// Runs the examples of a file. Returns their number, and the text with their actual output.
fn check(file: &Path, text: &str, directory: &Path, failures: &mut Vec<String>) -> (usize, String) {
    let lines: Vec<&str> = text.lines().collect();
    let examples = examples(&lines);
    let (mut updated, mut copied) = (String::new(), 0);
    for example in &examples {
        let expected = lines[example.answer.clone()].join("\n");
        let actual = run(&example.command, directory);
        copy(&mut updated, &lines[copied..example.answer.start]);
        if matches(&expected, &actual) {
            copy(&mut updated, &lines[example.answer.clone()]);
        } else {
            copy(&mut updated, &actual.lines().collect::<Vec<_>>());
            let place = format!("{}:{}", file.display(), example.line);
            failures.push(format!("== {place}\n$ {}\n-- expected\n{expected}\n-- actual\n{actual}", example.command));
        }
        copied = example.answer.end;
    }
    copy(&mut updated, &lines[copied..]);
    (examples.len(), updated)
}

fn copy(out: &mut String, lines: &[&str]) {
    for line in lines {
        out.push_str(line);
        out.push('\n');
    }
}

fn examples(lines: &[&str]) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut is_inside = false;
    for (index, line) in lines.iter().enumerate() {
        match (is_inside, *line) {
            (false, "```console") => is_inside = true,
            (true, "```") => is_inside = false,
            (true, line) if line.starts_with("$ ") => {
                let command = line[2..].to_owned();
                examples.push(Example { line: index + 1, command, answer: index + 1..index + 1 });
            }
            (true, line) => {
                let example = examples.last_mut().expect("a block begins with a command");
                if line.starts_with("> ") && example.answer.is_empty() {
                    example.command.push('\n');
                    example.command.push_str(&line[2..]);
                    example.answer = index + 1..index + 1;
                } else {
                    example.answer.end = index + 1;
                }
            }
            _ => {}
        }
    }
    examples
}

/// Returns the output of a command, preceded by its exit status if that is not 0.
fn run(command: &str, directory: &Path) -> String {
    let bin = Path::new(env!("CARGO_BIN_EXE_tympan")).parent().expect("it is in a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(directory)
        .env("PATH", format!("{}:{path}", bin.display()))
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .expect("there is a shell");
    let text = String::from_utf8(output.stdout).expect("the output is UTF-8");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    match output.status.code() {
        Some(0) => text.to_owned(),
        Some(status) => format!("? {status}\n{text}").trim_end().to_owned(),
        None => format!("? killed\n{text}"),
    }
}

fn matches(expected: &str, actual: &str) -> bool {
    let expected: Vec<&str> = expected.lines().collect();
    let actual: Vec<&str> = actual.lines().collect();
    lines_match(&expected, &actual)
}

fn lines_match(expected: &[&str], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((&"...", rest)) => (0..=actual.len()).any(|skipped| lines_match(rest, &actual[skipped..])),
        Some((line, rest)) => {
            actual.split_first().is_some_and(|(first, others)| line_matches(line, first) && lines_match(rest, others))
        }
    }
}

fn line_matches(expected: &str, actual: &str) -> bool {
    match expected.split_once("[..]") {
        None => expected == actual,
        Some((start, rest)) => actual.strip_prefix(start).is_some_and(|actual| {
            actual.char_indices().map(|(at, _)| at).chain([actual.len()]).any(|at| line_matches(rest, &actual[at..]))
        }),
    }
}

#[test]
fn the_harness_notices_differences() {
    assert!(matches("a\n...\nb [..] c", "a\nx\ny\nb 12 c"));
    assert!(!matches("a\nb", "a"));
    assert!(!matches("a", "a\nb"));
    assert!(!matches("a\\n", "a/n"));
    assert_eq!(run("exit 3", Path::new(".")), "? 3");
}
