//! Results and events as data.

use serde::Serialize;
use serde_json::{Value as Json, json};
use tympan::response::Delta;
use tympan::turn::{ToolStatus, TurnEvent};
use tympan::{Message, Outcome, Result, wire};
use tympan_runtime::{AgentEvent, Run, TurnRun};

use crate::border::written;

/// Messages as text, with pictures, sound and documents in parts of their own.
///
/// # Errors
/// An input cannot be used as what it is declared to be.
pub(crate) fn messages(mut messages: Vec<Message>) -> Result<String> {
    wire::inline_media(&mut messages)?;
    written(&messages)
}

/// What a run came to.
pub(crate) fn run(run: &Run) -> Json {
    json!({
        "kind": kind(&run.outcome),
        "result": run.outcome.to_json(),
        "problems": run.outcome.problems(),
        "usage": run.usage,
        "model": run.model,
        "id": run.id,
        "finish_reason": run.finish_reason.as_ref().map(|reason| reason.as_str()),
    })
}

const fn kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Text(_) => "text",
        Outcome::Structured(_) => "structured",
        Outcome::ToolCalls(_) => "tool_calls",
        Outcome::Embedding(_) => "embedding",
        Outcome::Embeddings(_) => "embeddings",
        Outcome::Image(_) => "image",
        Outcome::Images(_) => "images",
    }
}

/// What a turn came to.
///
/// # Errors
/// As [`messages`].
pub(crate) fn turn(turn: TurnRun) -> Result<String> {
    let mut messages = turn.messages;
    wire::inline_media(&mut messages)?;
    let resumed = turn.resumed.map(|resumed| json!({ "records": resumed.records, "torn_bytes": resumed.torn_bytes }));
    let shown =
        Turn { run: run(&turn.run), turn_usage: json!(turn.usage), rounds: turn.rounds, messages: &messages, resumed };
    written(&shown)
}

#[derive(Serialize)]
struct Turn<'a> {
    run: Json,
    turn_usage: Json,
    rounds: u32,
    messages: &'a [Message],
    resumed: Option<Json>,
}

/// What happens while a turn goes on.
pub(crate) fn event(event: &AgentEvent) -> Json {
    match event {
        AgentEvent::Token(text) => json!({ "type": "token", "text": text }),
        AgentEvent::Thinking(text) => json!({ "type": "thinking", "text": text }),
        AgentEvent::Turn(event) => turn_event(event),
        _ => json!({ "type": "unknown" }),
    }
}

fn turn_event(event: &TurnEvent) -> Json {
    let mut shown = match event {
        TurnEvent::Status { message } | TurnEvent::Error { message } | TurnEvent::CompactionFailed { message } => {
            json!({ "message": message })
        }
        TurnEvent::ToolCallStart { name, arguments } => json!({ "name": name, "arguments": arguments }),
        TurnEvent::ToolResult { name, result } => {
            let code = match &result.status {
                ToolStatus::Ok => None,
                ToolStatus::Error { code } => Some(code),
            };
            json!({ "name": name, "parts": result.parts, "error": code })
        }
        TurnEvent::MessagesUpdated { count } => json!({ "count": count }),
        TurnEvent::Done { response, count } => json!({ "response": response, "count": count }),
        TurnEvent::CompactionComplete { removed, remaining } => json!({ "removed": removed, "remaining": remaining }),
        _ => json!({}),
    };
    shown["type"] = event.name().into();
    shown
}

/// A step of a streamed answer.
pub(crate) fn delta(delta: &Delta) -> Json {
    match delta {
        Delta::Text(text) => json!({ "type": "text", "text": text }),
        Delta::Thinking(text) => json!({ "type": "thinking", "text": text }),
        Delta::ToolCall { index, id, name } => json!({ "type": "tool_call", "index": index, "id": id, "name": name }),
        Delta::ToolArguments { index, fragment } => {
            json!({ "type": "tool_arguments", "index": index, "fragment": fragment })
        }
        Delta::Usage(usage) => json!({ "type": "usage", "usage": usage }),
    }
}
