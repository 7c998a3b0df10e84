//! Checks assertions about answers.
//!
//! An assertion that cannot be decided is neither met nor unmet: a program that crashes, a judge that writes no verdict
//! or an invalid regular expression fails the case with and without `not`.

use std::path::Path;

use tympan_core::spec::test_suite::{Assertion, CostLimit, CountRange, LatencyLimit, Similar, Texts, ValueMatch};

use super::{Answer, AnswerMode, Question, calls, program};
use crate::judge::Judges;
use crate::matching::{Mismatch, check_value, text_of};
use crate::quote::quoted;
use crate::result::Check;
use crate::similarity::similarity;

/// The least similarity if the assertion states none.
const MIN_SIMILARITY: f64 = 0.8;

/// A case with its answer.
#[derive(Clone, Copy, Debug)]
pub struct AnsweredCase<'a> {
    /// The name of the case.
    pub name: &'a str,
    /// The directory of the test file.
    pub directory: &'a Path,
    /// What the model was asked.
    pub question: &'a Question<'a>,
    /// What it answered.
    pub answer: &'a Answer,
}

/// How assertions are checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckOptions<'a> {
    /// Where the answers of judges come from.
    pub mode: AnswerMode,
    /// Whether programs of test files may run.
    pub allow_programs: bool,
    /// The judges of the run.
    pub judges: &'a Judges,
}

/// Checks an assertion about an answer. `line` is the line of the assertion in the test file.
///
/// Assertions that need no answer are not checked here.
pub async fn check_answer(
    assertion: &Assertion,
    line: usize,
    case: &AnsweredCase<'_>,
    options: &CheckOptions<'_>,
) -> Check {
    let (mut inner, mut is_negated) = (assertion, false);
    while let Assertion::Not(next) = inner {
        (inner, is_negated) = (next, !is_negated);
    }
    let finding = find(inner, case, options).await;
    let finding = if is_negated { finding.negated(inner.name()) } else { finding };
    finding.into_check(assertion.name(), line)
}

async fn find(assertion: &Assertion, case: &AnsweredCase<'_>, options: &CheckOptions<'_>) -> Finding {
    let answer = case.answer;
    match assertion {
        Assertion::Result(wanted) => result(answer, wanted),
        Assertion::ToolCalls(wanted) => calls::check(&answer.tool_calls, wanted).into(),
        Assertion::FinishReason(wanted) => finish_reason(answer, wanted),
        Assertion::Rounds(wanted) => rounds(answer, *wanted),
        Assertion::Cost(wanted) => cost(answer, *wanted),
        Assertion::Latency(wanted) => latency(answer, *wanted),
        Assertion::Refusal(wanted) => refusal(answer, *wanted),
        Assertion::Similar(wanted) => similar(answer, wanted),
        Assertion::Program(wanted) => program::check(wanted, case, options.allow_programs).await,
        Assertion::Judge(wanted) => options.judges.check(wanted, case, options.mode).await,
        other => Finding::not_run(format!("`{}` is not about an answer", other.name())),
    }
}

/// What was found out about an assertion.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    status: Status,
    mismatch: Mismatch,
    score: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Holds,
    Fails,
    /// It could not be decided, because something is wrong.
    Broken,
    /// It could not be decided, because something is missing.
    NotRun,
}

impl Finding {
    fn new(status: Status, mismatch: Mismatch) -> Self {
        Self { status, mismatch, score: None }
    }

    /// The assertion holds.
    pub(crate) fn holds() -> Self {
        Self::new(Status::Holds, Mismatch::default())
    }

    /// The assertion holds if the condition is true.
    pub(crate) fn holds_if(condition: bool, message: impl FnOnce() -> String) -> Self {
        if condition { Self::holds() } else { Self::fails(message()) }
    }

    /// The assertion does not hold.
    pub(crate) fn fails(message: impl Into<String>) -> Self {
        Self::new(Status::Fails, Mismatch::new(message))
    }

    /// The assertion cannot be decided, because something is wrong.
    pub(crate) fn broken(message: impl Into<String>) -> Self {
        Self::new(Status::Broken, Mismatch::new(message))
    }

    /// The assertion cannot be decided, because something is missing.
    pub(crate) fn not_run(reason: impl Into<String>) -> Self {
        Self::new(Status::NotRun, Mismatch::new(reason))
    }

    /// Adds a score.
    pub(crate) fn with_score(self, score: Option<f64>) -> Self {
        Self { score, ..self }
    }

    fn negated(self, name: &str) -> Self {
        let score = self.score;
        let negated = match self.status {
            Status::Holds => Self::fails(format!("expected `{name}` not to hold, but it does")),
            Status::Fails => Self::holds(),
            Status::Broken | Status::NotRun => self,
        };
        negated.with_score(score)
    }

