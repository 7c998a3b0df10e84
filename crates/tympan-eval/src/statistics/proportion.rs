//! Pass rates and their intervals.

use serde::{Deserialize, Serialize};

use super::Confidence;

/// An interval of numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// How many attempts there were, and how many of them passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tally {
    passes: u32,
    attempts: u32,
}

impl Tally {
    /// Creates a tally. There are never more passes than attempts.
    pub fn new(passes: usize, attempts: usize) -> Self {
        let attempts = u32::try_from(attempts).unwrap_or(u32::MAX);
        Self { passes: u32::try_from(passes).map_or(attempts, |passes| passes.min(attempts)), attempts }
    }

    /// Returns how many attempts passed.
    pub const fn passes(self) -> u32 {
        self.passes
    }

    /// Returns how many attempts there were.
    pub const fn attempts(self) -> u32 {
        self.attempts
    }

    /// Returns the share of attempts that passed, or `None` without attempts.
    pub fn rate(self) -> Option<f64> {
        (self.attempts > 0).then(|| f64::from(self.passes) / f64::from(self.attempts))
    }

    /// Returns the Wilson score interval of the pass rate. Without attempts, it is everything from 0 to 1.
    ///
    /// Unlike the textbook interval around the rate, it stays within 0 and 1, and it is not a single point when all
    /// attempts passed: 5 of 5 is compatible with a pass rate of 57 %.
    pub fn interval(self, confidence: Confidence) -> Interval {
        let Some(rate) = self.rate() else { return Interval { low: 0.0, high: 1.0 } };
        let (n, z) = (f64::from(self.attempts), confidence.z());
        let scale = 1.0 + z * z / n;
        let center = (rate + z * z / (2.0 * n)) / scale;
        let half = z / scale * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
        // Rounding must not move the two ends that are exact.
        Interval {
            low: if self.passes == 0 { 0.0 } else { (center - half).max(0.0) },
            high: if self.passes == self.attempts { 1.0 } else { (center + half).min(1.0) },
        }
    }

    /// Estimates the chance that a number of independent attempts all pass, known as pass^k. Returns `None` if there
    /// were fewer attempts than that.
    ///
    /// This is the share of all choices of `together` attempts in which every attempt passed: C(passes, together) /
    /// C(attempts, together). Unlike the power of the pass rate, it is right on average.
    pub fn all_pass(self, together: usize) -> Option<f64> {
        let together = u32::try_from(together).ok().filter(|&together| together <= self.attempts)?;
        let failures = self.attempts - self.passes;
        if together > self.passes {
            return Some(0.0);
        }
        // The ratio is the same if failures and attempts that are chosen change places. Multiply the fewer factors.
        let (chosen, left_out) = (together.min(failures), together.max(failures));
        let n = f64::from(self.attempts);
        let mut chance = 1.0;
        for index in 0..chosen {
            let index = f64::from(index);
            chance *= (n - f64::from(left_out) - index) / (n - index);
            if chance == 0.0 {
                break;
            }
        }
        Some(chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_attempts_say_nothing() {
        let none = Tally::new(0, 0);
        assert_eq!(none.rate(), None);
        assert_eq!(none.interval(Confidence::P95), Interval { low: 0.0, high: 1.0 });
        assert_eq!((none.all_pass(0), none.all_pass(1)), (Some(1.0), None));
    }

    #[test]
    fn more_passes_than_attempts_are_all_attempts() {
        assert_eq!(Tally::new(7, 5), Tally::new(5, 5));
        assert_eq!(Tally::new(usize::MAX, usize::MAX).rate(), Some(1.0));
    }

    #[test]
    fn intervals_contain_the_rate_and_stay_within_bounds() {
        for level in [0.5, 0.8, 0.95, 0.999_999] {
            let confidence = Confidence::new(level).expect("a level");
            for attempts in 1..60 {
                for passes in 0..=attempts {
                    let tally = Tally::new(passes, attempts);
                    let (interval, rate) = (tally.interval(confidence), tally.rate().unwrap_or_default());
                    assert!(0.0 <= interval.low && interval.low <= rate, "{tally:?} {interval:?}");
                    assert!(rate <= interval.high && interval.high <= 1.0, "{tally:?} {interval:?}");
                }
            }
        }
    }

    #[test]
    fn all_attempts_of_many_are_computed_in_few_steps() {
        let many = Tally::new(4_000_000_000, 4_000_000_001);
        let half = many.all_pass(2_000_000_000).expect("enough attempts");
        assert!((half - 0.5).abs() < 1e-9, "{half}");
        assert_eq!(Tally::new(2_000_000_000, 4_000_000_000).all_pass(1_000_000_000), Some(0.0));
    }
}
