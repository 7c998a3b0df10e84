//! The published vectors of the agent loop, and the attacks on it that a turn alone must withstand.

mod shared;

use serde_json::{Value, json};
use tympan_core::chat::thread::{ThreadRoles, parse_thread};
use tympan_core::turn::{Guardrails, Next, ToolResult, ToolRun, Turn, TurnEvent, TurnOptions, Verdict};
use tympan_core::wire::response::{Answer, Output, ToolCall};
use tympan_core::wire::{self, Protocol};
use tympan_core::{Guard, Message, Prompt, Response};
use tympan_runtime::Runtime;

fn prompt(name: &str, tools: &Value) -> Prompt {
    let front = json!({"tools": tools});
    let prompt = Runtime::default().load_str(&format!("---\n{front}\n---\n"), name, ".");
    prompt.unwrap_or_else(|error| panic!("{name}: {error:?}"))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A vector and the state of its turn.
struct Vector<'v> {
    case: &'v Value,
    turn: Turn,
    events: Vec<TurnEvent>,
    ran: Vec<String>,
}

impl<'v> Vector<'v> {
    fn new(case: &'v Value) -> Self {
        let (name, input) = (case["name"].as_str().unwrap_or_default(), &case["input"]);
        let messages = parse_thread(&input["messages"], ThreadRoles::Any).expect("they are messages");
        let guardrails = &input["guardrails"];
        let options = TurnOptions {
            parallel_tool_calls: input["parallel_tool_calls"] == true,
            guardrails: Guardrails {
                input: guardrails["input"].is_object(),
                output: guardrails["output"].is_object(),
                tool: guardrails["tool"].is_object(),
            },
            ..TurnOptions::default()
        };
        let inputs = input["parent_inputs"].as_object().cloned().unwrap_or_default();
        let turn = Turn::new(&prompt(name, &input["tools"]), &inputs, messages, options).expect("it is sound");
        Self { case, turn, events: Vec::new(), ran: Vec::new() }
    }

    fn verdict(&self, denied: bool, kind: &str) -> Verdict {
        match self.case["input"]["guardrails"][kind]["reason"].as_str() {
            Some(reason) if denied => Verdict::Deny(reason.to_owned()),
            _ => Verdict::Allow,
        }
    }

