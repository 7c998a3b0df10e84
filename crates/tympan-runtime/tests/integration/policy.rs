//! Policies, on every way from a prompt to a model; and the segments of messages. Python and Node read the same cases.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use serde_json::{Value as Json, json};
use tympan_core::wire::response::{Answer, Output, Response};
use tympan_core::{Composition, Inputs, Message, Policy, Prompt, Rendered, Role};
use tympan_runtime::host::config;
use tympan_runtime::{
    Error, ModelCall, Parser, Provider, Renderer, Reply, Result, RunOptions, Runtime, RuntimeOptions, TurnSettings,
};

const CASES: &str = include_str!("../../../../fixtures/bindings/policy.json");
const SEGMENTS: &str = include_str!("../../../../fixtures/bindings/segments.json");

/// A provider that counts its calls.
#[derive(Default)]
struct Counter(AtomicUsize);

impl Provider for Counter {
    fn call<'a>(&'a self, _: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        let answer = Answer { text: "yes".into(), ..Answer::default() };
        let response = Response { output: Output::Answer(answer), ..Response::default() };
        Box::pin(async move { Ok(Reply::Whole(response)) })
    }
}

fn load(runtime: &Runtime, text: &str) -> Prompt {
    runtime.load_str(text, "case.prompty", ".").expect("it loads")
}

