//! `tympan check` on whole projects: which files it finds, what it reports, and what it changes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// A project in a directory of its own.
struct Project(tempfile::TempDir);

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().expect("a folder"));
        files.iter().for_each(|(name, text)| project.write(name, text));
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be created");
        fs::write(path, text).expect("it can be written");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect("it can be read")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn check(&self, arguments: &[&str]) -> Output {
        self.command(&[&["check"], arguments].concat()).output().expect("it runs")
    }

    /// Returns the findings as `file:line code`, and the exit status.
    fn found(&self, arguments: &[&str]) -> (Vec<String>, Option<i32>) {
        let output = self.check(&[arguments, &["--output-format", "json-lines"]].concat());
        let text = text(&output.stdout);
        let lines = text.lines().map(|line| {
            let json: Value = serde_json::from_str(line).expect("JSON");
            format!(
                "{}:{} {}",
                json["file"].as_str().expect("a file"),
                json["line"],
                json["rule"].as_str().expect("a rule")
            )
        });
        (lines.collect(), output.status.code())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("it is text")
}

const UNUSED: &str = "---\ninputs:\n  - {name: a, kind: string}\n---\nuser:\nHi\n";
const OLD: &str = "---\nmodel:\n  id: gpt-4o\n  api: chat\n---\nuser:\nHi\n";
const BROKEN: &str = "user:\n{{ x\n";

#[test]
fn prompts_of_a_directory_are_found_once_and_in_order() {
    let project = Project::new(&[
        ("b/two.prompty", UNUSED),
        ("a.prompty", UNUSED),
        ("b/one.prompty", UNUSED),
        ("notes.md", "# Notes\n\nNot a directive.\n"),
        ("data.json", "{\"a\": 1}"),
        ("settings.toml", "a = 1\n"),
        ("greet.yaml", "name: g\nrole: user\nbody: Hi\nvariables:\n  a: {type: string, trusted: true}\n"),
        (".hidden/x.prompty", UNUSED),
        ("node_modules/x.prompty", UNUSED),
        ("ignored/x.prompty", UNUSED),
        (".gitignore", "ignored/\n"),
    ]);
    let expected = ["a.prompty:3 TY201", "b/one.prompty:3 TY201", "b/two.prompty:3 TY201", "greet.yaml:5 TY201"];
    assert_eq!(project.found(&[]).0, expected);
    let mut named = project.found(&["b", ".", "b/two.prompty", "./a.prompty"]).0;
    named.sort();
    assert_eq!(named, expected);
    // A named file is always checked.
    assert_eq!(project.found(&["ignored/x.prompty"]).0, ["ignored/x.prompty:3 TY201"]);
    assert_eq!(project.found(&["data.json"]).1, Some(1));
    assert_eq!(project.found(&["--exclude", "b,*.yaml"]).0, ["a.prompty:3 TY201"]);
    assert_eq!(project.found(&["--exclude", "b/one.prompty", "b/one.prompty"]).0, ["b/one.prompty:3 TY201"]);
}

#[test]
fn many_files_are_reported_in_order() {
    let project = Project::new(&[]);
    (0..200).for_each(|index| project.write(&format!("p{index:03}.prompty"), UNUSED));
    let found = project.found(&[]).0;
    assert!(found.len() == 200 && found.is_sorted(), "{found:?}");
}

#[test]
fn a_directory_without_prompts_is_a_warning() {
    let project = Project::new(&[("empty/notes.md", "# Notes\n")]);
    let output = project.check(&["empty"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("no prompt files found in `empty`"), "{}", text(&output.stderr));
}

#[test]
fn one_unreadable_file_does_not_stop_the_others() {
    let project = Project::new(&[("a.prompty", UNUSED), ("z.prompty", UNUSED)]);
    fs::write(project.path("m.prompty"), b"user:\n\xff\n").expect("it can be written");
    let (found, status) = project.found(&[".", "none.prompty"]);
    assert_eq!(status, Some(1));
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.iter().any(|finding| finding.starts_with("m.prompty") && finding.ends_with("TY002")), "{found:?}");
    assert!(found.contains(&"none.prompty:null TY001".to_owned()), "{found:?}");
    // Nothing hides what could not be looked at.
    project.check(&[".", "none.prompty", "--baseline", "b.json", "--write-baseline"]);
    assert_eq!(project.found(&[".", "none.prompty", "--baseline", "b.json", "--select", "TY3"]).0.len(), 2);
}

