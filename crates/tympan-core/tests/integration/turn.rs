//! Turns: the cases in `fixtures/turn`. Each is a script of a turn's requests and input events.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::format::{NoReferences, prompty};
use tympan::spec::flow::ToolFlow;
use tympan::spec::{Binding, BindingValue, PromptSpec};
use tympan::text::source::SourceFile;
use tympan::turn::{
    ContextBudget, FlowOptions, Guardrails, InputEvent, Label, MessageLabel, Next, Prices, Source, ToolPolicy,
    ToolResult, ToolRun, Turn, TurnEvent, TurnOptions, TurnTool,
};
use tympan::wire::Function;
use tympan::{Guard, Inputs, Message, Prompt, Result, Role};

use crate::cases;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The tools, as in a prompt file.
    #[serde(default)]
    tools: Value,
    /// Custom tools of the host.
    #[serde(default)]
    functions: Vec<Given>,
    /// The declared inputs, as in a prompt file.
    #[serde(default)]
    declared: Value,
    #[serde(default)]
    inputs: Inputs,
    /// The initial conversation. Defaults to one short message.
    messages: Option<Value>,
    #[serde(default)]
    options: Options,
    /// Messages that are steered before the turn starts.
    #[serde(default)]
    steered: Vec<String>,
    steps: Vec<Step>,
    /// `{"done": text}`, or `{"failed": code, "message": …}`.
    end: Value,
    /// The final conversation, if it matters: role, text, and the rest.
    conversation: Option<Value>,
    /// The names of all events, or `{name: payload}`.
    events: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    name: String,
    parameters: Value,
    #[serde(default)]
    bindings: serde_json::Map<String, Value>,
    /// Whether nobody has approved its description.
    #[serde(default)]
    untrusted: bool,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct Options {
    max_iterations: Option<u32>,
    max_llm_retries: Option<u32>,
    max_tokens: Option<u64>,
    max_cost: Option<f64>,
    prices: Option<(f64, f64)>,
    max_seconds: Option<u64>,
    max_tool_calls: Option<usize>,
    max_result_bytes: Option<usize>,
    parallel: bool,
    context_chars: Option<usize>,
    compaction: bool,
    guardrails: Vec<String>,
    guard: bool,
    /// The policy for tools.
    policy: Option<ToolPolicy>,
    /// What the host declares about tools.
    flows: HashMap<String, ToolFlow>,
    /// The origins of the initial messages: `user`, `author`, or `untrusted` with the name of a tool.
    origins: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    /// The turn's request, if it matters.
    next: Option<Value>,
    /// The input event: `{"text": …}`, `{"calls": [[id, name, arguments], …]}`, or a whole `InputEvent`.
    feed: Value,
    /// The code of the error that the event causes.
    error: Option<String>,
}

impl Options {
    fn flow(&self) -> FlowOptions {
        let label = |origin: &String| match origin.as_str() {
            "author" => Label::author(),
            "user" => Label::user(),
            "confidential" => Label { confidential: true, ..Label::user() },
            other => Label::new(Source::Input { name: other.to_owned() }, false, false),
        };
        let labels = self.origins.as_ref().map(|origins| {
            let labels = origins.iter().map(label).map(|label| MessageLabel { parts: vec![label.into()] });
            labels.collect()
        });
        FlowOptions { policy: self.policy.clone(), tools: self.flows.clone(), labels, context: Label::default() }
    }

    fn to_turn(&self) -> TurnOptions {
        let is_on = |name: &str| self.guardrails.iter().any(|guardrail| guardrail == name);
        let default = TurnOptions::default();
        let (input, output) = self.prices.unwrap_or_default();
        TurnOptions {
            max_iterations: self.max_iterations.unwrap_or(default.max_iterations),
            max_llm_retries: self.max_llm_retries.unwrap_or(default.max_llm_retries),
            max_model_calls: None,
            max_tokens: self.max_tokens,
            max_cost: self.max_cost,
            prices: Prices { input, output },
            max_time: self.max_seconds.map(Duration::from_secs),
            max_tool_calls: self.max_tool_calls.unwrap_or(default.max_tool_calls),
            max_result_bytes: self.max_result_bytes.unwrap_or(default.max_result_bytes),
            parallel_tool_calls: self.parallel,
            context_budget: self.context_chars.map(ContextBudget::Chars),
            compaction: self.compaction,
            guardrails: Guardrails { input: is_on("input"), output: is_on("output"), tool: is_on("tool") },
            guard: self.guard.then(Guard::default),
            tools: Vec::new(),
            flow: self.flow(),
        }
    }
}

