//! Two threads compared with one.
//!
//! This uses wall-clock time, because a thread that waits for another uses no CPU time. Other programs affect that
//! clock, so the best of several attempts counts, and a peer is measured as well to show what the machine can deliver.

use crate::row::Row;
use std::thread;
use std::time::{Duration, Instant};

/// Short, so that some attempts find the machine idle, but long compared with the start of a thread.
const ATTEMPT: Duration = Duration::from_millis(15);

/// Returns the throughput of two threads relative to one, for a row that takes about `ns` nanoseconds.
pub fn scaling(row: &Row, ns: f64, attempts: u32) -> f64 {
    let times = (ATTEMPT.as_nanos() as f64 / ns).max(1.0) as u64;
    let (mut one, mut two) = (Duration::MAX, Duration::MAX);
    for _ in 0..attempts {
        one = one.min(wall_time(row, times, 1));
        two = two.min(wall_time(row, times, 2));
    }
    2.0 * one.as_secs_f64() / two.as_secs_f64()
}

/// Returns the time until all threads have repeated the row this many times.
fn wall_time(row: &Row, times: u64, threads: usize) -> Duration {
    let started = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| row.run(times));
        }
    });
    started.elapsed()
}
