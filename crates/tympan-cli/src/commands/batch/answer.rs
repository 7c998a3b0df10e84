//! Answers the rows of a job: through the provider's batch API, or with one call per row.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressStyle};
use tympan::{Error, Prompt, RunOptions, Runtime};
use tympan_batch::direct::{DirectOptions, DirectProgress, DirectSummary, LIMITS, run_directly};
use tympan_batch::job::{Flaws, JobApi, JobOptions, JobProgress, JobRun, Phase, run_batch_job};
use tympan_batch::limits::Target;
use tympan_batch::plan::BATCH_WINDOW;
use tympan_batch::prepare::{PrepareOptions, Prepared, prepare};
use tympan_batch::rows::Source;
use tympan_batch::way::{Reason, Way, WayChoice};

use super::prepare::{limits, progress_bar};
use super::run::{about, run_options};
use super::{plan, rows};
use crate::args::BatchRunArgs;
use crate::commands::count::grouped;
use crate::escape::visible_line;
use crate::project::Project;
use crate::report::Failure;
use crate::{output, prices, report};

/// What happened before the results are written.
pub(super) struct Answered {
    pub(super) prepared: Prepared,
    pub(super) answers: Answers,
}

/// How the rows were answered.
pub(super) enum Answers {
    Batch(Box<JobRun>),
    Direct(DirectSummary),
}

impl Answered {
    pub(super) fn way(&self) -> Way {
        match &self.answers {
            Answers::Batch(_) => Way::Batch,
            Answers::Direct(_) => Way::Direct,
        }
    }

    /// Returns why rows were left, if any were.
    pub(super) fn stopped(&self) -> Option<&Error> {
        match &self.answers {
            Answers::Batch(run) => run.stopped.as_ref(),
            Answers::Direct(direct) => direct.stopped.as_ref(),
        }
    }

    /// Returns the cost, if all prices are known.
    pub(super) fn cost(&self) -> Option<f64> {
        match &self.answers {
            Answers::Batch(run) => (run.usage.unpriced == 0).then_some(run.usage.cost),
            Answers::Direct(direct) => (direct.progress.unpriced == 0).then_some(direct.progress.cost),
        }
    }

    /// Returns what was wrong with the results of batches.
    pub(super) fn flaws(&self) -> Flaws {
        match &self.answers {
            Answers::Batch(run) => run.flaws,
            Answers::Direct(_) => Flaws::default(),
        }
    }

    /// Returns the number of direct calls of this run.
    pub(super) fn calls(&self) -> u64 {
        match &self.answers {
            Answers::Batch(_) => 0,
            Answers::Direct(direct) => direct.calls,
        }
    }

    /// Returns the number of batches of the whole job.
    pub(super) fn batches(&self) -> u64 {
        match &self.answers {
            Answers::Batch(run) => run.report.files.iter().map(|file| file.attempts).sum(),
            Answers::Direct(_) => 0,
        }
    }

    /// Describes the work for people.
    pub(super) fn shown(&self) -> String {
        match &self.answers {
            Answers::Batch(run) => {
                let batches = self.batches();
                let noun = if batches == 1 { "batch" } else { "batches" };
                let tokens = run.usage.input_tokens.saturating_add(run.usage.output_tokens);
                format!("{} {noun}, {} in the whole job", grouped(batches), used(tokens, self.cost(), 0))
            }
            Answers::Direct(direct) => {
                let noun = if direct.calls == 1 { "call" } else { "calls" };
                format!("{} {noun}, {} in the whole job", grouped(direct.calls), used_directly(&direct.progress))
            }
        }
    }
}

/// Chooses the way in which the rows are answered.
///
/// # Errors
/// Returns an error if the requested way is impossible.
pub(super) fn choose(
    args: &BatchRunArgs,
    runtime: &Runtime,
    prompt: &Prompt,
    directory: &Path,
) -> Result<WayChoice, Failure> {
    let is_direct = args.way.direct || args.record.is_some() || args.replay.is_some();
    let requested = match (args.way.batch, is_direct) {
        (true, _) => Some(Way::Batch),
        (_, true) => Some(Way::Direct),
        _ => None,
    };
    let choice = WayChoice::new(runtime, prompt, &run_options(args), directory, requested);
    Ok(choice.map_err(|error| about(error, prompt))?)
}

