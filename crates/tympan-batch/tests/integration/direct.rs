//! Models called directly: answers, errors, limits, and rows that are never called twice.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::future::ready;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use serde_json::{Value as Json, json};
use tempfile::TempDir;
use tympan_batch::direct::{DirectOptions, DirectSummary, run_directly};
use tympan_batch::limits::{Limits, Target};
use tympan_batch::manifest::{FileState, Manifest};
use tympan_batch::rows::Source;
use tympan_core::wire::catalog::{Catalog, ModelOverride};
use tympan_core::wire::response::{Answer, FinishReason, Output, Response, Usage};
use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::{ModelCall, Provider, Reply, Runtime};

use crate::support::{Job, fixture, runtime};

const SOURCE: &str = "---\nmodel: {id: m, provider: test, options: {maxOutputTokens: 10}}\ninputs:\n  - {name: name, kind: string, required: true}\n---\nuser:\n{{ name }}";

/// What the provider answers to a row, by its text.
type Answers = dyn Fn(&str) -> Result<String> + Send + Sync;

/// A provider that notes every call in a file, so that another process can read it.
struct Noting {
    calls: PathBuf,
    answers: Box<Answers>,
}

impl Provider for Noting {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> Pin<Box<dyn Future<Output = Result<Reply>> + Send + 'a>> {
        let text = call.messages.last().map(|message| message.to_text()).unwrap_or_default();
        let mut file = OpenOptions::new().create(true).append(true).open(&self.calls).expect("writable");
        file.write_all(format!("{text}\n").as_bytes()).expect("writable");
        Box::pin(ready((self.answers)(&text).map(|text| Reply::Whole(response(text)))))
    }
}

fn response(text: String) -> Response {
    let usage = Usage { input_tokens: 5, output_tokens: 2, total_tokens: 7, ..Usage::default() };
    let answer = Answer { text, ..Answer::default() };
    Response {
        output: Output::Answer(answer),
        finish_reason: Some(FinishReason::Stop),
        usage: Some(usage),
        ..Response::default()
    }
}

/// A job of named rows, in a directory that several processes can share.
pub(crate) struct Direct {
    pub(crate) directory: PathBuf,
    pub(crate) options: DirectOptions,
    prompt: Prompt,
    sources: Vec<Source>,
}

impl Direct {
    /// Prepares a job with this many rows, three in a file.
    pub(crate) fn new(directory: &Path, rows: usize) -> Self {
        let path = directory.join("rows.csv");
        if !path.exists() {
            let text = (0..rows).map(|row| format!("n{row}\n")).collect::<String>();
            std::fs::write(&path, format!("name\n{text}")).expect("writable");
        }
        let prompt = Prompt::from_prompty(SOURCE).expect("the prompt is valid");
        let sources = vec![Source::new(path, None).expect("a known ending")];
        let mut job = tympan_batch::prepare::PrepareOptions::new(Target::JsonLines);
        job.limits = Some(Limits { requests: 3, bytes: u64::MAX, tokens: None });
        let at = directory.join("job");
        tympan_batch::prepare::prepare(&runtime(), &prompt, &sources, &at, &job, &|_| {}).expect("prepared");
        let mut options = DirectOptions::default();
        options.concurrency = 1;
        Self { directory: directory.to_owned(), options, prompt, sources }
    }

    fn runtime(&self, answers: Box<Answers>) -> Runtime {
        let runtime = runtime();
        runtime.register_provider("test", Noting { calls: self.directory.join("calls.txt"), answers });
        runtime
    }

    pub(crate) fn run_with(&self, answers: Box<Answers>) -> Result<DirectSummary> {
        let at = self.directory.join("job");
        run_directly(&self.runtime(answers), &self.prompt, &self.sources, &at, &self.options, &|_| {})
    }

    pub(crate) fn run(&self) -> DirectSummary {
        self.run_with(Box::new(|text| Ok(format!("hello {text}")))).expect("the job runs")
    }

    /// Returns how often each row was called.
    pub(crate) fn calls(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.directory.join("calls.txt")).unwrap_or_default();
        let mut calls = BTreeMap::new();
        text.lines().for_each(|line| *calls.entry(line.to_owned()).or_default() += 1);
        calls
    }

    pub(crate) fn answers(&self) -> Vec<Json> {
        let files = Manifest::open(&self.directory.join("job")).and_then(|manifest| manifest.files()).expect("files");
        let names = files.iter().map(|file| format!("job/answers-{:05}.jsonl", file.number));
        let texts = names.map(|name| std::fs::read_to_string(self.directory.join(name)).unwrap_or_default());
        let texts: String = texts.collect();
        texts.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }

    fn journals(&self) -> usize {
        let entries = std::fs::read_dir(self.directory.join("job")).expect("readable");
        entries.filter(|e| e.as_ref().is_ok_and(|e| e.path().extension().is_some_and(|x| x == "journal"))).count()
    }
}

