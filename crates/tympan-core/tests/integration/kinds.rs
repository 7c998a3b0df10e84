//! Kinds and enums of inputs: the cases in `fixtures/inputs/kinds.json`, and properties of the check.

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use tympan_core::prompt::kinds::mismatches;
use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::template::input::{InputData, InputMap};
use tympan_core::{Kind, KindCheck, Prompt, RenderOptions};

use crate::optional_inputs::cases;

fn strict() -> RenderOptions<'static> {
    RenderOptions { kinds: KindCheck::Error, ..RenderOptions::default() }
}

fn prompt(declared: &str) -> Prompt {
    let source = format!("---\ninputs:\n  x: {declared}\n---\nuser:\nHi");
    Prompt::from_prompty(&source).expect("the prompt loads")
}

#[test]
fn fixtures() {
    for case in cases("kinds.json") {
        let prompt = prompt(case["declared"].as_str().expect("a declaration"));
        let list = |key: &str| case[key].as_array().cloned().expect("a list");
        for value in list("accepted") {
            let inputs = json!({ "x": value });
            let rendered = prompt.render_with(&inputs, &strict());
            assert!(rendered.is_ok(), "{}: {value}: {}", case["name"], rendered.expect_err("it failed"));
            assert!(prompt.kind_warnings(map(&inputs)).is_empty(), "{}: {value}", case["name"]);
        }
        for refused in list("refused") {
            let (value, found) = (&refused[0], refused[1].as_str().expect("what was found"));
            let inputs = json!({ "x": value });
            // A thread becomes messages, so it is read in any case.
            let is_read = case["always_read"] == true;
            assert!(is_read || prompt.render(&inputs).is_ok(), "{}: {value}: checks are off by default", case["name"]);
            let error = prompt.render_with(&inputs, &strict()).expect_err("it does not match");
            let path = case["path"].as_str().unwrap_or("x");
            let expected = case["expected"].as_str().expect("what was expected");
            let message = format!("input `{path}`: expected {expected}, found {found}");
            assert_eq!(error.message(), format!("Invalid input: {message}"), "{}: {value}", case["name"]);
            assert_eq!((error.kind(), error.span()), (Kind::InvalidInput, prompt.spec().inputs[0].span));
            let warnings = prompt.kind_warnings(map(&inputs));
            assert_eq!(warnings[0].message, message);
            assert_eq!((warnings[0].code, warnings[0].is_error()), ("invalid_input", false));
        }
    }
}

fn map(inputs: &Json) -> InputMap<'_> {
    inputs.as_object().expect("a map").into()
}

#[test]
fn all_mismatches_are_reported_before_anything_is_rendered() {
    let source = "---\ninputs:\n  a: {kind: integer}\n  b: {kind: boolean, description: Whether}\n---\n{{ oops }}";
    let prompt = Prompt::from_prompty(source).expect("it loads");
    let error = prompt.render_with(json!({ "a": "x", "b": "y" }), &strict()).expect_err("they do not match");
    assert_eq!(error.message(), "Invalid input: input `a`: expected an integer, found a string that is not an integer");
    assert_eq!(error.others().len(), 1);
    assert!(error.others()[0].message.starts_with("input `b`: expected a boolean"));
    assert_eq!(error.others()[0].help.as_deref(), Some("`b` (boolean): Whether"));
}

#[test]
fn borrowed_values_are_checked_like_json() {
    let prompt = prompt("{kind: integer}");
    for (value, is_accepted) in [
        (InputData::Int(3), true),
        (InputData::Uint(u64::MAX), true),
        (InputData::Float(3.0), true),
        (InputData::Float(3.5), false),
        (InputData::Float(f64::NAN), false),
        (InputData::Float(f64::INFINITY), false),
        (InputData::Str("3"), true),
        (InputData::Bool(true), false),
        (InputData::Null, true),
    ] {
        let entries = [("x", value)];
        let inputs = InputData::map(&entries).expect("few entries");
        let rendered = prompt.render_borrowed(InputMap::of(&inputs).expect("a map"), &strict());
        assert_eq!(rendered.is_ok(), is_accepted, "{value:?}");
    }
}

#[test]
fn definitions_are_checked_too() {
    let prompt = Prompt::from_yaml(
        "{name: a, role: user, body: '{{ x }}', variables: {x: {type: [integer, boolean], trusted: false}}}",
    );
    let prompt = prompt.expect("a definition");
    assert!(prompt.render_with(json!({ "x": true }), &strict()).is_ok());
    let error = prompt.render_with(json!({ "x": "y" }), &strict()).expect_err("it is text");
    assert_eq!(error.message(), "Invalid input: input `x`: expected an integer or a boolean, found a string");
    let error = prompt.render_with(json!({ "x": null }), &strict()).expect_err("it is null");
    assert!(error.message().ends_with("found null"));
}

