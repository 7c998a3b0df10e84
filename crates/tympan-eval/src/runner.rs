//! Runs cases.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use tympan_core::spec::test_suite::{AnswerSource, Assertion, Expectation};
use tympan_core::wire::echo::ECHO;
use tympan_core::{Error, Guard, Prompt, Result};
use tympan_runtime::model::spending::{SpendLimit, max_output_tokens};
use tympan_runtime::net::io;
use tympan_runtime::{RunOptions, Runtime};

use crate::answer::check::{AnsweredCase, CheckOptions, check_answer};
use crate::answer::{self, AnswerOptions, ModelMessages, Obtained, Question, obtain};
use crate::case::{Case, LoadedFile};
use crate::estimate::{ASSUMED_OUTPUT_TOKENS, Estimate, estimate};
use crate::expand::Cases;
use crate::file::TestFile;
use crate::judge::{self, Judges};
use crate::matching::Mismatch;
use crate::messages::{Rendering, Subject, check_error, render};
use crate::pool::map_in_order;
use crate::result::{Attempt, CaseResult, Check, CheckStatus, Verdict};
use crate::statistics::{self, Confidence};

/// Options of a run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunnerOptions {
    /// How answers are obtained.
    pub answers: AnswerOptions,
    /// Whether programs of test files may run.
    pub allow_programs: bool,
    /// Whether snapshots are written instead of compared.
    pub accept: bool,
    /// The limit on what the answers of models and judges may cost together. A case whose call could exceed it does not
    /// run.
    pub spend_limit: Option<SpendLimit>,
}

/// Runs cases.
pub struct Runner {
    runtime: Runtime,
    options: RunnerOptions,
    judges: Judges,
}

impl Runner {
    /// Creates a runner that renders prompts and calls models with a runtime.
    pub fn new(runtime: Runtime, options: RunnerOptions) -> Self {
        let judges = Judges::new(options.answers.price.clone());
        Self { runtime, options, judges }
    }

    /// Returns the estimated cost of all calls of judges so far, in US dollars.
    pub fn judge_cost(&self) -> f64 {
        self.judges.cost()
    }

    /// Reads a test file, or the tests in a prompt file, and loads the prompt. Returns `None` if a prompt file contains no
    /// tests.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or if the tests or the prompt are invalid.
    pub fn load(&self, path: &Path) -> Result<Option<Arc<LoadedFile>>> {
        let Some(file) = TestFile::load(path)? else { return Ok(None) };
        // An error without a position is about the prompt file as a whole, which the test file names.
        let prompt = self.load_prompt(&file.prompt).map_err(|error| match error.source_file() {
            Some(_) => error,
            None => error.at(file.suite.prompt_span).in_source(&file.source, 0),
        })?;
        Ok(Some(Arc::new(LoadedFile::new(file, Arc::new(prompt)))))
    }

    /// Loads a prompt file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if the prompt is invalid.
    pub fn load_prompt(&self, path: &Path) -> Result<Prompt> {
        self.runtime.load(path)
    }

    /// Runs cases on several threads. Results are passed on in the order of the cases, until `sink` breaks.
    pub fn run<I>(&self, cases: I, threads: usize, sink: impl FnMut(CaseResult) -> ControlFlow<()>)
    where
        I: Iterator<Item = Job> + Send,
    {
        self.run_with(cases, threads, |_| (), sink);
    }

    /// Runs cases as [`Runner::run`] does. `finished` receives each result at once, on the thread that ran the case, even if
    /// earlier cases are still running.
    pub fn run_with<I>(
        &self,
        cases: I,
        threads: usize,
        finished: impl Fn(&CaseResult) + Sync,
        sink: impl FnMut(CaseResult) -> ControlFlow<()>,
    ) where
        I: Iterator<Item = Job> + Send,
    {
        let work = |job| {
            let result = match job {
                Job::Case(case) => self.run_case(&case),
                Job::Finished(result) => *result,
            };
            finished(&result);
            result
        };
        map_in_order(cases, threads, work, sink);
    }

    /// Runs a case.
    pub fn run_case(&self, case: &Case) -> CaseResult {
        let started = Instant::now();
        let mut result = case.result();
        if let Some(reason) = &case.skip {
            (result.verdict, result.reason) = (Verdict::Skipped, Some(reason.clone()));
            return result;
        }
        let unknown = case.prompt().unknown_inputs((&case.settings.inputs).into());
        result.warnings.extend(unknown.into_iter().map(|diagnostic| diagnostic.message));
        match render(&self.runtime, case, &case.settings.inputs) {
            Ok(rendering) => self.check(case, &rendering, &mut result),
            Err(error) => failed_render(case, &error, &mut result),
        }
        result.seconds = started.elapsed().as_secs_f64();
        result
    }