/// Answers the rows.
pub(super) fn answer(
    args: &BatchRunArgs,
    runtime: &Runtime,
    prompt: &Prompt,
    sources: &[Source],
    directory: &Path,
    quiet: bool,
) -> Result<Answered, Failure> {
    let choice = choose(args, runtime, prompt, directory)?;
    let job = Job { args, runtime, prompt, sources, directory, quiet };
    match (choice.way, choice.target) {
        (Way::Batch, Some(target)) => job.send(target),
        _ => {
            if !quiet && let Some(why) = why_direct(&choice) {
                report::warn_plainly("direct_calls", why);
            }
            job.call()
        }
    }
}

/// Returns why a model is called directly whose provider has a batch API, or might have one.
pub(super) fn why_direct(choice: &WayChoice) -> Option<&'static str> {
    match choice.reason {
        Reason::OtherAddress => Some(
            "the model is called row by row, because the address is not the provider's own; if it has a batch API, use it \
             with `--batch`, or hide this warning with `--direct`",
        ),
        Reason::OwnDeployments => Some(
            "the model is called row by row; if it was deployed for Azure's batch API, use it with `--batch`, or hide this \
             warning with `--direct`",
        ),
        _ => None,
    }
}

/// The work of a command.
struct Job<'a> {
    args: &'a BatchRunArgs,
    runtime: &'a Runtime,
    prompt: &'a Prompt,
    sources: &'a [Source],
    directory: &'a Path,
    quiet: bool,
}

impl Job<'_> {
    fn prepare_options(&self, target: Target) -> PrepareOptions {
        let mut options = PrepareOptions::new(target);
        options.map.clone_from(&self.args.rows.map);
        options.variant.clone_from(&self.args.prompt.variant);
        options.run = rows::run_options(&self.args.prompt);
        options.max_rejects = self.args.max_rejects;
        options
    }

    fn prepare(&self, options: &PrepareOptions) -> Result<Prepared, Failure> {
        let Self { runtime, prompt, sources, directory, quiet, .. } = *self;
        let bar = progress_bar(sources, quiet);
        let prepared = prepare(runtime, prompt, sources, directory, options, &|now| bar.set_position(now.rows));
        bar.finish_and_clear();
        prepared.map_err(|error| about(error, prompt).into())
    }

    /// Sends the rows to the provider's batch API, and waits for the answers.
    fn send(&self, target: Target) -> Result<Answered, Failure> {
        let Self { args, runtime, prompt, directory, quiet, .. } = *self;
        let run = run_options(args);
        // Without a key, nothing needs to be prepared.
        JobApi::new(runtime, prompt, &run).map_err(|error| about(error, prompt))?;
        let mut prepared = self.prepare_options(target);
        prepared.limits = Some(limits(&args.files, target, run.select_model(prompt).provider));
        prepared.cache_order = args.files.cache_order;
        let prepared = self.prepare(&prepared)?;

        let mut options = JobOptions::default();
        options.run = RunOptions { base_url: args.base_url.clone(), ..RunOptions::default() };
        options.max_attempts = args.way.attempts;
        options.retry = args.retry;
        options.retry_unknown = args.way.retry_unknown;
        options.catalog = Project::catalog()?;
        options.max_cost = args.max_cost;
        let requests: u64 = prepared.files.iter().map(|file| file.requests).sum();
        let shown = Waiting::new(requests, directory, quiet || args.json);
        let answered = run_batch_job(runtime, prompt, directory, &options, &|now| shown.update(&now));
        shown.bar.finish_and_clear();
        let answered = answered.map_err(|error| about(error, prompt))?;
        // An error before anything was sent leaves nothing to write.
        match answered.stopped {
            Some(error) if answered.report.files.iter().all(|file| file.attempts == 0) => Err(error.into()),
            _ => Ok(Answered { prepared, answers: Answers::Batch(Box::new(answered)) }),
        }
    }

    /// Calls the model row by row.
    fn call(&self) -> Result<Answered, Failure> {
        let Self { args, runtime, prompt, sources, directory, quiet } = *self;
        let mut job = self.prepare_options(Target::JsonLines);
        job.limits = Some(LIMITS);
        let prepared = self.prepare(&job)?;

        let mut options = DirectOptions::default();
        options.map = job.map;
        options.variant = job.variant;
        options.run = run_options(args);
        options.concurrency = usize::from(args.rates.concurrency);
        options.requests_per_minute = args.rates.requests_per_minute;
        options.tokens_per_minute = args.rates.tokens_per_minute;
        options.retry = args.retry;
        options.catalog = Project::catalog()?;
        options.max_cost = args.max_cost;
        let requests = prepared.files.iter().map(|file| file.requests).sum();
        let bar = call_bar(requests, quiet);
        let direct = run_directly(runtime, prompt, sources, directory, &options, &|progress| show(&bar, progress));
        bar.finish_and_clear();
        let direct = direct.map_err(|error| about(error, prompt))?;
        Ok(Answered { prepared, answers: Answers::Direct(direct) })
    }
}

