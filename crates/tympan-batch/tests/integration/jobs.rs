//! The life of a job at a provider, with everything that can go wrong.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tympan_batch::job::{BatchJob, JobApi, JobInfo, JobOptions, JobReport, JobRun, run_batch_job};
use tympan_batch::limits::{Limits, Target};
use tympan_core::wire::catalog::ModelOverride;
use tympan_core::{Kind, Prompt, Result};
use tympan_runtime::{LoadOptions, RunOptions, Runtime, RuntimeOptions};

use crate::server::{Faults, Server};
use crate::support::Job;

const KEY: &str = "sk-test-0123456789abcdef";
const GREET: &str =
    "---\nmodel: any-model\ninputs:\n  - {name: name, kind: string, required: true}\n---\nuser:\nHi {{ name }}";

/// A prepared job, and the server that it is sent to.
struct Case {
    job: Job,
    server: Server,
    runtime: Runtime,
    options: JobOptions,
    _rows: TempDir,
}

impl Case {
    fn new(target: Target, rows: usize, faults: Faults) -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        let path = directory.path().join("names.csv");
        let mut text = String::from("name\n");
        (0..rows).for_each(|row| writeln!(text, "n{row}").expect("strings do not fail"));
        std::fs::write(&path, text).expect("writable");
        let mut job = Job::new(Prompt::from_prompty(GREET).expect("the prompt is valid"), &[&path]);
        job.options.target = target;
        job.options.run.provider = Some(if target == Target::Anthropic { "anthropic" } else { "openai" }.to_owned());
        job.options.limits = Some(Limits { requests: 4, bytes: 1 << 20, tokens: None });
        job.prepare().expect("the job is prepared");

        let server = Server::start(faults);
        let keys = ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"].map(|name| (name.to_owned(), KEY.to_owned()));
        let load = LoadOptions { env_vars: Some(HashMap::from(keys)), ..LoadOptions::default() };
        let mut options = RuntimeOptions { load, ..RuntimeOptions::default() };
        options.http.sleep = Arc::new(|_| Box::pin(async {}));
        options.http.max_response_bytes = 1 << 16;
        let mut job_options = JobOptions::default();
        job_options.run.base_url = Some(server.url.clone());
        job_options.sleep = Arc::new(|_: Duration| {});
        Self { job, server, runtime: Runtime::new(options), options: job_options, _rows: directory }
    }

    fn run(&self) -> Result<JobReport> {
        self.run_once().map(|run| run.report)
    }

    fn run_once(&self) -> Result<JobRun> {
        run_batch_job(&self.runtime, &self.job.prompt, self.job.directory.path(), &self.options, &|_| {})
    }

    fn with<T>(&self, work: impl FnOnce(&BatchJob<'_>) -> Result<T>) -> Result<T> {
        let run = JobInfo::read(self.job.directory.path())?.run_options();
        let run = RunOptions { base_url: self.options.run.base_url.clone(), ..run };
        let api = JobApi::new(&self.runtime, &self.job.prompt, &run)?;
        work(&BatchJob::open(self.job.directory.path(), &self.job.prompt, &api, &self.options)?)
    }

    fn report(&self) -> JobReport {
        JobReport::read(self.job.directory.path()).expect("the directory has a job")
    }

    /// Returns the lines of all files with answers, in order.
    fn answers(&self) -> Vec<Json> {
        let files = self.report().files;
        files.iter().filter_map(|file| file.answers.clone()).flat_map(|name| self.job.lines(&name)).collect()
    }

    /// Asserts that each row has exactly one line, in order, and an answer unless it is one of these.
    fn assert_answers(&self, rows: u64, without: &[u64]) {
        let answers = self.answers();
        let found: Vec<_> = answers.iter().map(|line| line["row"].as_u64().expect("a row")).collect();
        assert_eq!(found, (0..rows).collect::<Vec<_>>());
        for (row, line) in answers.iter().enumerate() {
            let id = line["custom_id"].as_str().expect("an identifier");
            assert!(id.ends_with(&format!("-{row}")), "{line}");
            let is_without = without.contains(&(row as u64));
            assert_eq!(line.get("error").is_some(), is_without, "{line}");
            assert_eq!(line["body"].to_string().contains(&format!("answer to {id}")), !is_without, "{line}");
        }
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.job.path(name)).expect("the file exists")
    }
}

