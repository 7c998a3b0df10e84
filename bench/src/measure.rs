//! Time, as the median of many short batches.
//!
//! A clock of the thread's own CPU time, because other programs run on the machine too; and the rows take turns, one
//! batch each, so that a slow minute is shared by all of them and the ratios stay.

use crate::row::Row;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Before a batch is timed, one of so many parts of it is run untimed.
const WARM_UP: u64 = 8;

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How many batches of each row.
    pub rounds: u32,
    /// How long a batch should take; a batch of one repetition may take longer.
    pub batch: Duration,
}

/// How long one repetition takes.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// Nanoseconds, the median over the batches.
    pub ns: f64,
    /// Half the distance between the quartiles, as a part of the median: how far to trust it.
    pub spread: f64,
}

/// Times rows against each other; calls `tick` after each round.
pub fn time(rows: &[Row], effort: Effort, tick: impl Fn()) -> Vec<Timing> {
    let repetitions: Vec<u64> = rows.iter().map(|row| repetitions(row, effort.batch)).collect();
    let mut samples = vec![Vec::with_capacity(effort.rounds as usize); rows.len()];
    for round in 0..effort.rounds as usize {
        // Each round begins with another row, so that none always follows the same one.
        for i in (0..rows.len()).map(|i| (i + round) % rows.len()) {
            // The row before has had the caches: without this, a row of few repetitions would pay for that most.
            rows[i].run(repetitions[i].div_ceil(WARM_UP));
            let spent = cpu_time_of(|| rows[i].run(repetitions[i]));
            samples[i].push(spent.as_nanos() as f64 / repetitions[i] as f64);
        }
        tick();
    }
    samples.into_iter().map(summarise).collect()
}

/// How many repetitions fill a batch. Finding out warms the caches as well.
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