impl Given {
    fn to_tool(&self) -> TurnTool {
        let bindings = self.bindings.iter().map(|(parameter, value)| Binding {
            parameter: parameter.clone(),
            value: match value["input"].as_str() {
                Some(input) => BindingValue::Input(input.to_owned()),
                None => BindingValue::Static(value["value"].clone()),
            },
        });
        let (name, parameters) = (self.name.clone(), self.parameters.clone());
        TurnTool {
            function: Function { name, description: None, parameters, strict: false },
            bindings: bindings.collect(),
            flow: ToolFlow::default(),
            server: None,
            untrusted_description: self.untrusted,
        }
    }
}

/// Expands the short form of an input event.
fn fed(feed: &Value) -> InputEvent {
    let is_answer = feed.get("fed").is_none();
    let answer = || {
        let calls = feed["calls"].as_array().into_iter().flatten();
        let calls = calls.map(|call| json!({"id": call[0], "name": call[1], "arguments": call[2]}));
        let blocks = feed["blocks"].clone();
        let text = feed["text"].as_str().unwrap_or_default();
        let refusal = feed["refusal"].clone();
        let calls: Vec<_> = calls.collect();
        let answer = json!({"text": text, "tool_calls": calls, "refusal": refusal, "blocks": blocks});
        json!({"fed": "responded", "response": {"output": {"answer": answer}, "usage": feed["usage"]}})
    };
    let json = if is_answer { answer() } else { feed.clone() };
    serde_json::from_value(json).unwrap_or_else(|error| panic!("{feed}: {error}"))
}

fn run_json(run: &ToolRun) -> Value {
    json!({"index": run.index, "name": run.name, "arguments": *run.arguments})
}

fn next_json(next: &Next) -> Value {
    match next {
        Next::Summarize(messages) => json!({"summarize": messages.len()}),
        Next::JudgeInput => json!("judge_input"),
        Next::Call => json!("call"),
        Next::Wait(wait) => json!({"wait": wait.as_secs_f64()}),
        Next::JudgeOutput(message) => json!({"judge_output": message.to_text()}),
        Next::JudgeTool(run) => json!({"judge_tool": run_json(run)}),
        Next::Approve(approval) => {
            json!({"approve": {"index": approval.run.index, "name": approval.run.name, "reason": approval.reason()}})
        }
        Next::Run(runs) => json!({"run": runs.iter().map(run_json).collect::<Vec<_>>()}),
        Next::Done(response) => {
            let deltas = response.deltas();
            let text = deltas.iter().find_map(|delta| match delta {
                tympan::wire::response::Delta::Text(text) => Some(text.as_str()),
                _ => None,
            });
            json!({"done": text.unwrap_or_default()})
        }
        Next::Failed(error) => json!({"failed": error.code(), "message": error.message()}),
    }
}

fn event_json(event: &TurnEvent) -> Value {
    let payload = match event {
        TurnEvent::Status { message } | TurnEvent::Error { message } | TurnEvent::CompactionFailed { message } => {
            json!(message)
        }
        TurnEvent::ToolCallStart { name, arguments, .. } => json!([name, arguments]),
        TurnEvent::ToolResult { name, result, .. } => json!([name, result]),
        TurnEvent::Policy { name, ruling } => json!([name, ruling.decision]),
        TurnEvent::MessagesUpdated { count } => json!(count),
        TurnEvent::Done { response, .. } => json!(response),
        TurnEvent::CompactionComplete { removed, remaining } => json!([removed, remaining]),
        _ => Value::Null,
    };
    json!({event.name(): payload})
}