fn both(mut test: impl FnMut(Target)) {
    test(Target::OpenAi);
    test(Target::Anthropic);
}

fn sent_once(server: &Server, rows: usize) {
    let sent = server.sent();
    assert_eq!(sent.len(), rows);
    assert!(sent.values().all(|count| *count == 1), "{sent:?}");
}

#[test]
fn a_job_is_sent_answered_and_collected() {
    both(|target| {
        let case = Case::new(target, 10, Faults { polls: 2, busy: 1, ..Faults::default() });
        let report = case.run().expect("the job runs");
        assert!(report.is_complete());
        assert_eq!(report.files.len(), 3);
        case.assert_answers(10, &[]);
        sent_once(&case.server, 10);
        let state = case.server.state();
        let key = if target == Target::Anthropic { "x-api-key: " } else { "authorization: Bearer " };
        assert!(state.heads.iter().all(|head| head.contains(&format!("{key}{KEY}"))));
        if target == Target::OpenAi {
            let created = &state.batches[1].created;
            assert_eq!(
                (&created["endpoint"], &created["completion_window"]),
                (&"/v1/chat/completions".into(), &"24h".into())
            );
            assert_eq!(
                (&created["metadata"]["tympan_job"], &created["metadata"]["tympan_file"]),
                (&json!(report.job), &"2".into())
            );
        }
    });
}

#[test]
fn requests_arrive_as_they_were_prepared() {
    both(|target| {
        let case = Case::new(target, 4, Faults::default());
        let prepared = case.job.lines("requests-00001.jsonl");
        case.with(|job| job.submit(&|_| {})).expect("the file is sent");
        assert_eq!(case.server.state().batches[0].requests, prepared);
    });
}

#[test]
fn a_second_call_sends_nothing() {
    both(|target| {
        let case = Case::new(target, 5, Faults::default());
        case.run().expect("the job runs");
        let requests = case.server.state().log.len();
        case.run().expect("the job is complete");
        assert_eq!(case.server.state().log.len(), requests, "nothing is left to do");
    });
}

#[test]
fn rows_that_failed_or_expired_are_sent_again_with_the_same_bytes() {
    both(|target| {
        let faults = || Faults { failing: [1, 6].into(), expiring: [2].into(), ..Faults::default() };
        let mut case = Case::new(target, 8, faults());
        case.options.max_attempts = 1;
        let report = case.run().expect("the job runs");
        assert!(!report.is_complete());
        case.assert_answers(8, &[1, 2, 6]);
        let states: Vec<_> =
            case.answers().iter().filter_map(|line| line["error"]["state"].as_str().map(str::to_owned)).collect();
        assert_eq!(states, ["failed", "expired", "failed"]);
        let results = report.files[0].results.clone().expect("the file was collected");
        assert_eq!((results.answered, results.failed, results.expired, results.open()), (2, 1, 1, 2));

        case.options.max_attempts = 2;
        assert!(case.run().expect("the job continues").is_complete());
        case.assert_answers(8, &[]);
        let attempts: Vec<_> = case.answers().iter().map(|line| line["attempt"].as_u64().expect("a number")).collect();
        assert_eq!(attempts, [1, 2, 2, 1, 1, 1, 2, 1]);
        let lines = |name: &str| case.text(name).lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines("retry-00001-2.jsonl"), lines("requests-00001.jsonl")[1..3]);
        let sent: BTreeMap<u64, usize> = case
            .server
            .sent()
            .iter()
            .map(|(id, count)| (id.rsplit('-').next().expect("a row").parse().expect("a number"), *count))
            .collect();
        assert_eq!(sent.values().copied().collect::<Vec<_>>(), [1, 2, 2, 1, 1, 1, 2, 1]);
    });
}

#[test]
fn a_batch_that_is_not_known_yet_is_asked_for_again() {
    both(|target| {
        let case = Case::new(target, 2, Faults { unknown: 3, ..Faults::default() });
        assert!(case.run().expect("the job runs").is_complete());
        let case = Case::new(target, 2, Faults { unknown: 99, ..Faults::default() });
        let error = case.run().expect_err("the number of tries is limited");
        assert!(error.message().contains("does not know the batch `batch_1`"), "{error}");
        assert_eq!(case.server.state().log.iter().filter(|line| line.starts_with("GET")).count(), 5);
        sent_once(&case.server, 2);
    });
}

