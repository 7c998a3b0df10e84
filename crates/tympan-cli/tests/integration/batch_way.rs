//! `tympan batch run` through batch APIs, and `tympan batch collect --output`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::batch_server::{Faults, Server};
use crate::server::{KEY, finish};

const ROWS: u64 = 6;

/// A table, a prompt, and the results.
struct Case {
    home: TempDir,
    provider: &'static str,
}

impl Case {
    fn new(provider: &'static str) -> Self {
        let case = Self { home: TempDir::new().expect("a temporary directory"), provider };
        let names: String = (0..ROWS).map(|row| format!("n{row}\n")).collect();
        std::fs::write(case.path("rows.csv"), format!("name\n{names}")).expect("writable");
        let source = "---\nmodel: gpt-4o-mini\ninputs:\n  - {name: name, kind: string}\noutputs:\n  \
                      - {name: greeting, kind: string}\n  - {name: size, kind: integer}\n---\nuser:\nHi {{ name }}\n";
        std::fs::write(case.path("greet.prompty"), source).expect("writable");
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn tympan(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
        command.arg("batch").args(args).current_dir(self.home.path()).stdin(Stdio::null());
        command.env("OPENAI_API_KEY", KEY).env("ANTHROPIC_API_KEY", KEY).env("NO_PROXY", "*");
        command.env_remove("OPENAI_BASE_URL").env_remove("ANTHROPIC_BASE_URL");
        command
    }

    fn command(&self, server: &Server, more: &[&str]) -> Command {
        let mut command = self.tympan(&["run", "rows.csv", "-p", "greet.prompty", "-o", "results.jsonl"]);
        let model = if self.provider == "anthropic" { "claude-haiku-4-5" } else { "gpt-4o-mini" };
        command.args(["--provider", self.provider, "--model", model, "--max-requests", "3"]);
        command.args(["--base-url", &server.url]).args(more);
        command
    }

    fn run(&self, server: &Server, more: &[&str]) -> (Option<i32>, String, String) {
        finish(&mut self.command(server, more))
    }

    fn rows(&self, name: &str) -> Vec<Json> {
        let text = std::fs::read_to_string(self.path(name)).expect("the results exist");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    /// Asserts that each row has its own result.
    fn assert_complete(&self) {
        let rows = self.rows("results.jsonl");
        assert_eq!(rows.len() as u64, ROWS);
        for (row, found) in rows.iter().enumerate() {
            assert_eq!(
                (&found["name"], &found["greeting"]),
                (&json!(format!("n{row}")), &json!(format!("hello {row}")))
            );
            assert_eq!((&found["size"], &found["error"]), (&json!(row), &Json::Null));
        }
    }
}

/// A server whose answers match the outputs of the prompt.
fn server(faults: Faults) -> Server {
    Server::start(Faults { edit: Some(Box::new(|lines| lines.iter().map(|line| typed(line)).collect())), ..faults })
}

/// Replaces the text of an answer.
fn typed(line: &str) -> String {
    let json: Json = serde_json::from_str(line).expect("JSON");
    let id = json["custom_id"].as_str().expect("an identifier");
    let row = id.rsplit('-').next().expect("a row");
    let answer = json!(format!("{{\"greeting\":\"hello {row}\",\"size\":{row}}}")).to_string();
    line.replace(&json!(format!("answer to {id}")).to_string(), &answer)
}

fn both(mut test: impl FnMut(Case)) {
    test(Case::new("openai"));
    test(Case::new("anthropic"));
}

fn by_row(server: &Server) -> BTreeMap<u64, usize> {
    let row = |id: &str| id.rsplit('-').next().and_then(|row| row.parse().ok()).expect("a row");
    server.sent().iter().map(|(id, count)| (row(id), *count)).collect()
}

#[test]
fn rows_are_answered_by_the_batch_api_with_typed_results() {
    both(|case| {
        let server = server(Faults { busy: 1, unknown: 1, failing: [4].into(), ..Faults::default() });
        let (status, shown, warned) = case.run(&server, &["--batch"]);
        assert_eq!(
            (status, warned.as_str()),
            (Some(0), "2 of 2 batches have ended\n2 of 2 batches have ended\n"),
            "{shown}"
        );
        let expected = "6 of 6 rows answered, in results.jsonl\n3 batches, 42 tokens, $";
        assert!(shown.starts_with(expected), "{shown}");
        case.assert_complete();
        assert_eq!(by_row(&server).into_values().collect::<Vec<_>>(), [1, 1, 1, 1, 2, 1]);
        assert_eq!(case.rows("results.jsonl")[0]["input_tokens"], 3);

        // Nothing is left to do, and the way need not be named again.
        let requests = server.state().log.len();
        let (status, report, warned) = case.run(&server, &["--json"]);
        assert_eq!((status, warned.as_str()), (Some(0), ""));
        let report: Json = serde_json::from_str(&report).expect("JSON");
        assert_eq!((&report["way"], &report["batches"], &report["calls"]), (&json!("batch"), &json!(3), &json!(0)));
        assert_eq!((&report["answered"], &report["stopped"]), (&json!(6), &Json::Null));
        let (input, output) = if case.provider == "anthropic" { (1.0, 5.0) } else { (0.15, 0.6) };
        let cost = (18.0 * input + 24.0 * output) / 1e6 / 2.0;
        assert!((report["cost"].as_f64().expect("a cost") - cost).abs() < 1e-12, "batches cost half: {report}");
        assert_eq!(server.state().log.len(), requests);
    });
}

#[test]
fn the_order_for_caches_does_not_change_the_order_of_results() {
    both(|case| {
        let names: String = (0..ROWS).map(|row| format!("n{}\n", ROWS - 1 - row)).collect();
        std::fs::write(case.path("rows.csv"), format!("name\n{names}")).expect("writable");
        let server = server(Faults::default());
        assert_eq!(case.run(&server, &["--batch", "--cache-order"]).0, Some(0));
        let sent: Vec<_> = server.state().batches.iter().flat_map(|batch| batch.requests.clone()).collect();
        let ids: Vec<_> = sent.iter().map(|request| request["custom_id"].as_str().expect("an identifier")).collect();
        assert!(ids[0].ends_with("-2") && ids[2].ends_with("-0"), "the requests of a file are ordered: {ids:?}");
        for (row, found) in case.rows("results.jsonl").iter().enumerate() {
            let name = format!("n{}", ROWS as usize - 1 - row);
            assert_eq!((&found["name"], &found["size"]), (&json!(name), &json!(row)));
        }
    });
}

#[test]
fn requests_for_azure_have_the_path_of_its_documentation() {
    let case = Case::new("openai");
    for (api, path) in [("chat", "/chat/completions"), ("responses", "/v1/responses")] {
        let args = ["prepare", "rows.csv", "-p", "greet.prompty", "--provider", "azure", "--api", api, "-o", api];
        assert_eq!(finish(&mut case.tympan(&args)).0, Some(0));
        let lines = std::fs::read_to_string(case.path(api).join("requests-00001.jsonl")).expect("the file exists");
        let first: Json = serde_json::from_str(lines.lines().next().expect("a line")).expect("JSON");
        assert_eq!(first["url"], path);
    }
}

#[test]
fn a_job_keeps_its_way() {
    let case = Case::new("openai");
    let server = server(Faults::default());
    assert_eq!(case.run(&server, &["--batch"]).0, Some(0));
    let (status, _, warned) = case.run(&server, &["--direct"]);
    assert_eq!(status, Some(1));
    assert!(warned.contains("goes through the batch API") && warned.contains("`--batch`"), "{warned}");
    let (status, _, warned) = case.run(&server, &["--replay", "recordings"]);
    assert_eq!(status, Some(1), "{warned}");
    let (status, _, warned) = case.run(&server, &["--batch", "--record", "recordings"]);
    assert_eq!(status, Some(2), "batches cannot be recorded: {warned}");
    let (status, _, warned) = case.run(&server, &["--batch", "--provider", "echo"]);
    assert_eq!(status, Some(2), "an option is given twice: {warned}");
    let mut echo =
        case.tympan(&["run", "rows.csv", "-p", "greet.prompty", "-o", "e.csv", "--provider", "echo", "--batch"]);
    let (status, _, warned) = finish(&mut echo);
    assert_eq!(status, Some(1));
    assert!(warned.contains("provider `echo` has no batch API") && warned.contains("--direct"), "{warned}");
}

#[test]
fn the_way_depends_on_the_provider_and_its_address() {
    let case = Case::new("openai");
    let estimate = |provider: &str, more: &[&str]| {
        let mut command = case.tympan(&["run", "rows.csv", "-p", "greet.prompty", "--dry-run", "--provider", provider]);
        let (status, shown, warned) = finish(command.args(more).env_remove("OPENAI_API_KEY"));
        assert_eq!(status, Some(0), "{warned}");
        (shown.contains("6 requests, in 1 batch to the provider's batch API\n"), shown, warned)
    };
    let other = ["--base-url", "https://proxy.example.com/v1"];
    let azure = ["--base-url", "https://mine.openai.azure.com"];
    for (provider, more, is_batch, is_warned) in [
        ("openai", &[][..], true, false),
        ("anthropic", &["--model", "claude-haiku-4-5"], true, false),
        ("openai", &["--direct"], false, false),
        ("openai", &["--base-url", "https://api.openai.com/v1"], true, false),
        ("openai", &other, false, true),
        ("openai", &["--base-url", other[1], "--batch"], true, false),
        ("openai", &["--base-url", other[1], "--direct"], false, false),
        ("azure", &azure, false, true),
        ("azure", &["--base-url", azure[1], "--batch"], true, false),
        ("ollama", &[], false, false),
        ("groq", &["--batch"], true, false),
    ] {
        let (found, shown, warned) = estimate(provider, more);
        assert_eq!(found, is_batch, "{provider} {more:?}: {shown}");
        assert_eq!(shown.contains("6 requests, called directly\n"), !is_batch, "{provider} {more:?}: {shown}");
        assert_eq!(warned.contains("the model is called row by row"), is_warned, "{provider} {more:?}: {warned}");
    }
    let cost = |shown: &str| {
        let start = shown.find("about $").expect("a cost") + 7;
        shown[start..].split(',').next().and_then(|cost| cost.parse::<f64>().ok()).expect("a number")
    };
    let (batch, direct) = (estimate("openai", &[]).1, estimate("openai", &["--direct"]).1);
    assert!((cost(&batch) * 2.0 - cost(&direct)).abs() < 0.00001, "batches cost half: {batch}{direct}");
    assert!(batch.contains("at most 24.0 hours for each batch"), "{batch}");
    let (_, json, _) = estimate("openai", &["--json"]);
    assert_eq!(serde_json::from_str::<Json>(&json).expect("JSON")["way"], "batch");
}

#[test]
fn without_a_key_nothing_is_prepared() {
    let case = Case::new("openai");
    let server = server(Faults::default());
    let mut command = case.command(&server, &["--batch"]);
    let (status, _, warned) = finish(command.env_remove("OPENAI_API_KEY"));
    assert_eq!(status, Some(1));
    assert!(warned.contains("Missing API key"), "{warned}");
    assert!(!case.path("results.jsonl.job").exists() && !case.path("results.jsonl").exists());
}

#[test]
fn nothing_is_sent_that_could_cost_more_than_the_limit() {
    both(|case| {
        let server = server(Faults::default());
        let (status, _, warned) = case.run(&server, &["--batch", "--max-cost", "0.0001"]);
        assert_eq!(status, Some(1));
        assert!(warned.contains("Spend limit reached") && warned.contains("every byte counts as a token"), "{warned}");
        assert!(server.state().log.is_empty() && !case.path("results.jsonl").exists());
        assert_eq!(case.run(&server, &["--batch", "--max-cost", "10"]).0, Some(0));
        case.assert_complete();
    });
}

#[test]
fn results_that_cannot_be_written_are_reported_before_anything_is_sent() {
    let case = Case::new("openai");
    let server = server(Faults::default());
    let refused = |more: &[&str]| {
        let mut command =
            case.tympan(&["run", "rows.csv", "-p", "greet.prompty", "--batch", "--base-url", &server.url]);
        let (status, _, warned) = finish(command.args(more));
        assert!(status == Some(1) && server.state().log.is_empty(), "{more:?}: {warned}");
        warned
    };
    assert!(refused(&["-o", "absent/results.csv"]).contains("`absent` is not a directory"));
    assert!(refused(&["-o", "rows.csv"]).contains("`rows.csv` has the rows"));
    std::fs::write(case.path("rows.csv"), "name,size\nn0,1\n").expect("writable");
    let warned = refused(&["-o", "results.csv"]);
    assert!(warned.contains("the rows already have a column `size`") && warned.contains("--prefix"), "{warned}");
}

#[test]
fn rows_that_fail_are_errors_until_they_are_sent_again() {
    both(|case| {
        let faults =
            Faults { failing: [1].into(), expiring: [5].into(), error_text: "\u{1b}[2J".into(), ..Faults::default() };
        let server = server(faults);
        let (status, shown, warned) = case.run(&server, &["--batch", "--attempts", "1"]);
        assert_eq!(status, Some(1));
        assert!(shown.starts_with("4 of 6 rows answered"), "{shown}");
        assert!(warned.contains("2 rows have no result") && !format!("{shown}{warned}").contains('\u{1b}'), "{warned}");
        let rows = case.rows("results.jsonl");
        assert!(rows[1]["error"].is_string() && rows[5]["error"].is_string() && rows[1]["greeting"].is_null());
        assert_eq!(case.run(&server, &["--attempts", "1"]).0, Some(1), "nothing is sent without being asked for");
        assert_eq!(server.state().batches.len(), 2);
        assert_eq!(case.run(&server, &["--attempts", "1", "--retry"]).0, Some(0));
        case.assert_complete();
        assert_eq!(by_row(&server).into_values().collect::<Vec<_>>(), [1, 2, 1, 1, 1, 2]);
    });
}

#[test]
fn answers_that_nobody_asked_for_do_not_become_results() {
    both(|case| {
        let edit = |lines: Vec<String>| {
            let mut lines: Vec<_> = lines.iter().map(|line| typed(line)).collect();
            let row = |row: u64| lines.iter().find(|line| line.contains(&format!("-{row}\"")));
            // An identifier that was not sent, and a second answer of another content.
            if let Some(line) = row(1).cloned() {
                lines.push(line.replace("-1\"", "-77\""));
                lines.push(line.replace("hello 1", "evil"));
            }
            lines
        };
        let server = Server::start(Faults { edit: Some(Box::new(edit)), ..Faults::default() });
        let (status, _, warned) = case.run(&server, &["--batch"]);
        assert_eq!(status, Some(0), "{warned}");
        assert!(warned.contains("1 answer belongs to no request of the job"), "{warned}");
        assert!(warned.contains("1 row has two different answers"), "{warned}");
        case.assert_complete();
    });
}

/// Runs the command, which is killed at this point of its writes to the manifest, and then again until it is complete.
/// Returns whether it was killed.
fn run_killed(case: &Case, server: &Server, point: usize) -> bool {
    use std::os::unix::process::ExitStatusExt;

    let mut command = case.command(server, &["--batch"]);
    let killed = command.env("TYMPAN_TEST_ABORT_AT", point.to_string()).output().expect("the command runs");
    if killed.status.signal().is_none() {
        return false;
    }
    let (status, shown, warned) = case.run(server, &["--batch"]);
    assert!(status.is_some(), "{point}: {shown}{warned}");
    true
}

#[test]
fn a_run_killed_at_any_write_of_its_manifest_loses_and_repeats_nothing() {
    let mut point = 1;
    loop {
        let case = Case::new("openai");
        let server = server(Faults { failing: [4].into(), ..Faults::default() });
        let is_killed = run_killed(&case, &server, point);
        case.assert_complete();
        assert_eq!(by_row(&server).into_values().collect::<Vec<_>>(), [1, 1, 1, 1, 2, 1], "{point}");
        assert_eq!(server.state().batches.len(), 3, "{point}");
        if !is_killed {
            break;
        }
        point += 1;
    }
    // Preparation, two files that are sent, ended and collected, and one of them again: a point on each side of a commit.
    assert!(point > 30, "{point}");
}

#[test]
fn where_nothing_can_be_looked_up_a_killed_run_asks_before_it_sends_again() {
    let (mut point, mut unknown) = (1, 0);
    loop {
        let case = Case::new("anthropic");
        let server = server(Faults::default());
        let is_killed = run_killed(&case, &server, point);
        assert!(by_row(&server).values().all(|count| *count == 1), "{point}");
        if case.rows("results.jsonl").iter().any(|row| row["error"] == "no answer") {
            unknown += 1;
            let (status, _, warned) = case.run(&server, &["--batch"]);
            assert_eq!(status, Some(1));
            assert!(warned.contains("--retry-unknown"), "{warned}");
            let (status, _, warned) = case.run(&server, &["--batch", "--retry-unknown"]);
            assert_eq!(status, Some(0), "{warned}");
        }
        case.assert_complete();
        if !is_killed {
            break;
        }
        point += 1;
    }
    // Only after the intent was recorded, and before the batch was.
    assert!(unknown > 0 && unknown < point / 2, "{unknown} of {point}");
}

#[test]
fn a_run_that_is_killed_while_it_waits_continues() {
    let case = Case::new("openai");
    let server = server(Faults { polls: 1_000_000, ..Faults::default() });
    let mut child = case.command(&server, &["--batch"]).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("standard error")).lines();
    let note = lines.next().expect("a line").expect("it is text");
    assert!(note.starts_with("6 requests sent to the provider's batch API, which can take up to 24 hours"), "{note}");
    assert!(note.contains("`tympan batch cancel results.jsonl.job`"), "{note}");
    let (status, _, warned) = case.run(&server, &[]);
    assert_eq!(status, Some(1), "two processes do not work on one job");
    assert!(warned.contains("another process works on the job"), "{warned}");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    server.state().batches.iter_mut().for_each(|batch| batch.polls = 0);
    assert_eq!(case.run(&server, &[]).0, Some(0));
    case.assert_complete();
    assert!(by_row(&server).into_values().all(|count| count == 1));
}

#[test]
fn rows_from_standard_input_are_the_same_rows_in_the_next_call() {
    let case = Case::new("openai");
    let server = server(Faults { failing: [0].into(), ..Faults::default() });
    let rows = std::fs::read(case.path("rows.csv")).expect("readable");
    let run = |rows: &[u8], more: &[&str]| {
        let mut command = case.tympan(&["run", "-", "--format", "csv", "-p", "greet.prompty", "-o", "results.jsonl"]);
        command.args(["--batch", "--attempts", "1", "--base-url", &server.url]).args(more);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        child.stdin.take().expect("standard input").write_all(rows).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(run(&rows, &[]).0, Some(1));
    let (status, warned) = run(&rows, &["--retry"]);
    assert_eq!(status, Some(0), "{warned}");
    case.assert_complete();
    let (status, warned) = run(b"name\nother\n", &[]);
    assert_eq!(status, Some(1));
    assert!(warned.contains("`rows` differ"), "{warned}");
}

/// A job that was prepared, sent and answered.
fn collected(case: &Case, server: &Server) {
    let mut prepare = case.tympan(&["prepare", "rows.csv", "-p", "greet.prompty", "-o", "job"]);
    assert_eq!(finish(&mut prepare).0, Some(0));
    assert_eq!(finish(&mut case.tympan(&["submit", "job", "--base-url", &server.url])).0, Some(0));
}

#[test]
fn collected_answers_become_typed_results() {
    let case = Case::new("openai");
    let server = server(Faults::default());
    collected(&case, &server);
    let base = ["collect", "job", "--base-url", &server.url];
    let (status, _, warned) = finish(&mut case.tympan(&[&base[..], &["-o", "results.xlsx"]].concat()));
    assert_eq!(status, Some(1), "the format is checked first: {warned}");
    let (status, shown, warned) = finish(&mut case.tympan(&[&base[..], &["--wait", "-o", "results.jsonl"]].concat()));
    assert_eq!((status, warned.as_str()), (Some(0), ""));
    assert!(shown.ends_with("6 of 6 rows answered, in results.jsonl\n"), "{shown}");
    case.assert_complete();

    // Everything is here, so neither the provider nor a key is needed.
    let mut again = case.tympan(&["collect", "job", "-o", "again.csv", "--prefix", "r_", "--json"]);
    let (status, report, warned) = finish(again.env_remove("OPENAI_API_KEY"));
    assert_eq!(status, Some(0), "{warned}");
    let report: Json = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["results"]["answered"], &report["files"][0]["state"]), (&json!(6), &json!("collected")));
    let text = std::fs::read_to_string(case.path("again.csv")).expect("the results");
    assert!(text.starts_with("name,r_greeting,r_size,r_error,"), "{text}");
}

