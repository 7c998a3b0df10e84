//! `make bench`: measures Tympan and its peers in one run, prints the ratios, and writes `target/bench.json`.

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::Path;
use std::time::Duration;
use tympan_bench::cases::Cases;
use tympan_bench::check::Checks;
use tympan_bench::count::Counter;
use tympan_bench::data::{self, Workload};
use tympan_bench::flow::Flows;
use tympan_bench::measure::{Effort, Timing, time};
use tympan_bench::memory::{Peaks, peaks};
use tympan_bench::report::{Large, Measured, Results};
use tympan_bench::row::{Row, RowName};
use tympan_bench::tables::Tables;
use tympan_bench::{Result, encode, peers, streams, threads};

/// Measure Tympan and its peers
#[derive(Parser)]
struct Arguments {
    /// Measure only rows whose names contain this, without updating `target/bench.json`
    filter: Option<String>,
    /// Measure less, for a rough result
    #[arg(long)]
    quick: bool,
    /// Do not count instructions
    #[arg(long)]
    no_instructions: bool,
    /// Repeat a row and do nothing else; the benchmark runs itself with this under valgrind
    #[arg(long, num_args = 3, value_names = ["WORKLOAD", "ROW", "TIMES"], hide = true)]
    count: Option<Vec<String>>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let Some([workload, row, times]) = arguments.count.as_deref() {
        peers::row(&Workload::named(workload)?, row)?.run(times.parse()?);
        return Ok(());
    }
    let run = Run::new(&arguments)?;
    let results = run.all()?;
    print!("workloads: {}\n\n{}", data::DIR, results.to_text());
    for note in &run.notes {
        println!("note: {note}");
    }
    if arguments.filter.is_none() {
        let path = data::repository().join("target/bench.json");
        write_json(&path, &results)?;
        println!("written: {}", path.display());
    }
    Ok(())
}

fn write_json(path: &Path, results: &Results) -> Result<()> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    let json = serde_json::to_string_pretty(&results.to_json())?;
    Ok(std::fs::write(path, json + "\n")?)
}

/// One run of the benchmark.
struct Run<'a> {
    filter: &'a str,
    effort: Effort,
    /// The large value takes milliseconds, so its median needs fewer rounds.
    large_effort: Effort,
    thread_attempts: u32,
    counter: Option<Counter>,
    notes: Vec<String>,
    progress: ProgressBar,
}

