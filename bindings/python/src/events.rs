//! What happens while a turn goes on.

use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use tympan::turn::{ToolStatus, TurnEvent};
use tympan_runtime::AgentEvent;

use crate::values::to_python;

/// Something that has happened in a turn.
#[pyclass(frozen, get_all, module = "tympan")]
pub(crate) struct Event {
    /// What: `token`, `thinking`, `status`, `tool_call_start`, `tool_result`, `messages_updated`, `error`, `done`,
    /// `cancelled`, `compaction_start`, `compaction_complete` or `compaction_failed`.
    kind: &'static str,
    /// More about it; the guide has a table.
    data: Py<PyAny>,
}

impl Event {
    pub(crate) fn new(py: Python<'_>, event: &AgentEvent) -> PyResult<Self> {
        let (kind, data) = match event {
            AgentEvent::Token(text) => ("token", json!({ "text": text })),
            AgentEvent::Thinking(text) => ("thinking", json!({ "text": text })),
            AgentEvent::Turn(event) => (event.name(), data_of(event)),
            _ => ("status", json!({})),
        };
        Ok(Self { kind, data: to_python(py, &data)?.unbind() })
    }
}

fn data_of(event: &TurnEvent) -> Json {
    match event {
        TurnEvent::Status { message } | TurnEvent::Error { message } | TurnEvent::CompactionFailed { message } => {
            json!({ "message": message })
        }
        TurnEvent::ToolCallStart { name, arguments } => json!({ "name": name, "arguments": arguments }),
        TurnEvent::ToolResult { name, result } => {
            let code = match &result.status {
                ToolStatus::Ok => Json::Null,
                ToolStatus::Error { code } => code.as_str().into(),
            };
            json!({ "name": name, "content": result.parts, "error": code })
        }
        TurnEvent::MessagesUpdated { count } => json!({ "count": count }),
        TurnEvent::Done { response, count } => json!({ "response": response, "count": count }),
        TurnEvent::CompactionComplete { removed, remaining } => json!({ "removed": removed, "remaining": remaining }),
        _ => json!({}),
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Event(kind='{}', data={})", self.kind, self.data.bind(py).repr()?))
    }
}
