//! Calls models directly, row by row, for providers without a batch API.
//!
//! The rows are those of a job that was prepared with messages. Each answer is appended to a journal, and counts
//! when it is on the disk; when all rows of a file are answered, the journal becomes a file of answers in the order of the
//! rows. Whatever the moment at which a process is killed, the next one calls only the rows that were not answered.

mod file;
mod journal;
pub mod rate;
mod tasks;
mod total;

use std::fmt;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use tympan_core::wire::catalog::Catalog;
use tympan_core::wire::response::Response;
use tympan_core::{Class, Error, Kind, Message, Prompt, Result};
use tympan_runtime::model::estimate;
use tympan_runtime::model::spending::{SpendLimit, max_output_tokens};
use tympan_runtime::{RunOptions, Runtime};

use self::file::{Paths, RowStates, complete, usage_of};
use self::journal::Journal;
use self::rate::RateLimits;
use self::tasks::{RowQueue, Task, Tasks};
use self::total::Totals;
use crate::columns::Bindings;
use crate::limits::{Limits, Target};
use crate::manifest::{FileState, JobFile, Manifest};
use crate::prepare::lock;
use crate::price::Price;
use crate::render::RowRenderer;
use crate::results::{AnswerLine, Reply};
use crate::rows::Source;

/// The limits of files of messages for direct calls. A file is complete when all of its rows are answered.
pub const LIMITS: Limits = Limits { requests: 10_000, bytes: 256_000_000, tokens: None };

/// The most calls at a time.
pub const MAX_CONCURRENCY: usize = 1024;

/// The number of calls in a row that find nobody, after which a job stops.
const MAX_UNREACHABLE: u32 = 20;

/// How models are called.
#[derive(Clone)]
#[non_exhaustive]
pub struct DirectOptions {
    /// Pairs of an input and the column that its values come from, as when the job was prepared.
    pub map: Vec<(String, String)>,
    /// The variant of the prompt, as when the job was prepared.
    pub variant: Option<String>,
    /// The provider, the model, the API and its address, where they are not those of the prompt.
    pub run: RunOptions,
    /// The number of calls at a time.
    pub concurrency: usize,
    /// The most requests per minute.
    pub requests_per_minute: Option<u64>,
    /// The most tokens per minute, of the requests and of the answers together.
    pub tokens_per_minute: Option<u64>,
    /// Whether rows are called again whose call failed in an earlier run.
    pub retry: bool,
    /// The prices.
    pub catalog: Catalog,
    /// The most that all calls of the job may cost, in US dollars, including those of earlier runs.
    pub max_cost: Option<f64>,
    /// A function that is called at the moments at which a process may be killed.
    #[doc(hidden)]
    pub hook: Option<DirectHook>,
}

impl Default for DirectOptions {
    fn default() -> Self {
        Self {
            map: Vec::new(),
            variant: None,
            run: RunOptions::default(),
            concurrency: 8,
            requests_per_minute: None,
            tokens_per_minute: None,
            retry: false,
            catalog: Catalog::default(),
            max_cost: None,
            hook: None,
        }
    }
}

impl fmt::Debug for DirectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectOptions")
            .field("run", &self.run)
            .field("concurrency", &self.concurrency)
            .field("requests_per_minute", &self.requests_per_minute)
            .field("tokens_per_minute", &self.tokens_per_minute)
            .field("retry", &self.retry)
            .field("max_cost", &self.max_cost)
            .finish_non_exhaustive()
    }
}

/// A function that is called at the moments at which a process may be killed.
#[doc(hidden)]
pub type DirectHook = Arc<dyn Fn(Moment<'_>) + Send + Sync>;

/// A moment at which tests kill the process.
#[doc(hidden)]
#[derive(Debug)]
pub enum Moment<'a> {
    /// Lines are about to be written to a journal.
    BeforeWrite(&'a mut File, &'a [u8]),
    /// Lines are on the disk.
    AfterWrite,
    /// All rows of a file are answered.
    BeforeComplete,
    /// The answers of a file are in order and recorded.
    AfterComplete,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct DirectProgress {
    /// The number of requests of the job.
    pub requests: u64,
    /// The number of requests that were answered, now or in earlier runs.
    pub answered: u64,
    /// The number of requests whose call failed.
    pub failed: u64,
    /// The tokens of all requests so far.
    pub input_tokens: u64,
    /// The tokens of all answers so far.
    pub output_tokens: u64,
    /// The cost of all answers whose price is known, in US dollars.
    pub cost: f64,
    /// The number of answers whose price is not known.
    pub unpriced: u64,
}

/// The end of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectSummary {
    /// How far the job is.
    pub progress: DirectProgress,
    /// The number of calls of this run.
    pub calls: u64,
    /// Why the run stopped before all rows were called.
    pub stopped: Option<Error>,
}

