//! What went wrong in a case, for reports.

use std::collections::HashMap;

use super::difference::{Piece, difference};
use super::number::percent;
use crate::statistics::Confidence;
use crate::{CaseResult, Check, CheckStatus, Verdict};

/// An assertion that did not pass. Attempts in which the same assertion did not pass are counted together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Failure<'result> {
    /// The result of the assertion in the first attempt in which it did not pass.
    pub check: &'result Check,
    /// The attempts in which it did not pass, counted from 1.
    pub attempts: Vec<usize>,
}

impl Failure<'_> {
    /// Returns the difference between the expected and the actual text, if there is one.
    pub fn difference(&self) -> Option<Vec<Piece>> {
        Some(difference(self.check.expected.as_deref()?, self.check.actual.as_deref()?))
    }

    /// Returns what was found and what was expected.
    pub fn message(&self) -> &str {
        let unexplained = match self.check.status {
            CheckStatus::NotRun => "could not be checked",
            _ => "does not hold",
        };
        self.check.message.as_deref().unwrap_or(unexplained)
    }
}

/// Returns the assertions of a case that did not pass, in order.
pub fn failures(result: &CaseResult) -> Vec<Failure<'_>> {
    let mut failures: Vec<Failure<'_>> = Vec::new();
    let mut known: HashMap<(&str, usize, usize), usize> = HashMap::new();
    for (attempt, number) in result.attempts.iter().zip(1..) {
        // One assertion can make several checks, such as one for each input. They are told apart by their order.
        let mut seen: HashMap<(&str, usize), usize> = HashMap::new();
        for check in &attempt.checks {
            let order = seen.entry((&check.assertion, check.line)).or_default();
            *order += 1;
            if check.status == CheckStatus::Passed {
                continue;
            }
            let index = *known.entry((&check.assertion, check.line, *order)).or_insert(failures.len());
            match failures.get_mut(index) {
                Some(failure) => failure.attempts.push(number),
                None => failures.push(Failure { check, attempts: vec![number] }),
            }
        }
    }
    failures
}

/// Returns the pass rate of a case in words, if there were several attempts.
pub fn pass_rate(result: &CaseResult) -> Option<String> {
    let tally = result.repeated()?;
    let rate = tally.rate()?;
    let interval = tally.interval(Confidence::P95);
    let (passes, attempts) = (tally.passes(), tally.attempts());
    let (low, high) = (percent(interval.low), percent(interval.high));
    let required = percent(result.required);
    let together = all_pass(result).map(|chances| format!("; {chances}")).unwrap_or_default();
    let rate = percent(rate);
    Some(format!(
        "{passes} of {attempts} attempts passed: {rate} (95 % interval: {low} to {high}), {required} required{together}"
    ))
}

/// Returns the estimated chances that several attempts all pass in words: `pass^2 62 %, pass^4 33 %`. If every attempt
/// passed, or none, they are the pass rate and say nothing more.
pub fn all_pass(result: &CaseResult) -> Option<String> {
    let tally = result.repeated()?;
    let attempts = result.attempts.len();
    let chance = |together: usize| Some((together, tally.all_pass(together)?));
    let rate = tally.rate().filter(|rate| *rate > 0.0 && *rate < 1.0);
    rate.map(|_| {
        chances([2, 4, 8].into_iter().filter(|together| *together < attempts).chain([attempts]).filter_map(chance))
    })
}

/// Formats the chances that several attempts all pass.
pub(super) fn chances(chances: impl Iterator<Item = (usize, f64)>) -> String {
    chances.map(|(together, chance)| format!("pass^{together} {}", percent(chance))).collect::<Vec<_>>().join(", ")
}

/// Returns one sentence about the result of a case, or `None` if it passed and there is nothing to say.
pub fn headline(result: &CaseResult) -> Option<String> {
    if let Some(rate) = pass_rate(result) {
        return Some(rate);
    }
    if let Some(reason) = &result.reason {
        return Some(reason.clone());
    }
    if result.verdict == Verdict::Passed {
        return None;
    }
    let failures = failures(result);
    let first = failures.first()?;
    let more = match failures.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    Some(format!("{}: {}{more}", first.check.assertion, first.message()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Attempt;

    fn attempt(checks: Vec<Check>) -> Attempt {
        let passed = checks.iter().all(|check| check.status == CheckStatus::Passed);
        Attempt { passed, checks, ..Attempt::default() }
    }

    #[test]
    fn failures_of_several_attempts_are_counted_together() {
        let contains = |message| Check::failed("contains", 3, message);
        let result = CaseResult {
            verdict: Verdict::Failed,
            required: 0.8,
            attempts: vec![
                attempt(vec![Check::passed("contains", 3), contains("b is missing")]),
                attempt(vec![Check::passed("contains", 3), Check::passed("contains", 3)]),
                attempt(vec![contains("a is missing"), contains("b is missing as well")]),
            ],
            ..CaseResult::default()
        };
        let failures = failures(&result);
        let found: Vec<_> = failures.iter().map(|failure| (failure.message(), failure.attempts.clone())).collect();
        assert_eq!(found, [("b is missing", vec![1, 3]), ("a is missing", vec![3])]);
        assert_eq!(
            headline(&result).as_deref(),
            Some("1 of 3 attempts passed: 33 % (95 % interval: 6 % to 79 %), 80 % required; pass^2 0 %, pass^3 0 %")
        );
    }

    #[test]
    fn cases_that_did_not_run_have_no_pass_rate() {
        let reason = Some("nothing is recorded".to_owned());
        let open = attempt(vec![Check::not_run("result", 2, "nothing is recorded")]);
        let result = CaseResult { reason, attempts: vec![open.clone(), open], ..CaseResult::default() };
        assert_eq!((result.verdict, pass_rate(&result), all_pass(&result)), (Verdict::NotRun, None, None));
        assert_eq!(headline(&result).as_deref(), Some("nothing is recorded"));
    }

    #[test]
    fn a_single_attempt_is_described_by_its_first_failure() {
        let checks = vec![Check::failed("roles", 2, "expected user"), Check::not_run("judge", 4, "no model")];
        let mut result =
            CaseResult { verdict: Verdict::Failed, attempts: vec![attempt(checks)], ..CaseResult::default() };
        assert_eq!(headline(&result).as_deref(), Some("roles: expected user (and 1 more)"));
        result.reason = Some("the prompt does not load".to_owned());
        assert_eq!(headline(&result).as_deref(), Some("the prompt does not load"));
        assert_eq!(headline(&CaseResult { verdict: Verdict::Passed, ..CaseResult::default() }), None);
    }
}