#[test]
fn settings_are_found_above_and_overridden() {
    let project = Project::new(&[
        (
            "tympan.toml",
            "[check]\nignore = ['TY201']\nexclude = ['drafts']\n[check.per-file-ignores]\n'old/*' = ['TY017']\n",
        ),
        ("sub/a.prompty", UNUSED),
        ("sub/drafts/b.prompty", BROKEN),
        ("old/a.prompty", OLD),
    ]);
    assert_eq!(project.found(&[]), (vec![], Some(0)));
    let in_sub = |arguments: &[&str], env: Option<(&str, &str)>| {
        let mut command = project.command(&[&["check"], arguments].concat());
        command.current_dir(project.path("sub")).envs(env);
        text(&command.output().expect("it runs").stdout)
    };
    assert!(in_sub(&[], None).contains("no problems found"));
    assert!(in_sub(&["--no-config"], None).contains("TY201"));
    assert!(in_sub(&["--select", "TY201"], None).contains("TY201"));
    assert!(in_sub(&["--select", "ALL"], None).contains("no problems found"));
    assert!(in_sub(&[], Some(("TYMPAN_CHECK_SELECT", "TY201"))).contains("TY201"));
    assert!(in_sub(&["--select", "TY3"], Some(("TYMPAN_CHECK_SELECT", "TY201"))).contains("no problems found"));
    project.write("other.toml", "[check]\nselect = ['TY201']\ndeny = ['warnings']\n");
    assert_eq!(
        project.found(&["--config", "other.toml", "sub/a.prompty"]),
        (vec!["sub/a.prompty:3 TY201".to_owned()], Some(1))
    );
    project.write("tympan.toml", "[check]\nallow-env = ['*']\nselct = []\n");
    let output = project.check(&[]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(error.contains("widens what prompts may reach") && error.contains("did you mean `select`?"), "{error}");
    assert!(error.contains("tympan.toml:2:1") && error.contains("tympan.toml:3:1"), "{error}");
}

#[test]
fn empty_variables_count_as_not_set() {
    let settings =
        "[check]\nselect = ['TY201']\ndeny = ['TY201']\nexclude = ['b.prompty']\noutput-format = 'concise'\n";
    let baseline = "baseline = 'known.json'\n";
    let project = Project::new(&[
        ("tympan.toml", &format!("{settings}{baseline}")),
        ("known.json", "{\"version\": 1, \"findings\": []}"),
        ("a.prompty", UNUSED),
        ("b.prompty", BROKEN),
    ]);
    let names = ["SELECT", "EXTEND_SELECT", "IGNORE", "DENY", "EXCLUDE", "BASELINE", "OUTPUT_FORMAT"];
    let check = |value: Option<&str>| {
        let mut command = project.command(&["check"]);
        command.envs(value.into_iter().flat_map(|value| names.map(|name| (format!("TYMPAN_CHECK_{name}"), value))));
        let output = command.output().expect("it runs");
        (text(&output.stdout), text(&output.stderr), output.status.code())
    };
    let expected = check(None);
    assert!(expected.0.contains("a.prompty:3") && expected.2 == Some(1), "{expected:?}");
    for value in ["", " "] {
        assert_eq!(check(Some(value)), expected);
    }
    // An empty option is a mistake.
    assert_eq!(project.check(&["--select", ""]).status.code(), Some(2));
}

#[test]
fn the_exit_status_depends_on_errors() {
    let project = Project::new(&[("a.prompty", UNUSED), ("b.prompty", BROKEN)]);
    let status = |arguments: &[&str]| project.check(arguments).status.code();
    assert_eq!(status(&["a.prompty"]), Some(0));
    assert_eq!(status(&["a.prompty", "--deny", "warnings"]), Some(1));
    assert_eq!(status(&["a.prompty", "--deny", "TY2"]), Some(1));
    assert_eq!(status(&["a.prompty", "--deny", "trust"]), Some(0));
    assert_eq!(status(&["a.prompty", "--deny", "ALL", "--ignore", "unused-variable"]), Some(0));
    assert_eq!(status(&["b.prompty"]), Some(1));
    assert_eq!(status(&["a.prompty", "--select", "TY9"]), Some(2));
    assert_eq!(status(&["a.prompty", "--stdin-filename", "x"]), Some(2));
    assert_eq!(status(&["a.prompty", "--write-baseline"]), Some(2));
}

#[test]
fn fixes_keep_what_they_do_not_change() {
    let text_before = format!("\u{feff}{}", OLD.replace('\n', "\r\n"));
    let project = Project::new(&[("a.prompty", &text_before), ("b.prompty", UNUSED)]);
    fs::set_permissions(project.path("a.prompty"), fs::Permissions::from_mode(0o640)).expect("it is changed");
    let modified = fs::metadata(project.path("b.prompty")).expect("it is there").modified().expect("a time");
    let diff = project.check(&["--diff"]);
    assert_eq!(diff.status.code(), Some(1));
    assert!(text(&diff.stdout).contains("-  api: chat\r\n+  apiType: chat\r\n"), "{}", text(&diff.stdout));
    assert_eq!(project.read("a.prompty"), text_before);
    let output = project.check(&["--fix"]);
    assert!(text(&output.stdout).contains("Fixed 1 problem\n"), "{}", text(&output.stdout));
    assert_eq!(project.read("a.prompty"), text_before.replace("api:", "apiType:"));
    let mode = fs::metadata(project.path("a.prompty")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(fs::metadata(project.path("b.prompty")).expect("it is there").modified().expect("a time"), modified);
    let again = project.check(&["--diff"]);
    assert_eq!((again.status.code(), text(&again.stdout)), (Some(0), String::new()));
    let leftovers = fs::read_dir(project.0.path()).expect("a folder").count();
    assert_eq!(leftovers, 2, "temporary files are left");
}

/// Files outside of the directory that was named are not changed, whatever links are in it.
#[test]
fn links_in_a_directory_are_not_followed() {
    let outside = Project::new(&[("a.prompty", OLD)]);
    let project = Project::new(&[("real.prompty", OLD)]);
    symlink(outside.path("a.prompty"), project.path("link.prompty")).expect("a link");
    symlink(outside.0.path(), project.path("folder")).expect("a link");
    project.check(&["--fix"]);
    assert_eq!(outside.read("a.prompty"), OLD);
    assert_ne!(project.read("real.prompty"), OLD);
    // A link that the user names is.
    project.check(&["--fix", "link.prompty"]);
    assert_ne!(outside.read("a.prompty"), OLD);
    assert!(fs::symlink_metadata(project.path("link.prompty")).expect("it is there").is_symlink());
}

#[test]
fn files_that_cannot_be_written_are_findings() {
    let project = Project::new(&[("locked/a.prompty", OLD), ("b.prompty", OLD)]);
    fs::set_permissions(project.path("locked"), fs::Permissions::from_mode(0o555)).expect("it is changed");
    let is_root = fs::write(project.path("locked/probe"), "").is_ok();
    let output = project.check(&["--fix"]);
    fs::set_permissions(project.path("locked"), fs::Permissions::from_mode(0o755)).expect("it is changed");
    if !is_root {
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stdout).contains("the fixes were not written"), "{}", text(&output.stdout));
        assert_eq!(project.read("locked/a.prompty"), OLD);
    }
    assert_ne!(project.read("b.prompty"), OLD);
}

