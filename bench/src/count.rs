//! Instructions, which do not depend on who else uses the machine.
//!
//! The benchmark runs itself again under valgrind, once with N repetitions of one row and once with twice as many. The
//! difference is N repetitions and nothing else: neither the start of the process nor getting the row ready.
//!
//! Valgrind's processor lacks some of ours (the SHA instructions among them), so what picks its code by processor is
//! counted on its portable path.

use crate::Result;
use crate::row::RowName;
use std::path::PathBuf;
use std::process::Command;

/// The argument by which the benchmark is told to repeat a row and do nothing else.
pub const ARGUMENT: &str = "--count";

/// About how long a count repeats its row, were it not under valgrind.
const WORK_NS: f64 = 2e6;

/// Counts instructions.
pub struct Counter {
    benchmark: PathBuf,
}

impl Counter {
    /// A counter, or why there can be none here.
    pub fn new() -> Result<Counter> {
        let valgrind = Command::new("valgrind").arg("--version").output();
        if !valgrind.is_ok_and(|output| output.status.success()) {
            return Err("valgrind is not installed (Debian: apt install valgrind)".into());
        }
        Ok(Counter { benchmark: std::env::current_exe()? })
    }

    /// Instructions in one repetition of a row that takes about `ns`.
    pub fn count(&self, workload: &str, row: RowName, ns: f64) -> Result<u64> {
        let times = (WORK_NS / ns).clamp(4.0, 10_000.0) as u64;
        let once = self.total(workload, row, times)?;
        let twice = self.total(workload, row, 2 * times)?;
        Ok(twice.saturating_sub(once) / times)
    }

    /// Instructions of a whole process.
    fn total(&self, workload: &str, row: RowName, times: u64) -> Result<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&self.benchmark)
            .args([ARGUMENT, workload, &row.to_string(), &times.to_string()])
            .output()?;
        let log = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            return Err(format!("counting {row} on {workload}: {log}").into());
        }
        collected(&log).ok_or_else(|| format!("valgrind did not say what it counted: {log}").into())
    }
}

/// Finds `==123== Collected : 456`.
fn collected(log: &str) -> Option<u64> {
    log.lines().find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_is_found_in_the_log() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 2345\n==7== \n"), Some(2345));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
    }
}
