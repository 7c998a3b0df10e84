//! The provider `echo`, through the same functions as any other provider.

use serde_json::{Value, json};
use tympan_core::wire::echo;
use tympan_core::wire::response::Delta;
use tympan_core::{Message, Outcome, Prompt, Role};
use tympan_runtime::{Kind, Result, Run, RunOptions, Runtime};

use crate::faults::client::fails;
use crate::runs::{TEMPLATE, inputs, runtime};

fn prompt(runtime: &Runtime, front: &Value) -> Prompt {
    runtime.load_str(&format!("---\n{front}\n---\n{TEMPLATE}"), "echo.prompty", ".").expect("it is a prompt")
}

fn front(model: Value) -> Value {
    json!({ "model": model, "inputs": [{ "name": "q", "kind": "string" }] })
}

fn scripted(script: Value) -> (Runtime, Prompt) {
    let runtime = runtime(&[]);
    let options = json!({ "additionalProperties": { "script": script } });
    let prompt = prompt(&runtime, &front(json!({ "id": "echo", "provider": "echo", "options": options })));
    (runtime, prompt)
}

/// Streams an answer. Returns its deltas and the result.
fn stream(runtime: &Runtime, prompt: &Prompt, messages: &[Message]) -> Result<(Vec<Delta>, Run)> {
    let mut stream = runtime.stream(prompt, messages, &RunOptions::default())?;
    let steps = stream.by_ref().collect::<Result<_>>()?;
    Ok((steps, stream.finish()?))
}

#[test]
fn the_same_question_has_the_same_answer() {
    let runtime = runtime(&[]);
    let prompt = prompt(&runtime, &front(json!({ "id": "echo", "provider": "echo" })));
    let run = runtime.invoke(&prompt, inputs()).expect("it succeeds");
    assert_eq!(run.outcome, Outcome::Text("How are you?".into()));
    assert_eq!(run.model.as_deref(), Some("echo"), "it says what it is");
    assert_eq!(run, runtime.invoke(&prompt, inputs()).expect("it succeeds"));
    let usage = run.usage.as_ref().expect("it counts words");
    assert_eq!((usage.input_tokens, usage.output_tokens, usage.total_tokens), (6, 3, 9));
    let other = json!({ "q": "And you?" });
    let other = runtime.invoke(&prompt, other.as_object().expect("a map")).expect("it succeeds");
    assert_ne!(run.id, other.id);
}

#[test]
fn a_stream_comes_to_the_same_word_by_word() {
    let runtime = runtime(&[]);
    let prompt = prompt(&runtime, &front(json!({ "id": "echo", "provider": "echo" })));
    let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
    let (steps, run) = stream(&runtime, &prompt, &messages).expect("it succeeds");
    assert_eq!(run, runtime.run(&prompt, &messages).expect("it succeeds"));
    let words: Vec<_> = ["How ", "are ", "you?"].into_iter().map(|word| Delta::Text(word.into())).collect();
    assert_eq!(steps[..3], words);
    assert!(matches!(steps[3..], [Delta::Usage(_)]), "{steps:?}");
}

#[test]
fn outputs_of_every_kind_are_filled_in_as_declared() {
    let kinds = ["string", "integer", "float", "boolean", "array", "object", "thread", "image", "file", "audio"];
    let mut outputs: Vec<_> =
        kinds.iter().map(|kind| json!({ "name": kind, "kind": kind, "required": true })).collect();
    outputs.extend([
        json!({ "name": "one_of", "kind": "string", "enumValues": ["b", "a"], "required": true }),
        json!({ "name": "default", "kind": "integer", "default": 7, "required": true }),
        json!({ "name": "example", "kind": "string", "example": "such", "required": true }),
        json!({ "name": "list", "kind": "array", "required": true, "items": { "kind": "object", "properties": [
            { "name": "size", "kind": "float", "required": true },
            { "name": "tags", "kind": "array", "required": true, "items": { "kind": "string", "enumValues": ["x"] } },
        ] } }),
        json!({ "name": "deep", "kind": "object", "required": true, "properties": [
            { "name": "deeper", "kind": "object", "required": true, "properties": [
                { "name": "flag", "kind": "boolean", "required": true },
            ] },
        ] }),
    ]);
    let runtime = runtime(&[]);
    let mut front = front(json!({ "id": "echo", "provider": "echo" }));
    front["outputs"] = json!(outputs);
    let prompt = prompt(&runtime, &front);
    let messages = runtime.prepare(&prompt, inputs()).expect("it renders");
    let run = runtime.run(&prompt, &messages).expect("it succeeds");
    let Outcome::Structured(structured) = &run.outcome else { panic!("{:?}", run.outcome) };
    assert_eq!(structured.problems, Vec::<String>::new(), "{}", structured.value);
    for output in &outputs {
        let name = output["name"].as_str().expect("a name");
        assert!(structured.value.get(name).is_some(), "{name}");
    }
    assert_eq!(structured.value["one_of"], "b");
    assert_eq!((&structured.value["default"], &structured.value["example"]), (&json!(7), &json!("such")));
    assert_eq!(structured.value["list"], json!([{ "size": 0.0, "tags": ["x"] }]));
    assert_eq!(stream(&runtime, &prompt, &messages).expect("it succeeds").1, run);
}

