//! The published test vectors of Prompty for the agent loop.

use serde_json::{Value, json};
use tympan_core::chat::thread::{ThreadRoles, parse_thread};
use tympan_core::turn::{Guardrails, Next, ToolResult, ToolRun, Turn, TurnEvent, TurnOptions, Verdict};
use tympan_core::wire::response::Output;
use tympan_core::wire::{self, Protocol};
use tympan_core::{Message, Response};

use crate::shared::{conformance, list, prompt_with_tools};

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
        let turn =
            Turn::new(&prompt_with_tools(name, &input["tools"]), &inputs, messages, options).expect("it is sound");
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
        TurnEvent::ToolCallStart { name, arguments, .. } => json!({"name": name, "arguments": arguments}),
        TurnEvent::ToolResult { name, result, .. } => {
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

pub(crate) fn agent_vectors_hold() {
    for case in list(&conformance("prompty.json")).filter(|case| case["operation"] == "run") {
        let mut vector = Vector::new(case);
        let end = vector.drive();
        vector.check(&end);
    }
}
