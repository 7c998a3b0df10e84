//! Measures how the cost of a function grows with its input.
#![allow(clippy::disallowed_methods, reason = "the work is measured here, and by nobody else")]

use std::time::{Duration, Instant};

/// The maximum growth of the time when the input grows by a factor of four. Quadratic time grows by sixteen.
const MAX_GROWTH: f64 = 9.0;

/// Shorter times are noise: they depend more on clocks and caches than on the input.
const NOISE: Duration = Duration::from_millis(25);

/// How often each size is measured. The minimum counts.
const RUNS: usize = 3;

/// A measured function: a name, a size, and a constructor of the work for a size.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) work: fn(usize) -> Box<dyn Fn()>,
}

/// Compares the time for a size with the times for twice and four times the size, for every row.
pub(crate) fn check(rows: &[Row]) {
    assert!(!rows.is_empty());
    let complaints: Vec<_> = rows.iter().filter_map(complaint).collect();
    assert!(complaints.is_empty(), "the work grows faster than the input:\n{}", complaints.join("\n"));
}

fn complaint(row: &Row) -> Option<String> {
    let first = growth(row)?;
    // Measure again before failing: another process may have used the machine.
    (1..RUNS).all(|_| growth(row).is_some()).then_some(first)
}

fn growth(row: &Row) -> Option<String> {
    let one = measure(&(row.work)(row.size));
    let two = measure(&(row.work)(2 * row.size));
    let four = measure(&(row.work)(4 * row.size));
    let base = one.max(NOISE / 4).as_secs_f64();
    let factor = four.as_secs_f64() / base;
    let is_quadratic = four > NOISE && factor > MAX_GROWTH;
    let Row { name, size, .. } = row;
    is_quadratic.then(|| format!("{name} ({size}): {one:?}, {two:?}, {four:?}"))
}

/// Returns the minimum time of several runs. One run is sufficient if the time is below the noise or far above it.
fn measure(work: &dyn Fn()) -> Duration {
    let mut least = Duration::MAX;
    for _ in 0..RUNS {
        let start = Clock::start();
        work();
        least = least.min(start.elapsed());
        if least < NOISE / 4 || least > NOISE * 8 {
            break;
        }
    }
    least
}

/// The CPU time of this thread if the system provides it, and the elapsed time otherwise.
enum Clock {
    Work(Duration),
    Passed(Instant),
}

impl Clock {
    fn start() -> Self {
        worked().map_or_else(|| Self::Passed(Instant::now()), Self::Work)
    }

    fn elapsed(&self) -> Duration {
        match self {
            Self::Work(start) => worked().unwrap_or_default().saturating_sub(*start),
            Self::Passed(start) => start.elapsed(),
        }
    }
}

fn worked() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}
