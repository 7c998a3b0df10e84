//! The results of cases, as plain data.
//!
//! Reports, baselines and `--resume` read these results from JSON, so fields are only ever added.

use serde::{Deserialize, Serialize};
use tympan_core::wire::response::Usage;

use crate::statistics::Tally;

/// The result of a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct CaseResult {
    /// The name of the case in its file, unique among all cases of a run: `prompts/greeting.test.yaml::formal[2]`.
    pub id: String,
    /// The path of the test file, as the user wrote it.
    pub file: String,
    /// The line of the case in the file, counted from 1.
    pub line: usize,
    /// The name of the case.
    pub name: String,
    /// The path of the prompt file.
    pub prompt: String,
    /// The variant of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// The model that was asked, as `provider/model`, if there was an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// A hash of everything that decides about the result: the prompt, the inputs, the settings and the assertions.
    pub hash: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the case did not run or was skipped, or the error that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The attempts, one for each repetition. Cases that need no answer have one.
    pub attempts: Vec<Attempt>,
    /// The share of attempts that must pass.
    pub required: f64,
    /// Things that the author should know, such as that there are too few repetitions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How long the case took, in seconds.
    pub seconds: f64,
}

/// The verdict about a case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Enough attempts passed.
    Passed,
    /// Too few attempts passed.
    Failed,
    /// The case could not run, because its cassette or a permission is missing.
    #[default]
    NotRun,
    /// The case is skipped on purpose.
    Skipped,
}

impl Verdict {
    /// Returns the name that programs see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::NotRun => "not_run",
            Self::Skipped => "skipped",
        }
    }
}

/// One attempt at a case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Attempt {
    /// Whether all checks passed.
    pub passed: bool,
    /// The results of the assertions, in order.
    pub checks: Vec<Check>,
    /// Whether a model wrote the answer or judged it, now or when it was recorded. The result of such an attempt may vary.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub from_model: bool,
    /// The model's answer, shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
    /// The tokens that the answer used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The estimated cost in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How long the model took, in seconds, if it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// The result of an assertion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Check {
    /// The key of the assertion, such as `contains`.
    pub assertion: String,
    /// The line of the assertion in the test file, counted from 1.
    pub line: usize,
    /// Whether it passed.
    pub status: CheckStatus,
    /// What was found and what was expected, if it did not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The expected text, for a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The actual text, for a difference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// A score from 0 to 1, if the assertion measures one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

/// The status of a check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// The assertion holds.
    Passed,
    /// The assertion does not hold.
    #[default]
    Failed,
    /// The assertion could not be checked.
    NotRun,
}

impl CaseResult {
    /// Returns how many attempts passed.
    pub fn passes(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.passed).count()
    }

    /// Returns how many attempts there were, and how many of them passed.
    pub fn tally(&self) -> Tally {
        Tally::new(self.passes(), self.attempts.len())
    }

    /// Returns how many attempts there were, and how many of them passed, if the case has a pass rate: if there were several
    /// attempts, and nothing that is missing could change the verdict.
    pub fn repeated(&self) -> Option<Tally> {
        (self.attempts.len() > 1 && self.verdict != Verdict::NotRun).then(|| self.tally())
    }

    /// Returns the mean of all scores that the assertions measured, or `None` if there are none.
    pub fn score(&self) -> Option<f64> {
        let checks = self.attempts.iter().flat_map(|attempt| &attempt.checks);
        let scores = checks.filter_map(|check| check.score).filter(|score| score.is_finite());
        let (sum, count) = scores.fold((0.0, 0.0), |(sum, count), score| (sum + score, count + 1.0));
        (count > 0.0).then(|| sum / count)
    }

    /// Returns the checks that did not pass, of all attempts.
    pub fn failures(&self) -> impl Iterator<Item = &Check> {
        self.attempts.iter().flat_map(|attempt| &attempt.checks).filter(|check| check.status != CheckStatus::Passed)
    }

    /// Returns whether a model had a part in the result, so that it may vary from run to run.
    pub fn varies(&self) -> bool {
        self.attempts.iter().any(|attempt| attempt.from_model)
    }

    /// Returns the estimated cost of all attempts in US dollars, or `None` if none of them has one.
    pub fn cost(&self) -> Option<f64> {
        self.attempts.iter().filter_map(|attempt| attempt.cost).reduce(|sum, cost| sum + cost)
    }
}

impl Check {
    /// Creates the result of an assertion that holds.
    pub fn passed(assertion: &str, line: usize) -> Self {
        Self { assertion: assertion.to_owned(), line, status: CheckStatus::Passed, ..Self::default() }
    }

    /// Creates the result of an assertion that does not hold. The message says what was found and what was expected.
    pub fn failed(assertion: &str, line: usize, message: impl Into<String>) -> Self {
        Self { assertion: assertion.to_owned(), line, message: Some(message.into()), ..Self::default() }
    }

    /// Creates the result of an assertion that could not be checked.
    pub fn not_run(assertion: &str, line: usize, reason: impl Into<String>) -> Self {
        Self { status: CheckStatus::NotRun, ..Self::failed(assertion, line, reason) }
    }

    /// Adds the two texts whose difference explains a failure.
    #[must_use]
    pub fn with_difference(mut self, expected: impl Into<String>, actual: impl Into<String>) -> Self {
        self.expected = Some(expected.into());
        self.actual = Some(actual.into());
        self
    }

    /// Adds a score.
    #[must_use]
    pub fn with_score(mut self, score: f64) -> Self {
        self.score = Some(score);
        self
    }
}