#[test]
fn unknown_inputs_are_warnings() {
    let source = "---\ninputs:\n  question: {kind: string}\ntools:\n  - name: t\n    kind: function\n    \
                  bindings: {u: {input: session}}\n---\n{{ question }} {{ extra }}";
    let prompt = Prompt::from_prompty(source).expect("it loads");
    let known = json!({ "question": "a", "extra": "b", "session": "c" });
    assert_eq!(prompt.unknown_inputs(map(&known)), []);
    let unknown = json!({ "questoin": "a", "zzzzzz": 1 });
    let found = prompt.unknown_inputs(map(&unknown));
    let found: Vec<_> = found.iter().map(|one| (one.code, one.message.as_str(), one.help.as_deref())).collect();
    assert_eq!(
        found,
        [
            ("unknown_input", "the prompt has no input `questoin`", Some("did you mean `question`?")),
            ("unknown_input", "the prompt has no input `zzzzzz`", None),
        ]
    );
    let many: serde_json::Map<_, _> = (0..1000).map(|index| (format!("n{index}"), Json::Null)).collect();
    assert_eq!(prompt.unknown_inputs((&many).into()).len(), 20);
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "[-+0-9.eE a-z]{0,6}".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::hash_map("[a-c]", inner, 0..4).prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

fn accepts(kind: PropertyKind, value: &Json) -> bool {
    mismatches(&Property::new("x", kind), value).is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Every value of a kind is accepted, in its own form and as text.
    #[test]
    fn values_of_the_kind_are_accepted(int: i64, float in -1e300..1e300_f64, flag: bool, text: String) {
        use PropertyKind::*;
        prop_assert!(accepts(Integer, &json!(int)) && accepts(Integer, &json!(int.to_string())));
        prop_assert!(accepts(Float, &json!(int)) && accepts(Float, &json!(float)));
        prop_assert!(accepts(Float, &json!(float.to_string())));
        prop_assert!(accepts(Boolean, &json!(flag)) && accepts(Boolean, &json!(flag.to_string())));
        prop_assert!(accepts(String, &json!(text)));
        prop_assert!(accepts(Integer, &json!(float.trunc())));
        prop_assert_eq!(accepts(Integer, &json!(float)), float.fract() == 0.0);
    }

    /// The kinds agree with each other, and with the types of JSON.
    #[test]
    fn kinds_agree(value in any_json()) {
        use PropertyKind::*;
        prop_assert!(!accepts(Integer, &value) || accepts(Float, &value));
        prop_assert!(!(accepts(Float, &value) && accepts(Boolean, &value)));
        prop_assert_eq!(accepts(Array, &value), value.is_array());
        prop_assert_eq!(accepts(Object, &value), value.is_object());
        prop_assert_eq!(accepts(String, &value), !(value.is_null() || value.is_array() || value.is_object()));
        for kind in PropertyKind::ALL {
            let several = Property { kinds: vec![kind, Array], ..Property::new("x", kind) };
            prop_assert_eq!(mismatches(&several, &value).is_empty(), accepts(kind, &value) || value.is_array());
        }
    }

    /// An enum accepts exactly its own values, whatever they are.
    #[test]
    fn enums_accept_their_values(values in prop::collection::vec("[a-z]{1,3}", 1..5), other in "[a-z]{1,3}") {
        let allowed = values.iter().map(|value| json!(value)).collect();
        let property = Property { enum_values: Some(allowed), ..Property::new("x", PropertyKind::String) };
        for value in &values {
            prop_assert!(mismatches(&property, &json!(value)).is_empty());
        }
        prop_assert_eq!(mismatches(&property, &json!(other)).is_empty(), values.contains(&other));
    }

    /// The check neither changes what is rendered nor quotes values.
    #[test]
    fn the_check_only_accepts_or_refuses(value in any_json()) {
        for kind in ["string", "integer", "float", "boolean", "array", "object"] {
            let source = format!("---\ninputs:\n  x: {{kind: {kind}}}\n---\nuser:\n{{{{ x }}}}");
            let prompt = Prompt::from_prompty(&source).expect("it loads");
            let inputs = json!({ "x": value });
            if let Ok(checked) = prompt.render_with(&inputs, &strict()) {
                let rendered = prompt.render(&inputs).expect("it renders without the check");
                prop_assert_eq!(checked.text(), rendered.text());
            }
        }
    }
}
