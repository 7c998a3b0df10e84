//! The totals of a run.

use serde::{Deserialize, Serialize};

use super::failure::chances;
use super::number::{counted, percent};
use crate::baseline::Comparison;
use crate::{CaseResult, Verdict};

/// The most attempts for which the chance that all of them pass is summarized.
const MOST_TOGETHER: usize = 10;

/// The totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Summary {
    /// How many cases passed.
    pub passed: usize,
    /// How many cases failed.
    pub failed: usize,
    /// How many cases could not run.
    pub not_run: usize,
    /// How many cases were skipped on purpose.
    pub skipped: usize,
    /// How many attempts there were.
    pub attempts: usize,
    /// How many attempts passed.
    pub passed_attempts: usize,
    /// How many tokens the requests had.
    pub input_tokens: u64,
    /// How many tokens the answers had.
    pub output_tokens: u64,
    /// The estimated cost in US dollars, if any attempt has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How long the run took, in seconds. [`Summary::add`] does not change it, because cases run in parallel.
    pub seconds: f64,
    /// How many warnings there were.
    pub warnings: usize,
    /// The chance that several attempts at a case all pass (pass^k), as the mean over the cases with several attempts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub all_pass: Vec<AllPass>,
    /// The comparison with a saved run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
}

/// The chance that a number of attempts at a case all pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllPass {
    /// The number of attempts.
    pub together: usize,
    /// The mean of the chance over the cases.
    pub mean: f64,
    /// The number of cases that have enough attempts.
    pub cases: usize,
}

impl Summary {
    /// Adds the result of a case.
    pub fn add(&mut self, result: &CaseResult) {
        *match result.verdict {
            Verdict::Passed => &mut self.passed,
            Verdict::Failed => &mut self.failed,
            Verdict::NotRun => &mut self.not_run,
            Verdict::Skipped => &mut self.skipped,
        } += 1;
        self.attempts += result.attempts.len();
        self.passed_attempts += result.passes();
        self.warnings += result.warnings.len();
        for usage in result.attempts.iter().filter_map(|attempt| attempt.usage.as_ref()) {
            self.input_tokens = self.input_tokens.saturating_add(usage.input_tokens);
            self.output_tokens = self.output_tokens.saturating_add(usage.output_tokens);
        }
        self.cost = [self.cost, result.cost()].into_iter().flatten().reduce(|sum, cost| sum + cost);
        if result.repeated().is_some() {
            self.add_all_pass(result);
        }
    }

    /// Adds a cost in US dollars that is not part of any attempt, such as that of judges.
    pub fn add_cost(&mut self, dollars: f64) {
        if dollars > 0.0 {
            self.cost = Some(self.cost.unwrap_or_default() + dollars);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "there are fewer cases than 2^53")]
    fn add_all_pass(&mut self, result: &CaseResult) {
        for together in 1..=MOST_TOGETHER {
            let Some(chance) = result.tally().all_pass(together) else { break };
            if self.all_pass.len() < together {
                self.all_pass.push(AllPass { together, ..AllPass::default() });
            }
            let entry = &mut self.all_pass[together - 1];
            entry.cases += 1;
            entry.mean += (chance - entry.mean) / entry.cases as f64;
        }
    }

    /// Returns the number of cases.
    pub const fn cases(&self) -> usize {
        self.passed + self.failed + self.not_run + self.skipped
    }

    /// Returns whether no case failed, and, unless `allow_missing`, every case ran that was not skipped.
    pub const fn is_success(&self, allow_missing: bool) -> bool {
        self.failed == 0 && (allow_missing || self.not_run == 0)
    }

    /// Returns how often cases with several attempts passed in words, as the mean over these cases: `3 repeated cases: pass
    /// rate 90 %, pass^2 81 %, pass^4 66 %`.
    pub fn repetitions(&self) -> Option<String> {
        let (first, last) = (self.all_pass.first()?, self.all_pass.last()?.together);
        let is_shown = |entry: &&AllPass| [2, 4, 8, last].contains(&entry.together);
        let together = self.all_pass.iter().filter(is_shown).map(|entry| (entry.together, entry.mean));
        let cases = counted(first.cases, "repeated case");
        let rate = format!("{cases}: pass rate {}", percent(first.mean));
        // If every attempt passed, or none, the chances are the pass rate.
        let is_clear = first.mean <= 0.0 || first.mean >= 1.0;
        Some(if is_clear { rate } else { format!("{rate}, {}", chances(together)) })
    }

    /// Returns the numbers of cases in words: `8 passed, 1 failed, 2 not run`.
    pub fn counts(&self) -> String {
        let counts =
            [(self.passed, "passed"), (self.failed, "failed"), (self.not_run, "not run"), (self.skipped, "skipped")];
        let named: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
        if named.is_empty() { counted(0, "case") } else { named.join(", ") }
    }
}
