//! `tympan batch run` and `tympan batch plan`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::server::{KEY, Server, finish, respond, tympan};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/batch").join(name)
}

/// The command with the rows and the prompt of the fixtures.
fn command(what: &str, more: &[&str]) -> Command {
    let mut command = tympan(&["batch", what]);
    command.arg(fixture("tickets.csv")).arg("--prompt").arg(fixture("ticket.prompty")).args(more);
    command.stdin(Stdio::null());
    command
}

fn run(output: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let mut command = command("run", more);
    finish(command.arg("--output").arg(output))
}

fn lines(path: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(path).expect("the file exists");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

fn chat(content: &str) -> String {
    json!({
        "id": "c", "model": "gpt-4o-mini",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    })
    .to_string()
}

#[test]
fn echo_answers_every_row_without_a_key() {
    let directory = TempDir::new().expect("a temporary directory");
    let output = directory.path().join("results.csv");
    let (status, shown, warned) = run(&output, &["--provider", "echo"]);
    assert_eq!(status, Some(1), "{warned}");
    assert!(shown.starts_with("4 of 6 rows answered, in "), "{shown}");
    assert!(shown.contains("4 calls, "), "{shown}");
    assert!(warned.contains("2 rows were rejected: see"), "{warned}");
    assert!(warned.contains("1 cells of") && warned.contains("see `--csv-safe`"), "{warned}");
    let text = std::fs::read_to_string(&output).expect("the results");
    assert!(text.starts_with("text,priority,urgent,tags,customer,ignored,category,error,finish_reason,"), "{text}");
    assert!(text.contains(",x,billing,,stop,"), "{text}");
    assert!(text.contains("too few,1") || text.contains("expected 6 cells"), "{text}");
    assert!(directory.path().join("results.csv.job/job.sqlite").exists());
}

#[test]
fn a_finished_job_is_only_written_again() {
    let directory = TempDir::new().expect("a temporary directory");
    let (first, second) = (directory.path().join("results.jsonl"), directory.path().join("again.csv"));
    let job = directory.path().join("job").display().to_string();
    let more = ["--provider", "echo", "--max-rejects", "2", "--job", &job];
    let (status, _, warned) = run(&first, &more);
    assert_eq!(status, Some(0), "{warned}");
    assert_eq!(lines(&first).len(), 6);
    let (status, report, warned) = run(&second, &[&more[..], &["--json", "--csv-safe"]].concat());
    assert_eq!((status, warned.as_str()), (Some(0), ""));
    let report: Json = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["calls"], &report["answered"], &report["rejected"]), (&json!(0), &json!(4), &json!(2)));
    assert_eq!((&report["missing"], &report["formulas"], &report["stopped"]), (&json!(0), &json!(1), &Json::Null));
    assert!(std::fs::read_to_string(&second).expect("the results").contains(",'=1+2,"));
}

#[test]
fn answers_of_a_server_are_typed_and_its_errors_are_errors_of_rows() {
    let server = Server::start(|stream, number| match number {
        0 => respond(stream, "200 OK", "application/json", &chat("{\"category\":\"technical\"}")),
        1 => {
            respond(stream, "400 Bad Request", "application/json", "{\"error\":{\"message\":\"too \\u001b[2J long\"}}")
        }
        2 => respond(stream, "200 OK", "application/json", &chat("{\"category\":7}")),
        _ => respond(stream, "200 OK", "application/json", &chat("{\"category\":\"other\"}")),
    });
    let directory = TempDir::new().expect("a temporary directory");
    let output = directory.path().join("results.jsonl");
    let more = ["--base-url", &server.url, "--concurrency", "1", "--max-rejects", "2", "--prefix", "r_"];
    let (status, shown, warned) = run(&output, &more);
    assert_eq!(status, Some(1), "{warned}");
    assert!(warned.contains("2 rows have no result: see the column `r_error`"), "{warned}");
    assert!(!format!("{shown}{warned}").contains('\u{1b}'), "{shown}{warned}");
    let rows = lines(&output);
    let categories: Vec<_> = rows.iter().map(|row| row["r_category"].as_str()).collect();
    assert_eq!(categories, [Some("technical"), None, None, None, None, Some("other")]);
    assert!(rows[1]["r_error"].as_str().is_some_and(|error| error.contains("long")), "{}", rows[1]);
    assert!(rows[2]["r_error"].as_str().is_some_and(|error| error.contains("`category`")), "{}", rows[2]);
    assert_eq!((&rows[2]["r_input_tokens"], &rows[2]["text"]), (&json!(100), &json!("It crashes")));
    assert_eq!(server.requests.try_iter().count(), 4);

    // Only the row whose call failed is called again.
    let (status, shown, _) = run(&output, &[&more[..], &["--retry"]].concat());
    assert_eq!(status, Some(1));
    assert!(shown.contains("1 call, "), "{shown}");
    let requests: Vec<_> = server.requests.try_iter().collect();
    assert_eq!(requests.len(), 1);
    assert!(requests[0].contains("Two lines"), "{}", requests[0]);
    assert_eq!(lines(&output)[1]["r_category"], "other");
    let saved = std::fs::read_to_string(directory.path().join("results.jsonl.job/answers-00001.jsonl"));
    assert!(!saved.expect("the answers").contains(KEY));
}

