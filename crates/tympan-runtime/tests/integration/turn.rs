//! Turns through the driver: tools that run, fail, panic and hang; cancellation, steering and judging.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tympan_core::turn::{TurnEvent, TurnOptions, Verdict};
use tympan_core::wire::response::{Answer, Output, Response, ToolCall};
use tympan_core::{Inputs, JsonMap, Prompt};
use tympan_runtime::schemars::{self, JsonSchema};
use tympan_runtime::{
    AgentEvent, Kind, ModelCall, Provider, Reply, RunOptions, Runtime, ToolOutput, TurnRun, TurnSettings, tool,
};

use crate::faults::Server;
use crate::runs::runtime;

/// Returns a scripted prompt for the provider `echo`, with tools of these names.
fn scripted(tools: &[&str], script: Value) -> Prompt {
    let tools: Vec<_> = tools
        .iter()
        .map(|name| json!({ "name": name, "kind": "function", "parameters": [{ "name": "city", "kind": "string" }] }))
        .collect();
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let front = json!({ "name": "scripted", "model": model, "tools": tools, "inputs": { "q": "Hello?" } });
    let text = format!("---\n{front}\n---\nsystem:\nBe brief.\n\nuser:\n{{{{ q }}}}\n");
    Runtime::default().load_str(&text, "scripted.prompty", ".").expect("it loads")
}

fn calls(names: &[&str]) -> Value {
    let calls = names.iter().map(|name| json!({ "name": name, "arguments": { "city": "Paris" } }));
    json!({ "tool_calls": calls.collect::<Vec<_>>() })
}

fn settings(tools: &[(&str, Arc<dyn tool::Tool>)]) -> TurnSettings {
    let tools = tools.iter().map(|(name, tool)| ((*name).to_owned(), tool.clone())).collect();
    TurnSettings { tools, ..TurnSettings::default() }
}

fn text(text: &'static str) -> Arc<dyn tool::Tool> {
    tool::function(move |_| Ok::<_, String>(text))
}

fn turn(prompt: &Prompt, settings: &TurnSettings) -> tympan_runtime::Result<TurnRun> {
    Runtime::default().turn(prompt, Inputs::new(), settings)
}

/// Returns the tool results that the model received, in order.
fn told(run: &TurnRun) -> Vec<String> {
    let tools = run.messages.iter().filter(|message| message.role == tympan_core::Role::Tool);
    tools.map(|message| message.to_text()).collect()
}

#[derive(Deserialize, JsonSchema)]
struct Place {
    #[serde(default)]
    city: String,
}

