//! Levels of confidence, and the quantiles of the normal distribution that belong to them.

use std::f64::consts::PI;

/// The level of confidence of an interval or a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Confidence {
    level: f64,
    /// The distance from the mean, in standard deviations, that a normal variable exceeds on neither side with the
    /// probability `level`.
    z: f64,
}

impl Confidence {
    /// 95 %, the default.
    pub const P95: Self = Self { level: 0.95, z: 1.959_963_984_540_054 };

    /// Creates a level of confidence. Returns `None` if the level is not greater than 0 and less than 1.
    pub fn new(level: f64) -> Option<Self> {
        (level > 0.0 && level < 1.0).then(|| Self { level, z: quantile((1.0 - level) / 2.0) })
    }

    /// Returns the level, between 0 and 1.
    pub const fn level(self) -> f64 {
        self.level
    }

    /// Returns the two-sided quantile of the standard normal distribution, such as 1.96 for 95 %.
    pub const fn z(self) -> f64 {
        self.z
    }
}

impl Default for Confidence {
    fn default() -> Self {
        Self::P95
    }
}

/// Returns the point that a standard normal variable exceeds with the given probability, which is at most one half.
fn quantile(tail: f64) -> f64 {
    // No smaller probability is left of a level that is a double, and the tail beyond 40 is 0.
    let (mut low, mut high) = (0.0, 40.0);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle) > tail { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

/// Returns the probability that a standard normal variable exceeds a point, which is not negative.
fn upper_tail(x: f64) -> f64 {
    let density = (-x * x / 2.0).exp() / (2.0 * PI).sqrt();
    // A power series close to the mean, and a continued fraction far from it, where the series would cancel.
    if x < 3.0 {
        let mut term = x;
        let mut sum = x;
        for odd in (3..200).step_by(2) {
            term *= x * x / f64::from(odd);
            sum += term;
        }
        0.5 - density * sum
    } else {
        density / (1..200).rev().fold(x, |fraction, step| x + f64::from(step) / fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_what_is_computed_for_it() {
        let computed = Confidence::new(0.95).expect("a level");
        assert!((computed.z() - Confidence::P95.z()).abs() < 1e-13, "{}", computed.z());
        assert_eq!(Confidence::default(), Confidence::P95);
    }

    #[test]
    fn levels_that_are_not_levels_are_refused() {
        for level in [0.0, 1.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            assert_eq!(Confidence::new(level), None, "{level}");
        }
        // The closest doubles to both ends.
        assert!(Confidence::new(f64::MIN_POSITIVE).is_some_and(|level| level.z() < 1e-15));
        assert!(Confidence::new(1.0 - f64::EPSILON / 2.0).is_some_and(|level| level.z() > 8.0 && level.z() < 9.0));
    }
}
