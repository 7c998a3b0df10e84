//! `tympan test --import`: what is written passes the check and runs, and what must not happen does not.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value as Json;
use tempfile::TempDir;

fn tympan(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(directory).args(arguments).env_remove("GITHUB_STEP_SUMMARY");
    command.env("TYMPAN_SECRET", "the-secret-value").output().expect("the command runs")
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn json_lines(output: &Output) -> Vec<Json> {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Copies a fixture to a new directory, without the expected files.
fn project(name: &str) -> TempDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/promptfoo").join(name);
    let directory = TempDir::new().expect("a directory");
    copy(&fixture, directory.path());
    directory
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).expect("the fixture is there").map(|entry| entry.expect("an entry")) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() && entry.file_name() != "expected" {
            fs::create_dir(&target).expect("the directory is created");
            copy(&path, &target);
        } else if path.is_file() {
            fs::copy(&path, &target).expect("the file is copied");
        }
    }
}

#[test]
fn imported_assertions_pass_and_fail_as_they_should() {
    let directory = project("assertions");
    let imported = tympan(directory.path(), &["test", "--import", "promptfooconfig.yaml", "-o", "out"]);
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported));
    let checked = tympan(directory.path(), &["check", "out"]);
    assert!(checked.status.success(), "{}", text(&checked));
    let ran = tympan(directory.path(), &["test", "out", "--json"]);
    let lines = json_lines(&ran);
    let (mut passed, mut failed) = (0, 0);
    for case in lines.iter().filter(|line| line["kind"] == "case") {
        let (name, verdict) = (case["name"].as_str().expect("a name"), case["verdict"].as_str().expect("a verdict"));
        match name.split(' ').next() {
            Some("passes") => passed += usize::from(verdict == "passed"),
            Some("fails") => failed += usize::from(verdict == "failed"),
            _ => continue,
        }
        let expected = if name.starts_with("passes") { "passed" } else { "failed" };
        assert_eq!(verdict, expected, "{case}");
    }
    assert!(passed >= 46 && failed >= 46, "{passed} passed, {failed} failed");
}

#[test]
fn imported_tests_run_without_a_model() {
    let directory = project("echo");
    let imported = tympan(directory.path(), &["test", "--import", "promptfooconfig.yaml"]);
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported));
    assert!(text(&imported).contains("everything was carried over"), "{}", text(&imported));
    let checked = tympan(directory.path(), &["check"]);
    assert!(checked.status.success(), "{}", text(&checked));
    let ran = tympan(directory.path(), &["test"]);
    assert!(ran.status.success() && text(&ran).contains("5 passed"), "{}", text(&ran));
}

#[test]
fn files_are_replaced_only_with_force() {
    let directory = project("echo");
    let import = ["test", "--import", "promptfooconfig.yaml"];
    assert_eq!(tympan(directory.path(), &import).status.code(), Some(0));
    let again = tympan(directory.path(), &import);
    assert_eq!(again.status.code(), Some(0), "files with the same text are fine: {}", text(&again));
    assert!(text(&again).contains("unchanged prompt.prompty"), "{}", text(&again));

    let edited = directory.path().join("prompt.prompty");
    fs::write(&edited, "user:\nmine\n").expect("the file is written");
    fs::remove_file(directory.path().join("prompt.test.yaml")).expect("the file is removed");
    let refused = tympan(directory.path(), &import);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
    assert!(
        text(&refused).contains("`prompt.prompty` exists already") && text(&refused).contains("--force"),
        "{}",
        text(&refused)
    );
    assert_eq!(fs::read_to_string(&edited).expect("the file is there"), "user:\nmine\n");
    assert!(!directory.path().join("prompt.test.yaml").exists(), "nothing is written");

    let forced = tympan(directory.path(), &["test", "--import", "promptfooconfig.yaml", "--force", "--json"]);
    assert_eq!(forced.status.code(), Some(0), "{}", text(&forced));
    let lines = json_lines(&forced);
    assert_eq!(lines[0]["change"], "replaced");
    assert_eq!(lines[1]["change"], "written");
    assert_eq!(lines.last().expect("a summary")["not_carried"], 0);
}