#[test]
fn a_tool_runs_and_the_model_hears_of_it() {
    let prompt = scripted(&["weather"], json!([calls(&["weather"]), { "text": "Sunny." }]));
    let weather = tool::typed(|place: Place| Ok::<_, String>(json!({ "in": place.city, "sky": "clear" })));
    let run = turn(&prompt, &settings(&[("weather", weather)])).expect("it ends well");
    assert_eq!((run.run.outcome.to_json(), run.rounds, run.messages.len()), (json!("Sunny."), 2, 5));
    assert_eq!(told(&run), [r#"{"in":"Paris","sky":"clear"}"#]);
}

/// A turn can be spawned on a multithreaded executor.
#[test]
fn a_turn_can_go_to_another_thread() {
    let prompt = scripted(&["weather"], json!([calls(&["weather"]), { "text": "Sunny." }]));
    let turn = async move {
        let settings = settings(&[("weather", text("clear"))]);
        Runtime::default().turn_async(&prompt, &Inputs::new(), &settings).await
    };
    let run = tympan_runtime::net::io::spawn(turn).wait().expect("it ends well");
    assert_eq!(run.run.outcome.to_json(), "Sunny.");
}

#[test]
fn the_twins_and_the_types_come_to_the_same() {
    let prompt = scripted(&["weather"], json!([calls(&["weather"]), { "text": "\"Sunny.\"" }]));
    let asynchronous = tool::function_async(|_: JsonMap| async { Ok::<_, String>("clear") });
    let settings = settings(&[("weather", asynchronous)]);
    let runtime = Runtime::default();
    let waited = tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(async {
        runtime.turn_async(&prompt, &Inputs::new(), &settings).await.expect("it ends well").run.outcome.to_json()
    });
    assert_eq!(waited, turn(&prompt, &settings).expect("it ends well").run.outcome.to_json());
    let typed: String = runtime.turn_as(&prompt, Inputs::new(), &settings).expect("it is a string");
    assert_eq!(typed, "Sunny.");
    let free: String = tympan_runtime::turn_as(&prompt, Inputs::new(), &settings).expect("it is a string");
    assert_eq!(free, "Sunny.");
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/weather/weather.prompty");
    let inputs = json!({ "city": "Paris" }).as_object().cloned().expect("a map");
    let settings = self::settings(&[("get_weather", text("clear"))]);
    let typed: String = tympan_runtime::invoke_agent_as(&file, &inputs, &settings).expect("it is a string");
    let plain = tympan_runtime::invoke_agent(&file, &inputs, &settings).expect("it ends well");
    assert_eq!(plain.run.outcome.to_json(), typed);
    let waited: String =
        tympan_runtime::net::io::wait(tympan_runtime::invoke_agent_as_async(&file, &inputs, &settings))
            .expect("it is a string");
    assert_eq!(waited, typed);
}

#[test]
fn what_nobody_can_run_is_known_before_the_model_is_called() {
    let called = Arc::new(AtomicUsize::new(0));
    let prompt = scripted(&["weather"], json!([{ "error": "the model was called" }]));
    let counter = called.clone();
    let other = tool::function(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok::<_, String>("")
    });
    let error = turn(&prompt, &settings(&[("other", other)])).expect_err("nothing runs it");
    assert_eq!((error.kind(), error.message()), (Kind::ToolNotRegistered, "Tool not registered: weather"));
    assert_eq!(called.load(Ordering::SeqCst), 0);
}

#[test]
fn what_is_registered_and_not_declared_is_not_run() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counter = ran.clone();
    let runtime = Runtime::default();
    let dangerous = tool::function(move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        Ok::<_, String>("")
    });
    runtime.register_tool("delete_all", dangerous);
    runtime.register_tool("safe", text("fine"));
    let prompt = scripted(&["safe"], json!([calls(&["delete_all"]), { "text": "Done." }]));
    let error = runtime.turn(&prompt, Inputs::new(), &TurnSettings::default()).expect_err("it is not declared");
    assert_eq!((error.kind(), ran.load(Ordering::SeqCst)), (Kind::ToolNotRegistered, 0));
}

#[test]
fn tools_that_fail_or_panic_do_not_end_the_turn() {
    let names = ["fails", "panics", "panics_later", "floods"];
    let prompt = scripted(&names, json!([calls(&names), { "text": "I see." }]));
    let tools = [
        ("fails", tool::function(|_| Err::<&str, _>("out of order"))),
        ("panics", tool::function(|_| -> Result<&str, String> { panic!("a secret") })),
        ("panics_later", tool::function_async(|_| async { panic!("a secret") as Result<&str, String> })),
        ("floods", tool::function(|_| Ok::<_, String>("x".repeat(10 << 20)))),
    ];
    let run = turn(&prompt, &settings(&tools)).expect("it ends well");
    let told = told(&run);
    assert_eq!(told[0], "Error: Tool 'fails' failed: out of order");
    assert_eq!(told[1], "Error: Tool 'panics' failed: the function panicked");
    assert_eq!(told[2], "Error: Tool 'panics_later' failed: the function panicked");
    assert!(told[3].len() < 300_000 && told[3].ends_with("[truncated: 262144 of 10485760 bytes]"), "{}", told[3].len());
}

