//! The performance bars that Tympan must meet.

use crate::report::Results;

/// A bar and its measurement.
#[derive(Debug)]
pub struct Bar {
    /// What is measured.
    pub what: String,
    /// The bar, for display.
    pub bar: String,
    /// The measurement, for display. `None` if it was not measured.
    pub measured: Option<String>,
    /// The outcome.
    pub outcome: Outcome,
}

/// Whether a bar is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The bar is met.
    Pass,
    /// The bar is not met.
    Fail,
    /// The bar was not measured.
    NotMeasured,
}

impl Bar {
    fn new(what: String, bar: String, value: Option<f64>, unit: &str, holds: impl FnOnce(f64) -> bool) -> Bar {
        let outcome = match value.map(holds) {
            None => Outcome::NotMeasured,
            Some(true) => Outcome::Pass,
            Some(false) => Outcome::Fail,
        };
        Bar { what, bar, measured: value.map(|v| format!("{} {unit}", number(v))), outcome }
    }

    fn at_least(what: String, least: f64, value: Option<f64>, unit: &str) -> Bar {
        Bar::new(what, format!("at least {least} {unit}"), value, unit, |v| v >= least)
    }
}

/// Formats a number with enough digits to see on which side of a bar it is.
fn number(v: f64) -> String {
    if v < 10.0 { format!("{v:.3}") } else { format!("{v:.1}") }
}

/// Tympan's operation, the peer's operation, and the minimum speedup on w1, w2 and w3.
const FASTER: [(&str, &str, [f64; 3]); 6] = [
    ("tympan prepare", "prompty prepare", [40.0, 20.0, 12.0]),
    ("tympan render", "minijinja render", [3.0, 5.0, 6.0]),
    ("tympan load", "prompty load", [1.0, 1.0, 1.0]),
    ("tympan definition render", "prompting-press render", [5.0, 2.5, 2.5]),
    ("tympan definition guarded", "prompting-press guarded", [5.0, 3.0, 3.0]),
    ("tympan definition load", "prompting-press load", [1.0, 1.0, 1.0]),
];

/// Two threads should do twice as much as one. The margin allows for noise on a shared machine.
const TWICE: f64 = 1.9;

/// Streams of any length should be read at the same rate. The margin allows for long streams that do not fit in the
/// caches.
const LINEAR: f64 = 0.7;

/// Returns every bar, measured or not.
pub fn bars(results: &Results) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (ours, theirs, least) in FASTER {
        for (workload, least) in crate::data::NAMES.into_iter().zip(least) {
            let ratio =
                results.ns(workload, theirs).zip(results.ns(workload, ours)).map(|(theirs, ours)| theirs / ours);
            bars.push(Bar::at_least(format!("{workload}: {ours}, against {theirs}"), least, ratio, "×"));
        }
    }
    let large = results.large("tympan render");
    let rate = large.map(|large| large.megabytes_per_second);
    bars.push(Bar::at_least("1 MiB value: tympan render".to_owned(), 500.0, rate, "MB/s"));
    let peak = large.and_then(|large| large.peak);
    let what = "1 MiB value: tympan render, peak allocation".to_owned();
    bars.push(Bar::new(what, "at most 2 × the output".to_owned(), peak, "× the output", |v| v <= 2.0));
    let scaling = results.scaling("tympan render");
    bars.push(Bar::at_least("w2: tympan render, two threads".to_owned(), TWICE, scaling, "× one"));
    for row in ["tympan events", "tympan chat"] {
        let rate = results.stream(row, 16);
        bars.push(Bar::at_least(format!("16 MB stream: {row}"), 200.0, rate, "MB/s"));
        let linear = rate.zip(results.stream(row, 1)).map(|(large, small)| large / small);
        bars.push(Bar::at_least(format!("16 MB stream: {row}, against 1 MB"), LINEAR, linear, "×"));
    }
    let encode = results.encode_us("tympan encode");
    bars.push(Bar::new("encode 50 messages".to_owned(), "under 25 µs".to_owned(), encode, "µs", |v| v < 25.0));
    let rate = results.checks.map(|checks| checks.per_second());
    bars.push(Bar::at_least("w1: tympan check, one core".to_owned(), 20_000.0, rate, "prompts/s"));
    let keystroke = results.checks.map(|checks| checks.keystroke.as_secs_f64() * 1e3);
    let what = "2,000 lines: diagnostics after a keystroke".to_owned();
    bars.push(Bar::new(what, "under 10 ms".to_owned(), keystroke, "ms", |v| v < 10.0));
    let rate = results.cases.map(|cases| cases.per_second());
    bars.push(Bar::at_least("w1: tympan test, one core".to_owned(), 10_000.0, rate, "cases/s"));
    let rate = results.tables.map(|tables| tables.rows_per_second);
    bars.push(Bar::at_least("w1: tympan batch prepare, one core".to_owned(), 300_000.0, rate, "rows/s"));
    let scaling = results.tables.map(|tables| tables.scaling);
    bars.push(Bar::at_least("w1: tympan batch prepare, two threads".to_owned(), TWICE, scaling, "× one"));
    let message = results.flows.map(|flows| flows.ns_per_message() / 1e3);
    let what = "turn with tools and policy: a message".to_owned();
    bars.push(Bar::new(what, "under 2 µs".to_owned(), message, "µs", |v| v < 2.0));
    bars
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Timing;
    use crate::report::Measured;
    use crate::row::RowName;

    fn measured(library: &'static str, ns: f64) -> Measured {
        let name = RowName { library, operation: "prepare" };
        Measured { name, timing: Timing { ns, spread: 0.0 }, instructions: None }
    }

    #[test]
    fn a_bar_is_met_from_its_value_on() {
        let rows = |ours| vec![measured("tympan", ours), measured("prompty", 4000.0)];
        let workloads = vec![("w1".to_owned(), rows(100.0)), ("w2".to_owned(), rows(201.0))];
        let outcomes: Vec<_> = bars(&Results { workloads, ..Results::default() }).iter().map(|b| b.outcome).collect();
        assert_eq!(outcomes[..3], [Outcome::Pass, Outcome::Fail, Outcome::NotMeasured]);
    }
}
