//! `make bench-memory`: the memory that a job needs for a million rows and for ten million.
//!
//! Each job runs in a process of its own. The rows are those of one file of a million, named once or ten times, and request
//! files are removed as soon as they are complete, so that the disk has room for them.

use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::Command;
use tympan_bench::Result;
use tympan_bench::tables::{Memory, run_and_remove, write_rows_file};

/// The largest growth of the memory.
const MOST: f64 = 1.1;

/// Measure the memory of jobs
#[derive(Parser)]
struct Arguments {
    /// The number of rows in the file
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// Run one job: the file of rows, and how often it is named
    #[arg(long, num_args = 2, value_names = ["FILE", "TIMES"], hide = true)]
    job: Option<Vec<String>>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some([file, times]) = arguments.job.as_deref() {
        let memory = run_and_remove(Path::new(file), times.parse()?)?;
        println!("{}", serde_json::to_string(&memory)?);
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("rows.parquet");
    write_rows_file(&file, arguments.rows)?;
    let (small, large) = (child(&file, 1)?, child(&file, 10)?);
    for memory in [&small, &large] {
        let (rows, seconds) = (memory.rows, memory.seconds);
        println!("{rows:>12} rows  {:>8} KiB  {seconds:>7.1} s", memory.peak_kib);
    }
    let ratio = large.peak_kib as f64 / small.peak_kib as f64;
    println!("ten times the rows: {ratio:.3} × the memory; the bar is {MOST}");
    if ratio > MOST { Err("the memory depends on the number of rows".into()) } else { Ok(()) }
}

fn child(file: &PathBuf, times: usize) -> Result<Memory> {
    let output = Command::new(std::env::current_exe()?).arg("--job").arg(file).arg(times.to_string()).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
