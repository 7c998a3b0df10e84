//! Whether a number of attempts can show that a pass rate reaches a threshold.

use std::fmt;

use super::{Confidence, Tally};

/// Why a number of attempts cannot show that a threshold is reached.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Unsupported {
    /// The number of attempts.
    pub attempts: usize,
    /// The threshold, from 0 to 1.
    pub threshold: f64,
    /// The lower end of the interval if all attempts pass.
    pub shown: f64,
    /// How many attempts would be enough if all of them passed. `None` if no number is, because the threshold is 1.
    pub needed: Option<usize>,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (attempts, shown, threshold) = (self.attempts, self.shown * 100.0, self.threshold * 100.0);
        let threshold = (threshold * 100.0).round() / 100.0;
        write!(f, "{attempts} of {attempts} shows only {shown:.0} %, and {threshold} % is required: ")?;
        match self.needed {
            Some(needed) => write!(f, "at least {needed} attempts are needed to show it"),
            None => f.write_str("no number of attempts can show it"),
        }
    }
}

/// Returns why a number of attempts cannot show that the pass rate is at least `threshold`, or `None` if it can.
///
/// It cannot if the lower end of the Wilson interval is below the threshold even when all attempts pass.
pub fn unsupported(attempts: usize, threshold: f64, confidence: Confidence) -> Option<Unsupported> {
    let shown = Tally::new(attempts, attempts).interval(confidence).low;
    // Thresholds that are not numbers are not supported either.
    let is_shown = shown >= threshold;
    (!is_shown).then(|| Unsupported { attempts, threshold, shown, needed: attempts_needed(threshold, confidence) })
}

/// Returns the fewest attempts which show that the pass rate is at least `threshold` if all of them pass. Returns `None`
/// if no number of attempts shows it.
pub fn attempts_needed(threshold: f64, confidence: Confidence) -> Option<usize> {
    if threshold <= 0.0 {
        return Some(0);
    }
    // The lower end for n of n is n / (n + z²).
    let needed = (confidence.z().powi(2) * threshold / (1.0 - threshold)).ceil();
    if !(threshold < 1.0 && needed <= f64::from(u32::MAX)) {
        return None;
    }
    // Rounding can make the quotient one too small or too large.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the number is checked above")]
    let needed = needed as usize;
    let shows = |attempts: usize| Tally::new(attempts, attempts).interval(confidence).low >= threshold;
    (needed.saturating_sub(1).max(1)..=needed + 1).find(|&attempts| shows(attempts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_attempts_are_enough_and_one_less_is_not() {
        for level in [0.8, 0.95, 0.99] {
            let confidence = Confidence::new(level).expect("a level");
            for percent in 1..100 {
                let threshold = f64::from(percent) / 100.0;
                let needed = attempts_needed(threshold, confidence).expect("a number of attempts");
                assert_eq!(unsupported(needed, threshold, confidence), None);
                assert!(needed == 0 || unsupported(needed - 1, threshold, confidence).is_some(), "{threshold}");
            }
        }
    }

    #[test]
    fn everything_or_nothing() {
        assert_eq!(attempts_needed(0.0, Confidence::P95), Some(0));
        assert_eq!(attempts_needed(-1.0, Confidence::P95), Some(0));
        assert_eq!(attempts_needed(1.0, Confidence::P95), None);
        assert_eq!(attempts_needed(f64::NAN, Confidence::P95), None);
        assert_eq!(attempts_needed(1.0 - f64::EPSILON, Confidence::P95), None);
        assert_eq!(unsupported(0, 0.0, Confidence::P95), None);
    }

    #[test]
    fn the_problem_is_one_sentence() {
        let sentence = |attempts, threshold| {
            unsupported(attempts, threshold, Confidence::P95).map(|problem| problem.to_string()).unwrap_or_default()
        };
        assert_eq!(
            sentence(5, 0.8),
            "5 of 5 shows only 57 %, and 80 % is required: at least 16 attempts are needed to show it"
        );
        assert_eq!(
            sentence(1, 0.995),
            "1 of 1 shows only 21 %, and 99.5 % is required: at least 765 attempts are needed to show it"
        );
        assert_eq!(
            sentence(20, 1.0),
            "20 of 20 shows only 84 %, and 100 % is required: no number of attempts can show it"
        );
    }
}