/// Shows how far the batches are: a bar on a terminal, and otherwise a line whenever a batch has ended.
struct Waiting<'a> {
    bar: ProgressBar,
    directory: &'a Path,
    is_quiet: bool,
    /// What the last line was about.
    last: std::cell::Cell<Option<(Phase, u64)>>,
}

impl<'a> Waiting<'a> {
    fn new(requests: u64, directory: &'a Path, is_quiet: bool) -> Self {
        let last = std::cell::Cell::new(None);
        if is_quiet || !io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), directory, is_quiet, last };
        }
        let bar = ProgressBar::new(requests);
        let template = "{prefix} {bar:24} {human_pos} of {human_len} rows  {msg}  {elapsed}";
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, directory, is_quiet, last }
    }

    fn update(&self, now: &JobProgress) {
        if self.is_quiet {
            return;
        }
        let (before, key) = (self.last.get(), (now.phase, now.files_done));
        self.last.set(Some(key));
        let begins_to_wait = now.phase == Phase::Wait && before.is_none_or(|(phase, _)| phase != Phase::Wait);
        if begins_to_wait && now.files_done < now.files {
            let note = waiting_note(now, self.directory);
            self.bar.suspend(|| output::print_error(&note));
        } else if self.bar.is_hidden() && now.phase == Phase::Wait && before != Some(key) {
            output::print_error(&format!("{} of {} batches have ended\n", grouped(now.files_done), grouped(now.files)));
        }
        self.bar.set_prefix(match now.phase {
            Phase::Submit => "sending",
            Phase::Wait => "waiting",
            _ => "collecting",
        });
        self.bar.set_length(now.requests);
        self.bar.set_position(now.requests_done);
        self.bar.set_message(message(now));
    }
}

/// Returns what people should know who begin to wait.
fn waiting_note(now: &JobProgress, directory: &Path) -> String {
    let requests = if now.requests == 1 { "request" } else { "requests" };
    let directory = visible_line(&directory.display().to_string());
    format!(
        "{} {requests} sent to the provider's batch API, which can take up to 24 hours. If you interrupt the command, the batches \
         go on, and it continues when you call it again. `tympan batch cancel {directory}` ends them; with `--direct` and \
         another `--job`, the model is called at once\n",
        grouped(now.requests)
    )
}

/// Returns the batches, the tokens, the cost and the time left, as far as they are known.
fn message(now: &JobProgress) -> String {
    let mut parts = vec![format!("{} of {} batches", grouped(now.files_done), grouped(now.files))];
    let tokens = now.usage.input_tokens.saturating_add(now.usage.output_tokens);
    if tokens > 0 {
        parts.push(used(tokens, (now.usage.unpriced == 0).then_some(now.usage.cost), 0));
    }
    if let Some(sent) = now.last_sent {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let sent = Duration::from_secs(u64::try_from(sent).unwrap_or_default());
        let left = (sent + BATCH_WINDOW).saturating_sub(since);
        parts.push(format!("at most {} left", plan::duration(left.as_secs_f64() / 3600.0)));
    }
    parts.join(", ")
}

fn call_bar(requests: u64, quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(requests);
    let template = "{bar:24} {human_pos} of {human_len} rows  {per_sec}  {msg}  {eta} left";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn show(bar: &ProgressBar, progress: DirectProgress) {
    if bar.is_hidden() {
        return;
    }
    bar.set_position(progress.answered + progress.failed);
    bar.set_message(used_directly(&progress));
}

fn used_directly(progress: &DirectProgress) -> String {
    let tokens = progress.input_tokens.saturating_add(progress.output_tokens);
    used(tokens, (progress.unpriced == 0).then_some(progress.cost), progress.failed)
}

/// Returns the tokens, the cost and the failures for people.
fn used(tokens: u64, cost: Option<f64>, failed: u64) -> String {
    let cost = match cost {
        Some(cost) if cost > 0.0 => format!(", {}", prices::shown(cost)),
        _ => String::new(),
    };
    let failed = if failed > 0 { format!(", {} failed", grouped(failed)) } else { String::new() };
    format!("{} tokens{cost}{failed}", grouped(tokens))
}
