//! Judges: prompts that decide whether an answer passes.
//!
//! A judge counts only if it is what the author of the test chose: the rubric can be pinned by its hash, and a
//! calibration set with known verdicts must be met first. What the judge writes is a verdict only if it matches the
//! rubric's `outputs`; anything else fails the assertion.

mod calibration;
mod estimate;
mod rubric;
mod verdict;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OnceCell;
use tympan_core::json::canonical_json;
use tympan_core::spec::test_suite::Judge;
use tympan_core::{JsonMap, Kind, Message, Prompt};
use tympan_runtime::net::io;
use tympan_runtime::{RunOptions, Runtime};

use crate::answer::check::{AnsweredCase, Finding};
use crate::answer::{AnswerMode, Price, cassette_directory, missing, runtime_for};
use crate::file::contained;
use crate::matching::text_of;
use crate::runner::described;
use calibration::{CalibrationSet, MIN_AGREEMENT};
use rubric::Rubric;
use verdict::{Tally, Verdict};

pub use calibration::Agreement;

/// The directory of the cassettes of judges, in that of a repetition.
const JUDGE: &str = "judge";

/// The directory of the cassettes of calibrations, in that of judges.
const CALIBRATION: &str = "calibration";

/// A value that is computed once, even if several cases ask for it at the same time.
type Once<T> = Arc<OnceCell<Result<T, Problem>>>;

/// The judges of a run. Rubrics are loaded once, and each judge is calibrated once.
#[derive(Default)]
pub struct Judges {
    price: Option<Price>,
    rubrics: Mutex<HashMap<PathBuf, Once<Arc<Rubric>>>>,
    sets: Mutex<HashMap<PathBuf, Once<Arc<CalibrationSet>>>>,
    agreements: Mutex<HashMap<CalibrationKey, Once<Agreement>>>,
    spent: Mutex<f64>,
    /// The calibrations that are part of an estimate.
    estimated: Mutex<HashSet<CalibrationKey>>,
}

impl fmt::Debug for Judges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judges").field("spent", &self.cost()).finish_non_exhaustive()
    }
}

/// Everything that decides about an agreement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CalibrationKey {
    rubric: String,
    model: String,
    set: String,
    inputs: String,
    min_score: Option<u64>,
    cassettes: PathBuf,
}

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq)]
enum Problem {
    /// Something is wrong.
    Wrong(String),
    /// A cassette is missing.
    Missing(String),
}

impl From<Problem> for Finding {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Wrong(message) => Self::broken(message),
            Problem::Missing(reason) => Self::not_run(reason),
        }
    }
}

impl Judges {
    /// Creates the judges of a run.
    pub fn new(price: Option<Price>) -> Self {
        Self { price, ..Self::default() }
    }

    /// Returns the estimated cost of all calls of judges so far, in US dollars. Calls whose price is not known, and
    /// replayed calls, do not count.
    pub fn cost(&self) -> f64 {
        *locked(&self.spent)
    }

    /// Judges an answer.
    pub(crate) async fn check(&self, judge: &Judge, case: &AnsweredCase<'_>, mode: AnswerMode) -> Finding {
        match self.judge(judge, case, mode).await {
            Ok(tally) => Finding::holds_if(tally.pass, || tally.message.clone()).with_score(tally.score),
            Err(Shortfall::Agreement(agreement, min)) => Finding::not_run(agreement.shortfall(min)),
            Err(Shortfall::Problem(problem)) => problem.into(),
        }
    }

    async fn judge(&self, judge: &Judge, case: &AnsweredCase<'_>, mode: AnswerMode) -> Result<Tally, Shortfall> {
        let runtime = case.question.runtime;
        let rubric = self.rubric(runtime, &path_in(case.directory, &judge.rubric)?).await?;
        check_hash(judge, &rubric)?;
        let bench = Bench { judges: self, runtime, rubric: &rubric, judge, mode };
        if let Some(calibration) = &judge.calibration {
            let path = path_in(case.directory, calibration)?;
            let agreement = bench.agreement(&path, case.question.cassettes).await?;
            let min = judge.min_agreement.unwrap_or(MIN_AGREEMENT);
            if agreement.share() < min {
                return Err(Shortfall::Agreement(agreement, min));
            }
        }
        let answer = text_of(&case.answer.result);
        let directory = cassette_directory(case.question.cassettes, case.question.repetition).join(JUDGE);
        let mut votes = Vec::new();
        for vote in 1..=judge.votes.unwrap_or(1).max(1) {
            let directory = match vote {
                1 => directory.clone(),
                more => directory.join(format!("vote-{more}")),
            };
            votes.push(bench.vote(&answer, Some(case.question.messages), &judge.inputs, &directory).await?);
        }
        Ok(Tally::of(&votes, judge.min_score))
    }

    async fn rubric(&self, runtime: &Runtime, path: &Path) -> Result<Arc<Rubric>, Problem> {
        let cell = once(&self.rubrics, path.to_owned());
        let load = || async { Rubric::load(runtime, path).map(Arc::new).map_err(Problem::Wrong) };
        cell.get_or_init(load).await.clone()
    }

    /// Returns the prompt of a rubric, or `None` if it cannot be used.
    pub(crate) fn rubric_prompt(&self, runtime: &Runtime, judge: &Judge, directory: &Path) -> Option<Prompt> {
        let path = path_in(directory, &judge.rubric).ok()?;
        io::wait(self.rubric(runtime, &path)).ok().map(|rubric| rubric.prompt.clone())
    }