fn directory() -> TempDir {
    TempDir::new().expect("a temporary directory")
}

#[test]
fn every_row_is_called_once_and_answers_are_in_order() {
    for concurrency in [1, 4, 64] {
        let directory = directory();
        let mut job = Direct::new(directory.path(), 20);
        job.options.concurrency = concurrency;
        let summary = job.run();
        assert_eq!((summary.calls, summary.progress.answered, summary.progress.failed), (20, 20, 0));
        assert_eq!((summary.progress.input_tokens, summary.progress.output_tokens), (100, 40));
        let answers = job.answers();
        let rows: Vec<_> = answers.iter().map(|line| line["row"].as_u64().expect("a row")).collect();
        assert_eq!(rows, (0..20).collect::<Vec<_>>());
        assert_eq!(answers[7]["response"]["output"]["answer"]["text"], "hello n7");
        assert!(job.calls().values().all(|calls| *calls == 1), "{:?}", job.calls());
        assert_eq!(job.journals(), 0);
        let again = job.run();
        assert_eq!((again.calls, again.progress), (0, summary.progress), "nothing is left to do");
    }
}

#[test]
fn failed_rows_are_called_again_only_on_request() {
    let directory = directory();
    let mut job = Direct::new(directory.path(), 7);
    let fails = |text: &str| match text {
        "n2" | "n5" => Err(Error::new(Kind::Provider, "overloaded").with_status(500)),
        other => Ok(other.to_owned()),
    };
    let first = job.run_with(Box::new(fails)).expect("the job runs");
    assert_eq!((first.calls, first.progress.answered, first.progress.failed), (7, 5, 2));
    let manifest = Manifest::open(&job.directory.join("job")).expect("a manifest");
    let failed: Vec<_> = (1..=3).flat_map(|file| manifest.exceptions(file).expect("readable")).collect();
    assert_eq!(
        failed.iter().map(|row| (row.row, row.state.as_str())).collect::<Vec<_>>(),
        [(2, "failed"), (5, "failed")]
    );
    assert_eq!(job.run().calls, 0);
    job.options.retry = true;
    let second = job.run();
    assert_eq!((second.calls, second.progress.answered, second.progress.failed), (2, 7, 0));
    assert_eq!(job.calls()["n2"], 2);
    let lines: Vec<_> = job.answers().into_iter().filter(|line| line["row"] == 2).collect();
    assert_eq!(lines.iter().map(|line| line["attempt"].as_u64()).collect::<Vec<_>>(), [Some(1), Some(2)]);
    assert!(manifest.exceptions(1).expect("readable").is_empty());
    assert!(manifest.files().expect("files").iter().all(|file| file.state == FileState::Collected));
    assert_eq!(job.run().calls, 0, "rows that were answered are not called again");
}

#[test]
fn an_error_that_every_row_would_have_stops_the_job() {
    let kinds = [
        Error::new(Kind::MissingKey, "none"),
        Error::new(Kind::Provider, "unauthorized").with_status(401),
        Error::new(Kind::Provider, "no such model").with_status(404),
    ];
    for error in kinds {
        let directory = directory();
        let job = Direct::new(directory.path(), 5);
        let stop = error.clone();
        let summary = job.run_with(Box::new(move |_| Err(stop.clone()))).expect("the job runs");
        assert_eq!((summary.calls, summary.progress.failed), (1, 0));
        assert_eq!(summary.stopped.expect("a reason").to_string(), error.to_string());
        assert_eq!(job.run().calls, 5, "no row was given up");
    }
}

#[test]
fn a_provider_that_is_down_stops_the_job_after_a_while() {
    let directory = directory();
    let job = Direct::new(directory.path(), 60);
    let down = |_: &str| Err(Error::new(Kind::Unreachable, "nobody there"));
    let summary = job.run_with(Box::new(down)).expect("the job runs");
    assert_eq!((summary.calls, summary.progress.failed), (20, 19));
    assert_eq!(summary.stopped.map(|error| error.kind()), Some(Kind::Unreachable));
}