#[test]
fn standard_input_has_a_name_and_can_be_fixed() {
    let project = Project::new(&[("tympan.toml", "[check.per-file-ignores]\n'drafts/*' = ['TY017']\n")]);
    let run = |arguments: &[&str]| {
        let mut command = project.command(&[&["check", "-"], arguments].concat());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        child.stdin.take().expect("a pipe").write_all(OLD.as_bytes()).expect("it is read");
        let output = child.wait_with_output().expect("it ends");
        (text(&output.stdout), text(&output.stderr))
    };
    assert!(run(&["--output-format", "concise"]).0.starts_with("<stdin>:4:3: warning[TY017 legacy_key] [*]"));
    assert!(run(&["--stdin-filename", "a.prompty", "--output-format", "concise"]).0.starts_with("a.prompty:4:3"));
    assert!(run(&["--stdin-filename", "drafts/a.prompty"]).0.contains("no problems found"));
    let (fixed, report) = run(&["--fix"]);
    assert_eq!(fixed, OLD.replace("api:", "apiType:"));
    assert!(report.contains("Fixed 1 problem"), "{report}");
    assert!(run(&["--stdin-filename", "a.yaml"]).0.contains("error[TY005"), "the name says the format");
}

#[test]
fn a_baseline_hides_what_is_known() {
    let project = Project::new(&[
        ("p/a.prompty", UNUSED),
        ("p/b.prompty", BROKEN),
        ("tympan.toml", "[check]\nbaseline = 'known.json'\n"),
    ]);
    let missing = project.check(&[]);
    assert!(
        missing.status.code() == Some(2) && text(&missing.stderr).contains("--write-baseline"),
        "{}",
        text(&missing.stderr)
    );
    let written = text(&project.check(&["--write-baseline"]).stdout);
    assert!(written.contains("1 finding written") && written.contains("1 left out"), "{written}");
    assert_eq!(project.found(&["p/a.prompty"]), (vec![], Some(0)));
    assert_eq!(project.found(&[]).0, ["p/b.prompty:2 TY008"]);
    // The entry still matches after the line has moved, and for another way to name the file.
    project.write("p/a.prompty", &UNUSED.replace("inputs:", "name: x\ninputs:"));
    let mut command = project.command(&["check", "a.prompty"]);
    let output = command.current_dir(project.path("p")).output().expect("it runs");
    assert!(text(&output.stdout).contains("no problems found (1 in the baseline)"), "{}", text(&output.stdout));
    // A second finding is new, even on the same line.
    project.write("p/a.prompty", &UNUSED.replace("a, kind", "b, kind"));
    assert_eq!(project.found(&["p/a.prompty"]).0, ["p/a.prompty:3 TY201"]);
    let output = text(&project.check(&["p/a.prompty"]).stdout);
    assert!(output.contains("still in the baseline") && output.contains("p/a.prompty: TY201: - {name: a"), "{output}");
    fs::remove_file(project.path("p/a.prompty")).expect("it is there");
    let json: Value = serde_json::from_slice(&project.check(&["--json"]).stdout).expect("JSON");
    assert_eq!(json["baseline"]["stale"][0]["file"], "p/a.prompty");
}