    fn check(&self, case: &Case, rendering: &Rendering, result: &mut CaseResult) {
        let subject = Subject { runtime: &self.runtime, case, rendering, accept: self.options.accept };
        let (about_answers, about_messages): (Vec<_>, Vec<_>) =
            case.settings.expect.iter().partition(|expectation| expectation.assertion.needs_answer());
        let checks: Vec<_> = about_messages
            .into_iter()
            .map(|expectation| checked(case, expectation, |assertion| subject.check(assertion)))
            .collect();
        if about_answers.is_empty() {
            result.attempts.push(attempt(checks));
            return decide(case, result);
        }
        for repetition in 1..=case.repeat() {
            let attempt = match ModelMessages::new(&self.runtime, case.prompt(), &rendering.rendered) {
                Ok(messages) => {
                    io::wait(self.attempt(case, &messages, repetition, &about_answers, checks.clone(), result))
                }
                Err(error) => failed_attempt(case, checks.clone(), &error, result),
            };
            result.attempts.push(attempt);
        }
        decide(case, result);
    }

    /// Asks the model once, and checks its answer.
    async fn attempt(
        &self,
        case: &Case,
        messages: &ModelMessages,
        repetition: u32,
        expectations: &[&Expectation],
        mut checks: Vec<Check>,
        result: &mut CaseResult,
    ) -> Attempt {
        let file = &case.loaded.file;
        let cassettes = match file.cassettes() {
            Ok(cassettes) => cassettes,
            Err(error) => return failed_attempt(case, checks, &error, result),
        };
        let guard = Guard::default();
        let limit = self.options.spend_limit.as_ref().map(SpendLimit::scoped);
        let runtime = limit.as_ref().map(|limit| self.runtime.with_spend_limit(limit.clone()));
        let runtime = runtime.as_ref().unwrap_or(&self.runtime);
        let question = self.question(runtime, case, messages, &guard, &cassettes, repetition);
        let obtained = obtain(&question, &self.options.answers).await;
        // A tool may have hidden the refusal from the turn that it is part of.
        let refusal = limit.as_ref().and_then(SpendLimit::refusal);
        let answer = match refusal.map_or(obtained, |refusal| Obtained::Missing(described(&refusal))) {
            Obtained::Answered(answer) => answer,
            Obtained::Missing(reason) => {
                checks.extend(expectations.iter().map(|expectation| {
                    Check::not_run(expectation.assertion.name(), file.line(expectation.span.start), reason.clone())
                }));
                result.reason = Some(reason);
                return attempt(checks);
            }
            Obtained::Failed(error) => return failed_attempt(case, checks, &error, result),
        };
        let answered =
            AnsweredCase { name: &case.name, directory: file.directory(), question: &question, answer: &answer };
        let AnswerOptions { mode, .. } = self.options.answers;
        let options = CheckOptions { mode, allow_programs: self.options.allow_programs, judges: &self.judges };
        for expectation in expectations {
            let line = file.line(expectation.span.start);
            checks.push(check_answer(&expectation.assertion, line, &answered, &options).await);
        }
        result.model = answer.model.clone().or(result.model.take());
        Attempt {
            from_model: answer.is_from_model || case.judges().next().is_some(),
            answer: Some(shortened(&answer.text)),
            usage: answer.usage.clone(),
            cost: answer.cost,
            seconds: answer.seconds,
            ..attempt(checks)
        }
    }

