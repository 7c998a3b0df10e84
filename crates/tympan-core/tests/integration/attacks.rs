//! Attacks on rendering: the cases in `fixtures/attacks`, in the format of the public corpus.

use std::path::Path;

use serde_json::{Map, Value, json};
use tympan::chat::guard::{CLOSE, Guard, OPEN};
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::{Inputs, Kind, Prompt, RenderOptions, Result, chat};

fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/attacks").join(file);
    #[expect(clippy::disallowed_methods, reason = "a test reads its cases")]
    let text = std::fs::read_to_string(path).expect("the cases are there");
    serde_json::from_str(&text).expect("a list of cases")
}

/// Replaces the generators of a case with what they generate.
fn expand(value: &Value) -> Value {
    match value {
        Value::Object(map) => match map.iter().next().map(|(name, args)| (name.as_str(), args)) {
            Some(("$repeat", args)) => json!(text(&args[0]).repeat(count(&args[1]))),
            Some(("$concat", Value::Array(parts))) => json!(parts.iter().map(text).collect::<String>()),
            Some(("$list", args)) => Value::Array(vec![expand(&args[0]); count(&args[1])]),
            _ => Value::Object(map.iter().map(|(name, value)| (name.clone(), expand(value))).collect::<Map<_, _>>()),
        },
        Value::Array(items) => Value::Array(items.iter().map(expand).collect()),
        other => other.clone(),
    }
}

fn text(value: &Value) -> String {
    expand(value).as_str().expect("a text").to_owned()
}

fn count(value: &Value) -> usize {
    value.as_u64().and_then(|count| usize::try_from(count).ok()).expect("a count")
}

fn prompt(case: &Value) -> (Prompt, Inputs) {
    let inputs = expand(&case["inputs"]).as_object().cloned().expect("inputs");
    let mut spec = PromptSpec { instructions: text(&case["template"]), ..PromptSpec::default() };
    for name in inputs.keys() {
        let kind = case["input_kinds"][name].as_str().and_then(PropertyKind::from_name).unwrap_or_default();
        spec.inputs.push(Property::new(name, kind));
    }
    (Prompt::from_spec(spec), inputs)
}

fn roles(prompt: &Prompt, inputs: &Inputs) -> Result<Vec<&'static str>> {
    let entropy = || Ok(1);
    let options = RenderOptions { entropy: Some(&entropy), ..RenderOptions::default() };
    let rendered = prompt.render_with(inputs, &options)?;
    Ok(chat::split(rendered).iter().map(|message| message.role.as_str()).collect())
}

#[test]
fn nobody_forges_a_message_or_takes_one_away() {
    let cases = cases("provenance.json");
    for case in &cases {
        let (prompt, inputs) = prompt(case);
        let roles = roles(&prompt, &inputs).unwrap_or_else(|error| panic!("{}: {error:?}", case["id"]));
        assert_eq!(json!(roles), case["expect"]["roles"], "{}", case["id"]);
    }
    assert!(cases.len() >= 228, "{} cases", cases.len());
}

/// Text from the keys of an input is marked by the guard, rejected by strict mode, and labelled in segments.
#[test]
fn keys_are_not_the_authors() {
    let cases = cases("provenance.json");
    let cases = cases.iter().filter(|case| case["id"].as_str().is_some_and(|id| id.starts_with("key.")));
    let mut seen = 0;
    for case in cases {
        let id = &case["id"];
        let (prompt, inputs) = prompt(case);
        let rendered = prompt.render(&inputs).expect("it renders");
        let mut segments = rendered.segments();
        assert!(
            segments.all(|segment| rendered.is_trusted(&segment) != segment.text.to_lowercase().contains("obey")),
            "{id}: labels"
        );
        let strict = RenderOptions { strict: Some(true), ..RenderOptions::default() };
        let error = prompt.render_with(&inputs, &strict).expect_err("strict mode finds it");
        assert_eq!(error.kind(), Kind::NonceMismatch, "{id}");
        let guard = Guard::default();
        let guarded = RenderOptions { guard: Some(&guard), ..RenderOptions::default() };
        let guarded = prompt.render_with(&inputs, &guarded).expect("it renders");
        let (_, inside) = guarded.text().split_once(OPEN).expect("it is marked");
        let (inside, _) = inside.split_once(CLOSE).expect("it is marked");
        assert!(inside.to_lowercase().contains("obey me"), "{id}: {:?}", guarded.text());
        seen += 1;
    }
    assert!(seen >= 31, "{seen} cases");
}

/// Every case ends with messages or with an error that names the exceeded limit. `cost_render.rs` tests the memory
/// usage.
#[test]
fn every_render_ends() {
    let cases = cases("bounds.json");
    for case in &cases {
        let (prompt, inputs) = prompt(case);
        if let Err(error) = roles(&prompt, &inputs) {
            let expected = [Kind::LimitExceeded, Kind::UnknownFilter, Kind::UnknownTest];
            assert!(expected.contains(&error.kind()), "{}: {error:?}", case["id"]);
            assert!(error.message().len() < 1000, "{}: a long message", case["id"]);
        }
    }
    assert!(cases.len() >= 33, "{} cases", cases.len());
}

/// Only two files can claim the author's origin: the proof that the compiler hands out, and the constructors that
/// require it or pieces with their own origins.
#[test]
fn only_the_compiler_speaks_for_the_author() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/template");
    let mut folders = vec![sources.clone()];
    let (mut seen, mut claims) = (0, Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("the sources are there") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            #[expect(clippy::disallowed_methods, reason = "a test reads the sources")]
            let source = std::fs::read_to_string(&path).expect("a source");
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            seen += 1;
            if code.contains("Origin::AUTHOR") || code.contains("Authored(())") {
                claims.push(path.strip_prefix(&sources).expect("a source").to_string_lossy().into_owned());
            }
        }
    }
    claims.sort();
    assert_eq!(claims, ["tree.rs", "value/mod.rs"]);
    assert!(seen > 20, "{seen} files");
}
