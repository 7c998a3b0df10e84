//! The results, as tables for people and as JSON for programs.

use crate::bars::{Bar, Outcome, bars};
use crate::cases::Cases;
use crate::check::Checks;
use crate::flow::Flows;
use crate::measure::Timing;
use crate::row::RowName;
use crate::streams::{SIZES, StreamRate};
use crate::tables::Tables;
use console::style;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// All results.
#[derive(Debug, Default)]
pub struct Results {
    /// The rows by workload, in order.
    pub workloads: Vec<(String, Vec<Measured>)>,
    /// The rows on the large value.
    pub large: Vec<Large>,
    /// The throughput of two threads relative to one, by row.
    pub threads: Vec<(RowName, f64)>,
    /// The rates of streams, by row and size.
    pub streams: Vec<StreamRate>,
    /// The times to encode a request.
    pub encode: Vec<(RowName, Timing)>,
    /// The times to check prompts.
    pub checks: Option<Checks>,
    /// Cases of tests that need no model.
    pub cases: Option<Cases>,
    /// Prompts over tables.
    pub tables: Option<Tables>,
    /// The agent loop.
    pub flows: Option<Flows>,
}

/// The results of a row on a workload.
#[derive(Debug)]
pub struct Measured {
    /// The name of the row.
    pub name: RowName,
    /// The time.
    pub timing: Timing,
    /// The number of instructions, if they were counted.
    pub instructions: Option<u64>,
}

/// The results of a row on the large value.
#[derive(Debug)]
pub struct Large {
    /// The name of the row.
    pub name: RowName,
    /// The output rate.
    pub megabytes_per_second: f64,
    /// The peak allocation, in multiples of the output.
    pub peak: Option<f64>,
}

impl Results {
    fn measured(&self, workload: &str, row: &str) -> Option<&Measured> {
        let (_, rows) = self.workloads.iter().find(|(name, _)| name == workload)?;
        rows.iter().find(|measured| measured.name.to_string() == row)
    }

    /// Returns the time of a row on a workload, in nanoseconds.
    pub fn ns(&self, workload: &str, row: &str) -> Option<f64> {
        self.measured(workload, row).map(|measured| measured.timing.ns)
    }

    /// Returns the results of a row on the large value.
    pub fn large(&self, row: &str) -> Option<&Large> {
        self.large.iter().find(|large| large.name.to_string() == row)
    }

    /// Returns the throughput of two threads relative to one.
    pub fn scaling(&self, row: &str) -> Option<f64> {
        self.threads.iter().find(|(name, _)| name.to_string() == row).map(|(_, scaling)| *scaling)
    }

    /// Returns the rate at which a row reads a stream of this many MB, in MB/s.
    pub fn stream(&self, row: &str, megabytes: usize) -> Option<f64> {
        let found = self.streams.iter().find(|rate| rate.megabytes == megabytes && rate.name.to_string() == row);
        found.map(|rate| rate.megabytes_per_second)
    }

    /// Returns the time to encode a request, in microseconds.
    pub fn encode_us(&self, row: &str) -> Option<f64> {
        self.encode.iter().find(|(name, _)| name.to_string() == row).map(|(_, timing)| timing.ns / 1e3)
    }

    /// Returns `{"<workload>": {"<library> <operation>": {"ns": …, "instructions": …}}}`.
    pub fn to_json(&self) -> Value {
        let workloads = self.workloads.iter().map(|(workload, rows)| {
            let rows = rows.iter().map(|row| {
                let ns = (row.timing.ns * 10.0).round() / 10.0;
                (row.name.to_string(), json!({ "ns": ns, "instructions": row.instructions }))
            });
            (workload.clone(), Value::Object(rows.collect()))
        });
        Value::Object(workloads.collect::<Map<_, _>>())
    }

    /// Returns the tables.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (workload, rows) in &self.workloads {
            text += &self.workload_table(workload, rows);
        }
        text += &self.large_table();
        text += &self.threads_table();
        text += &streams_table(self);
        text += &self.encode_table();
        text += &self.checks_table();
        text += &self.cases_table();
        text += &self.flows_table();
        text += &bars_table(&bars(self));
        text
    }

    /// Formats the table of a workload, with times and instructions relative to Tympan's operation of the same kind.
    fn workload_table(&self, workload: &str, rows: &[Measured]) -> String {
        let mut table = Table::new([workload, "ns", "±", "instructions", "× tympan", "× by instructions"]);
        for row in rows {
            let ours = self.measured(workload, &format!("tympan {}", row.name.operation));
            let counts = row.instructions.zip(ours.and_then(|ours| ours.instructions));
            table.row([
                row.name.to_string(),
                thousands(row.timing.ns),
                format!("{:.0}%", 100.0 * row.timing.spread),
                row.instructions.map_or_else(absent, |n| thousands(n as f64)),
                ours.map_or_else(absent, |ours| format!("{:.2}", row.timing.ns / ours.timing.ns)),
                counts.map_or_else(absent, |(theirs, ours)| format!("{:.2}", theirs as f64 / ours as f64)),
            ]);
        }
        table.finish()
    }

    fn large_table(&self) -> String {
        let mut table = Table::new(["a 1 MiB value", "MB/s", "peak allocation / output"]);
        for large in &self.large {
            let peak = large.peak.map_or_else(absent, |peak| format!("{peak:.2}"));
            table.row([large.name.to_string(), thousands(large.megabytes_per_second), peak]);
        }
        table.finish()
    }

    fn threads_table(&self) -> String {
        let mut table = Table::new(["two threads, w2", "× one thread"]);
        for (name, scaling) in &self.threads {
            table.row([name.to_string(), format!("{scaling:.2}")]);
        }
        table.finish()
    }

    fn encode_table(&self) -> String {
        let mut table = Table::new(["encode 50 messages", "µs", "±", "× tympan"]);
        for (name, timing) in &self.encode {
            let ours = self.encode_us("tympan encode");
            table.row([
                name.to_string(),
                format!("{:.1}", timing.ns / 1e3),
                format!("{:.0}%", 100.0 * timing.spread),
                ours.map_or_else(absent, |ours| format!("{:.2}", timing.ns / 1e3 / ours)),
            ]);
        }
        table.finish()
    }
}