#[test]
fn statistics_count_findings_by_rule() {
    let project = Project::new(&[("a.prompty", UNUSED), ("b.prompty", UNUSED), ("c.prompty", OLD)]);
    let table = text(&project.check(&["--statistics"]).stdout);
    assert!(table.starts_with("2  TY201  [ ] unused_variable\n1  TY017  [*] legacy_key\n3 files checked"), "{table}");
    let json: Value = serde_json::from_slice(&project.check(&["--statistics", "--json"]).stdout).expect("JSON");
    assert_eq!((&json[0]["rule"], &json[0]["count"], &json[1]["fixable"]), (&"TY201".into(), &2.into(), &1.into()));
}

#[test]
fn sarif_has_paths_fixes_and_stable_fingerprints() {
    let system = "---\ninputs:\n  - {name: a, kind: string}\n---\nsystem:\nHi {{ a }}\n";
    let project = Project::new(&[("my prompts/a.prompty", system), ("b.prompty", OLD)]);
    let sarif =
        || -> Value { serde_json::from_slice(&project.check(&["--output-format", "sarif"]).stdout).expect("JSON") };
    let before = sarif();
    let results = before["runs"][0]["results"].as_array().expect("results").clone();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"], "apiType");
    let location = &results[1]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "my%20prompts/a.prompty");
    assert_eq!(location["region"]["startLine"], 6);
    assert!(results[1]["codeFlows"][0]["threadFlows"][0]["locations"].as_array().is_some_and(|path| !path.is_empty()));
    let index = usize::try_from(results[1]["ruleIndex"].as_u64().expect("a number")).expect("it is small");
    assert_eq!(before["runs"][0]["tool"]["driver"]["rules"][index]["id"], results[1]["ruleId"]);
    project.write("my prompts/a.prompty", &system.replace("Hi", "Hello\n\nHi"));
    let after = sarif();
    let fingerprint = |log: &Value| log["runs"][0]["results"][1]["partialFingerprints"].clone();
    assert_eq!(fingerprint(&before), fingerprint(&after));
    assert_ne!(before["runs"][0]["results"][1]["locations"], after["runs"][0]["results"][1]["locations"]);
}

