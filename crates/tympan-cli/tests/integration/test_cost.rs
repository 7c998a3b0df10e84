//! `tympan test --max-cost`: no run costs more than the user allows.

use std::fs;
use std::process::Command;

use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::server::{Server, finish, respond};

/// A model whose answers have at most 10 tokens. A token costs 1 dollar.
const MODEL: &str = "model:\n  id: fake\n  provider: openai\n  options: {maxOutputTokens: 10}\n";
const PRICES: &str = "[models.fake]\ninput = 0\noutput = 1000000\n";
const RUBRIC: &str = "outputs:\n  - {name: pass, kind: boolean}\ninputs:\n  - {name: answer, kind: string}\n";

/// Creates a directory with a prompt, a rubric, a table of 40 rows and a test file.
fn project(model: &str, prices: &str, tests: &str) -> TempDir {
    let directory = TempDir::new().expect("a directory");
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).expect("it is written");
    let inputs = "inputs:\n  - {name: name, kind: string}\n";
    write("greeting.prompty", &format!("---\n{model}{inputs}---\nuser:\nHello {{{{ name }}}}!\n"));
    write("rubric.prompty", &format!("---\n{model}{RUBRIC}---\nuser:\nIs it polite? {{{{ answer }}}}\n"));
    write("rows.jsonl", &(0..40).map(|row| format!("{{\"name\": \"n{row}\"}}\n")).collect::<String>());
    write("greeting.test.yaml", tests);
    write("tympan.toml", prices);
    directory
}

/// A server whose answers have one token, and also are the verdict of a judge.
fn server() -> Server {
    Server::start(|stream, _| respond(stream, "200 OK", "application/json", &answer(1)))
}

fn answer(tokens: u64) -> String {
    let message = json!({"role": "assistant", "content": "{\"pass\": true}"});
    json!({
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens},
    })
    .to_string()
}

fn tympan(directory: &TempDir, server: &Server, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(directory.path()).args(["test", "--live"]).args(arguments);
    finish(host(&mut command, server))
}

/// Sets the environment, in which the host names the address.
fn host<'a>(command: &'a mut Command, server: &Server) -> &'a mut Command {
    command.env("OPENAI_API_KEY", crate::server::KEY).env("OPENAI_BASE_URL", &server.url).env("NO_PROXY", "*")
}

/// Returns the number of results with this verdict, and the reasons.
fn verdicts(lines: &str, verdict: &str) -> (usize, Vec<String>) {
    let results = lines.lines().map(|line| serde_json::from_str::<Json>(line).expect("a line is JSON"));
    let found: Vec<_> = results.filter(|result| result["kind"] == "case" && result["verdict"] == verdict).collect();
    let reasons = found.iter().filter_map(|result| result["reason"].as_str().map(str::to_owned)).collect();
    (found.len(), reasons)
}

const ROWS: &str = "cases:\n  - {name: rows, rows: rows.jsonl, expect: [{result: {contains: pass}}]}\n";

#[test]
fn calls_cannot_exceed_the_limit_together() {
    for jobs in ["1", "8"] {
        let (directory, server) = (project(MODEL, PRICES, ROWS), server());
        // A call costs 1 dollar, and could cost 10. The last one that fits in 25 is the 16th.
        let (status, lines, error) = tympan(&directory, &server, &["--json", "--max-cost", "25", "--jobs", jobs]);
        assert_eq!(status, Some(1), "{error}");
        assert_eq!(server.requests.try_iter().count(), 16, "{jobs} jobs");
        assert_eq!(verdicts(&lines, "passed").0, 16);
        let (not_run, reasons) = verdicts(&lines, "not_run");
        assert_eq!((not_run, reasons.len()), (24, 24));
        let expected = "Spend limit reached: the call could cost $10.0000, and $16.0000 of $25.0000 are spent";
        assert!(reasons.iter().all(|reason| reason.contains(expected)), "{}", reasons[0]);
    }
}

#[test]
fn answers_as_long_as_possible_stay_within_the_limit() {
    for jobs in ["1", "8"] {
        let directory = project(MODEL, PRICES, ROWS);
        let server = Server::start(|stream, _| respond(stream, "200 OK", "application/json", &answer(10)));
        let (_, lines, _) = tympan(&directory, &server, &["--json", "--max-cost", "25", "--jobs", jobs]);
        assert_eq!((server.requests.try_iter().count(), verdicts(&lines, "passed").0), (2, 2), "{jobs} jobs");
        assert_eq!(verdicts(&lines, "not_run").0, 38);
    }
}

