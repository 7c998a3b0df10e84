//! Two threads against one.
//!
//! On the clock on the wall, since a thread that waits for another spends no CPU time. That clock also runs while other
//! programs do; so the best of several attempts counts, and a peer is measured alongside to show what the machine gives.

use crate::row::Row;
use std::thread;
use std::time::{Duration, Instant};

/// Short, so that some attempts find the machine quiet; long beside the start of a thread.
const ATTEMPT: Duration = Duration::from_millis(15);

/// How many times as much two threads get done as one, for a row that takes about `ns`.
pub fn scaling(row: &Row, ns: f64, attempts: u32) -> f64 {
    let times = (ATTEMPT.as_nanos() as f64 / ns).max(1.0) as u64;
    let (mut one, mut two) = (Duration::MAX, Duration::MAX);
    for _ in 0..attempts {
        one = one.min(wall_time(row, times, 1));
        two = two.min(wall_time(row, times, 2));
    }
    2.0 * one.as_secs_f64() / two.as_secs_f64()
}

/// How long it takes until each of so many threads has repeated the row so many times.
fn wall_time(row: &Row, times: u64, threads: usize) -> Duration {
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| row.run(times));
        }
    });
    started.elapsed()
}