    /// Returns what the model is asked.
    fn question<'a>(
        &'a self,
        runtime: &'a Runtime,
        case: &'a Case,
        messages: &'a ModelMessages,
        guard: &'a Guard,
        cassettes: &'a Path,
        repetition: u32,
    ) -> Question<'a> {
        Question {
            runtime,
            prompt: case.prompt(),
            inputs: case.inputs(),
            messages: &messages.messages,
            labels: messages.labels.as_deref(),
            guard: case.settings.guard.unwrap_or_default().then_some(guard),
            settings: &case.settings,
            cassettes,
            repetition,
        }
    }

    /// Estimates the tokens and the cost of all repetitions of a case, with the votes of its judges. Nothing is sent. A
    /// case that cannot be rendered costs nothing.
    pub fn estimate(&self, case: &Case) -> Estimate {
        let mut sum = Estimate::default();
        if !case.needs_answer() || case.skip.is_some() {
            return sum;
        }
        let messages = render(&self.runtime, case, case.inputs())
            .and_then(|rendering| ModelMessages::new(&self.runtime, case.prompt(), &rendering.rendered));
        let (Ok(messages), Ok(cassettes)) = (messages, case.loaded.file.cassettes()) else { return sum };
        let guard = Guard::default();
        for repetition in 1..=case.repeat() {
            let question = self.question(&self.runtime, case, &messages, &guard, &cassettes, repetition);
            let answer = io::wait(estimate(&question, self.options.answers.price.as_ref()));
            sum.add(&answer);
            let tokens = if answer.requests > 0 { answer.output_tokens } else { ASSUMED_OUTPUT_TOKENS };
            for judge in case.judges() {
                let directory = case.loaded.file.directory();
                // A judge that cannot be used fails its assertion, and costs nothing.
                sum.add(&io::wait(self.judges.estimate(judge, directory, &question, tokens)).unwrap_or_default());
            }
        }
        sum
    }

    /// Returns why nothing bounds what a case costs: the price of a model is not known, or the length of its answers.
    pub fn unbounded(&self, case: &Case) -> Vec<Error> {
        let Some(limit) = &self.options.spend_limit else { return Vec::new() };
        if !case.needs_answer() || case.skip.is_some() {
            return Vec::new();
        }
        let mut problems = Vec::new();
        if matches!(case.settings.answer, None | Some(AnswerSource::Cassette)) {
            let options = answer::options(&case.settings, &self.options.answers.run);
            problems.extend(unbounded(limit, case.prompt(), &options));
        }
        for judge in case.judges() {
            let found = self.judges.rubric_prompt(&self.runtime, judge, case.loaded.file.directory());
            problems.extend(found.and_then(|rubric| unbounded(limit, &rubric, &judge::options(judge))));
        }
        problems
    }
}

/// Returns why nothing bounds what a call costs.
fn unbounded(limit: &SpendLimit, prompt: &Prompt, options: &RunOptions) -> Option<Error> {
    let selection = options.select_model(prompt);
    if selection.provider == ECHO {
        return None;
    }
    limit.check_model(selection.provider, selection.model, max_output_tokens(prompt)).err()
}

/// The greatest length of an answer in a result, in characters.
const MAX_ANSWER: usize = 4000;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_ANSWER) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the attempt of a model call that failed.
fn failed_attempt(case: &Case, checks: Vec<Check>, error: &Error, result: &mut CaseResult) -> Attempt {
    let attempt = attempt(checks_of_failure(case, checks, error));
    if !attempt.passed {
        result.reason = Some(described(error));
    }
    attempt
}

/// A case to run, or one whose result is known from an earlier run.
#[derive(Debug)]
pub enum Job {
    /// A case to run.
    Case(Box<Case>),
    /// A result.
    Finished(Box<CaseResult>),
}

/// Returns the cases of a file as jobs. A case that cannot be read has a result at once.
pub fn jobs(loaded: &Arc<LoadedFile>) -> impl Iterator<Item = Job> + Send + use<> {
    let file = loaded.clone();
    Cases::new(loaded.clone()).map(move |case| match case {
        Ok(case) => Job::Case(Box::new(case)),
        Err(error) => Job::Finished(Box::new(broken(&file.file.path, &error))),
    })
}

/// Returns the result for a file or a row that cannot be read.
pub fn broken(path: &Path, error: &Error) -> CaseResult {
    let file = path.display().to_string();
    let line = error.line_column().map_or(1, |position| position.line);
    CaseResult {
        id: format!("{file}::line {line}"),
        line,
        name: format!("line {line}"),
        file,
        verdict: Verdict::Failed,
        reason: Some(all_findings(error)),
        required: 1.0,
        ..CaseResult::default()
    }
}

/// The maximum number of findings about a file that cannot be read.
const MAX_FINDINGS: usize = 20;

/// Describes an error and everything else that was found with it, one finding per line.
fn all_findings(error: &Error) -> String {
    let mut lines = vec![described(error)];
    let errors: Vec<_> = error.others().iter().filter(|finding| finding.is_error()).collect();
    for finding in errors.iter().take(MAX_FINDINGS - 1) {
        let position =
            error.source_file().zip(finding.span).map(|(source, span)| (source, source.line_column(span.start)));
        let place = position.map(|(source, at)| format!("{}:{}:{}: ", source.name(), at.line, at.column));
        let help = finding.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        lines.push(format!("{}{}{help}", place.unwrap_or_default(), finding.message));
    }
    match errors.len().saturating_sub(MAX_FINDINGS - 1) {
        0 => {}
        more => lines.push(format!("and {more} more")),
    }
    lines.join("\n")
}