#[cfg(unix)]
#[test]
fn nothing_is_written_through_links() {
    let directory = project("echo");
    let target = directory.path().join("target");
    fs::write(&target, "keep").expect("the file is written");
    std::os::unix::fs::symlink(&target, directory.path().join("prompt.prompty")).expect("the link is created");
    for arguments in
        [&["test", "--import", "promptfooconfig.yaml"][..], &["test", "--import", "promptfooconfig.yaml", "--force"]]
    {
        let output = tympan(directory.path(), arguments);
        assert!(!output.status.success(), "{}", text(&output));
    }
    assert_eq!(fs::read_to_string(&target).expect("the file is there"), "keep");
}

#[cfg(unix)]
#[test]
fn a_configuration_reaches_no_secrets_and_no_other_files() {
    let outer = TempDir::new().expect("a directory");
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).expect("the directory is created");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/promptfoo/hostile"), &inner);
    fs::write(outer.path().join("outside.txt"), "the-outside-text").expect("the file is written");
    std::os::unix::fs::symlink(outer.path().join("outside.txt"), inner.join("link.txt")).expect("the link is created");
    let config = fs::read_to_string(inner.join("promptfooconfig.yaml")).expect("the configuration is there");
    fs::write(inner.join("promptfooconfig.yaml"), config.replace("prompts:\n", "prompts:\n  - file://link.txt\n"))
        .expect("it is written");

    let imported = tympan(&inner, &["test", "--import", "promptfooconfig.yaml", "-o", "out"]);
    assert_eq!(imported.status.code(), Some(1), "{}", text(&imported));
    assert!(
        text(&imported).contains("outside the allowed directories") || text(&imported).contains("link.txt"),
        "{}",
        text(&imported)
    );
    assert!(!text(&imported).contains('\u{1b}'), "escapes are shown as text");
    // Rendering resolves what front matter refers to.
    let ran = tympan(&inner, &["test", "out"]);
    let mut all = text(&imported) + &text(&ran);
    for entry in fs::read_dir(inner.join("out")).expect("files were written") {
        let path = entry.expect("an entry").path();
        all += &fs::read_to_string(&path).expect("the file can be read");
        if path.extension().is_some_and(|ending| ending == "prompty") {
            all += &text(&tympan(&inner, &["inspect", path.to_str().expect("a path")]));
        }
    }
    assert!(
        !all.contains("the-secret-value") && !all.contains("the-outside-text") && !all.contains("sk-secret"),
        "{all}"
    );
    assert!(!outer.path().join("outside.prompty").exists());
}

#[test]
fn what_cannot_be_carried_over_is_listed() {
    let directory = project("unsupported");
    let output = tympan(
        directory.path(),
        &["test", "--import", "promptfooconfig.yaml", "-o", "out", "--output-format", "json-lines"],
    );
    assert_eq!(output.status.code(), Some(1));
    let lines = json_lines(&output);
    let finding = lines.iter().find(|line| line["item"] == "assertion `javascript`").expect("it is listed");
    assert_eq!(finding["level"], "not_carried");
    assert!(finding["help"].as_str().expect("help").contains("--allow-programs"), "{finding}");
    assert!(finding["lines"].as_array().is_some_and(|lines| lines.len() == 2), "{finding}");
    let ran = tympan(directory.path(), &["test", "out"]);
    assert!(text(&ran).contains("skipped"), "{}", text(&ran));
}

#[test]
fn the_command_line_is_checked() {
    let directory = project("echo");
    for arguments in [
        &["test", "--import", "promptfooconfig.yaml", "--live"][..],
        &["test", "--import", "promptfooconfig.yaml", "prompt.test.yaml"],
        &["test", "--import", "promptfooconfig.yaml", "--output-format", "junit"],
        &["test", "--force"],
        &["test", "-o", "out"],
    ] {
        let output = tympan(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
    }
    let missing = tympan(directory.path(), &["test", "--import", "missing.yaml"]);
    assert_eq!(missing.status.code(), Some(1), "{}", text(&missing));
}