#[test]
fn a_job_stops_before_its_limit_on_cost_and_continues_with_a_higher_one() {
    let answer = |stream: &mut std::net::TcpStream, _| {
        respond(stream, "200 OK", "application/json", &chat("{\"category\":\"other\"}"));
    };
    let server = Server::start(answer);
    let directory = TempDir::new().expect("a temporary directory");
    let output = directory.path().join("results.jsonl");
    let more = ["--base-url", &server.url, "--concurrency", "2", "--max-rejects", "2"];
    // The most that a call can cost is the longest answer of the model: a cent.
    let (status, shown, warned) = run(&output, &[&more[..], &["--max-cost", "0.001"]].concat());
    assert_eq!(status, Some(1), "{shown}");
    assert!(warned.contains("Spend limit reached") && warned.contains("4 rows were not called"), "{warned}");
    assert_eq!(server.requests.try_iter().count(), 0);
    assert_eq!(lines(&output)[0]["error"], "no answer");
    let (status, _, warned) = run(&output, &[&more[..], &["--max-cost", "1"]].concat());
    assert_eq!(status, Some(0), "{warned}");
    assert_eq!(lines(&output)[0]["category"], "other");
}

#[test]
fn without_a_key_no_row_is_given_up() {
    let directory = TempDir::new().expect("a temporary directory");
    let output = directory.path().join("results.jsonl");
    let mut command = command("run", &["--direct", "--max-rejects", "2", "--output"]);
    let (status, _, warned) = finish(command.arg(&output).env_remove("OPENAI_API_KEY"));
    assert_eq!(status, Some(1));
    assert!(warned.contains("Missing API key") && warned.contains("4 rows were not called"), "{warned}");
    let (status, _, warned) = run(&output, &["--provider", "echo", "--max-rejects", "2"]);
    assert_eq!(status, Some(1));
    assert!(warned.contains("`provider` differ"), "another provider is another job: {warned}");
}

#[test]
fn recorded_answers_are_replayed() {
    let answer = |stream: &mut std::net::TcpStream, _| {
        respond(stream, "200 OK", "application/json", &chat("{\"category\":\"other\"}"));
    };
    let server = Server::start(answer);
    let directory = TempDir::new().expect("a temporary directory");
    let recordings = directory.path().join("recordings").display().to_string();
    let (first, second) = (directory.path().join("one.jsonl"), directory.path().join("two.jsonl"));
    let base = ["--base-url", &server.url, "--max-rejects", "2"];
    let (status, _, warned) = run(&first, &[&base[..], &["--record", &recordings]].concat());
    assert_eq!(status, Some(0), "{warned}");
    assert_eq!(server.requests.try_iter().count(), 4);
    let (status, _, warned) = run(&second, &[&base[..], &["--replay", &recordings]].concat());
    assert_eq!(status, Some(0), "{warned}");
    assert_eq!(server.requests.try_iter().count(), 0);
    assert_eq!(lines(&first), lines(&second));
}

#[test]
fn a_dry_run_estimates_and_leaves_nothing_behind() {
    let directory = TempDir::new().expect("a temporary directory");
    let mut dry = command("run", &["--dry-run", "--direct", "--requests-per-minute", "2"]);
    dry.current_dir(directory.path());
    let (status, shown, warned) = finish(dry.env_remove("OPENAI_API_KEY"));
    assert_eq!((status, warned.as_str()), (Some(0), ""));
    assert!(
        shown.starts_with("6 rows, of which 2 would be rejected\n  4 requests, called directly\n  about "),
        "{shown}"
    );
    assert!(
        shown.contains("and 4,000 output tokens\n") && shown.contains("at least 2 minutes, by the limits"),
        "{shown}"
    );
    let mut dry = command("run", &["--dry-run", "--json"]);
    let (_, report, _) = finish(dry.current_dir(directory.path()));
    let report: Json = serde_json::from_str(&report).expect("JSON");
    assert_eq!((&report["estimate"]["requests"], &report["estimate"]["output_tokens"]), (&json!(4), &json!(4000)));
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
}

#[test]
fn a_plan_compares_batches_with_calls_and_counts_workers() {
    let more = ["--rows", "3000000", "--compare", "anthropic/claude-haiku-4-5", "--within", "1s", "--json"];
    let (status, report, warned) = finish(&mut command("plan", &more));
    assert_eq!((status, warned.as_str()), (Some(0), ""));
    let report: Json = serde_json::from_str(&report).expect("JSON");
    let offers = report["offers"].as_array().expect("a list");
    let names: Vec<_> = offers.iter().map(|offer| (offer["provider"].as_str(), offer["way"].as_str())).collect();
    let (openai, anthropic, batch, direct) = (Some("openai"), Some("anthropic"), Some("batch"), Some("direct"));
    assert_eq!(names, [(openai, batch), (openai, direct), (anthropic, batch), (anthropic, direct)]);
    let cost = |offer: usize| offers[offer]["cost"].as_f64().expect("a cost");
    assert!((cost(0) * 2.0 - cost(1)).abs() < 1e-6 && (cost(2) * 2.0 - cost(3)).abs() < 1e-6, "{report}");
    // Two of three rows become requests: 50,000 fit into a file of OpenAI, 100,000 into one of Anthropic.
    assert_eq!((&offers[0]["requests"], &offers[0]["files"]), (&json!(2_000_000), &json!(40)));
    assert_eq!((&offers[2]["files"], &offers[1]["files"]), (&json!(20), &Json::Null));
    let rendering = &report["rendering"];
    let (rate, workers) = (rendering["rows_per_second"].as_f64(), rendering["workers"].as_f64());
    let needed = rate.map(|rate| (3_000_000.0 / rate).ceil());
    assert_eq!((workers, workers.is_some_and(|workers| workers >= 1.0)), (needed, true), "{rendering}");

    let (status, shown, _) = finish(&mut command("plan", &["--concurrency", "4"]));
    assert_eq!(status, Some(0));
    assert!(shown.starts_with("6 rows, of which about 2 would be rejected\n  measured with 6 rows"), "{shown}");
    assert!(
        shown.contains("  openai/gpt-4o-mini, batch\n    1 file, ") && shown.contains("with 4 calls at a time"),
        "{shown}"
    );
}
