//! Rate limits: requests and tokens per minute.
//!
//! Nothing here reads a clock or waits: the time is an argument, and the wait is a result.

use std::time::Duration;

/// A token bucket. It holds what is allowed in a second, so that calls are spread over the minute. What does not fit is
/// borrowed from the future, and the borrower waits.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    per_second: f64,
    capacity: f64,
    /// What may be used at once. Below zero, it is owed.
    level: f64,
    /// When the level was computed.
    at: Duration,
}

impl RateLimit {
    /// Creates a limit. At the beginning, the bucket is full.
    #[expect(clippy::cast_precision_loss, reason = "no limit is that large")]
    pub fn per_minute(amount: u64) -> Self {
        let per_second = amount.max(1) as f64 / 60.0;
        let capacity = per_second.max(1.0);
        Self { per_second, capacity, level: capacity, at: Duration::ZERO }
    }

    /// Takes an amount, and returns how long to wait before it may be used. `now` is the time since any fixed moment.
    #[expect(clippy::cast_precision_loss, reason = "no amount is that large")]
    pub fn take(&mut self, amount: u64, now: Duration) -> Duration {
        let elapsed = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.level = (self.level + elapsed * self.per_second).min(self.capacity) - amount as f64;
        Duration::try_from_secs_f64(-self.level.min(0.0) / self.per_second).unwrap_or(Duration::MAX)
    }

    /// Replaces an amount that was taken with the one that was used.
    #[expect(clippy::cast_precision_loss, reason = "no amount is that large")]
    pub fn correct(&mut self, taken: u64, used: u64) {
        self.level = (self.level + taken as f64 - used as f64).min(self.capacity);
    }
}

/// The rate limits of a job.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateLimits {
    /// The limit on requests.
    pub requests: Option<RateLimit>,
    /// The limit on tokens: those of the requests and of the answers.
    pub tokens: Option<RateLimit>,
}

impl RateLimits {
    /// Creates limits per minute.
    pub fn per_minute(requests: Option<u64>, tokens: Option<u64>) -> Self {
        Self { requests: requests.map(RateLimit::per_minute), tokens: tokens.map(RateLimit::per_minute) }
    }

    /// Takes one request with this many tokens, and returns how long to wait before it may be sent.
    pub fn take(&mut self, tokens: u64, now: Duration) -> Duration {
        let request = self.requests.as_mut().map_or(Duration::ZERO, |limit| limit.take(1, now));
        let tokens = self.tokens.as_mut().map_or(Duration::ZERO, |limit| limit.take(tokens, now));
        request.max(tokens)
    }

    /// Replaces the tokens that were taken with those that were used.
    pub fn correct(&mut self, taken: u64, used: u64) {
        if let Some(limit) = &mut self.tokens {
            limit.correct(taken, used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns when each of many calls may be sent that all wait for the limit.
    fn times(limits: &mut RateLimits, calls: usize, tokens: u64) -> Vec<Duration> {
        let mut now = Duration::ZERO;
        (0..calls)
            .map(|_| {
                now += limits.take(tokens, now);
                now
            })
            .collect()
    }

    fn most_in_a_minute(times: &[Duration]) -> usize {
        let minute = Duration::from_secs(60);
        let within = |start: &Duration| times.iter().filter(|time| (*start..*start + minute).contains(time)).count();
        times.iter().map(within).max().unwrap_or_default()
    }

    #[test]
    fn requests_are_spread_over_the_minute() {
        for per_minute in [1_u64, 30, 60, 600] {
            let mut limits = RateLimits::per_minute(Some(per_minute), None);
            let times = times(&mut limits, 2_000, 1_000_000);
            let most = most_in_a_minute(&times) as u64;
            let burst = (per_minute / 60).max(1);
            assert!((per_minute..=per_minute + burst).contains(&most), "{per_minute}: {most}");
        }
    }

    #[test]
    fn tokens_are_limited_and_corrected() {
        let mut limits = RateLimits::per_minute(None, Some(6_000));
        let first = times(&mut limits, 2, 600);
        assert_eq!(first, [Duration::from_secs(5), Duration::from_secs(11)]);
        // The answers were shorter than expected.
        limits.correct(600, 0);
        assert_eq!(limits.take(600, Duration::from_secs(11)), Duration::from_secs(5));
        limits.correct(0, u64::MAX);
        assert!(limits.take(1, Duration::from_secs(12)) > Duration::from_secs(1 << 30));
    }

    #[test]
    fn both_limits_hold_and_none_waits_for_nothing() {
        let mut limits = RateLimits::per_minute(Some(60), Some(6_000));
        assert_eq!(limits.take(50, Duration::ZERO), Duration::ZERO);
        assert_eq!(limits.take(0, Duration::ZERO), Duration::from_secs(1));
        assert_eq!(limits.take(600, Duration::from_secs(1)), Duration::from_secs(5));
        let mut none = RateLimits::default();
        assert_eq!(none.take(u64::MAX, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let mut limits = RateLimits::per_minute(Some(60), None);
        assert_eq!(limits.take(0, Duration::from_secs(9)), Duration::ZERO);
        assert_eq!(limits.take(0, Duration::from_secs(3)), Duration::from_secs(1));
    }
}
