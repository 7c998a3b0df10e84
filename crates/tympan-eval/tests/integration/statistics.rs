//! Compares the statistics with scipy and statsmodels (`tests/oracle/statistics_oracle.py`) and with published values.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tympan_eval::statistics::{Confidence, Tally, attempts_needed, mcnemar, paired_bootstrap};

fn cases<T: DeserializeOwned>(name: &str) -> T {
    let name = format!("statistics/{name}.json");
    serde_json::from_str(&crate::read(&name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn confidence(level: f64) -> Confidence {
    Confidence::new(level).unwrap_or_else(|| panic!("{level} is not a level"))
}

/// Asserts that two numbers agree to about twelve digits.
#[track_caller]
fn assert_close(found: f64, expected: f64, what: &str) {
    let error = (found - expected).abs();
    assert!(error <= 1e-12_f64.max(expected.abs() * 1e-11), "{what}: found {found}, expected {expected}");
}

fn rounded(number: f64, digits: i32) -> f64 {
    (number * 10_f64.powi(digits)).round() / 10_f64.powi(digits)
}

#[derive(Deserialize)]
struct Quantile {
    level: f64,
    z: f64,
}

#[derive(Debug, Deserialize)]
struct ExpectedInterval {
    passes: usize,
    attempts: usize,
    level: f64,
    low: f64,
    high: f64,
    #[serde(default)]
    digits: i32,
}

#[derive(Debug, Deserialize)]
struct AllPass {
    passes: usize,
    attempts: usize,
    together: usize,
    chance: f64,
}

#[derive(Debug, Deserialize)]
struct Needed {
    threshold: f64,
    level: f64,
    attempts: usize,
}

#[derive(Debug, Deserialize)]
struct Verdicts {
    improved: usize,
    regressed: usize,
    p: f64,
    #[serde(default)]
    digits: i32,
}

#[derive(Deserialize)]
struct Differences {
    name: String,
    level: f64,
    values: Vec<f64>,
    mean: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize)]
struct Published {
    intervals: Vec<ExpectedInterval>,
    mcnemar: Vec<Verdicts>,
}

#[test]
fn quantiles_agree_with_scipy() {
    for case in cases::<Vec<Quantile>>("quantiles") {
        assert_close(confidence(case.level).z(), case.z, &format!("z of {}", case.level));
    }
}

#[test]
fn wilson_intervals_agree_with_statsmodels() {
    for case in cases::<Vec<ExpectedInterval>>("intervals") {
        let interval = Tally::new(case.passes, case.attempts).interval(confidence(case.level));
        assert_close(interval.low, case.low, &format!("{case:?}"));
        assert_close(interval.high, case.high, &format!("{case:?}"));
    }
}

#[test]
fn chances_that_all_pass_agree_with_exact_fractions() {
    for case in cases::<Vec<AllPass>>("all_pass") {
        let chance = Tally::new(case.passes, case.attempts).all_pass(case.together).expect("enough attempts");
        assert_close(chance, case.chance, &format!("{case:?}"));
    }
}

#[test]
fn needed_attempts_agree_with_a_search_in_statsmodels() {
    for case in cases::<Vec<Needed>>("needed") {
        assert_eq!(attempts_needed(case.threshold, confidence(case.level)), Some(case.attempts), "{case:?}");
    }
}

#[test]
fn mcnemar_tests_agree_with_statsmodels() {
    for case in cases::<Vec<Verdicts>>("mcnemar") {
        let p = mcnemar(case.improved, case.regressed, Confidence::P95).p;
        assert!((p - case.p).abs() <= case.p * 1e-9, "{case:?}: found {p}");
    }
}

/// Two bootstraps agree only as far as chance does. The seeds are fixed, so the test cannot fail by chance.
#[test]
fn bootstrap_intervals_agree_with_scipy() {
    for case in cases::<Vec<Differences>>("bootstrap") {
        let found = paired_bootstrap(&case.values, confidence(case.level)).expect("differences");
        assert_close(found.mean, case.mean, &case.name);
        let tolerance = (case.high - case.low) * 0.05;
        assert!((found.interval.low - case.low).abs() < tolerance, "{}: {found:?}, {}", case.name, case.low);
        assert!((found.interval.high - case.high).abs() < tolerance, "{}: {found:?}, {}", case.name, case.high);
    }
}

#[test]
fn published_values_are_met_to_every_digit() {
    let published: Published = cases("published");
    for case in published.intervals {
        let interval = Tally::new(case.passes, case.attempts).interval(confidence(case.level));
        let found = [interval.low, interval.high].map(|end| rounded(end, case.digits));
        assert_eq!(found, [case.low, case.high], "{case:?}");
    }
    for case in published.mcnemar {
        let p = mcnemar(case.improved, case.regressed, Confidence::P95).p;
        assert_eq!(rounded(p, case.digits), case.p, "{case:?}");
    }
}