#[test]
fn the_cost_never_exceeds_its_limit_in_all_runs_together() {
    let directory = directory();
    let mut job = Direct::new(directory.path(), 12);
    // A call costs 7 millionths of a dollar. The most that it can cost is far more, because bytes count as tokens.
    let mut catalog = Catalog::default();
    let price = ModelOverride { input: Some(1.0), output: Some(1.0), ..ModelOverride::default() };
    catalog.set("m", price);
    job.options.catalog = catalog;
    job.options.max_cost = Some(0.001_1);
    let first = job.run();
    assert!(first.calls > 2 && first.calls < 12, "{}", first.calls);
    assert_eq!(first.stopped.as_ref().map(Error::kind), Some(Kind::SpendLimit));
    assert!(first.progress.cost <= 0.001_1);
    assert_eq!(job.run().calls, 0, "what was spent before counts");
    job.options.max_cost = Some(1.0);
    let rest = job.run();
    assert_eq!((rest.calls + first.calls, rest.progress.answered), (12, 12));
    assert!((rest.progress.cost - 12.0 * 7e-6).abs() < 1e-12, "{}", rest.progress.cost);
    assert!(job.calls().values().all(|calls| *calls == 1), "{:?}", job.calls());

    let mut unbounded = Direct::new(directory.path(), 12);
    unbounded.options.max_cost = Some(1.0);
    let error = unbounded.run_with(Box::new(|_| Ok(String::new())));
    assert!(error.is_ok(), "nothing is left to do");
    let other = TempDir::new().expect("a temporary directory");
    let mut unpriced = Direct::new(other.path(), 1);
    unpriced.options.max_cost = Some(1.0);
    let error = unpriced.run_with(Box::new(|_| Ok(String::new()))).expect_err("no price is no bound");
    assert_eq!((error.kind(), unpriced.calls().len()), (Kind::SpendLimit, 0));
}

#[test]
fn the_provider_echo_needs_no_key() {
    let mut job = Job::new(
        Prompt::from_prompty(&std::fs::read_to_string(fixture("ticket.prompty")).expect("readable")).expect("valid"),
        &[&fixture("tickets.csv")],
    );
    job.options.target = Target::JsonLines;
    job.options.run.provider = Some("echo".to_owned());
    job.prepare().expect("prepared");
    let mut options = DirectOptions::default();
    options.run.provider = Some("echo".to_owned());
    options.max_cost = Some(0.01);
    let directory = job.directory.path();
    let summary = run_directly(&runtime(), &job.prompt, &job.sources, directory, &options, &|_| {}).expect("it runs");
    assert_eq!((summary.calls, summary.progress.answered), (4, 4));
    let output = job.path("results.jsonl");
    let results = tympan_batch::results::ResultsOptions::for_path(&output).expect("a known ending");
    let written = tympan_batch::results::write_results(
        &runtime(),
        &job.prompt,
        &job.sources,
        directory,
        &output,
        &results,
        &|_| {},
    );
    assert_eq!(written.map(|summary| (summary.rows, summary.answered, summary.rejected)).expect("written"), (6, 4, 2));
    assert_eq!(job.lines("results.jsonl")[0]["category"], "billing");
}

#[test]
fn a_job_that_was_prepared_for_a_batch_api_is_not_called_directly() {
    let job = Job::new(crate::support::ticket(), &[&fixture("tickets.csv")]);
    job.prepare().expect("prepared");
    let options = DirectOptions::default();
    let error = run_directly(&runtime(), &job.prompt, &job.sources, job.directory.path(), &options, &|_| {});
    assert!(error.expect_err("another kind of job").to_string().contains("was not prepared for direct calls"));
}

#[test]
fn progress_counts_rows_tokens_and_cost() {
    let directory = directory();
    let job = Direct::new(directory.path(), 5);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = |progress: tympan_batch::direct::DirectProgress| {
        seen.lock().expect("no panic").push((progress.answered, progress.requests, progress.input_tokens));
    };
    let runtime = job.runtime(Box::new(|_| Ok(json!({}).to_string())));
    run_directly(&runtime, &job.prompt, &job.sources, &job.directory.join("job"), &job.options, &note)
        .expect("it runs");
    let seen = seen.lock().expect("no panic");
    assert_eq!(*seen, (1..=5).map(|row| (row, 5, row * 5)).collect::<Vec<_>>());
}