/// Returns the result of a case whose prompt cannot be loaded.
pub fn without_prompt(case: &Case, error: &Error) -> CaseResult {
    CaseResult { verdict: Verdict::Failed, reason: Some(described(error)), ..case.result() }
}

/// Evaluates an assertion. With `not`, the assertion in it has to fail.
pub(crate) fn checked(
    case: &Case,
    expectation: &Expectation,
    check: impl Fn(&Assertion) -> Result<(), Mismatch>,
) -> Check {
    let line = case.loaded.file.line(expectation.span.start);
    let name = expectation.assertion.name();
    let found = match &expectation.assertion {
        Assertion::Not(inner) => match check(inner) {
            Ok(()) => Err(Mismatch::new(format!("expected `{}` to fail, but it holds", inner.name()))),
            Err(mismatch) if mismatch.is_invalid => Err(mismatch),
            Err(_) => Ok(()),
        },
        assertion => check(assertion),
    };
    match found {
        Ok(()) => Check::passed(name, line),
        Err(mismatch) => mismatch.into_check(name, line),
    }
}

/// Decides about a case whose prompt cannot be rendered.
fn failed_render(case: &Case, error: &Error, result: &mut CaseResult) {
    let checks = checks_of_failure(case, Vec::new(), error);
    result.attempts.push(attempt(checks));
    if !result.attempts[0].passed {
        result.reason = Some(described(error));
    }
    decide(case, result);
}

/// Evaluates the assertions about an error. All others fail, because there is nothing that they could be about.
fn checks_of_failure(case: &Case, mut checks: Vec<Check>, error: &Error) -> Vec<Check> {
    let is_open = |expectation: &&Expectation| checks.is_empty() || expectation.assertion.needs_answer();
    let open: Vec<_> = case.settings.expect.iter().filter(is_open).collect();
    // An error of the model is checked by the assertions that were waiting for one.
    checks.retain(|check| check.assertion != "error");
    let errors = case.settings.expect.iter().filter(|expectation| matches!(expectation.assertion, Assertion::Error(_)));
    let wanted: Vec<_> = errors.collect();
    for expectation in &wanted {
        checks.push(checked(case, expectation, |assertion| match assertion {
            Assertion::Error(wanted) => check_error(wanted, error),
            _ => Ok(()),
        }));
    }
    if wanted.is_empty() {
        let line = open.first().map_or(case.line, |expectation| case.loaded.file.line(expectation.span.start));
        let name = open.first().map_or("render", |expectation| expectation.assertion.name());
        checks.push(Check::failed(name, line, described(error)));
    }
    checks
}

fn attempt(checks: Vec<Check>) -> Attempt {
    Attempt { passed: checks.iter().all(|check| check.status == CheckStatus::Passed), checks, ..Attempt::default() }
}

/// Returns whether an assertion does not hold, and not only because it could not be checked.
fn has_failed(attempt: &Attempt) -> bool {
    attempt.checks.iter().any(|check| check.status == CheckStatus::Failed)
}

/// Decides about a case from its attempts.
fn decide(case: &Case, result: &mut CaseResult) {
    let (passes, count) = (result.passes(), result.attempts.len());
    let is_open = |attempt: &&Attempt| !attempt.passed && !has_failed(attempt);
    let open = result.attempts.iter().filter(is_open).count();
    // A share that is written as 0.8 is met by 4 of 5, whatever the rounding.
    #[expect(clippy::cast_precision_loss, reason = "there are few attempts")]
    let is_enough = |passes: usize| passes as f64 / count.max(1) as f64 >= case.pass() - 1e-9;
    result.verdict = if is_enough(passes) {
        Verdict::Passed
    } else if open > 0 && is_enough(passes + open) {
        Verdict::NotRun
    } else {
        // Whatever the attempts show that could not be checked, it is too late.
        Verdict::Failed
    };
    // Nothing can show that a model never fails, and whoever requires that knows it.
    if count > 1 && case.pass() < 1.0 {
        let weak = statistics::unsupported(count, case.pass(), Confidence::P95);
        result.warnings.extend(weak.map(|weak| weak.to_string()));
    }
}

/// Describes an error with its position.
pub(crate) fn described(error: &Error) -> String {
    let place = error.source_file().map(|source| match error.line_column() {
        Some(at) => format!("{}:{}:{}: ", source.name(), at.line, at.column),
        None => format!("{}: ", source.name()),
    });
    let help = error.help().map(|help| format!(" ({help})")).unwrap_or_default();
    format!("{}{}{help}", place.unwrap_or_default(), error.message())
}
