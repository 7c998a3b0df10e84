//! The verdicts of a judge.

use serde_json::Value as Json;
use tympan_core::Outcome;
use tympan_runtime::Run;

use super::rubric::Rubric;
use crate::quote::{quoted, visible};

/// The least score if neither the assertion nor the verdict says whether an answer passes.
const MIN_SCORE: f64 = 0.5;

/// The verdict of one vote.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) pass: Option<bool>,
    pub(super) score: Option<f64>,
    pub(super) reason: Option<String>,
}

impl Verdict {
    /// Reads the verdict that a judge wrote.
    ///
    /// # Errors
    /// Returns a message if the judge wrote anything else. That is never a pass.
    pub(super) fn read(rubric: &Rubric, run: &Run) -> Result<Self, String> {
        if let Some(refusal) = &run.refusal {
            return Err(format!("the judge refused: {}", quoted(refusal)));
        }
        let Outcome::Structured(found) = &run.outcome else {
            let text = quoted(&crate::matching::text_of(&run.outcome.to_json()));
            return Err(format!("expected a verdict from the judge, found {text}"));
        };
        let wrong =
            |problem: &str| format!("expected a verdict from the judge, found {}: {problem}", quoted(&found.raw));
        if !found.problems.is_empty() {
            return Err(wrong(&found.problems.join("; ")));
        }
        let pass = found.value.get("pass").and_then(Json::as_bool);
        if rubric.has_pass && pass.is_none() {
            return Err(wrong("`pass` is missing"));
        }
        let score = found.value.get("score").and_then(Json::as_f64);
        if rubric.has_score && !score.is_some_and(|score| (0.0..=1.0).contains(&score)) {
            return Err(wrong("`score` is not a number from 0 to 1"));
        }
        let reason = found.value.get("reason").and_then(Json::as_str).map(visible);
        Ok(Self { pass, score, reason })
    }
}

/// The verdict of all votes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tally {
    /// Whether the answer passes.
    pub(super) pass: bool,
    /// The average score.
    pub(super) score: Option<f64>,
    /// Why it does not pass.
    pub(super) message: String,
}

impl Tally {
    /// Counts votes. With `pass` in the verdict, more than half of them must pass; with a score, the average must reach
    /// the least score.
    pub(super) fn of(votes: &[Verdict], min_score: Option<f64>) -> Self {
        let passes = votes.iter().filter(|vote| vote.pass == Some(true)).count();
        let has_pass = votes.iter().any(|vote| vote.pass.is_some());
        let is_passed = !has_pass || passes * 2 > votes.len();
        let score = average(votes);
        let min_score = min_score.or((!has_pass).then_some(MIN_SCORE));
        let is_high = min_score.is_none_or(|min| score.is_some_and(|score| score >= min));
        let mut problems = Vec::new();
        if !is_passed {
            problems.push(format!("expected most votes to pass, found {passes} of {}", votes.len()));
        }
        if let Some(min) = min_score.filter(|_| !is_high) {
            let found = score.map_or_else(|| "none".to_owned(), |score| format!("{score:.3}"));
            problems.push(format!("expected an average score of at least {min}, found {found}"));
        }
        let reasons: Vec<_> = votes.iter().filter_map(|vote| vote.reason.as_deref()).collect();
        let mut message = problems.join("; ");
        if let Some(reason) = reasons.first().filter(|_| !message.is_empty()) {
            message.push_str(&format!("; the judge says: {reason}"));
        }
        Self { pass: is_passed && is_high, score, message }
    }
}

#[expect(clippy::cast_precision_loss, reason = "there are at most 99 votes")]
fn average(votes: &[Verdict]) -> Option<f64> {
    let scores: Vec<f64> = votes.iter().filter_map(|vote| vote.score).collect();
    if scores.is_empty() { None } else { Some(scores.iter().sum::<f64>() / scores.len() as f64) }
}
