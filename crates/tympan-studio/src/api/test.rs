//! Tests of prompts. Answers come from cassettes: nothing is sent, and no program runs.

use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tympan_eval::answer::{AnswerMode, AnswerOptions};
use tympan_eval::runner::{Runner, RunnerOptions, jobs};
use tympan_eval::statistics::Confidence;
use tympan_eval::{CaseResult, Verdict};
use tympan_runtime::{LoadOptions, RuntimeOptions};

use super::{blocking, checked, parse};
use crate::failure::{Answer, Failure};
use crate::project::{FileKind, RelativePath};
use crate::server::App;
use crate::stream::Events;

/// How many cases run at a time.
const THREADS: usize = 4;

/// The tests to run.
#[derive(Deserialize)]
struct TestRequest {
    /// A test file, or a prompt file with tests.
    path: String,
}

/// Runs tests, and answers with a stream of their results.
pub(crate) async fn start(State(app): State<Arc<App>>, body: Bytes) -> Answer<Response> {
    let request: TestRequest = parse(&body)?;
    let path = checked(&request.path)?;
    let place = app.places.clone().try_acquire_owned();
    let place = place.map_err(|_| Failure::busy("too many runs and tests at a time"))?;
    let load = (app.clone(), path.clone());
    let (runner, loaded) = blocking(move || load_tests(&load.0, &load.1)).await?;
    let (events, response) = Events::new(app.limits().queued_events);
    // A test of many cases takes long, and a thread for blocking work is what it needs.
    tokio::task::spawn_blocking(move || {
        let mut totals = Totals::default();
        runner.run(jobs(&loaded), THREADS, |result| {
            totals.add(&result);
            match events.send_blocking("case", case(&result)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        let _ = events.send_blocking("done", json!({"summary": totals.to_json()}));
        drop(place);
    });
    Ok(response)
}

type Loaded = (Runner, Arc<tympan_eval::case::LoadedFile>);

/// Loads tests and the prompt that they are about, both of which have to be in the project.
fn load_tests(app: &App, path: &RelativePath) -> Answer<Loaded> {
    let (kind, _) = app.project.read(path)?;
    if !matches!(kind, FileKind::Prompt | FileKind::Test) {
        return Err(Failure::invalid("the file has no tests"));
    }
    let load = LoadOptions { defer_env: true, ..LoadOptions::default() };
    let absolute = app.project.absolute(path);
    let runtime = app.options.host.runtime(&absolute, RuntimeOptions { load, ..RuntimeOptions::default() });
    let catalog = app.options.host.catalog();
    let mut options = RunnerOptions::default();
    let price = move |model: &str, usage: &_| catalog.cost(model, usage);
    options.answers = AnswerOptions::new(AnswerMode::Replay, Some(Arc::new(price)));
    let runner = Runner::new(runtime, options);
    let loaded = runner.load(&absolute)?.ok_or_else(|| Failure::invalid("the prompt file contains no tests"))?;
    let prompt = loaded.file.prompt.canonicalize()?;
    let prompt = prompt.strip_prefix(app.project.root()).ok().and_then(|path| path.to_str());
    let prompt = prompt.and_then(|path| RelativePath::parse(&path.replace('\\', "/")));
    let prompt = prompt.ok_or_else(|| Failure::forbidden("the tests are about a prompt outside of the folder"))?;
    app.project.read(&prompt)?;
    Ok((runner, loaded))
}

fn case(result: &CaseResult) -> Value {
    let failures = result.failures().map(|check| match &check.message {
        Some(message) => format!("{} (line {}): {message}", check.assertion, check.line),
        None => format!("{} (line {})", check.assertion, check.line),
    });
    let failures: Vec<_> = result.reason.iter().cloned().chain(failures).collect();
    let (tally, varies) = (result.tally(), result.varies());
    let interval = varies.then(|| tally.interval(Confidence::P95));
    json!({
        "name": result.name,
        "line": result.line,
        "verdict": result.verdict.as_str(),
        "failures": failures,
        "warnings": result.warnings,
        "rate": tally.rate(),
        "interval": interval.map(|interval| [interval.low, interval.high]),
        "cost": result.cost(),
        "time_ms": result.seconds * 1000.0,
    })
}

/// The number of cases by verdict.
#[derive(Default)]
struct Totals([u64; 4]);

const VERDICTS: [Verdict; 4] = [Verdict::Passed, Verdict::Failed, Verdict::NotRun, Verdict::Skipped];

impl Totals {
    fn add(&mut self, result: &CaseResult) {
        for (count, verdict) in self.0.iter_mut().zip(VERDICTS) {
            *count += u64::from(result.verdict == verdict);
        }
    }

    fn to_json(&self) -> Value {
        let mut json = json!({"total": self.0.iter().sum::<u64>()});
        for (count, verdict) in self.0.iter().zip(VERDICTS) {
            json[verdict.as_str()] = (*count).into();
        }
        json
    }
}