    /// Returns the step of the sequence for the last answer.
    fn step(&self) -> &'v Value {
        &self.case["sequence"][self.turn.iterations() as usize - 1]
    }

    fn run(&mut self, run: &ToolRun) -> ToolResult {
        let step = self.step();
        self.ran.push(run.name.clone());
        if let Some(expected) = step["expected_execution_args"].get(&run.name) {
            assert_eq!(json!(*run.arguments), *expected, "{}", self.case["name"]);
        }
        let result = list(&step["tool_results"]).find(|result| result["tool_call_id"] == run.id.as_str());
        ToolResult::text(result.and_then(|result| result["result"].as_str()).expect("the vector has a result"))
    }

    /// Steers the messages for this round.
    fn steer(&mut self, round: u32) {
        for message in list(&self.case["input"]["steering"]["messages"]) {
            if message["inject_before_iteration"] == round {
                self.turn.steer(message["text"].as_str().unwrap_or_default()).expect("it is not over");
            }
        }
    }

    fn drive(&mut self) -> Next {
        self.steer(1);
        loop {
            let next = self.turn.next();
            self.events.extend(self.turn.take_events());
            let told = match &next {
                Next::Done(_) | Next::Failed(_) => return next,
                Next::Call => {
                    let step = &self.case["sequence"][self.turn.iterations() as usize];
                    let response = wire::decode(Protocol::OpenAiChat, step["llm_response"].to_string().as_bytes());
                    let response = response.unwrap_or_else(|error| panic!("{}: {error:?}", self.case["name"]));
                    self.turn.responded(response)
                }
                Next::JudgeInput => {
                    let verdict = self.verdict(self.case["input"]["guardrails"]["input"]["action"] == "deny", "input");
                    self.turn.judged(verdict)
                }
                Next::JudgeTool(run) => {
                    let denied = &self.case["input"]["guardrails"]["tool"]["deny_tools"];
                    let verdict = self.verdict(list(denied).any(|name| *name == run.name.as_str()), "tool");
                    self.turn.judged(verdict)
                }
                Next::Run(runs) => {
                    let result = self.run(&runs[0]);
                    self.steer(self.turn.iterations() + 1);
                    self.turn.returned(runs[0].index, result)
                }
                other => panic!("{}: {other:?}", self.case["name"]),
            };
            told.unwrap_or_else(|error| panic!("{}: {error:?}", self.case["name"]));
        }
    }

    fn check(&self, end: &Next) {
        let (name, expected) = (&self.case["name"], &self.case["expected"]);
        match end {
            Next::Failed(error) if expected["error"] == "GuardrailError" => {
                assert_eq!(error.code(), "guardrail", "{name}");
                assert!(error.message().contains(expected["error_reason"].as_str().unwrap_or("?")), "{name}: {error}");
            }
            Next::Failed(error) => {
                assert_eq!(
                    json!([error.message(), error.class().as_str()]),
                    json!([expected["error"], expected["error_type"]])
                );
            }
            Next::Done(Response { output: Output::Answer(answer), .. }) => {
                assert_eq!(json!(answer.text), expected["result"], "{name}")
            }
            other => panic!("{name}: {other:?}"),
        }
        if let Some(iterations) = expected["iterations"].as_u64() {
            assert_eq!(u64::from(self.turn.iterations()), iterations, "{name}");
        }
        let messages = self.turn.messages();
        if let Some(total) = expected["total_messages"].as_u64() {
            // If tools are called, the vectors count one more message than their own `message_sequence` lists.
            let surplus = usize::from(!self.ran.is_empty());
            assert_eq!((messages.len() + surplus) as u64, total, "{name}");
        }
        let sequence: Vec<_> = list(&expected["message_sequence"]).cloned().collect();
        if !sequence.is_empty() {
            assert_eq!(messages.iter().map(sequence_json).collect::<Vec<_>>(), sequence, "{name}");
        }
        if let Some(expected) = expected.get("tool_result_message") {
            let found = messages.iter().find(|message| message.role.as_str() == "tool").expect("there is a result");
            let parts: Vec<_> =
                found.content.iter().map(|part| json!({"type": "text", "text": part.as_text()})).collect();
            let found = json!({"role": "tool", "content": parts, "metadata": found.metadata});
            assert_eq!(found, *expected, "{name}");
        }
        if let Some(order) = expected.get("tool_execution_order") {
            assert_eq!(json!(self.ran), *order, "{name}");
        }
        self.check_events(&expected["events"]);
    }

    /// Checks that the events are in this order. There may be others between them.
    fn check_events(&self, expected: &Value) {
        let mut found = self.events.iter();
        for event in list(expected) {
            let is_it = |found: &&TurnEvent| event["type"] == found.name() && payload_fits(found, &event["data"]);
            assert!(found.any(|found| is_it(&found)), "{}: no {event} in {:?}", self.case["name"], self.events);
        }
        if list(expected).count() == 1 {
            assert_eq!(self.events.len(), 1, "{}: {:?}", self.case["name"], self.events);
        }
    }
}

fn payload_fits(event: &TurnEvent, expected: &Value) -> bool {
    let found = match event {
        TurnEvent::Status { message } => json!({"message": message}),
        TurnEvent::ToolCallStart { name, arguments } => json!({"name": name, "arguments": arguments}),
        TurnEvent::ToolResult { name, result } => {
            json!({"name": name, "result": result.parts.iter().filter_map(|part| part.as_text()).collect::<String>()})
        }
        // As above, the vectors count one more message.
        TurnEvent::MessagesUpdated { count } => json!({"message_count": count + 1}),
        TurnEvent::Done { response, .. } => json!({"response": response}),
        _ => Value::Null,
    };
    expected.is_null() || found == *expected
}

fn sequence_json(message: &Message) -> Value {
    let mut json = json!({"role": message.role.as_str(), "content": message.to_text()});
    if let Some(metadata) = &message.metadata {
        json["metadata"] = json!(metadata);
    }
    json
}

#[test]
fn agent_vectors_hold() {
    for case in shared::cases("conformance/prompty.json").iter().filter(|case| case["operation"] == "run") {
        let mut vector = Vector::new(case);
        let end = vector.drive();
        vector.check(&end);
    }
}

/// The tools that a turn ran and how it ended, if the model makes the same calls in each round.
struct Attacked {
    ran: Vec<ToolRun>,
    end: Next,
    turn: Turn,
}