/// Ways to use a prompt, by name.
type Ways = Vec<(&'static str, fn(&Runtime, &Prompt, &Json) -> Result<()>)>;

fn ways() -> Ways {
    vec![
        ("render", |runtime, prompt, inputs| runtime.render(prompt, inputs).map(drop)),
        ("messages", |runtime, prompt, inputs| {
            // The text was rendered with other options.
            let rendered = Runtime::default().render(prompt, inputs)?;
            runtime.parse(prompt, &rendered).map(drop)
        }),
        ("prepare", |runtime, prompt, inputs| runtime.prepare(prompt, inputs).map(drop)),
        ("request", |runtime, prompt, inputs| {
            let messages = runtime.prepare(prompt, inputs)?;
            let options = RunOptions { provider: Some("openai".into()), ..model() };
            runtime.request(prompt, &messages, &options, false).map(drop)
        }),
        ("run", |runtime, prompt, inputs| runtime.invoke_with(prompt, inputs, &model()).map(drop)),
        ("run, async", |runtime, prompt, inputs| {
            tympan_runtime::net::io::wait(runtime.invoke_with_async(prompt, inputs, &model())).map(drop)
        }),
        ("stream", |runtime, prompt, inputs| {
            let messages = runtime.prepare(prompt, inputs)?;
            runtime.stream(prompt, &messages, &model())?.finish().map(drop)
        }),
        ("turn", |runtime, prompt, inputs| {
            let settings = TurnSettings { run: model(), ..TurnSettings::default() };
            runtime.turn(prompt, inputs, &settings).map(drop)
        }),
        ("composition", |runtime, prompt, inputs| {
            let mut composition = Composition::default();
            composition.push(prompt, inputs);
            composition.messages(&runtime.render_options()).map(drop)
        }),
    ]
}

fn model() -> RunOptions {
    RunOptions { provider: Some("counter".into()), model: Some("gpt-4o".into()), ..RunOptions::default() }
}

fn cases() -> Vec<Json> {
    serde_json::from_str(CASES).expect("the cases are JSON")
}

#[test]
fn every_way_enforces_the_policy() {
    for case in cases() {
        let options = config::runtime_options(json!({ "policy": case["policy"] })).expect("a policy");
        let runtime = Runtime::new(options);
        let counter = Arc::new(Counter::default());
        runtime.register_provider("counter", counter.clone());
        let prompt = load(&runtime, case["prompt"].as_str().expect("a prompt"));
        for (way, use_prompt) in ways() {
            let before = counter.0.load(Ordering::Relaxed);
            let result = use_prompt(&runtime, &prompt, &case["inputs"]);
            let name = format!("{}: {way}: {result:?}", case["name"]);
            if case["error"].is_null() {
                assert!(result.is_ok(), "{name}");
                continue;
            }
            let error = result.expect_err(&name);
            assert_eq!(error.code(), "policy_violation", "{name}");
            assert!(error.message().contains(case["error"]["input"].as_str().expect("a name")), "{name}");
            let line = error.line_column().map(|at| at.line);
            assert_eq!(json!(line), case["error"]["line"], "{name}");
            assert_eq!(counter.0.load(Ordering::Relaxed), before, "{name}: the model was called");
        }
    }
}

/// A renderer whose text is of unknown origin.
struct Unknown;

impl Renderer for Unknown {
    fn render(&self, template: &str, _: &Inputs) -> Result<String> {
        Ok(template.to_owned())
    }
}

impl Parser for Unknown {
    fn parse(&self, _: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
        Ok(vec![Message::text(Role::System, rendered.text())])
    }
}

#[test]
fn text_of_unknown_origin_is_not_allowed() {
    let runtime = Runtime::new(RuntimeOptions { policy: Some(Policy::new([Role::User])), ..RuntimeOptions::default() });
    runtime.register_renderer("unknown", Unknown);
    runtime.register_parser("own", Unknown);
    let code = |result: Result<Vec<Message>>| result.map_err(|error: Error| error.code());
    let prompt = load(&runtime, "---\ntemplate: {format: unknown}\n---\nsystem:\nBe brief.\n\nuser:\nHi");
    assert_eq!(code(runtime.prepare(&prompt, json!({}))), Err("policy_violation"));
    let waited = tympan_runtime::net::io::wait(runtime.prepare_async(&prompt, &json!({})));
    assert_eq!(code(waited), Err("policy_violation"));
    let prompt = load(&runtime, "---\ntemplate: {format: unknown}\n---\nuser:\nHi");
    assert!(runtime.prepare(&prompt, json!({})).is_ok());
    // A custom parser decides about the roles itself, so nothing that it returns can be checked.
    for text in ["Hi", "{{ q }}"] {
        let prompt = load(&runtime, &format!("---\ntemplate: {{parser: own}}\n---\nuser:\n{text}"));
        assert_eq!(code(runtime.prepare(&prompt, json!({"q": "Hi"}))), Err("policy_violation"), "{text}");
        // The text was rendered by a runtime without a policy.
        let rendered = Runtime::default().render(&prompt, json!({"q": "Hi"})).expect("it renders");
        assert_eq!(code(runtime.parse(&prompt, &rendered)), Err("policy_violation"), "{text}");
    }
    let prompt = load(&runtime, "---\ntemplate: {format: unknown, parser: own}\n---\nuser:\nHi");
    assert_eq!(code(runtime.prepare(&prompt, json!({}))), Err("policy_violation"));
    let waited = tympan_runtime::net::io::wait(runtime.prepare_async(&prompt, &json!({})));
    assert_eq!(code(waited), Err("policy_violation"));
}

#[test]
fn the_role_of_a_definition_counts() {
    let runtime = Runtime::new(RuntimeOptions { policy: Some(Policy::new([Role::User])), ..RuntimeOptions::default() });
    for (role, is_allowed) in [("user", true), ("system", false), ("assistant", false)] {
        let variables = "variables: {question: {type: string, trusted: false}}";
        let text = format!("name: a\nrole: {role}\nbody: '{{{{ question }}}}'\n{variables}\n");
        let prompt = runtime.load_str(&text, "case.yaml", ".").expect("it loads");
        let result = runtime.render(&prompt, json!({"question": "Why?"})).map_err(|error| error.code());
        assert_eq!(result.err(), (!is_allowed).then_some("policy_violation"), "{role}");
    }
}

#[test]
fn a_render_can_only_add_to_the_policy() {
    let render = |of_runtime: &[&str], of_render: &[&str]| {
        let policy = |roles: &[&str]| json!({ "policy": (!roles.is_empty()).then(|| json!({ "untrusted": roles })) });
        let runtime = Runtime::new(config::runtime_options(policy(of_runtime)).expect("options"));
        let prompt = load(&runtime, "system:\n{{ tone }}\n\nuser:\n{{ question }}");
        let settings = config::render_settings(policy(of_render)).expect("options");
        let options = settings.over(runtime.render_options());
        runtime.render_with(&prompt, json!({"tone": "brief", "question": "Why?"}), &options).is_ok()
    };
    assert!(render(&[], &[]));
    assert!(render(&[], &["system", "user"]));
    assert!(render(&["system", "user"], &[]));
    assert!(render(&["system", "user", "tool"], &["system", "user"]));
    assert!(!render(&[], &["user"]));
    assert!(!render(&["user"], &[]));
    assert!(!render(&["user"], &["system", "user"]));
    assert!(!render(&["system", "user"], &["user"]));
    let error = config::render_settings(json!({"policy": {"untrusted": ["nobody"]}})).expect_err("an unknown role");
    assert!(error.message().contains("untrusted"), "{error}");
}

#[test]
fn messages_name_the_inputs_of_their_bytes() {
    let cases: Vec<Json> = serde_json::from_str(SEGMENTS).expect("the cases are JSON");
    let runtime = Runtime::default();
    for case in cases {
        let prompt = load(&runtime, case["prompt"].as_str().expect("a prompt"));
        let rendered = runtime.render(&prompt, &case["inputs"]).expect("it renders");
        let mut messages = prompt.messages_with_segments(&rendered).expect("it has messages");
        tympan_core::wire::inline_segmented_media(&mut messages).expect("the media are valid");
        let found: Vec<_> = messages.iter().map(|message| message.to_json(rendered.inputs())).collect();
        assert_eq!(json!(found), case["messages"], "{}", case["name"]);
    }
}