impl<'a> Run<'a> {
    fn new(arguments: &'a Arguments) -> Result<Run<'a>> {
        let (rounds, large_rounds, thread_attempts) = if arguments.quick { (10, 10, 5) } else { (80, 40, 40) };
        let batch = Duration::from_millis(5);
        let mut notes = vec!["every row pays for ordered keys, which Tympan asks for: see bench/src/lib.rs".to_owned()];
        let counter = if arguments.no_instructions {
            None
        } else {
            Counter::new().map_err(|e| notes.push(format!("no instruction counts: {e}"))).ok()
        };
        Ok(Run {
            filter: arguments.filter.as_deref().unwrap_or_default(),
            effort: Effort { rounds, batch },
            large_effort: Effort { rounds: large_rounds, batch },
            thread_attempts,
            counter,
            notes,
            // Drawn on standard error, and only if that is a terminal.
            progress: ProgressBar::no_length().with_style(ProgressStyle::with_template(
                "{bar:30} {percent:>3}%  {msg}  {elapsed} of about {duration}",
            )?),
        })
    }

    fn all(&self) -> Result<Results> {
        let workloads = data::workloads()?;
        let rows = peers::entries().iter().filter(|entry| entry.name.to_string().contains(self.filter)).count() as u64;
        let counts = if self.counter.is_some() { rows } else { 0 };
        let each = u64::from(self.effort.rounds) + counts * COUNT_TICKS;
        self.progress
            .set_length(each * workloads.len() as u64 + u64::from(self.large_effort.rounds) + rows * THREAD_TICKS);

        let mut results = Results::default();
        for workload in &workloads {
            results.workloads.push((workload.name.clone(), self.workload(workload)?));
        }
        results.large = self.large()?;
        results.threads = self.threads(&results)?;
        self.progress.set_message("streams");
        results.streams = streams::rates(self.large_effort)?;
        results.streams.retain(|rate| rate.name.to_string().contains(self.filter));
        results.encode = self.encode()?;
        self.progress.set_message("check");
        let checks = "tympan check".contains(self.filter).then(|| Checks::measure(self.effort));
        results.checks = checks.transpose()?;
        self.progress.set_message("test");
        let cases = "tympan test".contains(self.filter).then(|| Cases::measure(self.large_effort));
        results.cases = cases.transpose()?;
        self.progress.set_message("batch");
        let tables = "tympan batch".contains(self.filter).then(|| Tables::measure(self.thread_attempts.min(10)));
        results.tables = tables.transpose()?;
        self.progress.set_message("turns");
        let flows = "tympan turn".contains(self.filter).then(|| Flows::measure(self.effort));
        results.flows = flows.transpose()?;
        self.progress.finish_and_clear();
        Ok(results)
    }

    fn rows(&self, workload: &Workload) -> Result<Vec<Row>> {
        let mut rows = peers::rows(workload)?;
        rows.retain(|row| row.name.to_string().contains(self.filter));
        Ok(rows)
    }

    fn workload(&self, workload: &Workload) -> Result<Vec<Measured>> {
        self.progress.set_message(format!("{}: time", workload.name));
        let rows = self.rows(workload)?;
        let timings = time(&rows, self.effort, || self.progress.inc(1));
        self.progress.set_message(format!("{}: instructions", workload.name));
        let measured = rows.iter().zip(timings).map(|(row, timing)| {
            let instructions = match &self.counter {
                Some(counter) => Some(counter.count(&workload.name, row.name, timing.ns)?),
                None => None,
            };
            self.progress.inc(if self.counter.is_some() { COUNT_TICKS } else { 0 });
            Ok(Measured { name: row.name, timing, instructions })
        });
        measured.collect()
    }

    /// Measures throughput and memory on the large value. Loading is left out, because it does not use the value.
    fn large(&self) -> Result<Vec<Large>> {
        self.progress.set_message("1 MiB: time and memory");
        let workload = data::large();
        let mut rows = self.rows(&workload)?;
        rows.retain(|row| row.name.operation != "load");
        let timings = time(&rows, self.large_effort, || self.progress.inc(1));
        let peaks: Peaks = peaks(Path::new(env!("CARGO_BIN_EXE_peak")))?;
        let large = rows.iter().zip(timings).map(|(row, timing)| Large {
            name: row.name,
            megabytes_per_second: workload.expected.len() as f64 * 1e3 / timing.ns,
            peak: peaks.get(&row.name.to_string()).copied(),
        });
        Ok(large.collect())
    }

    fn encode(&self) -> Result<Vec<(RowName, Timing)>> {
        self.progress.set_message("encode");
        let mut rows = encode::rows()?;
        rows.retain(|row| row.name.to_string().contains(self.filter));
        let timings = time(&rows, self.effort, || {});
        Ok(rows.iter().map(|row| row.name).zip(timings).collect())
    }

    fn threads(&self, results: &Results) -> Result<Vec<(RowName, f64)>> {
        self.progress.set_message("two threads");
        let mut scaling = Vec::new();
        for row in self.rows(&Workload::named("w2")?)? {
            let ns = results.ns("w2", &row.name.to_string()).filter(|_| row.name.operation != "load");
            if let Some(ns) = ns {
                scaling.push((row.name, threads::scaling(&row, ns, self.thread_attempts)));
            }
            self.progress.inc(THREAD_TICKS);
        }
        Ok(scaling)
    }
}

/// The durations of counting a row and of measuring it with two threads, in rounds of timing.
const COUNT_TICKS: u64 = 25;
const THREAD_TICKS: u64 = 25;
