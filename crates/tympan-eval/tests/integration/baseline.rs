//! Comparisons with saved runs.

use serde_json::{Value as Json, json};
use tympan_eval::baseline::{Baseline, Comparison};
use tympan_eval::saved_run::SavedRun;
use tympan_eval::statistics::{Change, Confidence};
use tympan_eval::{CaseResult, Verdict};

fn case(id: &str, verdict: &str, passes: usize, attempts: usize, score: Option<f64>) -> Json {
    let attempt = |index: usize| {
        let score = score.map_or_else(|| json!([]), |score| json!([{"assertion": "similar", "score": score}]));
        json!({"passed": index < passes, "checks": score, "from_model": true})
    };
    let attempts: Vec<Json> = (0..attempts).map(attempt).collect();
    json!({"kind": "case", "id": id, "verdict": verdict, "attempts": attempts})
}

fn lines(cases: &[Json]) -> String {
    cases.iter().map(|case| format!("{case}\n")).collect()
}

fn compare(before: &[Json], now: &[Json]) -> Comparison {
    let baseline = Baseline::read("before.jsonl", lines(before).as_bytes()).expect("a baseline");
    let mut comparer = baseline.compare();
    for case in now {
        comparer.add(&serde_json::from_value::<CaseResult>(case.clone()).expect("a result"));
    }
    comparer.finish(Confidence::P95)
}

#[test]
fn cases_are_paired_by_id() {
    let before = [
        case("a", "passed", 1, 1, None),
        case("b", "failed", 0, 1, None),
        case("c", "passed", 1, 1, None),
        case("d", "passed", 1, 1, None),
        case("gone", "passed", 1, 1, None),
    ];
    let now = [
        case("d", "not_run", 0, 0, None),
        case("new", "passed", 1, 1, None),
        case("c", "passed", 1, 1, None),
        case("b", "passed", 1, 1, None),
        case("a", "failed", 0, 1, None),
    ];
    let comparison = compare(&before, &now);
    assert_eq!(comparison.pairs, 4);
    assert_eq!(
        (comparison.improved.as_slice(), comparison.regressed.as_slice()),
        (&["b".into()][..], &["a".into()][..])
    );
    assert_eq!((comparison.only_before[0].as_str(), comparison.only_now[0].as_str()), ("gone", "new"));
    assert_eq!((comparison.other[0].before, comparison.other[0].now), (Verdict::Passed, Verdict::NotRun));
    assert_eq!((comparison.pass_rates, comparison.scores), (None, None));
    assert_eq!(comparison.change(), Change::NotShown);
}

#[test]
fn six_regressions_are_shown() {
    let run = |verdict: &str, passes| -> Vec<Json> {
        (0..6).map(|index| case(&index.to_string(), verdict, passes, 1, None)).collect()
    };
    let comparison = compare(&run("passed", 1), &run("failed", 0));
    assert_eq!((format!("{:.5}", comparison.verdicts.p).as_str(), comparison.change()), ("0.03125", Change::Worse));
}

/// Turns a result into one that no model had a part in.
fn exact(mut case: Json) -> Json {
    for attempt in case["attempts"].as_array_mut().expect("a list") {
        attempt["from_model"] = json!(false);
    }
    case
}

#[test]
fn changes_of_exact_results_need_no_test() {
    let (good, bad) = (case("a", "passed", 1, 1, None), case("a", "failed", 0, 1, None));
    let worse = compare(&[exact(good.clone())], &[exact(bad.clone())]);
    assert_eq!((worse.change(), worse.word(), worse.varying), (Change::Worse, "worse", 0));
    assert_eq!((worse.exact.pairs, worse.exact.regressed, worse.verdicts.regressed), (1, 1, 0));
    let better = compare(&[exact(bad.clone())], &[exact(good.clone())]);
    assert_eq!((better.change(), better.word()), (Change::Better, "better"));
    let same = compare(&[exact(good.clone())], &[exact(good.clone())]);
    assert_eq!((same.change(), same.word()), (Change::NotShown, "unchanged"));
    // With a model on both sides, one change shows nothing.
    let varying = compare(std::slice::from_ref(&good), std::slice::from_ref(&bad));
    assert_eq!((varying.change(), varying.word(), varying.varying), (Change::NotShown, "no difference shown", 1));
    assert_eq!((varying.exact.pairs, varying.verdicts.regressed), (0, 1));
    // A prompt that does not render any more never passes.
    assert_eq!(compare(&[good], &[exact(bad)]).change(), Change::Worse);
}