#[test]
fn a_batch_whose_response_was_lost_is_looked_up() {
    let case = Case::new(Target::OpenAi, 10, Faults { lost_responses: 2, failed_responses: 1, ..Faults::default() });
    assert!(case.run().expect("the job runs").is_complete());
    sent_once(&case.server, 10);
    case.assert_answers(10, &[]);
    assert!(case.server.count("GET /v1/batches") >= 2);
}

#[test]
fn without_a_list_a_lost_response_is_reported_and_nothing_is_sent_twice() {
    for (target, no_list) in [(Target::Anthropic, false), (Target::OpenAi, true)] {
        let mut case = Case::new(target, 2, Faults { lost_responses: 1, no_list, ..Faults::default() });
        let error = case.run().expect_err("the outcome is not known");
        assert!(
            error.message().contains("nobody knows whether the provider has a batch of `requests-00001.jsonl`"),
            "{error}"
        );
        assert!(error.help().expect("advice").contains("--retry-unknown"));
        case.with(|job| job.submit(&|_| {})).expect("nothing is sent");
        let report = case.report();
        assert!(report.files[0].is_unknown && report.files[0].error.is_some());
        sent_once(&case.server, 2);

        case.options.retry_unknown = true;
        assert!(case.run().expect("the file is sent again").is_complete());
        assert!(case.server.sent().values().all(|count| *count == 2));
    }
}

#[test]
fn a_refused_file_is_sent_by_the_next_call() {
    both(|target| {
        let case = Case::new(target, 2, Faults { refused: 1, ..Faults::default() });
        let error = case.run().expect_err("the file is refused");
        assert_eq!(error.status(), Some(400));
        let file = &case.report().files[0];
        assert_eq!((file.state, file.is_unknown, file.attempts), ("failed", false, 0));
        assert!(case.run().expect("the job runs").is_complete());
        sent_once(&case.server, 2);
    });
}

#[test]
fn an_upload_that_fails_is_repeated() {
    let case = Case::new(Target::OpenAi, 2, Faults { failed_uploads: 2, ..Faults::default() });
    assert!(case.run().expect("the job runs").is_complete());
    assert_eq!(case.server.count("POST /v1/files"), 3);
    sent_once(&case.server, 2);
}

#[test]
fn an_interrupted_download_is_started_again() {
    both(|target| {
        let case = Case::new(target, 4, Faults { truncated: 2, ..Faults::default() });
        assert!(case.run().expect("the job runs").is_complete());
        case.assert_answers(4, &[]);
        let case = Case::new(target, 4, Faults { truncated: 99, ..Faults::default() });
        let error = case.run().expect_err("the number of tries is limited");
        assert_eq!(error.kind(), Kind::Truncated);
        assert_eq!(case.report().files[0].state, "ended");
        case.server.state().faults.truncated = 0;
        assert!(case.run().expect("the next call continues").is_complete());
        case.assert_answers(4, &[]);
    });
}

#[test]
fn duplicates_conflicts_and_answers_to_other_requests_are_sorted_out() {
    both(|target| {
        let edit = |lines: Vec<String>| {
            let again = lines[0].clone();
            let other = lines[1].replace("answer to", "another answer to");
            // An identifier of another job, a row that was not sent, and forms of numbers that are not ours.
            let id = |text: &str| {
                let line: Json = serde_json::from_str(&lines[2]).expect("JSON");
                let id = line["custom_id"].as_str().expect("an identifier").to_owned();
                lines[2].replace(&format!("\"custom_id\":\"{id}\""), &format!("\"custom_id\":{text}"))
            };
            let job: Json = serde_json::from_str(&lines[2]).expect("JSON");
            let job = job["custom_id"].as_str().expect("an identifier").split('-').next().expect("a job").to_owned();
            let forged = [
                id("\"tffffffffffffffff-1\""),
                id(&format!("\"{job}-4\"")),
                id(&format!("\"{job}-01\"")),
                id(&format!("\"{job}-1 \"")),
                id(&format!("\"{job}-+1\"")),
                id(&format!("\"{job}--1\"")),
                id("\"\\u001b[2J\""),
                id("7"),
            ];
            let broken = ["{\"custom_id\":".to_owned(), "nothing".to_owned(), "[]".to_owned(), String::new()];
            lines.into_iter().chain([again, other]).chain(forged).chain(broken).collect()
        };
        let case = Case::new(target, 4, Faults { edit: Some(Box::new(edit)), ..Faults::default() });
        assert!(case.run().expect("the job runs").is_complete());
        case.assert_answers(4, &[]);
        assert!(!case.text("answers-00001.jsonl").contains("another answer"), "the first answer is taken");
        let results = case.report().files[0].results.clone().expect("the file was collected");
        assert_eq!((results.duplicates, results.conflicts, results.unknown, results.malformed), (1, 1, 7, 4));
        assert_eq!(results.answered, 4);
        assert!(results.notes.iter().any(|note| note.contains("row 2 has several different answers")), "{results:?}");
    });
}

