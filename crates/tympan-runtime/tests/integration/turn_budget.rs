//! The limits of a turn include everything that happens inside it: a tool that is a prompt with the same tool, and
//! functions of the host that start turns.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tympan_core::turn::{Prices, TurnOptions};
use tympan_core::wire::response::{Answer, Output, Response, ToolCall, Usage};
use tympan_core::{Inputs, Role};
use tympan_runtime::tool::ToolError;
use tympan_runtime::{
    AgentEvent, Error, Invocation, Kind, ModelCall, Prompt, Provider, Reply, Result, Runtime, Tool, ToolOutput,
    TurnRun, TurnSettings,
};

/// A model that calls its only tool several times in every answer and reports a token usage.
#[derive(Default)]
struct Caller {
    at_once: usize,
    tokens: u64,
    /// The number of answers after which it gives a final one.
    answers: Option<usize>,
    asked: AtomicUsize,
}

impl Provider for Caller {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let said = call.messages.iter().filter(|message| message.role == Role::Assistant).count();
        let is_done = self.answers.is_some_and(|answers| said >= answers);
        let tool = call.prompt.spec().tools.first().map(|tool| tool.name.clone()).unwrap_or_default();
        let calls = if is_done || tool.is_empty() { 0 } else { self.at_once };
        let call = |index| ToolCall { id: format!("c{index}"), name: tool.clone(), arguments: "{}".to_owned() };
        let answer = Answer { text: "So.".to_owned(), tool_calls: (0..calls).map(call).collect(), ..Answer::default() };
        let usage = Usage { input_tokens: self.tokens, output_tokens: self.tokens, ..Usage::default() };
        let response = Response { output: Output::Answer(answer), usage: Some(usage), ..Response::default() };
        Box::pin(std::future::ready(Ok(Reply::Whole(response))))
    }
}

struct Fixture {
    runtime: Runtime,
    model: Arc<Caller>,
    directory: tempfile::TempDir,
}

impl Fixture {
    fn new(model: Caller) -> Self {
        let (runtime, model) = (Runtime::default(), Arc::new(model));
        runtime.register_provider("caller", model.clone());
        Self { runtime, model, directory: tempfile::tempdir().expect("a directory") }
    }

    /// Returns a prompt file with this tool, whose model is the caller.
    fn prompt(&self, name: &str, tool: Option<Value>) -> Prompt {
        let front =
            json!({ "name": "a", "model": { "provider": "caller" }, "tools": tool.into_iter().collect::<Vec<_>>() });
        let path = self.directory.path().join(name);
        std::fs::write(&path, format!("---\n{front}\n---\nuser:\nGo.\n")).expect("it is written");
        self.runtime.load(Path::new(&path)).expect("it loads")
    }

    fn turn(&self, prompt: &Prompt, turn: TurnOptions) -> Result<TurnRun> {
        self.runtime.turn(prompt, Inputs::new(), &TurnSettings { turn, ..TurnSettings::default() })
    }

    fn asked(&self) -> usize {
        self.model.asked.load(Ordering::SeqCst)
    }
}

fn itself() -> Value {
    json!({ "name": "again", "kind": "prompty", "path": "self.prompty", "mode": "agentic" })
}

fn is_over(run: Result<TurnRun>, bound: &str) -> Error {
    let error = run.expect_err("it goes past its bounds");
    assert_eq!((error.kind(), error.code()), (Kind::TurnLimit, "turn_limit"));
    assert!(error.message().contains(bound), "{error}");
    error
}

#[test]
fn a_prompt_that_calls_itself_has_one_budget() {
    for (at_once, parallel_tool_calls) in [(1, false), (3, false), (3, true), (200, true)] {
        let fixture = Fixture::new(Caller { at_once, ..Caller::default() });
        let prompt = fixture.prompt("self.prompty", Some(itself()));
        let options = TurnOptions { parallel_tool_calls, ..TurnOptions::default() };
        let error = is_over(fixture.turn(&prompt, options), "100 model calls");
        assert_eq!(fixture.asked(), 100, "{at_once} at once");
        let calls = error.conversation().iter().filter(|message| message.role == Role::Tool).count();
        assert!(calls > 0 && calls.is_multiple_of(at_once), "every call has its result");
    }
}

#[test]
fn the_bound_is_the_host_s() {
    let fixture = Fixture::new(Caller { at_once: 2, ..Caller::default() });
    let prompt = fixture.prompt("self.prompty", Some(itself()));
    let options = TurnOptions { max_model_calls: Some(17), ..TurnOptions::default() };
    is_over(fixture.turn(&prompt, options), "17 model calls");
    assert_eq!(fixture.asked(), 17);
    // The default limit of model calls grows with the limit of iterations.
    let fixture = Fixture::new(Caller { at_once: 1, answers: Some(30), ..Caller::default() });
    let prompt = fixture.prompt("self.prompty", Some(json!({ "name": "f", "kind": "function" })));
    let mut settings =
        TurnSettings { turn: TurnOptions { max_iterations: 40, ..Default::default() }, ..Default::default() };
    settings.tools.insert("f".to_owned(), tympan_runtime::tool::function(|_| Ok::<_, String>("x")));
    let run = fixture.runtime.turn(&prompt, Inputs::new(), &settings).expect("nothing is nested here");
    assert_eq!((run.rounds, fixture.asked()), (31, 31));
}

