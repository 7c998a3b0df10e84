//! Borrowed inputs render like JSON: every case of the templates, in both forms.

use bumpalo::Bump;
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tympan::spec::PromptSpec;
use tympan::spec::schema::{Property, PropertyKind};
use tympan::template::input::{InputData, InputMap};
use tympan::{Inputs, Prompt, RenderOptions, Rendered, Result};

use crate::cases;

/// Converts JSON to borrowed data in another place.
fn borrowed<'a>(json: &'a Json, room: &'a Bump) -> InputData<'a> {
    match json {
        Json::Null => InputData::Null,
        Json::Bool(value) => InputData::Bool(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(number), _, _) => InputData::Int(number),
            (_, Some(number), _) => InputData::Uint(number),
            (_, _, number) => InputData::Float(number.expect("all others are floats")),
        },
        Json::String(text) => InputData::Str(text),
        Json::Array(items) => {
            InputData::List(room.alloc_slice_fill_iter(items.iter().map(|item| borrowed(item, room))))
        }
        Json::Object(map) => {
            let entries: Vec<_> = map.iter().map(|(name, value)| (name.as_str(), borrowed(value, room))).collect();
            InputData::map(room.alloc_slice_copy(&entries)).expect("no case has so many entries")
        }
    }
}

fn borrowed_map<'a>(json: &'a Json, room: &'a Bump) -> InputMap<'a> {
    InputMap::of(room.alloc(borrowed(json, room))).expect("inputs are a map")
}

/// Formats everything visible about a render.
fn seen(outcome: &Result<Rendered>) -> String {
    match outcome {
        Ok(rendered) => format!("{:?}", rendered.segments().collect::<Vec<_>>()),
        Err(error) => format!("{error:?}"),
    }
}

fn complaint(prompt: &Prompt, inputs: &Inputs, lenient: bool) -> Option<String> {
    let options = RenderOptions { lenient: Some(lenient), entropy: Some(&|| Ok(1)), ..RenderOptions::default() };
    let (json, room) = (Json::Object(inputs.clone()), Bump::new());
    let expected = seen(&prompt.render_with(inputs, &options));
    let found = seen(&prompt.render_borrowed(borrowed_map(&json, &room), &options));
    (expected != found).then(|| format!("as JSON: {expected}\nborrowed: {found}"))
}

#[derive(Deserialize)]
struct Case<const IS_MUSTACHE: bool> {
    name: String,
    template: String,
    inputs: Inputs,
    #[serde(default)]
    lenient: bool,
}

impl<const IS_MUSTACHE: bool> cases::Case for Case<IS_MUSTACHE> {
    fn title(&self) -> (&str, &str) {
        (&self.name, &self.template)
    }

    fn complaint(&self) -> Option<String> {
        let mut spec = PromptSpec { instructions: self.template.clone(), ..PromptSpec::default() };
        spec.template.format = if IS_MUSTACHE { "mustache" } else { "jinja2" }.to_owned();
        complaint(&Prompt::from_spec(spec), &self.inputs, self.lenient)
    }
}

#[test]
fn jinja_is_the_same() {
    cases::run::<Case<false>>("jinja", 400);
}

#[test]
fn mustache_is_the_same() {
    cases::run::<Case<true>>("mustache", 100);
}

#[test]
fn threads_are_the_same() {
    let instructions = "system:\nBe kind.\n\n{{ thread }}".to_owned();
    let inputs = vec![Property::new("thread", PropertyKind::Thread)];
    let prompt = Prompt::from_spec(PromptSpec { instructions, inputs, ..PromptSpec::default() });
    let threads = [
        json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [{"kind": "text", "value": "Ho"}]}]),
        json!({"messages": [{"role": "user", "content": null, "metadata": {"a": [1, {"b": 1.5}]}, "name": "Ada"}]}),
        json!([{"role": "assistant", "tool_calls": [{"id": "1"}]}, {"role": "tool", "tool_call_id": "1", "content": ""}]),
        json!([{"role": "nobody", "content": "Hi"}]),
        json!([{"role": "user", "content": 1}]),
        json!("no thread"),
    ];
    let options = RenderOptions { entropy: Some(&|| Ok(1)), ..RenderOptions::default() };
    for thread in threads {
        let (json, room) = (json!({ "thread": thread }), Bump::new());
        let messages = |rendered: Result<Rendered>| rendered.and_then(|rendered| prompt.messages(rendered));
        let expected = messages(prompt.render_with(json.as_object().expect("a map"), &options));
        let found = messages(prompt.render_borrowed(borrowed_map(&json, &room), &options));
        assert_eq!(format!("{found:?}"), format!("{expected:?}"));
    }
}

#[test]
fn values_come_back_as_json() {
    let json = json!({
        "null": null, "true": true, "int": -1, "large": u64::MAX, "float": 1.5, "whole": 2.0, "text": "é",
        "list": [[], {}, [1, "a"]], "map": {"a": {"b": "c"}},
    });
    let room = Bump::new();
    assert_eq!(borrowed(&json, &room).to_json(), json);
    assert_eq!(Json::Object(borrowed_map(&json, &room).to_json().into_owned()), json);
}

#[test]
fn a_map_that_would_be_slow_is_refused() {
    let names: Vec<String> = (0..65).map(|number| number.to_string()).collect();
    let entries: Vec<_> = names.iter().map(|name| (name.as_str(), InputData::Null)).collect();
    assert!(InputData::map(&entries[..64]).is_some());
    assert!(InputData::map(&entries).is_none());
}