#[test]
fn a_complete_answer_is_preferred_to_an_error() {
    let edit = |lines: Vec<String>| {
        let failed = |line: &String| line.replace("\"status_code\":200", "\"status_code\":500");
        [failed(&lines[0])].into_iter().chain(lines.clone()).chain([failed(&lines[1])]).collect()
    };
    let case = Case::new(Target::OpenAi, 2, Faults { edit: Some(Box::new(edit)), ..Faults::default() });
    assert!(case.run().expect("the job runs").is_complete());
    case.assert_answers(2, &[]);
    assert_eq!(case.report().files[0].results.as_ref().map(|results| results.conflicts), Some(2));
}

#[test]
fn a_line_that_is_too_long_is_left_out() {
    both(|target| {
        let edit = |mut lines: Vec<String>| {
            lines[1] = lines[1].replace("answer to", &"x".repeat(1 << 17));
            lines
        };
        let mut case = Case::new(target, 3, Faults { edit: Some(Box::new(edit)), ..Faults::default() });
        case.options.max_attempts = 1;
        case.run().expect("the job runs");
        case.assert_answers(3, &[1]);
        let results = case.report().files[0].results.clone().expect("the file was collected");
        assert_eq!((results.too_long, results.missing, results.answered), (1, 1, 2));
    });
}

#[test]
fn endless_results_end() {
    let edit = |lines: Vec<String>| {
        let line = "x".repeat(1000);
        lines.into_iter().chain(std::iter::repeat_n(line, 20_000)).collect()
    };
    let case = Case::new(Target::OpenAi, 2, Faults { edit: Some(Box::new(edit)), ..Faults::default() });
    let error = case.run().expect_err("a response has a limit");
    assert_eq!(error.kind(), Kind::ResponseTooLarge);
}

#[test]
fn a_batch_that_failed_as_a_whole_is_reported() {
    let mut case = Case::new(Target::OpenAi, 2, Faults { broken: Some("bad line".into()), ..Faults::default() });
    case.options.max_attempts = 1;
    let report = case.run().expect("the job runs");
    assert_eq!(report.files[0].status.as_deref(), Some("failed"));
    case.assert_answers(2, &[0, 1]);
    assert_eq!(case.answers()[0]["error"], json!({ "state": "failed", "message": "line 1: bad line" }));
    case.server.state().faults.broken = None;
    case.options.max_attempts = 2;
    assert!(case.run().expect("the job continues").is_complete());
    case.assert_answers(2, &[]);
}

#[test]
fn a_cancelled_batch_is_collected() {
    both(|target| {
        let case = Case::new(target, 2, Faults { polls: 1, ..Faults::default() });
        case.with(|job| job.submit(&|_| {})).expect("the file is sent");
        case.with(|job| job.cancel()).expect("the batch is cancelled");
        assert!(case.server.state().batches[0].is_cancelled);
        assert!(case.run().expect("the job continues").is_complete());
        sent_once(&case.server, 2);
    });
}

#[test]
fn the_key_is_not_sent_to_another_host() {
    both(|target| {
        let other = Server::start(Faults::default());
        let case = Case::new(target, 2, Faults { redirect: Some(other.url.replace("/v1", "")), ..Faults::default() });
        let error = case.run().expect_err("the redirect is refused");
        assert_eq!(error.kind(), Kind::RedirectRefused);
        assert!(other.state().log.is_empty());
        assert_eq!(case.report().files[0].state, "failed", "nothing was sent");
    });
}

