//! Results as JUnit XML: a suite per file, and a case per case.
//!
//! CI servers know four outcomes. A case whose assertions do not hold is a `failure`. A case that could not run or that
//! ended with an error is an `error`, which all of them show in red; with `--allow-missing`, a case that could not run is
//! `skipped`.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use quick_junit::{NonSuccessKind, Property, Report as JunitReport, TestCase, TestCaseStatus, TestSuite};

use super::escape::{shortened, visible, visible_line};
use super::{Outcome, Report, ReportOptions, Summary, difference_text, failures, headline, pass_rate, slashed};
use crate::CaseResult;
use crate::statistics::Confidence;

/// How many bytes of a text are shown.
const LONGEST_TEXT: usize = 16_000;
/// How many failures of a case are described.
const MOST_FAILURES: usize = 20;

pub(super) struct Junit<W> {
    out: W,
    options: ReportOptions,
    suites: Vec<TestSuite>,
    /// The index of the suite of each file.
    files: HashMap<String, usize>,
}

impl<W: Write> Junit<W> {
    pub(super) fn new(options: &ReportOptions, out: W) -> Self {
        Self { out, options: options.clone(), suites: Vec::new(), files: HashMap::new() }
    }
}

impl<W: Write> Report for Junit<W> {
    fn case(&mut self, result: &CaseResult) -> io::Result<()> {
        let index = *self.files.entry(result.file.clone()).or_insert_with(|| {
            self.suites.push(TestSuite::new(line(&result.file)));
            self.suites.len() - 1
        });
        if let Some(suite) = self.suites.get_mut(index) {
            suite.add_test_case(case(result, &self.options));
            suite.set_time(suite.time.unwrap_or_default().saturating_add(duration(result.seconds)));
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>, summary: &Summary) -> io::Result<()> {
        let mut junit = JunitReport::new(line(&self.options.title));
        junit.set_time(duration(summary.seconds));
        junit.add_test_suites(self.suites);
        // The library would hide the error of an output.
        let text = junit.to_string().map_err(io::Error::other)?;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()
    }
}

fn case(result: &CaseResult, options: &ReportOptions) -> TestCase {
    let mut status = match Outcome::of(result, options) {
        Outcome::Passed => TestCaseStatus::success(),
        Outcome::Failed => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Outcome::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        Outcome::Skipped => TestCaseStatus::skipped(),
    };
    status.set_type(result.verdict.as_str());
    if let Some(headline) = headline(result) {
        status.set_message(line(&headline));
    }
    let description = description(result);
    if !description.is_empty() {
        status.set_description(description);
    }
    let mut case = TestCase::new(line(&result.name), status);
    case.set_classname(line(&result.file));
    case.set_time(duration(result.seconds));
    case.set_assertions(result.attempts.iter().map(|attempt| attempt.checks.len()).sum());
    let place = [("file", slashed(&result.file)), ("line", result.line.to_string())];
    case.extra.extend(place.map(|(name, value)| (name.into(), line(&value).into())));
    case.add_properties(properties(result));
    if !result.warnings.is_empty() {
        case.set_system_out(text(&result.warnings.iter().map(|text| format!("warning: {text}\n")).collect::<String>()));
    }
    case
}

/// Returns what is wrong, with differences.
fn description(result: &CaseResult) -> String {
    let mut out = String::new();
    let lines = [pass_rate(result), result.reason.clone()];
    lines.iter().flatten().for_each(|line| out.push_str(&format!("{}\n", text(line))));
    let failures = failures(result);
    for failure in failures.iter().take(MOST_FAILURES) {
        let place = format!("{}:{}: {}", result.file, failure.check.line, failure.check.assertion);
        out.push_str(&format!("{}: {}\n", line(&place), text(failure.message())));
        if let Some(pieces) = failure.difference() {
            out.push_str(&format!("{}\n", text(&difference_text(&pieces))));
        }
    }
    if failures.len() > MOST_FAILURES {
        out.push_str(&format!("and {} more\n", failures.len() - MOST_FAILURES));
    }
    out
}

fn properties(result: &CaseResult) -> Vec<Property> {
    let tally = result.repeated();
    let rate =
        tally.and_then(|tally| Some((tally.rate()?, tally.interval(Confidence::P95)))).map(|(rate, interval)| {
            let numbers = [("pass_rate", rate), ("pass_rate_low", interval.low), ("pass_rate_high", interval.high)];
            numbers.map(|(name, value)| (name, Some(format!("{value:.4}"))))
        });
    let values = [
        ("id", Some(result.id.clone())),
        ("prompt", Some(result.prompt.clone())),
        ("variant", result.variant.clone()),
        ("model", result.model.clone()),
        ("score", result.score().map(|score| format!("{score:.4}"))),
        ("cost", result.cost().map(|cost| format!("{cost:.6}"))),
    ];
    let values = values.into_iter().chain(rate.into_iter().flatten());
    values.filter_map(|(name, value)| Some(Property::new(name, line(&value?)))).collect()
}

/// Returns a text on one line, for an attribute.
fn line(text: &str) -> String {
    visible_line(&shortened(text, LONGEST_TEXT))
}

/// Returns a text with its lines. The library removes tabs along with control characters.
fn text(text: &str) -> String {
    visible(&shortened(text, LONGEST_TEXT)).replace('\t', "    ")
}

/// Returns a duration, or none if the number of seconds cannot be one.
fn duration(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