#[test]
fn annotations_cannot_be_forged() {
    let name = "a%,b::error c.prompty";
    let project =
        Project::new(&[(name, "---\ninputs:\n  - {name: \"x\\n::error::y\", kind: string}\n---\nuser:\nHi\n")]);
    let output = text(&project.check(&["--output-format", "github"]).stdout);
    assert!(output.lines().count() >= 1, "{output}");
    for line in output.lines() {
        assert!(line.starts_with("::") && line.contains("file=a%25%2Cb%3A%3Aerror c.prompty,"), "{line}");
        assert!(!line[2..].contains("::error::y") || line.contains("%0A::error::y"), "{line}");
    }
}

/// A settings file comes with the project, and must not choose which of the user's files are overwritten.
#[test]
#[cfg(unix)]
fn a_project_cannot_write_outside_of_its_directory() {
    let project = Project::new(&[("p/a.prompty", UNUSED), ("mine.txt", "mine"), ("other/mine.txt", "mine")]);
    let directory = project.path("p");
    std::os::unix::fs::symlink(project.path("mine.txt"), directory.join("link.json")).expect("a link");
    std::os::unix::fs::symlink(project.path("other"), directory.join("folder")).expect("a link");
    let write = |baseline: &str, arguments: &[&str]| {
        project.write("p/tympan.toml", &format!("[check]\nbaseline = '{baseline}'\n"));
        let mut command = project.command(&[&["check", "--write-baseline"], arguments].concat());
        command.current_dir(&directory).output().expect("it runs").status.code()
    };
    let absolute = project.path("mine.txt").display().to_string();
    for baseline in ["../mine.txt", "./../mine.txt", &absolute, "link.json", "folder/mine.txt"] {
        assert_eq!(write(baseline, &[]), Some(2), "{baseline}");
    }
    assert_eq!((project.read("mine.txt"), project.read("other/mine.txt")), ("mine".to_owned(), "mine".to_owned()));
    assert_eq!(write("known.json", &[]), Some(0));
    // The user may name any file.
    assert_eq!(write("known.json", &["--baseline", "../mine.txt"]), Some(0));
    assert!(project.read("mine.txt").contains("TY201"));
}

#[test]
fn lock_refuses_prompts_with_errors() {
    let typo = "---\nmodel: {id: gpt-4o, provider: opanai}\n---\nuser:\nHi\n";
    let project = Project::new(&[("a.prompty", UNUSED), ("b.prompty", typo)]);
    let lock = |arguments: &[&str]| project.command(&[&["lock"], arguments].concat()).output().expect("it runs");
    let refused = lock(&[]);
    let error = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1));
    assert!(error.contains("unknown_provider") && error.contains("nothing was locked"), "{error}");
    assert!(!project.path("tympan.lock").exists());
    let json: Value = serde_json::from_slice(&lock(&["--json"]).stderr).expect("JSON");
    assert_eq!(json["error"]["code"], "unknown_provider");
    // The application registers this provider.
    project.write("tympan.toml", "[check]\nproviders = ['opanai']\n");
    assert!(lock(&[]).status.success(), "{}", text(&lock(&[]).stderr));
    project.write("tympan.toml", "");
    assert!(lock(&["--check"]).status.success());
}

