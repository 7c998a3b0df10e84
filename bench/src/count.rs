//! Instruction counts, which do not depend on the load of the machine.
//!
//! The benchmark runs itself under valgrind, once with N repetitions of a row and once with twice as many. The
//! difference is exactly N repetitions, without the start of the process and the preparation of the row.
//!
//! Valgrind's virtual processor lacks some instructions, such as those for SHA. Code that is selected by processor
//! features is counted on its portable path.

use crate::Result;
use crate::row::RowName;
use std::path::PathBuf;
use std::process::Command;

/// The argument that makes the benchmark repeat a row and do nothing else.
pub const ARGUMENT: &str = "--count";

/// The approximate time of the repetitions of a count, without valgrind.
const WORK_NS: f64 = 2e6;

/// Counts instructions.
pub struct Counter {
    benchmark: PathBuf,
}

impl Counter {
    /// Creates a counter. Returns an error if valgrind is not available.
    pub fn new() -> Result<Counter> {
        let valgrind = Command::new("valgrind").arg("--version").output();
        if !valgrind.is_ok_and(|output| output.status.success()) {
            return Err("valgrind is not installed (Debian: apt install valgrind)".into());
        }
        Ok(Counter { benchmark: std::env::current_exe()? })
    }

    /// Counts the instructions of one repetition of a row that takes about `ns` nanoseconds.
    pub fn count(&self, workload: &str, row: RowName, ns: f64) -> Result<u64> {
        let times = (WORK_NS / ns).clamp(4.0, 10_000.0) as u64;
        let once = self.total(workload, row, times)?;
        let twice = self.total(workload, row, 2 * times)?;
        Ok(twice.saturating_sub(once) / times)
    }

    /// Counts the instructions of a whole process.
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

/// Parses `==123== Collected : 456`.
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