#[test]
fn direct_answers_are_written_again_as_well() {
    let case = Case::new("openai");
    let echo = ["run", "rows.csv", "-p", "greet.prompty", "--provider", "echo", "-o", "one.jsonl", "--job", "job"];
    let (_, shown, _) = finish(&mut case.tympan(&echo));
    assert!(shown.contains("6 calls"), "{shown}");
    assert_eq!(finish(&mut case.tympan(&["collect", "job", "-o", "two.jsonl"])).0, Some(0));
    assert_eq!(case.rows("one.jsonl"), case.rows("two.jsonl"));
}

#[test]
fn rows_that_have_changed_are_not_joined_with_answers() {
    let case = Case::new("openai");
    let server = server(Faults::default());
    collected(&case, &server);
    let collect = |more: &[&str]| {
        let base = ["collect", "job", "--base-url", &server.url, "-o", "results.jsonl"];
        let (status, _, warned) = finish(&mut case.tympan(&[&base[..], more].concat()));
        (status, warned)
    };
    assert_eq!(collect(&[]).0, Some(0));
    std::fs::remove_file(case.path("results.jsonl")).expect("it exists");
    let rows = std::fs::read_to_string(case.path("rows.csv")).expect("readable");

    // The same size and other rows: only the time says so.
    let times = std::fs::File::options().write(true).open(case.path("rows.csv")).expect("writable");
    std::fs::write(case.path("rows.csv"), rows.replace("n0\nn1", "n1\nn0")).expect("writable");
    times.set_modified(std::time::UNIX_EPOCH).expect("writable");
    let (status, warned) = collect(&[]);
    assert_eq!(status, Some(1));
    assert!(warned.contains("`") && warned.contains("it was written again") && warned.contains("--rows"), "{warned}");
    std::fs::write(case.path("rows.csv"), format!("{rows}n6\n")).expect("writable");
    let (status, warned) = collect(&[]);
    assert!(status == Some(1) && warned.contains("it has 26 bytes, expected 23"), "{warned}");
    std::fs::remove_file(case.path("rows.csv")).expect("it exists");
    let (status, warned) = collect(&[]);
    assert!(status == Some(1) && warned.contains("cannot read") && warned.contains("rows.csv"), "{warned}");
    assert!(!case.path("results.jsonl").exists());

    // Rows that are named again must have the same size and the same number.
    std::fs::write(case.path("moved.csv"), &rows).expect("writable");
    std::fs::write(case.path("fewer.csv"), rows.replace("n4\nn5", "n4 n5")).expect("writable");
    std::fs::write(case.path("more.csv"), format!("{rows}n6\n")).expect("writable");
    for (file, expected) in
        [("more.csv", "it has 26 bytes"), ("fewer.csv", "the files have 5 rows, and the job was prepared with 6")]
    {
        let (status, warned) = collect(&["--rows", file]);
        assert!(status == Some(1) && warned.contains(expected), "{warned}");
    }
    let (status, warned) = collect(&["--rows", "moved.csv", "--rows", "moved.csv"]);
    assert!(status == Some(1) && warned.contains("prepared with 1 files of rows, and these are 2"), "{warned}");
    assert!(!case.path("results.jsonl").exists());
    assert_eq!(collect(&["--rows", "moved.csv"]).0, Some(0));
    case.assert_complete();
}

#[test]
fn another_prompt_is_not_joined_with_answers() {
    let case = Case::new("openai");
    let server = server(Faults::default());
    collected(&case, &server);
    let prompt = case.path("greet.prompty");
    let source = std::fs::read_to_string(&prompt).expect("readable").replace("Hi", "Bye");
    std::fs::write(&prompt, source).expect("writable");
    let (status, _, warned) = finish(&mut case.tympan(&["collect", "job", "--base-url", &server.url, "-o", "r.csv"]));
    assert_eq!(status, Some(1));
    assert!(warned.contains("the prompt has changed") && !Path::new(&case.path("r.csv")).exists(), "{warned}");
}
