//! How the work of a function grows with its input.
#![allow(clippy::disallowed_methods, reason = "the work is measured here, and by nobody else")]

use std::time::{Duration, Instant};

/// The most that work may grow by when the input grows by four. Quadratic work grows by sixteen.
const MAX_GROWTH: f64 = 9.0;

/// Work below this says nothing: clocks and caches have more say in it than the input.
const NOISE: Duration = Duration::from_millis(25);

/// How often each size is measured; the least of it counts.
const RUNS: usize = 3;

/// Something whose work is measured: a name, a size, and how to make work of a size.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) work: fn(usize) -> Box<dyn Fn()>,
}

/// Compares the work of a size with that of twice and four times the size, for every row.
pub(crate) fn check(rows: &[Row]) {
    assert!(!rows.is_empty());
    let complaints: Vec<_> = rows.iter().filter_map(complaint).collect();
    assert!(complaints.is_empty(), "the work grows faster than the input:\n{}", complaints.join("\n"));
}

fn complaint(row: &Row) -> Option<String> {
    let first = growth(row)?;
    // What seems to grow too fast is measured again: somebody else may have used the machine.
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

/// The least work of several runs. One is enough where it says nothing, or where there is so much that noise is lost in it.
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

/// The time that this thread has worked, where the system says so; otherwise, the time that has passed.
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
