//! Generated templates and inputs: the engine's text is minijinja's, and it fails where minijinja
//! fails.
//!
//! Inside a text (`~`, `join`, `upper`, …) minijinja prints some values as Python does, so the grammar
//! puts none of them there; `{{ … }}` prints all values, by the formatter that the oracle is given.

mod grammar;
mod oracle;

use grammar::{Exprs, block};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use tympan::template::{CompileOptions, Template};
use tympan::{Error, JsonMap, Kind};

fn inputs() -> impl Strategy<Value = JsonMap> {
    let text = || {
        select(vec![
            "",
            "a",
            "Hello, World",
            "žluťoučký",
            " padded ",
            "a b  c",
            "x\ny\n",
            "<b>&",
            "12",
            "3.7",
            "a,b",
            "ABC",
            "\r\n",
        ])
    };
    let texts = prop::collection::vec(text(), 0..4);
    let ints = prop::collection::vec(-3..9i64, 0..5);
    let scalars = (text(), text(), -9..99i64, 0..4i64, select(vec![0.5, -1.25, 3.0, 1e10]), any::<bool>());
    (scalars, texts, ints, prop::collection::vec((text(), 20..40i64), 1..4)).prop_map(
        |((s, q, n, k, f, t), w, l, people)| {
            let d: Vec<Value> = people.iter().map(|(name, age)| json!({"name": name, "age": age})).collect();
            let inputs = json!({
                "s": s, "q": q, "n": n, "k": k, "f": f, "t": t, "z": null, "w": w, "l": l, "d": d,
                "u": {"name": s, "age": n}, "m": {"a": 1, "b": n, "C": 3},
            });
            inputs.as_object().cloned().unwrap_or_default()
        },
    )
}

/// Where the engine fails by decision and minijinja does not.
fn is_decided(error: &Error, lenient: bool) -> bool {
    // An undefined variable is an error wherever it is used; minijinja hands it on to some filters.
    let is_undefined = error.kind() == Kind::UndefinedVariable && !lenient;
    // None is not an empty list, as in Python.
    is_undefined || error.message().contains("none cannot be iterated over")
}

fn compare(template: &str, inputs: &JsonMap, lenient: bool) -> Result<(), TestCaseError> {
    let compiled = Template::compile(template, CompileOptions::default());
    let ours = compiled.and_then(|template| template.render_json(inputs, lenient));
    // minijinja panics at a few operations on nothing, such as `""[::-1]`: then it has no opinion.
    let Ok(theirs) = std::panic::catch_unwind(|| oracle::render(template, inputs, lenient)) else { return Ok(()) };
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => prop_assert_eq!(ours.as_str(), &theirs, "{}", template),
        (Err(_), Err(_)) => {}
        (Err(ours), Ok(_)) if is_decided(&ours, lenient) => {}
        // Lenient means that what is undefined is empty; minijinja has filters that refuse it.
        (Ok(_), Err(_)) if lenient => {}
        (ours, theirs) => prop_assert!(false, "{}\n{:?}\n{:?}", template, ours, theirs),
    }
    Ok(())
}

/// The same cases every time: a difference from the oracle is found by whoever makes it.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 1000, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn expressions_give_what_minijinja_gives(expr in Exprs::nested(3).any, inputs in inputs(), lenient: bool) {
        compare(&format!("{{{{ {expr} }}}}"), &inputs, lenient)?;
    }

    #[test]
    fn templates_give_what_minijinja_gives(template in block(3, &Exprs::nested(1)), inputs in inputs(), lenient: bool) {
        compare(&template, &inputs, lenient)?;
    }
}
