//! What the page shows of a case. The names are short because every case has them.

use serde::Serialize;

use crate::report::difference::{Piece, difference};
use crate::report::escape::shortened;
use crate::statistics::{Confidence, Interval};
use crate::{Attempt, CaseResult, Check, CheckStatus, Verdict};

/// How many bytes of a text are shown.
const LONGEST_TEXT: usize = 16_000;
/// How many bytes of a name are shown.
const LONGEST_NAME: usize = 500;
/// How many attempts are shown with their checks and answers. Those that failed come first.
const MOST_ATTEMPTS: usize = 20;
/// How many checks of an attempt are shown.
const MOST_CHECKS: usize = 100;

#[derive(Serialize)]
pub(super) struct CaseView {
    id: String,
    file: String,
    line: usize,
    name: String,
    prompt: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    variant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    required: f64,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    interval: Interval,
    /// The chance that several attempts all pass, from one attempt to all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    all_pass: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    /// The mean time that the model took for an attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency: Option<f64>,
    /// Whether each attempt passed.
    passed: Vec<bool>,
    attempts: Vec<AttemptView>,
}

#[derive(Serialize)]
struct AttemptView {
    number: usize,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<[u64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds: Option<f64>,
    checks: Vec<CheckView>,
    #[serde(skip_serializing_if = "is_zero")]
    more_checks: usize,
}

#[derive(Serialize)]
struct CheckView {
    assertion: String,
    line: usize,
    status: CheckStatus,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<Vec<Piece>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl CaseView {
    pub(super) fn of(result: &CaseResult) -> Self {
        let tally = result.tally();
        let tokens = result.attempts.iter().filter_map(|attempt| attempt.usage.as_ref());
        let tokens = tokens.map(|usage| usage.input_tokens.saturating_add(usage.output_tokens));
        let latencies: Vec<f64> = result.attempts.iter().filter_map(|attempt| attempt.seconds).collect();
        #[expect(clippy::cast_precision_loss, reason = "there are fewer attempts than 2^53")]
        let latency = (!latencies.is_empty()).then(|| latencies.iter().sum::<f64>() / latencies.len() as f64);
        Self {
            id: name(&result.id),
            file: name(&result.file),
            line: result.line,
            name: name(&result.name),
            prompt: name(&result.prompt),
            variant: result.variant.as_deref().map(name),
            model: result.model.as_deref().map(name),
            verdict: result.verdict,
            reason: result.reason.as_deref().map(text),
            warnings: result.warnings.iter().take(MOST_CHECKS).map(|warning| text(warning)).collect(),
            required: result.required,
            seconds: result.seconds,
            rate: tally.rate().filter(|_| result.verdict != Verdict::NotRun),
            interval: tally.interval(Confidence::P95),
            all_pass: all_pass(result),
            score: result.score(),
            cost: result.cost(),
            tokens: tokens.reduce(u64::saturating_add),
            latency,
            passed: result.attempts.iter().map(|attempt| attempt.passed).collect(),
            attempts: attempts(result),
        }
    }
}

/// Returns the chances that up to ten attempts all pass, if there are several attempts.
fn all_pass(result: &CaseResult) -> Vec<f64> {
    let most = if result.repeated().is_some() { 10 } else { 0 };
    (1..=most).map_while(|together| result.tally().all_pass(together)).collect()
}

/// Returns the attempts that are shown, in their order.
fn attempts(result: &CaseResult) -> Vec<AttemptView> {
    let numbered = || result.attempts.iter().zip(1..);
    let failed = numbered().filter(|(attempt, _)| !attempt.passed);
    let passed = numbered().filter(|(attempt, _)| attempt.passed);
    let mut shown: Vec<(&Attempt, usize)> = failed.chain(passed).take(MOST_ATTEMPTS).collect();
    shown.sort_unstable_by_key(|(_, number)| *number);
    shown.into_iter().map(|(attempt, number)| AttemptView::of(attempt, number)).collect()
}

impl AttemptView {
    fn of(attempt: &Attempt, number: usize) -> Self {
        let is_failed = |check: &&Check| check.status != CheckStatus::Passed;
        let failed = attempt.checks.iter().filter(is_failed);
        let passed = attempt.checks.iter().filter(|check| !is_failed(check));
        Self {
            number,
            passed: attempt.passed,
            answer: attempt.answer.as_deref().map(text),
            tokens: attempt.usage.as_ref().map(|usage| [usage.input_tokens, usage.output_tokens]),
            cost: attempt.cost,
            seconds: attempt.seconds,
            checks: failed.chain(passed).take(MOST_CHECKS).map(CheckView::of).collect(),
            more_checks: attempt.checks.len().saturating_sub(MOST_CHECKS),
        }
    }
}

impl CheckView {
    fn of(check: &Check) -> Self {
        let texts = check.expected.as_deref().zip(check.actual.as_deref());
        Self {
            assertion: name(&check.assertion),
            line: check.line,
            status: check.status,
            message: check.message.as_deref().map(text),
            score: check.score,
            difference: texts
                .filter(|_| check.status != CheckStatus::Passed)
                .map(|(expected, actual)| difference(expected, actual)),
        }
    }
}

fn name(text: &str) -> String {
    shortened(text, LONGEST_NAME).into_owned()
}

fn text(text: &str) -> String {
    shortened(text, LONGEST_TEXT).into_owned()
}
