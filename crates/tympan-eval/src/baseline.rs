//! Compares a run with a saved one.

use std::collections::HashMap;
use std::io::BufRead;

use serde::{Deserialize, Serialize};

use crate::saved_run::{SavedRun, SavedRunError};
use crate::statistics::{Change, Confidence, McNemar, MeanChange, Tally, mcnemar, paired_bootstrap};
use crate::{CaseResult, Verdict};

/// A saved run to compare with. It contains a few numbers for each case, not the whole results.
#[derive(Debug, Default)]
pub struct Baseline {
    cases: HashMap<String, Measured>,
    is_cut_off: bool,
}

/// What a comparison needs to know about a case.
#[derive(Clone, Copy, Debug)]
struct Measured {
    verdict: Verdict,
    tally: Tally,
    score: Option<f64>,
    varies: bool,
}

impl Measured {
    fn of(result: &CaseResult) -> Self {
        Self { verdict: result.verdict, tally: result.tally(), score: result.score(), varies: result.varies() }
    }
}

impl Baseline {
    /// Reads a saved run. The name of the file is for errors.
    ///
    /// # Errors
    /// Returns an error if a line is not a result, or if two results have the same `id`.
    pub fn read(name: &str, reader: impl BufRead) -> Result<Self, SavedRunError> {
        let mut run = SavedRun::new(name, reader);
        let mut cases = HashMap::new();
        while let Some(result) = run.next().transpose()? {
            if cases.insert(result.id.clone(), Measured::of(&result)).is_some() {
                return Err(SavedRunError {
                    file: name.to_owned(),
                    line: run.line(),
                    column: None,
                    message: format!("expected one result for each case, found a second one for `{}`", result.id),
                    help: "save each run to its own file",
                });
            }
        }
        Ok(Self { cases, is_cut_off: run.is_cut_off() })
    }

    /// Returns the number of cases.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    /// Returns whether there are no cases.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Returns whether the last line of the file was cut off, because the run that wrote it was killed.
    pub const fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Starts a comparison with a new run.
    pub fn compare(self) -> Comparer {
        Comparer { before: self.cases, comparison: Comparison::default(), ..Comparer::default() }
    }
}

/// Compares the results of a new run with a baseline, one by one and in any order.
#[derive(Debug, Default)]
pub struct Comparer {
    /// The cases of the baseline that the new run has not had yet.
    before: HashMap<String, Measured>,
    comparison: Comparison,
    /// The cases whose results may vary.
    varying: Changes,
    rates: Vec<f64>,
    scores: Vec<f64>,
    is_repeated: bool,
}

impl Comparer {
    /// Adds a result of the new run.
    pub fn add(&mut self, result: &CaseResult) {
        let Some(before) = self.before.remove(&result.id) else {
            self.comparison.only_now.push(result.id.clone());
            return;
        };
        let now = Measured::of(result);
        self.comparison.pairs += 1;
        let change = match (before.verdict, now.verdict) {
            (Verdict::Failed, Verdict::Passed) => Some(&mut self.comparison.improved),
            (Verdict::Passed, Verdict::Failed) => Some(&mut self.comparison.regressed),
            (before, now) if before != now => {
                self.comparison.other.push(VerdictChange { id: result.id.clone(), before, now });
                None
            }
            _ => None,
        };
        if let Some(ids) = change {
            ids.push(result.id.clone());
        }
        // A result that cannot vary on one side leaves no doubt: a prompt that does not render never passes.
        let is_decided = |measured: Measured| matches!(measured.verdict, Verdict::Passed | Verdict::Failed);
        if before.varies && now.varies && is_decided(before) && is_decided(now) {
            self.add_varying(before, now);
        } else {
            self.comparison.exact.add(before.verdict, now.verdict);
        }
    }

    /// Adds a pair of results that may both vary.
    fn add_varying(&mut self, before: Measured, now: Measured) {
        self.varying.add(before.verdict, now.verdict);
        if let (Some(before), Some(now)) = (before.tally.rate(), now.tally.rate()) {
            self.rates.push(now - before);
        }
        self.is_repeated |= before.tally.attempts().max(now.tally.attempts()) > 1;
        if let (Some(before), Some(now)) = (before.score, now.score) {
            self.scores.push(now - before);
        }
    }

