//! `tympan test`: runs the tests of prompts.

mod against;
pub(super) mod comparison;
pub(super) mod cost;
mod import;
mod reports;
mod terminal;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tympan::file::walk::unreadable;
use tympan::model::spending::SpendLimit;
use tympan::{Runtime, RuntimeOptions};
use tympan_eval::answer::{AnswerMode, AnswerOptions};
use tympan_eval::baseline::Comparer;
use tympan_eval::case::LoadedFile;
use tympan_eval::file::TestFile;
use tympan_eval::log::{FinishedCases, RunLog};
use tympan_eval::report::Summary;
use tympan_eval::runner::{Job, Runner, RunnerOptions, broken, jobs};
use tympan_eval::{CaseResult, Verdict};

use self::reports::Reports;
use super::check::targets::{Target, TargetKind, Targets};
use super::check::watch;
use super::diff;
use crate::args::{TestArgs, TestFormat};
use crate::project::Project;
use crate::report::Failure;
use crate::{config, prompt_file};

/// The maximum number of cases that are counted for the progress bar, which takes time of its own.
const MAX_COUNTED: usize = 10_000;

/// How many models are called at a time, if the user does not say.
const CALLS_AT_A_TIME: usize = 8;

pub(super) fn run(args: &TestArgs, quiet: bool) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.import.import {
        return import::run(path, args, quiet);
    }
    if args.selection.watch {
        let reports = args.output.report.iter().map(|(_, path)| path).chain(&args.comparison.save);
        let outputs: Vec<_> = reports.map(PathBuf::as_path).collect();
        return watch::repeat(&args.paths, &args.settings, &outputs, quiet, &mut || test(args, quiet));
    }
    test(args, quiet)
}

