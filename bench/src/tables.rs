//! Prompts over tables: rows of a Parquet file to request files, with their manifest.

use crate::Result;
use crate::data::Workload;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tympan::{Prompt, Runtime};
use tympan_batch::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use tympan_batch::limits::Target;
use tympan_batch::parquet::arrow::ArrowWriter;
use tympan_batch::prepare::{PrepareOptions, Progress, prepare};
use tympan_batch::rows::Source;

/// The rows of the table.
const ROWS: usize = 300_000;

/// The results.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// Rows of w1 per second of CPU time, on one thread.
    pub rows_per_second: f64,
    /// The throughput of two threads relative to one, by the clock.
    pub scaling: f64,
}

impl Tables {
    /// Measures them. The best of several attempts counts, because other programs use the disk and the processors too.
    pub fn measure(attempts: u32) -> Result<Tables> {
        let workload = Workload::named("w1")?;
        let directory = tempfile::tempdir()?;
        let rows = directory.path().join("rows.parquet");
        write_rows(&workload, &rows, ROWS)?;
        let prompt = Prompt::from_prompty(&workload.prompty)?;
        let (mut cpu, mut one, mut two) = (Duration::MAX, Duration::MAX, Duration::MAX);
        for _ in 0..attempts {
            let before = process_time();
            one = one.min(job(&prompt, &rows, 1)?);
            cpu = cpu.min(process_time() - before);
            two = two.min(job(&prompt, &rows, 2)?);
        }
        let rows_per_second = ROWS as f64 / cpu.as_secs_f64();
        Ok(Tables { rows_per_second, scaling: one.as_secs_f64() / two.as_secs_f64() })
    }
}

/// Returns the time of all threads of the process. Threads that complete files count as well.
fn process_time() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Prepares a job in a new directory, and returns the time by the clock.
fn job(prompt: &Prompt, rows: &Path, threads: usize) -> Result<Duration> {
    let directory = tempfile::tempdir()?;
    let mut options = PrepareOptions::new(Target::OpenAi);
    options.threads = threads;
    let source = Source::new(rows, None)?;
    let runtime = Runtime::default();
    let started = Instant::now();
    let prepared = prepare(&runtime, prompt, &[source], &directory.path().join("job"), &options, &|_| {})?;
    let elapsed = started.elapsed();
    if (prepared.rows, prepared.rejects) != (ROWS as u64, 0) {
        return Err("not all rows were rendered".into());
    }
    Ok(elapsed)
}

/// The memory of a job.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Memory {
    /// The number of rows.
    pub rows: u64,
    /// The largest amount of memory of the process, in KiB.
    pub peak_kib: u64,
    /// The time by the clock.
    pub seconds: f64,
}

/// Prepares a job for a file that is named several times, and removes its request files as soon as they are complete.
pub fn run_and_remove(rows: &Path, times: usize) -> Result<Memory> {
    let workload = Workload::named("w1")?;
    let prompt = Prompt::from_prompty(&workload.prompty)?;
    let directory = tempfile::tempdir()?;
    let job = directory.path().join("job");
    let mut options = PrepareOptions::new(Target::OpenAi);
    options.threads = 2;
    let sources = vec![Source::new(rows, None)?; times];
    let started = Instant::now();
    let remove = |progress: Progress| {
        // The files before the last two are complete.
        let complete = progress.files.saturating_sub(2);
        for number in complete.saturating_sub(8)..=complete {
            let _ = std::fs::remove_file(job.join(format!("requests-{number:05}.jsonl")));
        }
    };
    let prepared = prepare(&Runtime::default(), &prompt, &sources, &job, &options, &remove)?;
    let seconds = started.elapsed().as_secs_f64();
    Ok(Memory { rows: prepared.rows, peak_kib: peak_kib()?, seconds })
}

/// Returns the largest amount of memory that the process has used.
fn peak_kib() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("the system does not tell")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// Writes a file with this many rows of w1.
pub fn write_rows_file(path: &Path, rows: usize) -> Result<()> {
    write_rows(&Workload::named("w1")?, path, rows)
}

/// Writes rows of w1. Every row has another question.
fn write_rows(workload: &Workload, path: &Path, rows: usize) -> Result<()> {
    let text = |name: &str| workload.inputs[name].as_str().unwrap_or_default();
    let question = text("question");
    let mut writer = None;
    for start in (0..rows).step_by(ROWS) {
        let part = start..rows.min(start + ROWS);
        let customers: ArrayRef = Arc::new(StringArray::from_iter_values(part.clone().map(|_| text("customer"))));
        let premium: ArrayRef = Arc::new(BooleanArray::from_iter(part.clone().map(|row| Some(row % 2 == 0))));
        let questions: ArrayRef =
            Arc::new(StringArray::from_iter_values(part.map(|row| format!("{question} ({row})"))));
        let columns = [("customer", customers), ("premium", premium), ("question", questions)];
        let table = RecordBatch::try_from_iter(columns)?;
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(ArrowWriter::try_new(File::create(path)?, table.schema(), None)?),
        };
        writer.write(&table)?;
    }
    writer.ok_or("no rows")?.close()?;
    Ok(())
}