impl Results {
    fn checks_table(&self) -> String {
        let mut table = Table::new(["check", "time", ""]);
        if let Some(checks) = &self.checks {
            let rate = format!("{} prompts per second and core", thousands(checks.per_second()));
            table.row(["w1: all rules".to_owned(), format!("{:.1} µs", checks.w1.ns / 1e3), rate]);
            let time = format!("{:.1} ms", checks.keystroke.as_secs_f64() * 1e3);
            table.row(["2,000 lines: keystroke to diagnostics".to_owned(), time, String::new()]);
        }
        table.finish()
    }
}

impl Results {
    fn cases_table(&self) -> String {
        let mut table = Table::new(["tests and tables, w1", ""]);
        if let Some(cases) = &self.cases {
            table.row(["test cases without a model, per second and core".to_owned(), thousands(cases.per_second())]);
        }
        if let Some(tables) = &self.tables {
            let what = "rows from Parquet to requests, per second and core".to_owned();
            table.row([what, thousands(tables.rows_per_second)]);
            table.row(["rows, two threads".to_owned(), format!("{:.2} × one", tables.scaling)]);
        }
        table.finish()
    }
}

impl Results {
    fn flows_table(&self) -> String {
        let mut table = Table::new(["agent loop, without I/O", "time", ""]);
        if let Some(flows) = &self.flows {
            let message = format!("{:.2} µs a message", flows.ns_per_message() / 1e3);
            table.row(["100 calls, policy on".to_owned(), format!("{:.0} µs", flows.with_tools.ns / 1e3), message]);
            let time = format!("{:.2} µs", flows.without_tools.ns / 1e3);
            table.row(["one answer, no tools".to_owned(), time, String::new()]);
        }
        table.finish()
    }
}

/// Formats the table of streams, with one column per size.
fn streams_table(results: &Results) -> String {
    let mut table = Table::new(["streams", "MB/s of 1 MB", "of 4 MB", "of 16 MB"]);
    for first in results.streams.iter().filter(|rate| rate.megabytes == SIZES[0]) {
        let name = first.name.to_string();
        let [small, middle, large] = SIZES.map(|size| results.stream(&name, size).map_or_else(absent, thousands));
        table.row([name, small, middle, large]);
    }
    table.finish()
}

fn bars_table(bars: &[Bar]) -> String {
    let mut table = Table::new(["bars", "measured", "required", ""]);
    for bar in bars {
        let mark = match bar.outcome {
            Outcome::Pass => style("✓ pass").green(),
            Outcome::Fail => style("✗ FAIL").red().bold(),
            Outcome::NotMeasured => style("? not measured").yellow(),
        };
        let measured = bar.measured.clone().unwrap_or_else(absent);
        table.row([bar.what.clone(), measured, bar.bar.clone(), mark.to_string()]);
    }
    table.finish()
}

fn absent() -> String {
    "-".to_owned()
}

/// Formats a number as `12,345`, or as `81.2` if a decimal is significant.
fn thousands(n: f64) -> String {
    if n < 100.0 {
        return format!("{n:.1}");
    }
    let digits = format!("{n:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A table with aligned columns: the first to the left, the others to the right.
struct Table<const N: usize> {
    head: [String; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    fn new(head: [&str; N]) -> Table<N> {
        Table { head: head.map(str::to_owned), rows: Vec::new() }
    }

    fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// Returns the table and a blank line, or nothing if it has no rows.
    fn finish(self) -> String {
        let mut text = String::new();
        if self.rows.is_empty() {
            return text;
        }
        let widths: [usize; N] = std::array::from_fn(|column| {
            let cells = std::iter::once(&self.head).chain(&self.rows).map(|row| &row[column]);
            cells.map(|cell| console::measure_text_width(cell)).max().unwrap_or(0)
        });
        let line = |cells: &[String; N]| {
            let mut line = String::new();
            for (column, cell) in cells.iter().enumerate() {
                let padding = " ".repeat(widths[column] - console::measure_text_width(cell));
                // Writing to a string cannot fail.
                let _ = if column == 0 { write!(line, "{cell}{padding}") } else { write!(line, "  {padding}{cell}") };
            }
            line
        };
        let head = line(&self.head);
        let _ = writeln!(text, "{}", style(&head).bold());
        let _ = writeln!(text, "{}", "─".repeat(console::measure_text_width(&head)));
        for row in &self.rows {
            let _ = writeln!(text, "{}", line(row));
        }
        text.push('\n');
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(thousands(81.25), "81.2");
        assert_eq!(thousands(812.5), "812");
        assert_eq!(thousands(12_345.0), "12,345");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }

    #[test]
    fn programs_get_workload_row_and_both_measures() {
        let name = RowName { library: "minijinja", operation: "render" };
        let timing = Timing { ns: 800.04, spread: 0.0 };
        let rows = vec![Measured { name, timing, instructions: None }];
        let results = Results { workloads: vec![("w1".to_owned(), rows)], ..Results::default() };
        assert_eq!(results.to_json().to_string(), r#"{"w1":{"minijinja render":{"ns":800.0,"instructions":null}}}"#);
    }
}