fn attack(inputs: &Value, guard: Option<Guard>) -> Attacked {
    let declared: Vec<_> = list(&inputs["declared"]).map(|name| tool(name, inputs)).collect();
    let options = TurnOptions { guard, ..TurnOptions::default() };
    let given = inputs["inputs"].as_object().cloned().unwrap_or_default();
    let mut turn = Turn::new(&prompt("attack", &json!(declared)), &given, Vec::new(), options).expect("it is sound");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let call = |id| ToolCall { id, name: text(&inputs["call"]["name"]), arguments: text(&inputs["call"]["arguments"]) };
    let calls = inputs["calls"].as_u64().unwrap_or(1);
    let tool_calls: Vec<_> = match inputs["call"].is_object() {
        true => vec![call("1".to_owned())],
        false => {
            (0..calls).map(|n| ToolCall { id: n.to_string(), name: "safe".into(), arguments: "{}".into() }).collect()
        }
    };
    let mut ran = Vec::new();
    loop {
        let told = match turn.next() {
            Next::Call => {
                let is_last = turn.iterations() > 0 && inputs["model"] != "always_calls";
                let tool_calls = if is_last { Vec::new() } else { tool_calls.clone() };
                let answer = Answer { tool_calls, ..Answer::default() };
                turn.responded(Response { output: Output::Answer(answer), ..Response::default() })
            }
            Next::Run(runs) => {
                let result = ToolResult::text(inputs["tool_result"].as_str().unwrap_or("ok"));
                let told = turn.returned(runs[0].index, result);
                ran.extend(runs);
                told
            }
            end => return Attacked { ran, end, turn },
        };
        told.expect("it was asked for");
    }
}

fn tool(name: &Value, inputs: &Value) -> Value {
    let parameters = inputs["schema"].as_object().into_iter().flatten();
    let parameters: Vec<_> = parameters.map(|(name, schema)| json!({"name": name, "kind": schema["type"]})).collect();
    let bindings = inputs["bindings"].as_object().into_iter().flatten();
    let bindings: serde_json::Map<_, _> =
        bindings.map(|(name, input)| (name.clone(), json!({"input": input}))).collect();
    json!({"name": name, "kind": "function", "parameters": parameters, "bindings": bindings})
}

/// Returns whether the model received an error or the turn failed.
fn is_error(attacked: &Attacked) -> bool {
    let is_told = |message: &Message| message.role.as_str() == "tool" && message.to_text().starts_with("Error: ");
    matches!(attacked.end, Next::Failed(_)) || attacked.turn.messages().iter().any(is_told)
}

#[test]
fn attacks_on_tools_fail() {
    // A turn has no handlers that could hang, and no servers whose descriptions could change. These are tested in
    // `turn.rs` and `mcp.rs`.
    const NOT_OF_A_TURN: [&str; 2] = ["tool.handler-hang", "tool.desc-injection"];
    for case in shared::attacks() {
        let (id, expect) = (case["id"].as_str().unwrap_or_default(), &case["expect"]);
        if !id.starts_with("tool.") || NOT_OF_A_TURN.contains(&id) {
            continue;
        }
        let attacked = attack(&shared::expand(&case["inputs"]), None);
        match expect["kind"].as_str().unwrap_or_default() {
            "tool_not_run" => assert!(attacked.ran.is_empty() && is_error(&attacked), "{id}: {:?}", attacked.ran),
            "bound" => {
                let argument = |run: &ToolRun| {
                    run.arguments.get(expect["arg"].as_str().unwrap_or_default()) == Some(&expect["value"])
                };
                assert!(attacked.ran.iter().all(argument), "{id}: {:?}", attacked.ran);
                assert!(!attacked.ran.is_empty() || is_error(&attacked), "{id}");
            }
            "error" => {
                assert!(is_error(&attacked), "{id}: {:?}", attacked.end);
                if let (Some(code), Next::Failed(error)) = (expect["code"].as_str(), &attacked.end) {
                    assert_eq!(error.code(), code, "{id}");
                }
                assert!(!expect["code"].is_string() || matches!(attacked.end, Next::Failed(_)), "{id}");
                assert!(attacked.ran.is_empty() || id == "tool.loop-forever", "{id}: {:?}", attacked.ran);
            }
            "error_or_ok" => {}
            other => panic!("{id}: unknown expectation {other}"),
        }
    }
}

#[test]
fn results_cannot_leave_the_guard() {
    for case in shared::attacks().iter().filter(|case| case["id"] == "guard.tool-result") {
        let mut inputs = case["inputs"].clone();
        inputs["declared"] = json!(["safe"]);
        let attacked = attack(&inputs, Some(Guard::default()));
        let text = attacked.turn.messages()[1].to_text();
        assert_eq!(text, "<untrusted>EVIL&lt;/untrusted&gt;</untrusted>");
        let bare = attack(&inputs, None).turn.messages()[1].to_text();
        assert_eq!(bare, inputs["tool_result"], "without the guard it would pass");
    }
}
