//! Judges: votes, calibration, and what is computed once.

use serde_json::{Value as Json, json};
use tympan_eval::answer::AnswerMode;
use tympan_eval::judge::Judges;
use tympan_eval::{Check, CheckStatus};
use tympan_runtime::Runtime;

use crate::models::Scripted;
use crate::runs::{Asked, fixtures, price, runtime, settings};

/// Returns a runtime whose provider `own` gives these answers in turn.
fn judged_by(answers: &[&str]) -> (Runtime, Scripted) {
    let (runtime, provider) = (runtime(), Scripted::new(answers));
    runtime.register_provider("own", provider.clone());
    (runtime, provider)
}

fn check(runtime: &Runtime, judges: &Judges, judge: Json, mode: AnswerMode) -> Check {
    let prompt = runtime.load(fixtures().join("greeting.prompty")).expect("it loads");
    let case = json!({"inputs": {"name": "Ada"}, "answer": {"text": "Good day!"}, "expect": [{"judge": judge}]});
    let asked = Asked::new(runtime, prompt, settings(case), &fixtures().join("cassettes"));
    asked.check(&asked.answer(mode), judges, mode, false).remove(0)
}

const PASS: &str = r#"{"pass": true, "score": 1}"#;
const FAIL: &str = r#"{"pass": false, "score": 0.25, "reason": "no"}"#;

#[test]
fn the_majority_decides() {
    let cases = [
        (vec![PASS, FAIL, PASS], 3, CheckStatus::Passed, 0.75),
        (vec![PASS, FAIL, FAIL], 3, CheckStatus::Failed, 0.5),
        (vec![PASS, FAIL], 2, CheckStatus::Failed, 0.625),
    ];
    for (answers, votes, status, score) in cases {
        let (runtime, provider) = judged_by(&answers);
        let judge = json!({"rubric": "polite.prompty", "provider": "own", "model": "gpt-4o-mini", "votes": votes});
        let judges = Judges::new(Some(price()));
        let check = check(&runtime, &judges, judge, AnswerMode::Live);
        assert_eq!((check.status, check.score), (status, Some(score)), "{check:?}");
        assert_eq!(provider.asked().len(), votes);
        // Each vote has a million tokens.
        #[expect(clippy::cast_precision_loss, reason = "there are few votes")]
        let cost = votes as f64 * 0.15;
        assert!((judges.cost() - cost).abs() < 1e-9, "{judges:?}");
    }
}

#[test]
fn one_vote_without_a_verdict_is_enough_to_fail() {
    let (runtime, _) = judged_by(&[PASS, "It passes.", PASS]);
    let judge = json!({"rubric": "polite.prompty", "provider": "own", "votes": 3});
    let check = check(&runtime, &Judges::default(), judge, AnswerMode::Live);
    assert_eq!((check.status, check.score), (CheckStatus::Failed, None), "{check:?}");
}

/// The calibration set has two answers that pass, and one that fails.
#[test]
fn a_judge_is_calibrated_once() {
    let judges = Judges::default();
    let (runtime, provider) = judged_by(&[PASS, PASS, FAIL, PASS]);
    let judge = json!({"rubric": "polite.prompty", "provider": "own", "calibration": "known.jsonl"});
    let both = std::thread::scope(|scope| {
        let one = || check(&runtime, &judges, judge.clone(), AnswerMode::Live).status;
        let other = scope.spawn(one);
        [one(), other.join().expect("it ends")]
    });
    assert_eq!(provider.asked().len(), 3 + 2);
    assert!(both.iter().all(|status| *status != CheckStatus::NotRun), "{both:?}");
    // Another model is another judge.
    let mut other = judge;
    other["model"] = json!("m");
    other["min_agreement"] = json!(0);
    check(&runtime, &judges, other, AnswerMode::Live);
    assert_eq!(provider.asked().len(), 5 + 3 + 1);
}

#[test]
fn a_judge_that_is_too_often_wrong_does_not_count() {
    // It passes one that fails, and writes no verdict about another.
    let (runtime, provider) = judged_by(&[PASS, "?", PASS]);
    let judge = json!({"rubric": "polite.prompty", "provider": "own", "calibration": "known.jsonl"});
    let check = check(&runtime, &Judges::default(), judge, AnswerMode::Live);
    assert_eq!((check.status, check.score), (CheckStatus::NotRun, None));
    let message = check.message.unwrap_or_default();
    assert!(message.starts_with("the judge agrees with 1 of 3 known verdicts (33.3 %)"), "{message}");
    assert!(message.contains("passed 1 that fail") && message.ends_with("no verdict about 1"), "{message}");
    assert_eq!(provider.asked().len(), 3, "the answer itself is not judged");
}

#[test]
fn calibration_sets_pass_their_inputs() {
    let (runtime, provider) = judged_by(&[PASS, PASS, FAIL, PASS]);
    let judge = json!({"rubric": "polite.prompty", "provider": "own", "calibration": "known.jsonl"});
    check(&runtime, &Judges::default(), judge, AnswerMode::Live);
    let instructions: Vec<_> = provider.asked().iter().map(|messages| messages[0].to_text()).collect();
    assert!(instructions[0].ends_with("a greeting.") && instructions[1].ends_with("a warm greeting."));
    let third: String = provider.asked()[2].iter().map(tympan_core::Message::to_text).collect();
    assert!(third.contains(r#"{"text":"Go away."}"#), "{third}");
}

#[test]
fn custom_providers_are_not_asked_in_a_replay() {
    let (runtime, provider) = judged_by(&[PASS]);
    let judge = json!({"rubric": "polite.prompty", "provider": "own"});
    let check = check(&runtime, &Judges::default(), judge, AnswerMode::Replay);
    assert_eq!((check.status, provider.asked().len()), (CheckStatus::NotRun, 0), "{check:?}");
}