    /// Ends the comparison.
    pub fn finish(self, confidence: Confidence) -> Comparison {
        let mut comparison = self.comparison;
        comparison.only_before = self.before.into_keys().collect();
        // Cases run in parallel, and a report should not depend on which of them ended first.
        comparison.other.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        for ids in
            [&mut comparison.improved, &mut comparison.regressed, &mut comparison.only_before, &mut comparison.only_now]
        {
            ids.sort_unstable();
        }
        comparison.varying = self.varying.pairs;
        comparison.verdicts = mcnemar(self.varying.improved, self.varying.regressed, confidence);
        // Without repetitions, the rates are the verdicts.
        comparison.pass_rates = self.is_repeated.then(|| paired_bootstrap(&self.rates, confidence)).flatten();
        comparison.scores = paired_bootstrap(&self.scores, confidence);
        comparison
    }
}

/// A comparison of a run with a baseline. Cases are paired by their `id`.
///
/// If no model has a part in a result, it is the same in every run, so that every change is real. If one has, a change may
/// be chance, and only a statistical test over all such cases can show a difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Comparison {
    /// The number of cases in both runs.
    pub pairs: usize,
    /// The cases that failed before and pass now.
    pub improved: Vec<String>,
    /// The cases that passed before and fail now.
    pub regressed: Vec<String>,
    /// The cases whose verdict changed in another way, such as from passed to not run.
    pub other: Vec<VerdictChange>,
    /// The cases that only the baseline has.
    pub only_before: Vec<String>,
    /// The cases that only the new run has.
    pub only_now: Vec<String>,
    /// The cases whose results do not vary.
    pub exact: Changes,
    /// The number of cases in both runs whose results may vary.
    pub varying: usize,
    /// What the changed verdicts of cases show whose results may vary.
    pub verdicts: McNemar,
    /// What the pass rates of these cases show, if any case has several attempts.
    pub pass_rates: Option<MeanChange>,
    /// What the scores of these cases show, if there are any.
    pub scores: Option<MeanChange>,
}

/// How many cases got better or worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Changes {
    /// The number of cases.
    pub pairs: usize,
    /// How many of them failed before and pass now.
    pub improved: usize,
    /// How many of them passed before and fail now.
    pub regressed: usize,
}

impl Changes {
    fn add(&mut self, before: Verdict, now: Verdict) {
        self.pairs += 1;
        match (before, now) {
            (Verdict::Failed, Verdict::Passed) => self.improved += 1,
            (Verdict::Passed, Verdict::Failed) => self.regressed += 1,
            _ => {}
        }
    }

    /// Returns whether the cases got better or worse as a whole: worse if any case is worse.
    pub const fn change(self) -> Change {
        match (self.regressed, self.improved) {
            (1.., _) => Change::Worse,
            (0, 1..) => Change::Better,
            (0, 0) => Change::NotShown,
        }
    }
}

/// A change of a verdict that is neither better nor worse.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictChange {
    /// The `id` of the case.
    pub id: String,
    /// The verdict in the baseline.
    pub before: Verdict,
    /// The verdict in the new run.
    pub now: Verdict,
}

impl Comparison {
    /// Returns what the comparison shows as a whole: worse if a case is worse whose result does not vary, or if a measure
    /// of the other cases is worse; otherwise better if any of them is better.
    ///
    /// Each measure has the confidence of the comparison on its own.
    pub fn change(&self) -> Change {
        let means = [self.pass_rates, self.scores].into_iter().flatten().map(|mean| mean.change);
        let changes: Vec<Change> = means.chain([self.exact.change(), self.verdicts.change]).collect();
        let shows = |change| changes.contains(&change).then_some(change);
        shows(Change::Worse).or_else(|| shows(Change::Better)).unwrap_or_default()
    }

    /// Returns what the comparison shows in words.
    pub fn word(&self) -> &'static str {
        match self.change() {
            Change::Better => "better",
            Change::Worse => "worse",
            Change::NotShown if self.varying == 0 && self.other.is_empty() => "unchanged",
            Change::NotShown => "no difference shown",
        }
    }
}