#[test]
fn a_script_goes_on_with_the_conversation() {
    let (runtime, prompt) = scripted(json!([
        { "text": "Let me see.", "tool_calls": [
            { "name": "get_weather", "arguments": { "city": "Paris" } },
            { "name": "get_time", "id": "mine", "arguments": "no JSON" },
            { "name": "get_news" },
        ] },
        { "text": "It is sunny." },
    ]));
    let mut messages = runtime.prepare(&prompt, inputs()).expect("it renders");
    let run = runtime.run(&prompt, &messages).expect("it succeeds");
    let expected = json!([
        { "id": "call_1_1", "name": "get_weather", "arguments": "{\"city\":\"Paris\"}" },
        { "id": "mine", "name": "get_time", "arguments": "no JSON" },
        { "id": "call_1_3", "name": "get_news", "arguments": "{}" },
    ]);
    assert_eq!(run.outcome.to_json(), expected);
    assert_eq!(run.finish_reason.as_ref().map(|reason| reason.as_str()), Some("tool_calls"));
    let (steps, streamed) = stream(&runtime, &prompt, &messages).expect("it succeeds");
    assert_eq!(streamed, run);
    assert_eq!(steps.iter().filter(|step| matches!(step, Delta::ToolCall { .. })).count(), 3);

    messages.push(Message::text(Role::Assistant, ""));
    messages.push(Message::text(Role::Tool, "22 degrees"));
    let run = runtime.run(&prompt, &messages).expect("it succeeds");
    assert_eq!(run.outcome.to_json(), "It is sunny.");
    assert_eq!(run.finish_reason.as_ref().map(|reason| reason.as_str()), Some("stop"));

    messages.push(Message::text(Role::Assistant, "It is sunny."));
    let error = fails(runtime.run(&prompt, &messages), Kind::InvalidRequest);
    assert!(error.message().contains("no round 3"), "{error}");
    // With a new user message, the script starts again.
    messages.push(Message::text(Role::User, "And tomorrow?"));
    assert_eq!(runtime.run(&prompt, &messages).expect("it succeeds").outcome.to_json(), expected);
}

#[test]
fn a_script_can_refuse_and_fail() {
    let (runtime, refusing) = scripted(json!([{ "refusal": "I will not." }]));
    let run = runtime.invoke(&refusing, inputs()).expect("a refusal is an answer");
    assert_eq!(run.outcome, Outcome::Text("I will not.".into()));
    let (runtime, failing) = scripted(json!([{ "error": "overloaded" }]));
    let error = fails(runtime.invoke(&failing, inputs()), Kind::Provider);
    assert!(error.message().contains("overloaded"), "{error}");
    let messages = runtime.prepare(&failing, inputs()).expect("it renders");
    fails(runtime.stream(&failing, &messages, &RunOptions::default()), Kind::Provider);
}

#[test]
fn a_script_that_is_none_is_an_error() {
    let wrong = [
        (json!({ "text": "no list" }), "list of rounds"),
        (json!([]), "no round 1"),
        (json!([{}]), "expected `text`, `refusal`, `error` or `tool_calls`"),
        (json!(["text"]), "expected `text`, `refusal`, `error` or `tool_calls`"),
        (json!([{ "text": 5 }]), "expected `text`, `refusal`, `error` or `tool_calls`"),
        (json!([{ "tool_calls": [{ "arguments": {} }] }]), "without a name"),
        (json!([{ "tool_calls": [] }]), "expected `text`, `refusal`, `error` or `tool_calls`"),
    ];
    for (script, message) in wrong {
        let (runtime, prompt) = scripted(script.clone());
        let error = fails(runtime.invoke(&prompt, inputs()), Kind::InvalidRequest);
        assert!(error.message().contains(message) && error.help().is_some(), "{script}: {error}");
    }
}

#[test]
fn vectors_and_pictures() {
    let runtime = runtime(&[]);
    let embedding = prompt(&runtime, &front(json!({ "id": "echo", "provider": "echo", "apiType": "embedding" })));
    let one = [Message::text(Role::User, "a text")];
    let Outcome::Embedding(vector) = runtime.run(&embedding, &one).expect("it succeeds").outcome else {
        panic!("one text has one vector")
    };
    assert!((vector.iter().map(|number| number * number).sum::<f64>() - 1.0).abs() < 1e-9, "{vector:?}");
    let two = [Message::text(Role::User, "a text"), Message::text(Role::User, "another")];
    let Outcome::Embeddings(vectors) = runtime.run(&embedding, &two).expect("it succeeds").outcome else {
        panic!("two texts have two vectors")
    };
    assert!(vectors[0] == vector && vectors[1] != vector);

    let image = prompt(&runtime, &front(json!({ "id": "echo", "provider": "echo", "apiType": "image" })));
    let Outcome::Image(picture) = runtime.run(&image, &one).expect("it succeeds").outcome else { panic!("a picture") };
    assert!(picture.starts_with("iVBORw0KGgo"), "{picture}");
    assert_eq!(stream(&runtime, &image, &one).expect("it succeeds").1.outcome, Outcome::Image(picture));

    let other = prompt(&runtime, &front(json!({ "id": "echo", "provider": "echo", "apiType": "video" })));
    let error = fails(runtime.run(&other, &one), Kind::UnsupportedApi);
    assert!(error.help().is_some_and(|help| help.contains("embedding")), "{error:?}");
}

/// As for every other provider, the caller's options override the prompt's.
#[test]
fn a_caller_can_choose_the_interface() {
    let runtime = runtime(&[]);
    let prompt = prompt(&runtime, &front(json!({ "id": "m", "provider": "openai" })));
    let options = |api: &str| RunOptions {
        provider: Some(echo::ECHO.into()),
        api_type: Some(api.into()),
        ..RunOptions::default()
    };
    let run = runtime.invoke_with(&prompt, inputs(), &options("image")).expect("it succeeds");
    assert!(matches!(run.outcome, Outcome::Image(_)), "{:?}", run.outcome);
    fails(runtime.invoke_with(&prompt, inputs(), &options("video")), Kind::UnsupportedApi);
}
