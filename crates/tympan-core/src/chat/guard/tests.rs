//! Tests of the guard's test cases: each case with text from an untrusted input has to fail with a guard that treats
//! all text as the author's.
#![expect(clippy::disallowed_methods, reason = "tests read their cases from files")]

use std::path::Path;

use serde_json::Value;

use super::*;
use crate::chat;
use crate::chat::message::Message;
use crate::chat::rendered::Inputs;
use crate::prompt::{Prompt, RenderOptions};
use crate::spec::PromptSpec;
use crate::spec::schema::{Property, PropertyKind};

fn forgetful() -> Guard {
    Guard { forgetful: true, ..Guard::default() }
}

/// Reads the cases of a file whose path is relative to the repository's root. Returns none if the file is missing.
fn cases(file: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = std::fs::read_to_string(path).expect("the cases are there");
    serde_json::from_str(&text).expect("it is a list of cases")
}

fn fixtures() -> Vec<Value> {
    let files = ["flows", "runs", "messages"].map(|name| cases(&format!("fixtures/guard/{name}.json")));
    let cases: Vec<_> = files.into_iter().flatten().collect();
    assert!(cases.len() >= 50, "the fixtures are there");
    cases
}

fn names<'c>(case: &'c Value, key: &str) -> Vec<&'c str> {
    case[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn render(case: &Value, guard: &Guard) -> Result<Rendered> {
    let template = case["template"].as_str().unwrap_or_default();
    let mut spec = PromptSpec { instructions: template.to_owned(), ..PromptSpec::default() };
    if let Some(format) = case["format"].as_str() {
        spec.template.format = format.to_owned();
    }
    let inputs: Inputs = case["inputs"].as_object().cloned().unwrap_or_default();
    for name in inputs.keys() {
        let is_thread = names(case, "threads").contains(&name.as_str());
        let kind = if is_thread { PropertyKind::Thread } else { PropertyKind::default() };
        let mut property = Property::new(name, kind);
        property.trusted = names(case, "trusted").contains(&name.as_str()) || case["trust"][name] == true;
        spec.inputs.push(property);
    }
    let lenient = case["lenient"].as_bool();
    let options = RenderOptions { guard: Some(guard), lenient, entropy: Some(&|| Ok(7)), ..RenderOptions::default() };
    Prompt::from_spec(spec).render_with(&inputs, &options)
}

/// Returns whether guarded text is what a case of `fixtures/guard` expects.
fn fixture_holds(case: &Value, guard: &Guard) -> bool {
    render(case, guard).is_ok_and(|rendered| case["text"] == rendered.text())
}

#[test]
fn every_fixture_needs_origins() {
    for case in fixtures().iter().filter(|case| case["untrusted"] != false) {
        assert!(fixture_holds(case, &Guard::default()), "{case}");
        assert!(!fixture_holds(case, &forgetful()), "{case}");
    }
}

/// Returns whether guarded text is what a case of the attack corpus expects.
fn attack_holds(case: &Value, guard: &Guard) -> bool {
    let expect = &case["expect"];
    let Ok(rendered) = render(case, guard) else { return expect["allow_error"] == true };
    let (mut outside, mut rest) = (String::new(), rendered.text());
    while let Some((before, behind)) = rest.split_once(OPEN) {
        outside.push_str(before);
        rest = behind.split_once(CLOSE).map_or("", |(_, after)| after);
    }
    outside.push_str(rest);
    let canaries = outside.matches(expect["canary"].as_str().unwrap_or_default()).count();
    let closers = rendered.text().matches(CLOSE).count();
    expect["outside"] == canaries && (expect["closers"].is_null() || expect["closers"] == closers)
}

#[test]
fn every_attack_needs_origins() {
    let attacks = cases("fixtures/attacks/attacks.json").into_iter();
    for case in attacks.filter(|case| case["surface"] == "render_guarded" && case["expect"]["kind"] == "guarded") {
        assert!(attack_holds(&case, &Guard::default()), "{case}");
        // If the template is rejected, there is no text to guard.
        if render(&case, &Guard::default()).is_ok() {
            assert!(!attack_holds(&case, &forgetful()), "{case}");
        }
    }
}

/// Splitting guarded text without the role markers that the guard recorded finds the same markers.
#[test]
fn the_guard_hides_and_makes_no_role_marker() {
    for case in fixtures() {
        let Ok(rendered) = render(&case, &Guard::default()) else { continue };
        let mut blind = rendered.clone();
        let markers = blind.guarded.as_mut().and_then(|guarded| guarded.markers.take());
        assert_eq!(markers.is_some(), rendered.inputs.has_untrusted(), "it is split");
        let roles = |rendered| chat::split(rendered).into_iter().map(|message: Message| message.role);
        assert!(roles(blind).eq(roles(rendered)), "{case}");
    }
}
