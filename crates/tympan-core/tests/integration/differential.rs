//! Generated templates and inputs: the engine renders the same text as minijinja and fails where minijinja fails.
//!
//! Inside a text (`~`, `join`, `upper`, …), minijinja prints some values as Python does, so the grammar does not
//! generate these there. `{{ … }}` prints all values with the formatter that is passed to the oracle.

use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};
use tympan::template::syntax::jinja::ast::StatementKind;
use tympan::template::syntax::jinja::visit::{NodeRef, walk};
use tympan::template::syntax::parse_jinja;
use tympan::template::{CompileOptions, Template};
use tympan::text::traced::TracedText;
use tympan::{Error, JsonMap, Kind};

use crate::grammar::{Exprs, block};
use crate::oracle;

type Theirs = Result<String, minijinja::Error>;

pub(crate) fn inputs() -> impl Strategy<Value = JsonMap> {
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

/// Returns whether the engine fails by design where minijinja does not.
fn is_decided(error: &Error, lenient: bool) -> bool {
    // Any use of an undefined variable is an error, but minijinja passes it to some filters.
    let is_undefined = error.kind() == Kind::UndefinedVariable && !lenient;
    // As in Python, none is not an empty list.
    is_undefined || error.message().contains("cannot iterate over none")
}

fn is_conversion(template: &str, error: &minijinja::Error) -> bool {
    let converts = template.contains("| int") || template.contains("| float");
    converts && error.kind() == minijinja::ErrorKind::InvalidOperation
}

/// Returns whether texts differ only in carriage returns that `indent` removed. At the end of a text, the engine removes one
/// of them with the line end, and minijinja two.
fn is_carriage_return(template: &str, ours: &str, theirs: &str) -> bool {
    template.contains("indent") && ours.len() > theirs.len() && ours.replace('\r', "") == theirs.replace('\r', "")
}

/// Adds statements without effect that make minijinja's closures those of Jinja2, for `v`, the only variable that the
/// grammar assigns.
///
/// Macros and call blocks see the variables around them through a closure, and minijinja's closures differ in two ways:
///
/// - Those in a loop share a closure. It is kept for all iterations, so they see what the iteration before has assigned.
///   In the engine, as in Jinja2, each iteration starts with the value from outside the loop. An assignment of this value
///   at the start of the loop's body stores it in the closure.
/// - A variable is not in the closure if it is sliced, or read in the statement that assigns it (`{% set v = v + 1 %}`).
///   A condition at the start of the macro's body is another use.
fn correct_closures(template: &str) -> String {
    let mut additions = Vec::new();
    walk(&parse_jinja(template).body, &mut |node| {
        if let NodeRef::Statement(statement) = node {
            additions.extend(match &statement.kind {
                StatementKind::For(node) => Some((node.tag, "{% set v = v ")),
                StatementKind::Macro(node) => Some((node.tag, "{% if v %}{% endif ")),
                StatementKind::Call(node) => Some((node.tag, "{% if v %}{% endif ")),
                _ => None,
            });
        }
        true
    });
    let mut corrected = template.to_owned();
    for (tag, addition) in additions.into_iter().rev() {
        let close = if template[tag.span.range()].ends_with("-%}") { "-%}" } else { "%}" };
        corrected.insert_str(tag.span.end, &format!("{addition}{close}"));
    }
    corrected
}

/// Renders a template with minijinja, which panics in a few operations on empty values, such as `""[::-1]`. There is
/// nothing to compare then.
fn theirs(template: &str, inputs: &JsonMap, lenient: bool) -> Option<Theirs> {
    std::panic::catch_unwind(|| oracle::render(template, inputs, lenient)).ok()
}

fn is_same(template: &str, ours: &Result<TracedText, Error>, theirs: &Theirs, lenient: bool) -> bool {
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours.as_str() == theirs || is_carriage_return(template, ours.as_str(), theirs),
        (Err(_), Err(_)) => true,
        (Err(ours), Ok(_)) => is_decided(ours, lenient),
        // In lenient mode, undefined values are empty, but some of minijinja's filters reject them. What is not a number
        // is 0, as in Jinja2. In minijinja, it is an error.
        (Ok(_), Err(theirs)) => lenient || is_conversion(template, theirs),
    }
}

pub(crate) fn compare(template: &str, inputs: &JsonMap, lenient: bool) -> Result<(), TestCaseError> {
    let compiled = Template::compile(template, CompileOptions::default());
    let ours = compiled.and_then(|template| template.render_json(inputs, lenient));
    // minijinja has no such limits, and could print a long list for hours.
    if ours.as_ref().is_err_and(|error| error.kind() == Kind::LimitExceeded) {
        return Ok(());
    }
    let Some(theirs) = theirs(template, inputs, lenient) else { return Ok(()) };
    let is_closure = || {
        let theirs = self::theirs(&correct_closures(template), inputs, lenient);
        theirs.is_some_and(|theirs| theirs.is_ok() == ours.is_ok() && is_same(template, &ours, &theirs, lenient))
    };
    prop_assert!(is_same(template, &ours, &theirs, lenient) || is_closure(), "{template}\n{ours:?}\n{theirs:?}");
    Ok(())
}

/// The seed is fixed, so that a failure is caused by the current change and not by chance.
fn config() -> ProptestConfig {
    ProptestConfig { cases: 1000, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() }
}

/// Fails if the allowance for closures is missing, and if it allows for more.
#[test]
fn only_closures_are_corrected() {
    let inputs = json!({"l": [1, 2, 3]}).as_object().cloned().unwrap_or_default();
    let is_allowed = |template: &str| compare(template, &inputs, true).is_ok();
    let kept = "{% for x in l -%} {% macro h() %}{{ v }}{% endmacro %}{{ h() }}{% set v = x %}{% endfor %}";
    assert!(is_allowed(kept));
    let missing = "{% set v = 'ab' %}{% macro h() %}{{ v[1:] }}{% set v = v ~ 1 %}{{ v }}{% endmacro %}{{ h() }}";
    assert!(is_allowed(missing));
    let in_set =
        "{% for x in l %}{% set v %}{% macro h() %}{{ v }}A{% endmacro %}{{ h() }}{% endset %}{{ v }}{% endfor %}";
    assert!(is_allowed(in_set));
    // Values inside a text are printed differently.
    assert!(!is_allowed(&format!("{kept}{{{{ none ~ '' }}}}")));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn expressions_give_what_minijinja_gives(expr in Exprs::nested(3).any.strategy(), inputs in inputs(), lenient: bool) {
        compare(&format!("{{{{ {expr} }}}}"), &inputs, lenient)?;
    }

    #[test]
    fn templates_give_what_minijinja_gives(template in block(3, &Exprs::nested(1)).strategy(), inputs in inputs(), lenient: bool) {
        compare(&template, &inputs, lenient)?;
    }
}