fn conversation_json(turn: &Turn) -> Value {
    let messages = turn.messages().iter().map(|message| {
        let mut json = json!({"role": message.role.as_str(), "text": message.to_text()});
        for (key, value) in message.metadata.iter().flatten() {
            json[key] = value.clone();
        }
        json
    });
    messages.collect()
}

impl Case {
    fn turn(&self) -> Result<Turn> {
        let declarations = json!({"inputs": self.declared, "tools": self.tools});
        let source = SourceFile::new("case.prompty", format!("---\n{declarations}\n---\n"));
        let (document, findings) = prompty::parse(&source, &mut NoReferences);
        let document = document.unwrap_or_else(|| panic!("{}: {findings:?}", self.name));
        let prompt = Prompt::from_document(document.spec, source, document.body.start, findings);
        let messages = self.messages.clone().unwrap_or_else(|| json!([{"role": "user", "content": "go"}]));
        let messages = parse_thread(&messages, ThreadRoles::Any)?;
        let mut options = self.options.to_turn();
        options.tools = self.functions.iter().map(Given::to_tool).collect();
        let mut turn = Turn::new(&prompt, &self.inputs, messages, options)?;
        self.steered.iter().try_for_each(|text| turn.steer(text))?;
        Ok(turn)
    }

    /// Follows the script. Returns the actual input events.
    fn follow(&self, turn: &mut Turn) -> std::result::Result<Vec<InputEvent>, String> {
        let mut told = Vec::new();
        for (index, step) in self.steps.iter().enumerate() {
            let next = next_json(&turn.next());
            if next_json(&turn.next()) != next {
                return Err(format!("step {index}: what it asks for does not stay the same"));
            }
            if let Some(expected) = step.next.as_ref().filter(|expected| **expected != next) {
                return Err(format!("step {index}: expected {expected}, found {next}"));
            }
            let fed = fed(&step.feed);
            let outcome = turn.feed(fed.clone());
            if outcome.as_ref().err().map(|error| error.code()) != step.error.as_deref() {
                return Err(format!("step {index}: {outcome:?}"));
            }
            if outcome.is_ok() {
                told.push(fed);
            }
        }
        Ok(told)
    }

    fn check(&self, turn: &mut Turn, events: &[TurnEvent]) -> std::result::Result<(), String> {
        let next = turn.next();
        let mut end = next_json(&next);
        if let (Some(end), true) = (end.as_object_mut(), self.end.get("message").is_none()) {
            end.remove("message");
        }
        let found = conversation_json(turn);
        if end != self.end {
            return Err(format!("ended with {end}; conversation {found}"));
        }
        if let Next::Failed(error) = &next
            && error.conversation() != turn.messages()
        {
            return Err("the error has another conversation".to_owned());
        }
        if let Some(expected) = self.conversation.as_ref().filter(|expected| **expected != found) {
            return Err(format!("conversation {found}, expected {expected}"));
        }
        let found: Vec<_> = events.iter().map(event_json).collect();
        let fits = |(expected, found): (&Value, &Value)| match expected.as_str() {
            Some(name) => found.get(name).is_some(),
            None => expected == found,
        };
        match &self.events {
            Some(expected) if expected.len() != found.len() || !expected.iter().zip(&found).all(fits) => {
                Err(format!("events {}", json!(found)))
            }
            _ => Ok(()),
        }
    }

    /// Restores the turn from its input events, as a journal would.
    fn replay(&self, told: &[InputEvent]) -> Result<Turn> {
        let mut turn = self.turn()?;
        turn.next();
        for fed in told {
            let kept = serde_json::to_string(fed).expect("it can be kept");
            turn.feed(serde_json::from_str(&kept).expect("it can be read"))?;
        }
        Ok(turn)
    }