#[test]
fn a_job_stays_at_the_address_that_it_was_sent_to() {
    let mut case = Case::new(Target::OpenAi, 2, Faults::default());
    case.with(|job| job.submit(&|_| {})).expect("the file is sent");
    let other = Server::start(Faults::default());
    case.options.run.base_url = Some(other.url.clone());
    let error = case.run().expect_err("another address");
    assert!(error.message().contains("the job was sent to the address"), "{error}");
    assert!(other.state().log.is_empty());
}

#[test]
fn only_the_prepared_requests_are_sent() {
    let secret = TempDir::new().expect("a temporary directory");
    let path: PathBuf = secret.path().join("secret");
    std::fs::write(&path, "secret").expect("writable");
    for (content, expected) in
        [("{}\n", "it has 3 bytes"), ("same", "is not a request of this job"), ("link", "cannot read")]
    {
        let case = Case::new(Target::OpenAi, 2, Faults::default());
        let requests = case.job.path("requests-00001.jsonl");
        let before = std::fs::read_to_string(&requests).expect("readable");
        std::fs::remove_file(&requests).expect("it exists");
        match content {
            "same" => std::fs::write(&requests, before.replace("custom_id", "custom-id")).expect("writable"),
            #[cfg(unix)]
            "link" => std::os::unix::fs::symlink(&path, &requests).expect("writable"),
            other => std::fs::write(&requests, other).expect("writable"),
        }
        let error = case.run().expect_err("the file was changed");
        assert!(error.message().contains(expected), "{error}");
        assert!(case.server.state().log.is_empty());
    }
}

#[test]
fn messages_of_a_provider_neither_show_the_key_nor_grow() {
    let text = format!("{KEY} {}", "y".repeat(100_000));
    let faults = Faults { failing: [0].into(), error_text: text, ..Faults::default() };
    let mut case = Case::new(Target::OpenAi, 2, faults);
    case.options.max_attempts = 1;
    case.run().expect("the job runs");
    assert!(case.answers()[0]["error"]["message"].as_str().expect("a text").len() < 2000);
    let fresh = Case::new(Target::OpenAi, 1, Faults { refused: 1, error_text: KEY.into(), ..Faults::default() });
    let error = fresh.run().expect_err("the file is refused");
    assert!(error.message().contains("refused") && !format!("{error:?}").contains(KEY), "{error}");
    assert!(!format!("{:?}", fresh.report()).contains(KEY));
}

#[test]
fn another_prompt_and_an_unfinished_job_are_refused() {
    let mut case = Case::new(Target::OpenAi, 2, Faults::default());
    case.job.prompt = Prompt::from_prompty(&GREET.replace("Hi", "Hello")).expect("the prompt is valid");
    let error = case.run().expect_err("another prompt");
    assert!(error.message().contains("the prompt has changed"), "{error}");
    for target in [Target::Vllm, Target::JsonLines] {
        let case = Case::new(target, 1, Faults::default());
        let error = case.run().expect_err("no API takes such files");
        assert!(error.message().contains("which no batch API takes"), "{error}");
    }
    let empty = TempDir::new().expect("a temporary directory");
    assert_eq!(JobInfo::read(empty.path()).expect_err("no job").kind(), Kind::InvalidBatch);
}

#[test]
fn what_answers_have_used_is_counted_once() {
    both(|target| {
        let faults = Faults { failing: [1].into(), expiring: [6].into(), ..Faults::default() };
        let mut case = Case::new(target, 8, faults);
        // The price is one dollar per token, and batches cost half.
        let row = ModelOverride { input: Some(1e6), output: Some(1e6), ..ModelOverride::default() };
        case.options.catalog.set("any-model", row);
        let run = case.run_once().expect("the job runs");
        assert_eq!((run.usage.input_tokens, run.usage.output_tokens, run.usage.unpriced), (24, 32, 0));
        assert!((run.usage.cost - 28.0).abs() < 1e-9, "{:?}", run.usage);
        let again = case.run_once().expect("the job is complete");
        assert_eq!(again.usage, run.usage);
    });
}

