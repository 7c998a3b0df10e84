//! Time, as the median of many short batches.
//!
//! The clock measures the CPU time of the thread, because other programs run on the machine too. The rows take turns,
//! one batch each, so that a slow minute affects all of them and the ratios stay the same.

use crate::row::Row;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Before each timed batch, this fraction of it runs untimed.
const WARM_UP: u64 = 8;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// The number of batches per row.
    pub rounds: u32,
    /// The target duration of a batch. A batch of one repetition may take longer.
    pub batch: Duration,
}

/// The time of one repetition.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The median over the batches, in nanoseconds.
    pub ns: f64,
    /// Half the interquartile range relative to the median, which shows how reliable the median is.
    pub spread: f64,
}

/// Times rows against each other. Calls `tick` after each round.
pub fn time(rows: &[Row], effort: Effort, tick: impl Fn()) -> Vec<Timing> {
    let repetitions: Vec<u64> = rows.iter().map(|row| repetitions(row, effort.batch)).collect();
    let mut samples = vec![Vec::with_capacity(effort.rounds as usize); rows.len()];
    for round in 0..effort.rounds as usize {
        // Start each round with a different row, so that no row always follows the same one.
        for i in (0..rows.len()).map(|i| (i + round) % rows.len()) {
            // The previous row has evicted the caches. Without a warm-up, rows with few repetitions would suffer most.
            rows[i].run(repetitions[i].div_ceil(WARM_UP));
            let spent = cpu_time_of(|| rows[i].run(repetitions[i]));
            samples[i].push(spent.as_nanos() as f64 / repetitions[i] as f64);
        }
        tick();
    }
    samples.into_iter().map(summarise).collect()
}

/// Returns the number of repetitions that fill a batch. Finding it also warms the caches.
fn repetitions(row: &Row, batch: Duration) -> u64 {
    let mut times = 1;
    loop {
        let spent = cpu_time_of(|| row.run(times));
        if spent * 2 >= batch {
            let exact = times as f64 * batch.as_secs_f64() / spent.as_secs_f64();
            return (exact as u64).max(1);
        }
        times *= 2;
    }
}

fn cpu_time_of(work: impl FnOnce()) -> Duration {
    let before = thread_cpu_time();
    work();
    thread_cpu_time().saturating_sub(before)
}

fn thread_cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    // Neither part of this clock is ever negative.
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn summarise(mut samples: Vec<f64>) -> Timing {
    samples.sort_by(f64::total_cmp);
    let at = |part: f64| samples[((samples.len() - 1) as f64 * part).round() as usize];
    let ns = at(0.5);
    Timing { ns, spread: (at(0.75) - at(0.25)) / 2.0 / ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_ignores_a_batch_that_was_disturbed() {
        let timing = summarise(vec![9000.0, 10.0, 11.0, 9.0, 10.0]);
        assert_eq!(timing.ns, 10.0);
        assert_eq!(timing.spread, 0.05);
    }
}
