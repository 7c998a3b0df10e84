//! The paired bootstrap for scores of the same cases in two runs.

use serde::{Deserialize, Serialize};

use super::{Change, Confidence, Interval};

/// How many times the differences are resampled.
pub const RESAMPLES: usize = 10_000;
/// The number of differences from which the interval is computed from the normal distribution. It bounds the work, and
/// means of so many differences between scores are distributed normally.
pub const LARGE_SAMPLE: usize = 5_000;
/// The fewest differences other than zero that can show a change.
///
/// If nothing changed, each difference is as likely to be positive as negative. Five of the same sign happen by chance
/// in one of 16 comparisons, six in one of 32. A bootstrap alone would not notice: it cannot draw values that it has not
/// seen, so a single difference has an interval without width.
pub const FEWEST_DIFFERENCES: usize = 6;

/// Where the generator starts. Any number would do, as long as it stays the same.
const SEED: u64 = 0x7479_6d70_616e_2e31;

/// The change of a mean between two runs of the same cases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MeanChange {
    /// The number of cases that have a value in both runs.
    pub pairs: usize,
    /// The mean difference: positive if the new run has higher values.
    pub mean: f64,
    /// The interval of the mean difference.
    pub interval: Interval,
    /// What the interval shows.
    pub change: Change,
}

/// Compares the values of two runs by the differences of each pair, new minus old, with the percentile interval of
/// [`RESAMPLES`] bootstrap samples. Returns `None` if there are no differences.
///
/// A change is shown if the interval does not contain 0 and at least [`FEWEST_DIFFERENCES`] pairs differ. The order of
/// the differences does not matter. Differences that are not finite are left out.
pub fn paired_bootstrap(differences: &[f64], confidence: Confidence) -> Option<MeanChange> {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|difference| difference.is_finite()).collect();
    if sorted.is_empty() {
        return None;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let mean = mean(&sorted);
    let interval = if sorted.len() < LARGE_SAMPLE {
        percentile_interval(&sorted, confidence)
    } else {
        normal_interval(&sorted, mean, confidence)
    };
    let is_enough = sorted.iter().filter(|difference| **difference != 0.0).count() >= FEWEST_DIFFERENCES;
    let change = match interval {
        Interval { low, .. } if is_enough && low > 0.0 => Change::Better,
        Interval { high, .. } if is_enough && high < 0.0 => Change::Worse,
        _ => Change::NotShown,
    };
    Some(MeanChange { pairs: sorted.len(), mean, interval, change })
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer values than 2^53")]
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn percentile_interval(values: &[f64], confidence: Confidence) -> Interval {
    let mut generator = Generator(SEED);
    let mut sample = vec![0.0; values.len()];
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            sample.fill_with(|| values[generator.below(values.len())]);
            mean(&sample)
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - confidence.level()) / 2.0;
    Interval { low: percentile(&means, tail), high: percentile(&means, 1.0 - tail) }
}

/// Returns a percentile of sorted values, interpolated between the two values that are closest.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the position is between 0 and the number of values"
)]
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

#[expect(clippy::cast_precision_loss, reason = "there are fewer values than 2^53")]
fn normal_interval(values: &[f64], mean: f64, confidence: Confidence) -> Interval {
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let half = confidence.z() * squares.sqrt() / values.len() as f64;
    Interval { low: mean - half, high: mean + half }
}

/// The generator SplitMix64. Its numbers are the same on every machine.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns an index below a bound. Bounds are far below 2^64, so no index is noticeably more likely than another.
    #[expect(clippy::cast_possible_truncation, reason = "the index is below the bound")]
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(differences: &[f64]) -> MeanChange {
        paired_bootstrap(differences, Confidence::P95).expect("differences")
    }

    #[test]
    fn few_differences_show_nothing() {
        assert_eq!(paired_bootstrap(&[], Confidence::P95), None);
        assert_eq!(paired_bootstrap(&[f64::NAN, f64::INFINITY], Confidence::P95), None);
        assert_eq!(compare(&[0.5]).change, Change::NotShown);
        assert_eq!(compare(&[0.5; 5]).change, Change::NotShown);
        assert_eq!(compare(&[0.5; 6]).change, Change::Better);
        assert_eq!(compare(&[-0.5; 6]).change, Change::Worse);
        // The interval of four equal differences among many zeros does not contain 0 either.
        let mut four = vec![0.0; 996];
        four.extend([1.0; 4]);
        let four = compare(&four);
        assert!(four.interval.low > 0.0, "{four:?}");
        assert_eq!(four.change, Change::NotShown);
    }

    #[test]
    fn the_order_of_the_cases_does_not_matter() {
        let differences: Vec<f64> = (0..40).map(|index| f64::from(index * 7 % 40) / 40.0 - 0.3).collect();
        let reversed: Vec<f64> = differences.iter().rev().copied().collect();
        assert_eq!(compare(&differences), compare(&reversed));
    }

    #[test]
    fn large_samples_have_the_interval_that_resampling_would_find() {
        let values: Vec<f64> = (0..LARGE_SAMPLE - 1).map(|index| (index * 37 % 101) as f64 / 100.0 - 0.4).collect();
        let resampled = percentile_interval(&values, Confidence::P95);
        let normal = normal_interval(&values, mean(&values), Confidence::P95);
        let width = normal.high - normal.low;
        assert!((resampled.low - normal.low).abs() < width * 0.03, "{resampled:?} {normal:?}");
        assert!((resampled.high - normal.high).abs() < width * 0.03, "{resampled:?} {normal:?}");
        let more: Vec<f64> = values.iter().copied().cycle().take(200_000).collect();
        assert_eq!(compare(&more).change, Change::Better);
    }
}