#[test]
fn a_tool_that_hangs_does_not_end_the_turn() {
    let prompt = scripted(&["hangs"], json!([calls(&["hangs"]), { "text": "I see." }]));
    let (_hold, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let hangs = tool::function(move |_| {
        let _ = held.lock().map(|held| held.recv());
        Ok::<_, String>("")
    });
    let statuses = Arc::new(Mutex::new(Vec::new()));
    let listener = statuses.clone();
    let settings = TurnSettings {
        tool_timeout: Duration::from_millis(50),
        on_event: Some(Arc::new(move |event: &AgentEvent| {
            if let AgentEvent::Turn(TurnEvent::ToolResult { result, .. }) = event {
                listener.lock().expect("nobody panics with it").push(json!(result.status));
            }
        })),
        ..settings(&[("hangs", hangs)])
    };
    let told = told(&turn(&prompt, &settings).expect("it ends well"));
    assert_eq!(told, ["Error: Tool 'hangs' failed: Tool timed out: no result after 0.05 s"]);
    let expected = json!({ "error": { "code": "tool_timeout" } });
    assert_eq!(*statuses.lock().expect("nobody panics with it"), [expected], "not only the text says so");
}

#[test]
fn two_hundred_tools_run_at_once() {
    let names: Vec<_> = std::iter::repeat_n("meet", 200).collect();
    let prompt = scripted(&["meet"], json!([calls(&names), { "text": "All met." }]));
    // No call continues until all of them have started.
    let barrier = Arc::new(Barrier::new(200));
    let meet = tool::function(move |_| {
        barrier.wait();
        Ok::<_, String>("met")
    });
    let turn_options = TurnOptions { parallel_tool_calls: true, ..TurnOptions::default() };
    let settings = TurnSettings { turn: turn_options, ..settings(&[("meet", meet)]) };
    assert_eq!(told(&turn(&prompt, &settings).expect("it ends well")), vec!["met"; 200]);
}

#[test]
fn results_are_in_the_order_of_the_calls() {
    let prompt = scripted(&["first", "second"], json!([calls(&["first", "second"]), { "text": "Done." }]));
    let (done, waits) = mpsc::channel();
    let waits = Mutex::new(waits);
    let first = tool::function(move |_| {
        waits.lock().map_err(|error| error.to_string())?.recv().map_err(|error| error.to_string())?;
        Ok::<_, String>("one")
    });
    let second = tool::function(move |_| done.send(()).map(|()| "two"));
    let turn_options = TurnOptions { parallel_tool_calls: true, ..TurnOptions::default() };
    let settings = TurnSettings { turn: turn_options, ..settings(&[("first", first), ("second", second)]) };
    assert_eq!(told(&turn(&prompt, &settings).expect("it ends well")), ["one", "two"]);
}

#[test]
fn cancelling_ends_a_turn_whose_tool_hangs() {
    let prompt = scripted(&["hangs"], json!([calls(&["hangs"]), { "text": "Never." }]));
    let (_hold, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let mut settings = settings(&[]);
    let cancel = settings.cancel.clone();
    let hangs = tool::function(move |_| {
        cancel.cancel();
        let _ = held.lock().map(|held| held.recv());
        Ok::<_, String>("")
    });
    settings.tools.insert("hangs".to_owned(), hangs);
    let error = turn(&prompt, &settings).expect_err("it is cancelled");
    assert_eq!(error.kind(), Kind::Cancelled);
    assert_eq!(error.conversation().len(), 2, "a call without a result is no part of it");
}

#[test]
fn cancelling_ends_a_turn_whose_model_is_silent() {
    let (asked, seen) = mpsc::channel();
    let server = Server::start(move |exchange| {
        let _ = asked.send(());
        exchange.stall();
    });
    let prompt = scripted(&[], json!([]));
    let settings = TurnSettings {
        run: RunOptions {
            provider: Some("openai".into()),
            model: Some("m".into()),
            base_url: Some(server.url("")),
            api_key: Some(tympan_core::spec::Secret::new("key")),
            ..RunOptions::default()
        },
        ..TurnSettings::default()
    };
    let cancel = settings.cancel.clone();
    let canceller = std::thread::spawn(move || {
        seen.recv().expect("the model is asked");
        cancel.cancel();
    });
    let error = turn(&prompt, &settings).expect_err("it is cancelled");
    canceller.join().expect("it ends");
    assert_eq!(error.kind(), Kind::Cancelled);
}

#[test]
fn a_wrong_key_is_not_tried_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let server = Server::start(move |exchange| {
        counter.fetch_add(1, Ordering::SeqCst);
        exchange.answer(401, "content-type: application/json\r\n", r#"{"error":{"message":"Incorrect API key"}}"#);
    });
    let run = RunOptions {
        provider: Some("openai".into()),
        model: Some("m".into()),
        base_url: Some(server.url("")),
        api_key: Some(tympan_core::spec::Secret::new("key")),
        ..RunOptions::default()
    };
    let error =
        turn(&scripted(&[], json!([])), &TurnSettings { run, ..TurnSettings::default() }).expect_err("it fails");
    assert_eq!((error.kind(), asked.load(Ordering::SeqCst)), (Kind::Provider, 1));
}

#[test]
fn what_is_said_meanwhile_comes_into_the_next_round() {
    let prompt = scripted(&["weather"], json!([calls(&["weather"]), { "text": "Il fait beau." }]));
    let mut settings = settings(&[]);
    let steering = settings.steering.clone();
    let weather = tool::function(move |_| {
        steering.send("In French, please.");
        Ok::<_, String>("clear")
    });
    settings.tools.insert("weather".to_owned(), weather);
    // A script of `echo` would start again with the steered message, so this model counts its calls.
    let runtime = Runtime::default();
    let model = Arc::new(Counting::default());
    runtime.register_provider("echo", model.clone());
    runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    let heard = model.heard.lock().expect("nobody panics with it");
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[1].last().map(String::as_str), Some("In French, please."));
    assert!(!heard[0].contains(&"In French, please.".to_owned()));
}

/// A model that calls a tool the first time and answers the second time. It records its messages.
#[derive(Default)]
struct Counting {
    heard: Mutex<Vec<Vec<String>>>,
}

impl Provider for Counting {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, tympan_runtime::Result<Reply>> {
        let mut heard = self.heard.lock().expect("nobody panics with it");
        heard.push(call.messages.iter().map(tympan_core::Message::to_text).collect());
        let called = ToolCall { id: "c".into(), name: "weather".into(), arguments: "{}".into() };
        let answer = match heard.len() {
            1 => Answer { tool_calls: vec![called], ..Answer::default() },
            _ => Answer { text: "Il fait beau.".into(), ..Answer::default() },
        };
        let response = Response { output: Output::Answer(answer), ..Response::default() };
        Box::pin(async move { Ok(Reply::Whole(response)) })
    }
}

#[test]
fn verdicts_end_a_turn_or_leave_out_a_tool() {
    let prompt = scripted(&["a", "b"], json!([calls(&["a", "b"]), { "text": "Done." }]));
    let tools = [("a", text("A")), ("b", text("B"))];
    let deny = |reason: &str| Verdict::Deny(reason.to_owned());
    let judged = TurnSettings {
        judge_tool: Some(Arc::new(move |run| if run.name == "b" { deny("Not authorized") } else { Verdict::Allow })),
        ..settings(&tools)
    };
    let run = turn(&prompt, &judged).expect("it ends well");
    assert_eq!(told(&run), ["A", "Tool denied by guardrail: Not authorized"]);
    let judged = TurnSettings { judge_input: Some(Arc::new(move |_| deny("Contains PII"))), ..settings(&tools) };
    let error = turn(&prompt, &judged).expect_err("it is denied");
    assert_eq!(error.kind(), Kind::Guardrail);
    assert!(error.message().contains("Contains PII"), "{error}");
    let judged = TurnSettings { judge_output: Some(Arc::new(move |_| deny("Rude"))), ..settings(&tools) };
    assert_eq!(turn(&prompt, &judged).expect_err("it is denied").kind(), Kind::Guardrail);
}

#[test]
fn whoever_listens_hears_all_and_cannot_end_the_turn() {
    let prompt = scripted(&["weather"], json!([calls(&["weather"]), { "text": "It is sunny." }]));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let settings = TurnSettings {
        on_event: Some(Arc::new(move |event: &AgentEvent| {
            let name = match event {
                AgentEvent::Token(text) => format!("token {text}"),
                AgentEvent::Turn(event) => event.name().to_owned(),
                other => format!("{other:?}"),
            };
            listener.lock().expect("nobody panics with it").push(name);
            if matches!(event, AgentEvent::Turn(TurnEvent::ToolCallStart { .. })) {
                panic!("the listener is at fault");
            }
        })),
        ..settings(&[("weather", text("clear"))])
    };
    turn(&prompt, &settings).expect("it ends well");
    let expected = [
        "status",
        "tool_call_start",
        "tool_result",
        "messages_updated",
        "token It ",
        "token is ",
        "token sunny.",
        "done",
    ];
    assert_eq!(*heard.lock().expect("nobody panics with it"), expected);
}

#[test]
fn a_loop_that_never_ends_is_ended() {
    let rounds: Vec<_> = (0..50).map(|_| calls(&["weather"])).collect();
    let prompt = scripted(&["weather"], json!(rounds));
    let error = turn(&prompt, &settings(&[("weather", text("clear"))])).expect_err("it never ends");
    assert_eq!((error.kind(), error.message()), (Kind::MaxIterations, "Agent loop exceeded 10 iterations"));
}

#[test]
fn pictures_reach_the_provider_as_parts() {
    let first = json!({ "id": "1", "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null,
        "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": "look", "arguments": "{}" } }],
    } }] });
    let second = json!({ "id": "2", "choices": [{ "index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "A cat.",
    } }] });
    let answers = [first.to_string(), second.to_string()];
    let server = Server::start(move |exchange| {
        exchange.answer(200, "Content-Type: application/json\r\n", &answers[exchange.number])
    });
    let runtime = runtime(&[("OPENAI_API_KEY", "key-of-the-host")]);
    let text = "---\nmodel: {id: m, provider: openai}\ntools: [{name: look, kind: function}]\n---\nuser:\nWhat is it?";
    let prompt = runtime.load_str(text, "look.prompty", ".").expect("it loads");
    let look = tool::function(|_| {
        let parts = json!({ "parts": [
            { "kind": "text", "value": "Here:" },
            { "kind": "image", "value": "https://example.com/cat.png" },
        ] });
        let result: tympan_core::turn::ToolResult = serde_json::from_value(parts).map_err(|error| error.to_string())?;
        Ok::<_, String>(ToolOutput::from(result.parts))
    });
    let run = RunOptions { base_url: Some(server.url("")), ..RunOptions::default() };
    let settings = TurnSettings { run, ..settings(&[("look", look)]) };
    let run = runtime.turn(&prompt, Inputs::new(), &settings).expect("it ends well");
    assert_eq!(run.run.outcome.to_json(), json!("A cat."));
    let body: Value = serde_json::from_str(&server.requests()[1].body).expect("it is JSON");
    assert_eq!(body["messages"][1]["tool_calls"][0]["id"], "c1");
    let expected = json!({ "role": "tool", "tool_call_id": "c1", "content": [
        { "type": "text", "text": "Here:" },
        { "type": "image_url", "image_url": { "url": "https://example.com/cat.png" } },
    ] });
    assert_eq!(body["messages"][2], expected);
}