#[test]
fn nothing_is_sent_that_could_cost_more_than_the_limit() {
    both(|target| {
        let mut case = Case::new(target, 8, Faults { failing: [1].into(), ..Faults::default() });
        case.options.max_cost = Some(1.0);
        let unknown = case.run_once().expect("the job stops").stopped.expect("the price is not known");
        assert!(unknown.message().contains("the price of the model `any-model` is not known"), "{unknown}");
        let row = ModelOverride { input: Some(1e6), output: Some(1e6), ..ModelOverride::default() };
        case.options.catalog.set("any-model", ModelOverride { max_output: Some(10), ..row });

        // Every byte counts as a token, every answer as 10, and batches cost half.
        let bytes: u64 = case.job.prepare().expect("it is prepared").files.iter().map(|file| file.bytes).sum();
        // Anthropic's requests always have a limit.
        let limit = case.job.lines("requests-00001.jsonl")[0]["params"]["max_tokens"].as_u64().unwrap_or(10);
        let answers = 8 * limit;
        let most = (bytes + answers) as f64 / 2.0;
        case.options.max_cost = Some(most - 0.25);
        let stopped = case.run_once().expect("the job stops").stopped.expect("it is too expensive");
        assert_eq!(stopped.kind(), Kind::SpendLimit);
        assert!(stopped.message().contains(&format!("can cost up to ${most:.6}")), "{stopped}");
        assert!(case.server.state().log.is_empty(), "nothing is sent");

        case.options.max_cost = Some(most + 0.25);
        let run = case.run_once().expect("the job runs");
        assert!(run.stopped.is_none() && run.report.is_complete(), "what was used leaves room for the rest");
    });
}

#[test]
fn requests_that_failed_are_not_sent_again_beyond_the_limit_on_the_cost() {
    // The second batch costs as much as it may, because the provider says that its answers are long.
    let edit = |lines: Vec<String>| lines.into_iter().map(|line| line.replace(":3,", ":9000,")).collect();
    let faults = Faults { failing: [1].into(), edit: Some(Box::new(edit)), ..Faults::default() };
    let mut case = Case::new(Target::OpenAi, 4, faults);
    let row = ModelOverride { input: Some(1.0), output: Some(1.0), max_output: Some(10), ..ModelOverride::default() };
    case.options.catalog.set("any-model", row);
    case.options.max_cost = Some(0.001);
    let run = case.run_once().expect("the job runs");
    assert_eq!(run.stopped.map(|error| error.kind()), Some(Kind::SpendLimit));
    assert!(!run.report.is_complete());
    sent_once(&case.server, 4);
    case.options.max_cost = None;
    assert!(case.run_once().expect("the job continues").report.is_complete());
    assert_eq!(case.server.state().batches.len(), 2);
}

#[test]
fn a_batch_for_which_the_queue_has_no_room_is_sent_again_when_others_have_ended() {
    let case = Case::new(Target::OpenAi, 12, Faults { queue_full: 2, ..Faults::default() });
    let run = case.run_once().expect("the job runs");
    assert!(run.stopped.is_none() && run.report.is_complete(), "{run:?}");
    sent_once(&case.server, 12);
    assert!(run.report.files.iter().all(|file| file.attempts == 1), "it counts as one attempt: {run:?}");
    assert_eq!(case.server.count("POST /v1/files"), 3, "the files are still there");

    let case = Case::new(Target::OpenAi, 8, Faults { queue_full: 99, ..Faults::default() });
    let stopped = case.run_once().expect("the job stops").stopped.expect("there is never room");
    assert!(stopped.message().contains("too many tokens are waiting"), "{stopped}");
    assert!(stopped.help().expect("advice").contains("--max-tokens"));
    assert_eq!(case.server.state().batches.len(), 2, "it does not try forever");
    case.server.state().faults.queue_full = 0;
    assert!(case.run().expect("the next call continues").is_complete());
}

#[test]
fn requests_are_sent_again_on_request_however_often_they_failed() {
    let mut case = Case::new(Target::OpenAi, 4, Faults { failing: [1].into(), ..Faults::default() });
    case.options.max_attempts = 1;
    assert!(!case.run().expect("the job runs").is_complete());
    assert!(!case.run().expect("the job is as before").is_complete());
    assert_eq!(case.server.state().batches.len(), 1);
    case.options.retry = true;
    assert!(case.run().expect("the job continues").is_complete());
    assert_eq!(case.server.state().batches.len(), 2);
}