    async fn calibration_set(&self, path: &Path) -> Result<Arc<CalibrationSet>, Problem> {
        let cell = once(&self.sets, path.to_owned());
        let read = || async { CalibrationSet::read(path).map(Arc::new).map_err(Problem::Wrong) };
        cell.get_or_init(read).await.clone()
    }

    fn spend(&self, cost: f64) {
        *locked(&self.spent) += cost;
    }
}

/// Returns the options for the calls of a judge.
pub(crate) fn options(judge: &Judge) -> RunOptions {
    let Judge { provider, model, .. } = judge;
    RunOptions { provider: provider.clone(), model: model.clone(), ..RunOptions::default() }
}

/// Resolves a path in a test file, which must not lead out of the project.
fn path_in(directory: &Path, path: &str) -> Result<PathBuf, Problem> {
    contained(directory, path).map_err(|error| Problem::Wrong(described(&error)))
}

/// Why a judge does not decide.
enum Shortfall {
    /// It agrees too seldom with known verdicts.
    Agreement(Agreement, f64),
    Problem(Problem),
}

impl From<Problem> for Shortfall {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

/// Returns the cell of a key.
fn once<K: Eq + std::hash::Hash, T>(cells: &Mutex<HashMap<K, Once<T>>>, key: K) -> Once<T> {
    locked(cells).entry(key).or_default().clone()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks the pinned hash of a rubric.
fn check_hash(judge: &Judge, rubric: &Rubric) -> Result<(), Problem> {
    let found = rubric.prompt.definition_hash();
    match judge.hash.as_deref() {
        Some(pinned) if pinned != found => Err(Problem::Wrong(format!(
            "rubric {}: expected the definition hash `{pinned}`, found `{found}`",
            judge.rubric
        ))),
        _ => Ok(()),
    }
}

/// A judge that is ready to vote.
struct Bench<'a> {
    judges: &'a Judges,
    runtime: &'a Runtime,
    rubric: &'a Rubric,
    judge: &'a Judge,
    mode: AnswerMode,
}

impl Bench<'_> {
    fn options(&self) -> RunOptions {
        options(self.judge)
    }

    /// Returns the agreement with known verdicts, which is computed once.
    async fn agreement(&self, path: &Path, cassettes: &Path) -> Result<Agreement, Problem> {
        let set = self.judges.calibration_set(path).await?;
        let cassettes = cassettes.join(JUDGE).join(CALIBRATION);
        let cell = once(&self.judges.agreements, self.calibration_key(&set, &cassettes));
        cell.get_or_init(|| self.calibrate(&set, &cassettes)).await.clone()
    }

    fn calibration_key(&self, set: &CalibrationSet, cassettes: &Path) -> CalibrationKey {
        let options = self.options();
        let selection = options.select_model(&self.rubric.prompt);
        CalibrationKey {
            rubric: self.rubric.prompt.definition_hash().to_owned(),
            model: format!("{}/{}", selection.provider, selection.model.unwrap_or_default()),
            set: set.hash.clone(),
            inputs: canonical_json(self.judge.inputs.clone().into()),
            min_score: self.judge.min_score.map(f64::to_bits),
            cassettes: cassettes.to_owned(),
        }
    }

    async fn calibrate(&self, set: &CalibrationSet, cassettes: &Path) -> Result<Agreement, Problem> {
        let mut agreement = Agreement::default();
        for known in &set.items {
            let mut inputs = self.judge.inputs.clone();
            inputs.extend(known.inputs.clone());
            let found = match self.vote(&text_of(&known.answer), None, &inputs, cassettes).await {
                Ok(vote) => Some(Tally::of(&[vote], self.judge.min_score).pass),
                Err(Vote::Invalid(_)) => None,
                Err(Vote::Problem(problem)) => return Err(problem),
            };
            agreement.add(known.pass, found);
        }
        Ok(agreement)
    }

    /// Asks the judge once.
    async fn vote(
        &self,
        answer: &str,
        asked: Option<&[Message]>,
        stated: &JsonMap,
        cassettes: &Path,
    ) -> Result<Verdict, Vote> {
        let wrong = |message: String| Vote::Problem(Problem::Wrong(message));
        let prompt = &self.rubric.prompt;
        let inputs = self.rubric.inputs(answer, asked, stated).map_err(wrong)?;
        let messages = self.rubric.messages(self.runtime, &inputs).map_err(wrong)?;
        let options = self.options();
        let provider = options.select_model(prompt).provider;
        let runtime = runtime_for(self.runtime, provider, self.mode, cassettes).map_err(Problem::Missing)?;
        let run = runtime.run_with_async(prompt, &messages, &options).await.map_err(|error| match error.kind() {
            Kind::UnknownExchange => Problem::Missing(format!("the judge: {}", missing(&error))),
            Kind::SpendLimit => Problem::Missing(format!("the judge: {}", error.message())),
            _ => Problem::Wrong(format!("the judge: {}", error.message())),
        })?;
        if self.mode != AnswerMode::Replay {
            let model = options.select_model(prompt).model.unwrap_or_default();
            let cost = run.usage.as_ref().and_then(|usage| self.judges.price.as_ref()?(model, usage));
            self.judges.spend(cost.unwrap_or_default());
        }
        Verdict::read(self.rubric, &run).map_err(Vote::Invalid)
    }
}

/// Why there is no vote.
enum Vote {
    /// The judge wrote something else than a verdict.
    Invalid(String),
    Problem(Problem),
}

impl From<Problem> for Vote {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<Vote> for Shortfall {
    fn from(vote: Vote) -> Self {
        match vote {
            Vote::Invalid(message) => Self::Problem(Problem::Wrong(message)),
            Vote::Problem(problem) => Self::Problem(problem),
        }
    }
}