    fn run(&self) -> std::result::Result<(), String> {
        let mut turn = match self.turn() {
            Ok(turn) => turn,
            Err(error) if self.end == json!({"new": error.code()}) => return Ok(()),
            Err(error) => return Err(format!("{error:?}")),
        };
        let told = self.follow(&mut turn)?;
        let events = turn.take_events();
        self.check(&mut turn, &events)?;
        let mut again = self.replay(&told).map_err(|error| format!("replay: {error:?}"))?;
        let events = again.take_events();
        self.check(&mut again, &events).map_err(|complaint| format!("replay: {complaint}"))?;
        let (one, other) = (conversation_json(&turn), conversation_json(&again));
        (one == other).then_some(()).ok_or_else(|| format!("replay: {other}"))
    }
}

impl cases::Case for Case {
    fn title(&self) -> (&str, &str) {
        (&self.name, "")
    }

    fn complaint(&self) -> Option<String> {
        self.run().err()
    }
}

#[test]
fn fixtures() {
    cases::run::<Case>("turn", 40);
}

/// Creates a turn with one tool, whose parameter is bound to an input.
fn bound(options: TurnOptions) -> Turn {
    let bindings = serde_json::Map::from_iter([("token".to_owned(), json!({"input": "token"}))]);
    let given = Given { name: "fetch".to_owned(), parameters: json!({"type": "object"}), bindings, untrusted: false };
    let inputs = Inputs::from_iter([("token".to_owned(), json!("hidden"))]);
    let options = TurnOptions { tools: vec![given.to_tool()], ..options };
    let messages = vec![Message::text(Role::User, "go")];
    Turn::new(&Prompt::from_spec(PromptSpec::default()), &inputs, messages, options).expect("it is sound")
}

fn calls(turn: &mut Turn) {
    turn.next();
    turn.feed(fed(&json!({"calls": [["1", "fetch", "{}"]]}))).expect("it was asked for");
}

#[test]
fn nothing_prints_what_is_bound() {
    let mut turn = bound(TurnOptions::default());
    calls(&mut turn);
    let next = turn.next();
    assert!(matches!(&next, Next::Run(runs) if runs[0].arguments["token"] == "hidden"));
    let events = turn.take_events();
    turn.cancel();
    let shown = format!("{turn:?} {next:?} {:?} {events:?} {:?}", turn.next(), turn.take_events());
    assert!(!shown.contains("hidden"), "{shown}");
}

#[test]
fn pictures_reach_the_model_as_parts() {
    let mut turn = bound(TurnOptions::default());
    calls(&mut turn);
    let parts =
        json!([{"kind": "text", "value": "See:"}, {"kind": "image", "value": "aGk=", "mediaType": "image/png"}]);
    let result = json!({"fed": "returned", "index": 0, "result": {"parts": parts}});
    turn.feed(fed(&result)).expect("it was asked for");
    assert_eq!(json!(turn.messages()[2].content), parts);
}

#[test]
fn what_was_steered_too_late_is_not_lost() {
    let mut turn = bound(TurnOptions::default());
    turn.next();
    turn.steer("and then?").expect("it is not over");
    turn.feed(fed(&json!({"text": "done", "usage": {"input_tokens": 3, "output_tokens": 4}})))
        .expect("it was asked for");
    assert!(turn.is_over());
    assert_eq!(turn.unused_steering(), ["and then?"]);
    assert_eq!(turn.usage().total_tokens, 7);
}

#[test]
fn a_turn_can_go_to_another_thread() {
    fn is_send<T: Send + Sync>() {}
    is_send::<Turn>();
    is_send::<Next>();
    is_send::<InputEvent>();
}

#[test]
fn long_turns_keep_nothing_but_the_conversation() {
    const ROUNDS: u32 = 2000;
    let budget = Some(ContextBudget::Chars(10_000));
    let mut turn = bound(TurnOptions { max_iterations: ROUNDS, context_budget: budget, ..TurnOptions::default() });
    for _ in 0..ROUNDS {
        calls(&mut turn);
        turn.returned(0, ToolResult::text("ok")).expect("it was asked for");
        assert!(turn.take_events().len() < 10);
        assert!(turn.messages().len() < 250);
    }
    assert!(matches!(turn.next(), Next::Failed(error) if error.code() == "max_iterations"));
}