#[test]
fn rates_and_scores_show_what_verdicts_hide() {
    let run = |passes, score: f64| -> Vec<Json> {
        (0..8).map(|index| case(&index.to_string(), "passed", passes, 10, Some(score))).collect()
    };
    let comparison = compare(&run(8, 0.9), &run(10, 0.7));
    assert_eq!(comparison.verdicts.change, Change::NotShown);
    assert_eq!(comparison.pass_rates.map(|rates| rates.change), Some(Change::Better));
    assert_eq!(comparison.scores.map(|scores| scores.change), Some(Change::Worse));
    assert_eq!(comparison.change(), Change::Worse);
}

#[test]
fn attempts_that_are_not_recorded_show_nothing() {
    let cases = |verdict: &str, passes: usize| -> Vec<Json> {
        (0..20).map(|index| case(&index.to_string(), verdict, passes, 5, Some(0.5))).collect()
    };
    let comparison = compare(&cases("passed", 5), &cases("not_run", 2));
    assert_eq!((comparison.varying, comparison.pass_rates, comparison.scores), (0, None, None));
    assert_eq!((comparison.other.len(), comparison.change()), (20, Change::NotShown));
}

#[test]
fn the_order_of_results_does_not_matter() {
    let run = |step: usize| -> Vec<Json> {
        let case = |index: usize| case(&index.to_string(), "passed", index * step % 5, 5, Some(index as f64 / 30.0));
        (0..30).map(case).collect()
    };
    let (before, mut now) = (run(3), run(7));
    let forwards = compare(&before, &now);
    now.reverse();
    assert_eq!(compare(&before, &now), forwards);
}

#[test]
fn broken_files_are_reported_with_line_and_column() {
    let error = |text: &str| {
        let error = Baseline::read("run.jsonl", text.as_bytes()).expect_err("an error");
        assert!(!error.help.is_empty());
        error.to_string()
    };
    let good = lines(&[case("a", "passed", 1, 1, None)]);
    assert_eq!(
        error(&format!("{good}{{\"kind\": 5}}\n")),
        "run.jsonl:2:10: expected a result as JSON: invalid type: integer `5`, expected a string"
    );
    assert_eq!(
        error("{\"verdict\": \"maybe\"}\n"),
        "run.jsonl:1:19: expected a result as JSON: unknown variant `maybe`, expected one of `passed`, `failed`, \
         `not_run`, `skipped`"
    );
    assert_eq!(error("{}\n"), "run.jsonl:1: expected a result with an `id`, found none");
    assert_eq!(error("[]\n"), "run.jsonl:1: expected a result as a JSON object, found something else");
    assert_eq!(
        error(&format!("{good}\n{good}")),
        "run.jsonl:3: expected one result for each case, found a second one for `a`"
    );
    assert!(error("nonsense").starts_with("run.jsonl:1: "));
    assert!(error(&format!("{{\"attempts\":{}\n", "[".repeat(100_000))).starts_with("run.jsonl:1:"));
}

#[test]
fn a_line_that_was_cut_off_is_left_out() {
    let good = lines(&[case("a", "passed", 1, 1, None), case("b", "passed", 1, 1, None)]);
    for end in 0..good.len() {
        let baseline = Baseline::read("run.jsonl", &good.as_bytes()[..end]).expect("a baseline");
        let complete = good[..end].matches('\n').count();
        // A line that lacks only its line end is complete.
        let is_whole = good[end..].starts_with('\n');
        assert_eq!(baseline.len(), complete + usize::from(is_whole), "{end}");
        assert_eq!(baseline.is_cut_off(), !(is_whole || good[..end].ends_with('\n') || end == 0), "{end}");
    }
}

#[test]
fn results_are_read_one_by_one_and_nothing_follows_an_error() {
    let text =
        format!("{}nonsense\n{}", lines(&[case("a", "passed", 1, 1, None)]), lines(&[case("b", "passed", 1, 1, None)]));
    let mut run = SavedRun::new("run.jsonl", text.as_bytes());
    assert_eq!(run.next().and_then(Result::ok).map(|result| result.id).as_deref(), Some("a"));
    assert!(run.next().is_some_and(|result| result.is_err()));
    assert!(run.next().is_none());
}

/// A line without an end must not be read into memory as a whole.
#[test]
fn endless_lines_are_refused() {
    let endless = std::io::BufReader::new(std::io::repeat(b'x'));
    let error = SavedRun::new("run.jsonl", endless).next().and_then(Result::err).expect("an error");
    assert_eq!(error.to_string(), "run.jsonl:1: expected a line of at most 67108864 bytes, found a longer one");
}
