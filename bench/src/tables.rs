//! Prompts over tables: rows of a Parquet file to request files, with their manifest.

use crate::Result;
use crate::data::Workload;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tympan::{Prompt, Runtime};
use tympan_batch::arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray};
use tympan_batch::limits::Target;
use tympan_batch::parquet::arrow::ArrowWriter;
use tympan_batch::prepare::{PrepareOptions, prepare};
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
        write_rows(&workload, &rows)?;
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

/// Writes rows of w1. Every row has another question.
fn write_rows(workload: &Workload, path: &Path) -> Result<()> {
    let text = |name: &str| workload.inputs[name].as_str().unwrap_or_default();
    let question = text("question");
    let customers: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| text("customer"))));
    let premium: ArrayRef = Arc::new(BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 2 == 0))));
    let questions: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{question} ({row})"))));
    let table = RecordBatch::try_from_iter([("customer", customers), ("premium", premium), ("question", questions)])?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, table.schema(), None)?;
    writer.write(&table)?;
    writer.close()?;
    Ok(())
}
