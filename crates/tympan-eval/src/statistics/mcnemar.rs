//! McNemar's test for verdicts of the same cases in two runs.

use serde::{Deserialize, Serialize};

use super::{Change, Confidence};

/// The result of McNemar's exact test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct McNemar {
    /// How many cases failed before and pass now.
    pub improved: usize,
    /// How many cases passed before and fail now.
    pub regressed: usize,
    /// The probability of a split at least as uneven as this one if nothing had changed.
    pub p: f64,
    /// What the test shows.
    pub change: Change,
}

/// Compares the verdicts of two runs of the same cases by McNemar's exact test, two-sided.
///
/// Only cases whose verdict changed matter. If nothing changed but chance, each of them is as likely to get better as to
/// get worse, so the smaller group has a binomial distribution, and the test doubles its tail. False alarms are never
/// more frequent than the confidence allows. The mid-p variant finds more changes, but does not guarantee this.
pub fn mcnemar(improved: usize, regressed: usize, confidence: Confidence) -> McNemar {
    let changed = improved.saturating_add(regressed);
    let p = (2.0 * lower_tail(improved.min(regressed), changed)).min(1.0);
    let change = match (p < 1.0 - confidence.level(), improved > regressed) {
        (false, _) => Change::NotShown,
        (true, true) => Change::Better,
        (true, false) => Change::Worse,
    };
    McNemar { improved, regressed, p, change }
}

/// Returns the probability of at most `count` heads in `tosses` of a fair coin, for a count up to one half of them.
#[expect(clippy::cast_precision_loss, reason = "there are fewer cases than 2^53")]
fn lower_tail(count: usize, tosses: usize) -> f64 {
    let n = tosses as f64;
    // The logarithm of the largest term, because the term itself can be too small for the intermediate products.
    let factors = (0..count).map(|index| ((n - index as f64) / (count - index) as f64).ln());
    let largest = (factors.sum::<f64>() - n * std::f64::consts::LN_2).exp();
    let (mut sum, mut term) = (0.0, largest);
    for index in (0..=count).rev() {
        sum += term;
        term *= index as f64 / (n - index as f64 + 1.0);
        if term < sum * f64::EPSILON / 4.0 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changes_show_nothing() {
        let none = mcnemar(0, 0, Confidence::P95);
        assert_eq!((none.p, none.change), (1.0, Change::NotShown));
    }

    #[test]
    fn six_changes_in_one_direction_are_the_fewest_that_show_something() {
        assert_eq!(mcnemar(5, 0, Confidence::P95).change, Change::NotShown);
        assert_eq!(mcnemar(6, 0, Confidence::P95).change, Change::Better);
        assert_eq!(mcnemar(0, 6, Confidence::P95).change, Change::Worse);
    }

    #[test]
    fn equal_numbers_have_the_probability_1() {
        for count in [1, 10, 1000, 100_000] {
            assert_eq!(mcnemar(count, count, Confidence::P95).p, 1.0);
        }
    }

    #[test]
    fn large_numbers_do_not_underflow_to_a_wrong_result() {
        let much = mcnemar(1_000_000, 100, Confidence::P95);
        assert_eq!((much.p, much.change), (0.0, Change::Better));
    }
}