#[test]
fn turns_within_a_turn_that_come_to_an_end_are_within_the_bounds() {
    let fixture = Fixture::new(Caller { at_once: 2, answers: Some(1), tokens: 3, ..Caller::default() });
    fixture.prompt("self.prompty", None);
    let prompt = fixture.prompt("outer.prompty", Some(itself()));
    let run = fixture.turn(&prompt, TurnOptions::default()).expect("three calls are few");
    assert_eq!((run.rounds, fixture.asked()), (2, 4));
    assert_eq!(run.usage.total_tokens, 12, "the usage of a turn is that of its own answers");
}

#[test]
fn prompts_that_are_called_once_count() {
    let fixture = Fixture::new(Caller { at_once: 9, ..Caller::default() });
    fixture.prompt("self.prompty", None);
    let single = json!({ "name": "again", "kind": "prompty", "path": "self.prompty" });
    let prompt = fixture.prompt("outer.prompty", Some(single));
    let options = TurnOptions { max_model_calls: Some(15), ..TurnOptions::default() };
    is_over(fixture.turn(&prompt, options), "15 model calls");
    assert_eq!(fixture.asked(), 15);
}

#[test]
fn tokens_and_cost_are_those_of_all_turns() {
    let bounds = [
        (TurnOptions { max_tokens: Some(100), ..TurnOptions::default() }, "100 tokens"),
        (
            TurnOptions {
                max_cost: Some(0.0001),
                prices: Prices { input: 1.0, output: 1.0 },
                ..TurnOptions::default()
            },
            "a cost of 0.0001",
        ),
    ];
    for (options, bound) in bounds {
        let fixture = Fixture::new(Caller { at_once: 2, tokens: 10, ..Caller::default() });
        let prompt = fixture.prompt("self.prompty", Some(itself()));
        is_over(fixture.turn(&prompt, options), bound);
        assert_eq!(fixture.asked(), 5, "twenty tokens each");
    }
}

#[test]
fn numbers_that_no_provider_means_do_no_harm() {
    let fixture = Fixture::new(Caller { at_once: 1, tokens: u64::MAX, ..Caller::default() });
    let prompt = fixture.prompt("self.prompty", Some(itself()));
    let options = TurnOptions {
        max_iterations: u32::MAX,
        max_llm_retries: u32::MAX,
        max_tool_calls: usize::MAX,
        max_tokens: Some(u64::MAX),
        max_time: Some(Duration::MAX),
        ..TurnOptions::default()
    };
    is_over(fixture.turn(&prompt, options), "tokens");
    assert_eq!(fixture.asked(), 1);
}

/// A function of the host that starts a turn with the runtime that it receives.
struct Nested {
    prompt: Prompt,
    ran: AtomicUsize,
}

impl Tool for Nested {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, std::result::Result<ToolOutput, ToolError>> {
        self.ran.fetch_add(1, Ordering::SeqCst);
        let prompt = self.prompt.spec().clone();
        Box::pin(async move {
            let prompt = Prompt::from_spec(prompt);
            let run = invocation.runtime.turn_async(&prompt, &Inputs::new(), &TurnSettings::default()).await?;
            Ok(run.messages.len().to_string().into())
        })
    }
}

#[test]
fn functions_of_the_host_share_the_budget() {
    let fixture = Fixture::new(Caller { at_once: 3, ..Caller::default() });
    let prompt = fixture.prompt("outer.prompty", Some(json!({ "name": "f", "kind": "function" })));
    let inner = fixture.prompt("inner.prompty", Some(json!({ "name": "f", "kind": "function" })));
    let nested = Arc::new(Nested { prompt: inner, ran: AtomicUsize::new(0) });
    fixture.runtime.register_tool("f", nested.clone());
    is_over(fixture.turn(&prompt, TurnOptions::default()), "100 model calls");
    assert_eq!(fixture.asked(), 100);
    assert!(nested.ran.load(Ordering::SeqCst) <= 2560, "tools are bounded too");
}

#[test]
fn streams_count_as_well() {
    let runtime = Runtime::default();
    let directory = tempfile::tempdir().expect("a directory");
    let again = json!({ "name": "again", "arguments": {} });
    let script = vec![json!({ "tool_calls": [again, again] }); 20];
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let front = json!({ "name": "a", "model": model, "tools": [itself()] });
    std::fs::write(directory.path().join("self.prompty"), format!("---\n{front}\n---\nuser:\nGo.\n"))
        .expect("it is written");
    let prompt = runtime.load(directory.path().join("self.prompty")).expect("it loads");
    let turn = TurnOptions { max_tokens: Some(40), ..TurnOptions::default() };
    let settings = TurnSettings { turn, on_event: Some(Arc::new(|_: &AgentEvent| ())), ..TurnSettings::default() };
    let run = runtime.turn(&prompt, Inputs::new(), &settings);
    is_over(run, "40 tokens");
}