/// Tests are not part of a prompt, wherever they are.
#[test]
fn lock_refuses_prompts_against_the_policy() {
    let project = Project::new(&[
        ("tympan.toml", "[policy.messages]\nuntrusted = [\"user\"]\n"),
        ("a.prompty", "---\ninputs: [{name: note, kind: string}]\n---\nsystem:\n{{ note }}\n"),
    ]);
    let lock = |arguments: &[&str]| project.command(&[&["lock"], arguments].concat()).output().expect("it runs");
    let refused = lock(&[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("policy_violation"), "{}", text(&refused.stderr));
    assert!(!project.path("tympan.lock").exists());
    assert!(lock(&["--no-config"]).status.success());
}

#[test]
fn lock_does_not_notice_tests() {
    let yaml = "name: a\nrole: user\nbody: Hi\n";
    let project = Project::new(&[("a.yaml", yaml), ("b.prompty", "---\nname: b\n---\nuser:\nHi\n")]);
    let lock = |arguments: &[&str]| project.command(&[&["lock"], arguments].concat()).output().expect("it runs");
    assert!(lock(&[]).status.success());
    let before = project.read("tympan.lock");
    project.write("a.yaml", &format!("{yaml}tests: [{{expect: [{{messages: 1}}]}}]\n"));
    project.write("b.prompty", "---\nname: b\ntests:\n  - inputs: {x: '${env:HOME}'}\n---\nuser:\nHi\n");
    project.write("b.test.yaml", "cases: [{expect: [{messages: 1}]}]\n");
    project.write("c.test.json", "{\"role\": \"user\", \"body\": 1}");
    let checked = lock(&["--check"]);
    assert!(checked.status.success(), "{}{}", text(&checked.stdout), text(&checked.stderr));
    assert!(text(&checked.stdout).contains("2 prompts, no changes"));
    assert!(lock(&[]).status.success(), "{}", text(&lock(&[]).stderr));
    assert_eq!(project.read("tympan.lock"), before);
}

#[test]
fn watch_checks_again_after_changes() {
    let project = Project::new(&[("a.prompty", UNUSED)]);
    let mut command = project.command(&["check", "--watch", "--output-format", "concise"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
    let wait_for = |wanted: &str| {
        while !received.recv_timeout(Duration::from_secs(60)).expect("a line in time").contains(wanted) {}
    };
    wait_for("1 file checked: 0 errors, 1 warning");
    project.write("a.prompty", "user:\nHi\n");
    wait_for("1 file checked, no problems found");
    project.write("sub/b.prompty", BROKEN);
    wait_for("2 files checked: 1 error, 0 warnings");
    project.write("tympan.toml", "[check]\nexclude = ['sub']\n");
    wait_for("1 file checked, no problems found");
    child.kill().expect("it can be stopped");
    child.wait().expect("it ends");
}

/// The settings for tools and models belong to the whole project.
#[test]
fn policies_and_models_of_the_project_count() {
    let prompt = "---\nmodel: {id: house-model, provider: openai}\n\
        inputs: [{name: page, kind: string, confidential: true}]\n\
        tools: [{name: send, kind: function, description: Sends., parameters: []}]\n---\n\
        user:\nSome words, and {{ page }}\n";
    let project = Project::new(&[("a.prompty", prompt)]);
    let has = |code: &str| project.found(&[]).0.iter().any(|finding| finding.ends_with(code));
    assert!(has("TY312") && !has("TY402"));
    project.write("tympan.toml", "[policy.tools]\nmode = 'strict'\n[models.house-model]\ncontext = 1\n");
    assert!(!has("TY312") && has("TY402"));
    project.write("tympan.toml", "[models.house-model]\ncontext = 'many'\n");
    assert_eq!(project.check(&[]).status.code(), Some(2));
}