#[test]
fn answers_without_token_counts_cost_what_they_could() {
    let directory = project(MODEL, PRICES, ROWS);
    let answer = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "pass"}}]}).to_string();
    let server = Server::start(move |stream, _| respond(stream, "200 OK", "application/json", &answer));
    let (_, lines, _) = tympan(&directory, &server, &["--json", "--max-cost", "25"]);
    assert_eq!((server.requests.try_iter().count(), verdicts(&lines, "not_run").0), (2, 38));
}

#[test]
fn requests_that_the_provider_rejects_cost_nothing() {
    let (directory, server) = (
        project(MODEL, PRICES, ROWS),
        Server::start(|stream, _| respond(stream, "400 Bad Request", "application/json", "{\"error\": {}}")),
    );
    let (_, lines, _) = tympan(&directory, &server, &["--json", "--max-cost", "15"]);
    assert_eq!((server.requests.try_iter().count(), verdicts(&lines, "failed").0), (40, 40));
}

#[test]
fn judges_and_repetitions_count() {
    let tests = "cases:\n  - name: polite\n    inputs: {name: Ada}\n    repeat: 3\n    expect:\n      \
        - judge: {rubric: rubric.prompty, votes: 2}\n";
    for (limit, requests) in [("17", 8), ("18", 9), ("11.5", 2)] {
        let (directory, server) = (project(MODEL, PRICES, tests), server());
        let (_, lines, error) = tympan(&directory, &server, &["--json", "--max-cost", limit]);
        assert_eq!(server.requests.try_iter().count(), requests, "{limit}: {lines} {error}");
        let verdict = if requests == 9 { "passed" } else { "not_run" };
        assert_eq!(verdicts(&lines, verdict).0, 1, "{limit}: {lines}");
    }
    let (directory, server) = (project(MODEL, PRICES, tests), server());
    let (_, text, _) = tympan(&directory, &server, &["--max-cost", "100"]);
    assert!(text.contains("about $9.00"), "{text}");
}

#[test]
fn nothing_is_sent_if_nothing_bounds_the_cost() {
    let cases = [
        (MODEL, "", "the price of the model `fake` is not known: set `input` and `output` in `[models.\"fake\"]`"),
        ("model: {id: fake, provider: openai}\n", PRICES, "nothing limits the answers of the model `fake`: set `max"),
    ];
    for (model, prices, expected) in cases {
        let (directory, server) = (project(model, prices, ROWS), server());
        let (status, _, error) = tympan(&directory, &server, &["--max-cost", "25"]);
        assert_eq!((status, server.requests.try_iter().count()), (Some(2), 0), "{error}");
        assert!(error.contains(expected), "{error}");
    }
    // A judge is a model too.
    let tests =
        "cases: [{inputs: {name: Ada}, answer: {text: Hi}, expect: [{judge: {rubric: rubric.prompty, model: other}}]}]";
    let (directory, server) = (project(MODEL, PRICES, tests), server());
    let (status, _, error) = tympan(&directory, &server, &["--max-cost", "25"]);
    assert_eq!((status, server.requests.try_iter().count()), (Some(2), 0), "{error}");
    assert!(error.contains("`other`"), "{error}");
    // Cases that are not selected, and those that call no model, need no price.
    let tests = "cases: [{name: fixed, inputs: {name: Ada}, answer: {text: Hi}, expect: [{result: {equals: Hi}}]}]";
    let (directory, server) = (project(MODEL, "", tests), self::server());
    assert_eq!(tympan(&directory, &server, &["--max-cost", "25"]).0, Some(0));
    assert_eq!(tympan(&directory, &server, &["--max-cost", "lots"]).0, Some(2));
}

#[test]
fn recordings_cost_the_same_and_replays_cost_nothing() {
    let (directory, server) = (project(MODEL, PRICES, ROWS), server());
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(directory.path()).args(["test", "--record", "--json", "--max-cost", "25"]);
    let (_, lines, _) = finish(host(&mut command, &server));
    assert_eq!((server.requests.try_iter().count(), verdicts(&lines, "passed").0), (16, 16));
    let mut command = Command::new(env!("CARGO_BIN_EXE_tympan"));
    command.current_dir(directory.path()).args(["test", "--json", "--max-cost", "0"]);
    let (_, lines, _) = finish(host(&mut command, &server));
    assert_eq!((server.requests.try_iter().count(), verdicts(&lines, "passed").0), (0, 16));
}
