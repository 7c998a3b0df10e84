//! Estimates before anything is sent.

use serde_json::{Value as Json, json};
use tympan_core::spec::test_suite::Assertion;
use tympan_eval::estimate::{ASSUMED_OUTPUT_TOKENS, Estimate, EstimateBasis, estimate};
use tympan_eval::judge::Judges;
use tympan_runtime::net::io;

use crate::runs::{Asked, fixtures, price, runtime, settings};

fn asked(prompt: &str, case: Json) -> Asked {
    let runtime = runtime();
    let prompt = runtime.load(fixtures().join(prompt)).expect("it loads");
    Asked::new(&runtime, prompt, settings(case), &fixtures().join("cassettes"))
}

fn estimated(prompt: &str, case: Json) -> Estimate {
    io::wait(estimate(&asked(prompt, case).question(1), Some(&price())))
}

#[test]
fn recorded_answers_say_what_they_cost() {
    let found = estimated("greeting.prompty", json!({"inputs": {"name": "Ada"}}));
    assert_eq!((found.requests, found.input_tokens, found.output_tokens), (1, 20, 5));
    assert_eq!((found.basis, found.unpriced), (EstimateBasis::Recorded, 0));
    assert!((found.cost - (20.0 * 0.15 + 5.0 * 0.6) / 1e6).abs() < 1e-12);
}

#[test]
fn messages_are_counted_without_a_recording() {
    let found = estimated("greeting.prompty", json!({"inputs": {"name": "Bob"}}));
    // Two messages of 4 tokens each, with 8 and 1 tokens of text.
    assert_eq!((found.requests, found.input_tokens, found.output_tokens), (1, 4 + 8 + 4 + 1, 50));
    assert_eq!(found.basis, EstimateBasis::Limit);
    let found = estimated("ticket.prompty", json!({"inputs": {"mail": "Hi"}, "model": "other"}));
    assert_eq!((found.output_tokens, found.basis), (ASSUMED_OUTPUT_TOKENS, EstimateBasis::Assumed));
    assert_eq!((found.unpriced, found.cost), (1, 0.0));
}

#[test]
fn fixed_and_echoed_answers_are_free() {
    for case in [json!({"answer": {"text": "Hi"}}), json!({"answer": "echo"})] {
        let mut case = case;
        case["inputs"] = json!({"name": "Ada"});
        assert_eq!(estimated("greeting.prompty", case), Estimate::default());
    }
}

#[test]
fn judges_are_estimated_with_their_calibration_once() {
    let asked = asked("greeting.prompty", json!({"inputs": {"name": "Ada"}}));
    let judge = json!({"judge": {
        "rubric": "polite.prompty", "provider": "openai", "model": "gpt-4o-mini", "votes": 2, "calibration": "known.jsonl",
    }});
    let Ok(Assertion::Judge(judge)) = serde_json::from_value(judge) else { panic!("a judge") };
    let judges = Judges::new(Some(price()));
    let estimate = || io::wait(judges.estimate(&judge, &fixtures(), &asked.question(1), 100)).expect("an estimate");
    let (first, second) = (estimate(), estimate());
    assert_eq!((first.requests, second.requests), (2 + 3, 2));
    assert!(second.input_tokens > 200 && first.input_tokens > second.input_tokens, "{first:?} {second:?}");
    assert_eq!(second.output_tokens, 2 * ASSUMED_OUTPUT_TOKENS);
    assert_eq!((second.unpriced, second.basis), (0, EstimateBasis::Assumed));
}