/// Calls the model for all rows of a prepared job that have no answer yet. The job must have been prepared with messages
/// ([`Target::JsonLines`]).
///
/// Calls of `progress` come from several threads.
///
/// # Errors
/// Returns an error if the directory has no such job, if another process works on it, if a file cannot be read or written,
/// or if there is a limit on the cost and no bound on what a call costs. What a call returns is an answer or an error of
/// its row. An error that would be the same for every row stops the run, and is in its summary.
pub fn run_directly(
    runtime: &Runtime,
    prompt: &Prompt,
    sources: &[Source],
    directory: &Path,
    options: &DirectOptions,
    progress: &(dyn Fn(DirectProgress) + Sync),
) -> Result<DirectSummary> {
    let manifest = Manifest::open(directory)?;
    let _lock = lock(directory)?;
    check_job(&manifest, prompt, directory)?;
    let files: Vec<_> = manifest.files()?.into_iter().filter(|file| file.requests > 0).collect();
    let selection = options.run.select_model(prompt);
    let price = Price { catalog: &options.catalog, provider: selection.provider, model: selection.model, share: 1.0 };
    let mut totals = Totals::default();
    let mut todo = Vec::new();
    let requests = files.iter().map(|file| file.requests).sum();
    for file in files {
        let saved = Totals::of_file(&manifest, file.number)?;
        let is_complete = file.state == FileState::Collected;
        if is_complete && !(options.retry && saved.failed > 0) {
            totals.add(&saved);
        } else {
            todo.push(file);
        }
    }
    let job = manifest.get("job")?.unwrap_or_default();
    let names = sources.first().map(Source::columns).transpose()?.unwrap_or_default();
    let bindings = Bindings::new(prompt, &names.iter().map(String::as_str).collect::<Vec<_>>(), &options.map)?;
    let columns = bindings.columns().iter().map(|bound| bound.column.clone()).collect();
    let mut run = DirectRun {
        runtime: runtime.clone(),
        renderer: RowRenderer::new(runtime, prompt, options.variant.as_deref(), bindings)?,
        prompt,
        options,
        job,
        price,
        shared: Shared { requests, ..Shared::new(options, totals) },
        progress,
    };
    let Some(first) = todo.first() else { return Ok(run.summary()) };
    if let Some(dollars) = options.max_cost {
        let spent = totals.cost + todo.iter().map(|file| run.spent(directory, file)).sum::<Result<f64>>()?;
        let limit = SpendLimit::new((dollars - spent).max(0.0), options.catalog.clone());
        if selection.provider != tympan_core::wire::echo::ECHO {
            limit.check_model(selection.provider, selection.model, max_output_tokens(prompt))?;
        }
        run.runtime = runtime.with_spend_limit(limit);
    }
    let mut queue = RowQueue::open(sources, columns, first.first_row)?;
    for mut file in todo {
        run.file(&manifest, &mut queue, directory, &mut file)?;
        if run.shared.stopped().is_some() {
            break;
        }
    }
    Ok(run.summary())
}

fn check_job(manifest: &Manifest, prompt: &Prompt, directory: &Path) -> Result<()> {
    let directory = directory.display();
    if manifest.get("target")?.as_deref() != Some(Target::JsonLines.as_str()) {
        let message = format_args!("the job in `{directory}` was not prepared for direct calls");
        return Err(Error::new(Kind::InvalidBatch, message).with_help("choose another directory"));
    }
    if manifest.get("prompt_hash")?.as_deref() != Some(prompt.definition_hash()) {
        let message = format_args!("the job in `{directory}` was prepared with another prompt");
        return Err(Error::new(Kind::InvalidBatch, message)
            .with_help("choose another directory, or use the prompt as it was when the job was prepared"));
    }
    match manifest.get("rows")? {
        Some(_) => Ok(()),
        None => {
            Err(Error::new(Kind::InvalidBatch, format_args!("the job in `{directory}` is not prepared completely"))
                .with_help("prepare it again: it continues after the last complete file"))
        }
    }
}