/// Runs all cases once.
fn test(args: &TestArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let quiet = quiet || args.output.format() == TestFormat::JsonLines;
    let project = Project::find(&args.settings)?;
    let runner = runner(args, &project, quiet)?;
    let files = load_files(args, &project, &runner);
    if files.is_empty() {
        let message = "no tests found: add `NAME.test.yaml` beside a prompt file, or the key `tests` to it";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.answers.cost {
        return cost::run(args, &files, &runner);
    }
    if args.answers.max_cost.is_some() {
        cost::check_bounds(args, &files, &runner)?;
    }
    let mut session = Session::start(args, &project, quiet)?;
    let mut changed = Vec::new();
    if let Some(revision) = &args.comparison.against {
        let before = against::run(args, revision, &files, &runner)?;
        session.comparer = Some(before.comparer);
        changed = before.changed;
    }
    let finished = session.finished.take();
    let selected = all_jobs(&files).filter_map(|job| select(args, finished.as_ref(), job));
    session.reports.set_total(|| {
        let cases =
            all_jobs(&files).filter(|job| is_selected(args, finished.as_ref(), job)).take(MAX_COUNTED + 1).count();
        (cases <= MAX_COUNTED).then_some(cases)
    });
    let (log, log_failure) = (session.log.take(), Mutex::new(None));
    // A case that is finished is in the log at once, even if a report waits for an earlier one.
    let write = |result: &CaseResult| {
        let is_known = |finished: &FinishedCases| finished.contains(&result.id, &result.hash);
        let is_new = !(args.selection.resume && finished.as_ref().is_some_and(is_known));
        if let Some(Err(error)) = log.as_ref().filter(|_| is_new).map(|log| log.write(result)) {
            *locked(&log_failure) = Some(error);
        }
    };
    let mut failure = None;
    runner.run_with(selected, threads(args), write, |result| {
        let written = locked(&log_failure).take().map_or(Ok(()), |error| Err(Failure::from(error)));
        match written.and_then(|()| session.add(&result)) {
            Ok(flow) => flow,
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match failure {
        Some(failure) => Err(failure),
        None => {
            let status = session.finish(args, &runner)?;
            if matches!(args.output.format(), TestFormat::Full | TestFormat::Concise) {
                diff::since(&changed, args, &project, quiet)?;
            }
            Ok(status)
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the cases of all files.
fn all_jobs(files: &[FileOrResult]) -> impl Iterator<Item = Job> + Send {
    files.iter().flat_map(|file| match file {
        Ok(loaded) => Box::new(jobs(loaded)) as Box<dyn Iterator<Item = Job> + Send>,
        Err(broken) => Box::new(std::iter::once(Job::Finished(broken.clone()))),
    })
}

/// Creates a runner with the options of the command line.
fn runner(args: &TestArgs, project: &Project, quiet: bool) -> Result<Runner, Failure> {
    let mut options = args.env.over(args.model.endpoint.over(RuntimeOptions::default()));
    // That of the user is left out: a test has the same verdict on every machine.
    if let Some(tools) = &project.settings.policy.tools {
        options.tool_policy = options.tool_policy.tightened(tools);
    }
    let calls_models = args.answers.live || args.answers.record;
    // Prompts are rendered without the variables that only a call needs.
    let options = if calls_models { options } else { prompt_file::deferred(options) };
    let runtime = match calls_models {
        true => prompt_file::runtime(Path::new("."), options, quiet),
        false => Runtime::new(options),
    };
    config::register_credentials(&runtime, args.model.credentials.credential_command.as_deref())?;
    let mode = match (args.answers.record, args.answers.live) {
        (true, _) => AnswerMode::Record,
        (_, true) => AnswerMode::Live,
        _ => AnswerMode::Replay,
    };
    let mut options = RunnerOptions::default();
    options.answers = AnswerOptions::new(mode, Some(cost::price(project)));
    options.answers.run = args.model.options();
    options.allow_programs = args.answers.allow_programs;
    options.accept = args.selection.accept;
    if let Some(dollars) = args.answers.max_cost.filter(|_| calls_models) {
        options.spend_limit = Some(SpendLimit::new(dollars, project.settings.models.clone()));
    }
    Ok(Runner::new(runtime, options))
}

/// A file with its prompt, or the result for a file that cannot be read.
type FileOrResult = Result<Arc<LoadedFile>, Box<CaseResult>>;

/// Finds and loads the test files and the prompt files with tests.
fn load_files(args: &TestArgs, project: &Project, runner: &Runner) -> Vec<FileOrResult> {
    let is_excluded = |path: &Path| project.settings.check.is_excluded(&project.relative(path));
    let targets = Targets::collect(&args.paths, is_excluded);
    targets.files.iter().filter_map(|target| load_target(target, runner)).collect()
}

fn load_target(target: &Target, runner: &Runner) -> Option<FileOrResult> {
    let path = match &target.kind {
        TargetKind::Stdin => return None,
        TargetKind::Named(path) => path,
        // Other files in a directory may be anything.
        TargetKind::Found(path) if TestFile::may_contain_tests(path) => path,
        TargetKind::Found(_) => return None,
        TargetKind::Unreadable(path, reason) => {
            return Some(Err(Box::new(broken(path, &unreadable(path, reason)))));
        }
    };
    match runner.load(path) {
        Ok(loaded) => loaded.map(Ok),
        Err(error) => Some(Err(Box::new(broken(path, &error)))),
    }
}

/// Returns a job if the command line selects it. A case that is finished keeps its result.
fn select(args: &TestArgs, finished: Option<&FinishedCases>, job: Job) -> Option<Job> {
    if !is_selected(args, finished, &job) {
        return None;
    }
    let (Job::Case(case), Some(finished), true) = (&job, finished, args.selection.resume) else { return Some(job) };
    let known = finished.result(&case.id(), &case.hash());
    Some(known.map_or(job, |result| Job::Finished(Box::new(result))))
}

fn is_selected(args: &TestArgs, finished: Option<&FinishedCases>, job: &Job) -> bool {
    let selection = &args.selection;
    // Nobody knows which cases are in a file or a table that cannot be read, so it always fails.
    let Job::Case(case) = job else { return true };
    let id = case.id();
    let lower = id.to_lowercase();
    if !selection.names.is_empty() && !selection.names.iter().any(|name| lower.contains(&name.to_lowercase())) {
        return false;
    }
    let Some(finished) = finished.filter(|_| selection.last_failed) else { return true };
    // Without a failure, there is nothing to select by, so everything runs.
    finished.has_failed(&id) || !finished.has_failures()
}

fn threads(args: &TestArgs) -> usize {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let calls_models = args.answers.live || args.answers.record;
    let default = || if calls_models { CALLS_AT_A_TIME } else { cores() };
    args.selection.jobs.unwrap_or_else(default).clamp(1, 256)
}

/// What happens with results: the log, the reports and the summary.
struct Session {
    log: Option<RunLog>,
    /// The cases of the last run.
    finished: Option<FinishedCases>,
    reports: Reports,
    comparer: Option<Comparer>,
    summary: Summary,
    started: Instant,
    fail_fast: bool,
}

impl Session {
    fn start(args: &TestArgs, project: &Project, quiet: bool) -> Result<Self, Failure> {
        let directory = &project.directory;
        let selection = &args.selection;
        let (log, finished) = if selection.resume {
            let (log, finished) = RunLog::append(directory)?;
            (Some(log), Some(finished))
        } else {
            let finished = selection.last_failed.then(|| FinishedCases::read(directory)).transpose()?;
            // A directory that cannot be written to only means that the run cannot be resumed.
            (RunLog::create(directory).ok(), finished)
        };
        Ok(Self {
            log,
            finished,
            reports: Reports::start(args, quiet)?,
            comparer: comparison::start(args)?,
            summary: Summary::default(),
            started: Instant::now(),
            fail_fast: selection.fail_fast,
        })
    }

    fn add(&mut self, result: &CaseResult) -> Result<ControlFlow<()>, Failure> {
        self.summary.add(result);
        self.reports.add(result)?;
        if let Some(comparer) = &mut self.comparer {
            comparer.add(result);
        }
        let stops = self.fail_fast && result.verdict == Verdict::Failed;
        Ok(if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    fn finish(mut self, args: &TestArgs, runner: &Runner) -> Result<ExitCode, Failure> {
        self.summary.seconds = self.started.elapsed().as_secs_f64();
        self.summary.add_cost(runner.judge_cost());
        self.summary.comparison = self.comparer.map(comparison::finish);
        self.reports.finish(&self.summary, args)?;
        let names = &args.selection.names;
        if self.summary.cases() == 0 && !names.is_empty() {
            let named: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("-k: no case has {} in its name or file", named.join(" or "));
            return Err(Failure::Usage(message));
        }
        let is_success = self.summary.is_success(args.answers.allow_missing);
        Ok(if is_success { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