    fn into_check(self, name: &str, line: usize) -> Check {
        let check = match self.status {
            Status::Holds => Check::passed(name, line),
            Status::Fails => self.mismatch.into_check(name, line),
            Status::Broken => Check::failed(name, line, self.mismatch.message),
            Status::NotRun => Check::not_run(name, line, self.mismatch.message),
        };
        Check { score: self.score, ..check }
    }
}

impl From<Result<(), Mismatch>> for Finding {
    fn from(result: Result<(), Mismatch>) -> Self {
        match result {
            Ok(()) => Self::holds(),
            Err(mismatch) if mismatch.is_invalid => Self::new(Status::Broken, mismatch),
            Err(mismatch) => Self::new(Status::Fails, mismatch),
        }
    }
}

fn result(answer: &Answer, wanted: &ValueMatch) -> Finding {
    check_value(&answer.result, wanted, answer.problems.as_deref()).into()
}

fn finish_reason(answer: &Answer, wanted: &Texts) -> Finding {
    let found = answer.finish_reason.as_deref();
    let is_met = wanted.as_slice().iter().any(|reason| Some(reason.as_str()) == found);
    Finding::holds_if(is_met, || {
        let wanted: Vec<_> = wanted.as_slice().iter().map(|reason| format!("`{reason}`")).collect();
        format!("expected {}, found {}", wanted.join(" or "), found.map_or_else(|| "none".to_owned(), quoted))
    })
}

fn rounds(answer: &Answer, wanted: CountRange) -> Finding {
    let found = answer.rounds as usize;
    Finding::holds_if(wanted.contains(found), || format!("expected {} model calls, found {found}", range(wanted)))
}

/// Describes a range.
fn range(range: CountRange) -> String {
    match range {
        CountRange::Exactly(exact) => exact.to_string(),
        CountRange::Range { min: Some(min), max: Some(max) } => format!("{min} to {max}"),
        CountRange::Range { min: Some(min), max: None } => format!("at least {min}"),
        CountRange::Range { min: None, max: Some(max) } => format!("at most {max}"),
        CountRange::Range { min: None, max: None } => "any number of".to_owned(),
    }
}

/// Checks the cost. An answer that no model wrote costs nothing.
fn cost(answer: &Answer, wanted: CostLimit) -> Finding {
    match (answer.is_from_model, answer.cost) {
        (false, _) => Finding::holds(),
        (true, Some(cost)) => Finding::holds_if(cost <= wanted.max, || {
            format!("expected a cost of at most ${}, found ${cost:.6}", wanted.max)
        }),
        (true, None) => {
            let model = answer.model.as_deref().unwrap_or("the model");
            Finding::not_run(format!("the price of `{model}` is not known, or the answer has no token counts"))
        }
    }
}

/// Checks the time. It says nothing about an answer that is replayed.
fn latency(answer: &Answer, wanted: LatencyLimit) -> Finding {
    let is_met = answer.seconds.is_none_or(|seconds| seconds <= wanted.max_seconds);
    Finding::holds_if(is_met, || {
        let seconds = answer.seconds.unwrap_or_default();
        format!("expected an answer within {} s, found {seconds:.3} s", wanted.max_seconds)
    })
}

/// Checks whether the provider says that the model refused, or that a filter withheld the answer. What the text says
/// does not matter.
fn refusal(answer: &Answer, wanted: bool) -> Finding {
    let is_filtered = answer.finish_reason.as_deref() == Some("content_filter");
    let has_refused = answer.refusal.is_some() || is_filtered;
    Finding::holds_if(has_refused == wanted, || match (&answer.refusal, wanted) {
        (_, true) => format!("expected a refusal, found the answer {}", quoted(&text_of(&answer.result))),
        (Some(refusal), false) => format!("expected an answer, found the refusal {}", quoted(refusal)),
        (None, false) => "expected an answer, but the provider's filter withheld it".to_owned(),
    })
}

fn similar(answer: &Answer, wanted: &Similar) -> Finding {
    let min = wanted.min.unwrap_or(MIN_SIMILARITY);
    let text = text_of(&answer.result);
    match similarity(wanted.measure, &text, &wanted.to) {
        Ok(score) if score >= min => Finding::holds().with_score(Some(score)),
        Ok(score) => {
            let message = format!("expected a similarity of at least {min}, found {score:.3}");
            let mismatch =
                Mismatch { difference: Some((wanted.to.clone(), text.into_owned())), ..Mismatch::new(message) };
            Finding::new(Status::Fails, mismatch).with_score(Some(score))
        }
        Err(error) => Finding::broken(error.to_string()),
    }
}