struct DirectRun<'a> {
    runtime: Runtime,
    renderer: RowRenderer<'a>,
    prompt: &'a Prompt,
    options: &'a DirectOptions,
    job: String,
    price: Price<'a>,
    shared: Shared,
    progress: &'a (dyn Fn(DirectProgress) + Sync),
}

/// What the threads share.
struct Shared {
    started: Instant,
    requests: u64,
    limits: Mutex<RateLimits>,
    state: Mutex<RunState>,
    /// Notified when the run stops.
    stop: Condvar,
    /// The number of calls in a row that found nobody.
    unreachable: AtomicU32,
}

struct RunState {
    totals: Totals,
    calls: u64,
    stopped: Option<Error>,
}

impl Shared {
    fn new(options: &DirectOptions, totals: Totals) -> Self {
        let limits = RateLimits::per_minute(options.requests_per_minute, options.tokens_per_minute);
        Self {
            started: Instant::now(),
            requests: 0,
            limits: Mutex::new(limits),
            state: Mutex::new(RunState { totals, calls: 0, stopped: None }),
            stop: Condvar::new(),
            unreachable: AtomicU32::new(0),
        }
    }

    fn state(&self) -> MutexGuard<'_, RunState> {
        locked(&self.state)
    }

    fn stopped(&self) -> Option<Error> {
        self.state().stopped.clone()
    }

    fn stop(&self, error: Error) {
        self.state().stopped.get_or_insert(error);
        self.stop.notify_all();
    }

    fn progress(&self, state: &RunState) -> DirectProgress {
        let Totals { answered, failed, input_tokens, output_tokens, cost, unpriced } = state.totals;
        DirectProgress { requests: self.requests, answered, failed, input_tokens, output_tokens, cost, unpriced }
    }

    /// Waits until the rate limits allow a call. Returns false if the run stops first.
    fn wait_for_turn(&self, tokens: u64) -> bool {
        let until = locked(&self.limits).take(tokens, self.started.elapsed()) + self.started.elapsed();
        let mut state = self.state();
        loop {
            let left = until.saturating_sub(self.started.elapsed());
            if state.stopped.is_some() || left.is_zero() {
                return state.stopped.is_none();
            }
            state = self.stop.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl DirectRun<'_> {
    fn summary(&self) -> DirectSummary {
        let state = self.shared.state();
        DirectSummary { progress: self.shared.progress(&state), calls: state.calls, stopped: state.stopped.clone() }
    }

    /// Returns what the answers of a file that is not complete have cost.
    fn spent(&self, directory: &Path, file: &JobFile) -> Result<f64> {
        let paths = Paths::new(directory, file);
        let mut totals = Totals::default();
        let mut add =
            |line: AnswerLine| usage_of(&line.reply).into_iter().for_each(|u| totals.add_usage(u, &self.price));
        paths.for_each_saved(&mut add)?;
        if file.state == FileState::Submitting && paths.journal.exists() {
            drop(Journal::open(&paths.journal, None, add)?);
        }
        Ok(totals.cost)
    }

    /// Calls the rows of a file, and completes it.
    fn file(&self, manifest: &Manifest, queue: &mut RowQueue, directory: &Path, file: &mut JobFile) -> Result<()> {
        let paths = Paths::new(directory, file);
        if file.state != FileState::Submitting {
            // A journal of an earlier attempt is part of the answers already.
            let _ = std::fs::remove_file(&paths.journal);
            file.state = FileState::Submitting;
            file.attempts += 1;
            manifest.update_file(file)?;
        }
        let mut states = RowStates::default();
        let mut totals = Totals::default();
        let mut add = |line: AnswerLine| {
            usage_of(&line.reply).into_iter().for_each(|usage| totals.add_usage(usage, &self.price));
            states.add(&line);
        };
        paths.for_each_saved(&mut add)?;
        let hook = self.options.hook.as_deref().map(|hook| hook as journal::Hook<'_>);
        let journal = Journal::open(&paths.journal, hook, &mut add)?;
        (totals.answered, totals.failed) = states.count(file.attempts);
        self.shared.state().totals.add(&totals);
        let tasks = Mutex::new(Tasks::new(queue, file, &manifest.exceptions(file.number)?, states));
        let threads = self.options.concurrency.clamp(1, MAX_CONCURRENCY);
        thread::scope(|scope| {
            for _ in 1..threads.min(usize::try_from(file.requests).unwrap_or(threads)) {
                scope.spawn(|| self.work(&tasks, &journal, file.attempts));
            }
            self.work(&tasks, &journal, file.attempts);
        });
        if self.shared.stopped().is_some() {
            return Ok(());
        }
        drop(journal);
        self.at(Moment::BeforeComplete);
        complete(manifest, &paths, file, &self.price)?;
        self.at(Moment::AfterComplete);
        Ok(())
    }

    fn at(&self, moment: Moment<'_>) {
        if let Some(hook) = &self.options.hook {
            hook(moment);
        }
    }

    /// Does the work of one thread.
    fn work(&self, tasks: &Mutex<Tasks<'_>>, journal: &Journal<'_>, attempt: u64) {
        while self.shared.stopped().is_none() {
            let next = locked(tasks).next();
            let done = match next {
                Ok(Some(task)) => self.call(&task, journal, attempt),
                Ok(None) => return,
                Err(error) => Err(error),
            };
            if let Err(error) = done {
                return self.shared.stop(error);
            }
        }
    }

    /// Calls the model for a row, and saves its answer.
    fn call(&self, task: &Task, journal: &Journal<'_>, attempt: u64) -> Result<()> {
        let messages = task.messages(&self.renderer)?;
        let tokens = self.tokens(&messages);
        if !self.shared.wait_for_turn(tokens) {
            return Ok(());
        }
        let answered = self.runtime.respond(self.prompt, &messages, &self.options.run);
        // A call that the limit on the cost refuses is not sent.
        if !answered.as_ref().is_err_and(|error| error.kind() == Kind::SpendLimit) {
            self.shared.state().calls += 1;
        }
        let reply = match answered {
            Ok(response) => {
                self.shared.unreachable.store(0, Ordering::Relaxed);
                Reply::Response(Box::new(response))
            }
            Err(error) => {
                self.check_job_goes_on(&error)?;
                Reply::Error { message: error.to_string(), code: Some(error.code().to_owned()) }
            }
        };
        if let Reply::Response(response) = &reply {
            locked(&self.shared.limits).correct(tokens, used(response, tokens));
        }
        let custom_id = format!("{}-{}", self.job, task.row);
        let line = AnswerLine { row: task.row, custom_id, attempt, reply };
        journal.append((line.to_json().to_string() + "\n").as_bytes())?;
        let mut state = self.shared.state();
        match line.is_answer() {
            true => state.totals.answered += 1,
            false => state.totals.failed += 1,
        }
        usage_of(&line.reply).into_iter().for_each(|usage| state.totals.add_usage(usage, &self.price));
        let progress = self.shared.progress(&state);
        drop(state);
        (self.progress)(progress);
        Ok(())
    }

    /// Returns the tokens of a call for the rate limit: those of the messages, and the most or the usual for the answer.
    fn tokens(&self, messages: &[Message]) -> u64 {
        if self.options.tokens_per_minute.is_none() {
            return 0;
        }
        let model = self.price.model.unwrap_or_default();
        estimate::count(self.prompt, model, messages).0.total_tokens
    }

    /// Returns the error if it would be the same for every row.
    fn check_job_goes_on(&self, error: &Error) -> Result<()> {
        let is_unreachable = error.kind().class() == Class::Connection;
        let misses = match is_unreachable {
            true => self.shared.unreachable.fetch_add(1, Ordering::Relaxed) + 1,
            false => 0,
        };
        let most = MAX_UNREACHABLE.max(u32::try_from(self.options.concurrency * 2).unwrap_or(u32::MAX));
        match stops_job(error) || misses >= most {
            true => Err(error.clone()),
            false => Ok(()),
        }
    }
}

/// Returns whether an error is about the job and not about a row.
fn stops_job(error: &Error) -> bool {
    let is_about_job = matches!(
        error.kind(),
        Kind::SpendLimit
            | Kind::MissingKey
            | Kind::CredentialFailed
            | Kind::UntrustedEndpoint
            | Kind::UnsupportedApi
            | Kind::EnvNotSet
            | Kind::EnvNotAllowed
            | Kind::NotRegistered
            | Kind::InvalidCassette
            | Kind::RedirectRefused
            | Kind::Cancelled
            | Kind::Internal
    );
    is_about_job || matches!(error.status(), Some(401..=404))
}

/// Returns the tokens that a call has used. Without a count, they are those that were expected.
fn used(response: &Response, expected: u64) -> u64 {
    response.usage.as_ref().map_or(expected, |usage| usage.input_tokens.saturating_add(usage.output_tokens))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
