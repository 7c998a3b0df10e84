//! A fake server with programmable faults, and prompts that use its tools.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;
use tympan_core::turn::{ToolStatus, TurnEvent};
use tympan_core::{Inputs, Prompt};
use tympan_runtime::{AgentEvent, McpServer, Runtime, TurnRun, TurnSettings};

/// The server, with a directory where it records what it did.
pub(crate) struct Double {
    state: TempDir,
}

impl Double {
    pub(crate) fn new() -> Self {
        Self { state: tempfile::tempdir().expect("a directory") }
    }

    pub(crate) fn command(&self, mode: &str) -> Vec<String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
        let state = self.state.path().to_str().expect("it is UTF-8");
        ["python3", "-B", script, state, mode].map(str::to_owned).to_vec()
    }

    pub(crate) fn server(&self, mode: &str) -> McpServer {
        McpServer::stdio(self.command(mode))
    }

    /// Creates a runtime with the server registered as `double`.
    pub(crate) fn runtime(&self, mode: &str) -> Runtime {
        let runtime = Runtime::default();
        runtime.register_mcp_server("double", self.server(mode));
        runtime
    }

    /// Returns the lines of a file that the server has written.
    pub(crate) fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.state.path().join(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Removes a file that the server has written.
    pub(crate) fn forget(&self, name: &str) {
        let _ = std::fs::remove_file(self.state.path().join(name));
    }
}

/// Returns a declaration of the server's tools, with these keys.
pub(crate) fn mcp(keys: Value) -> Value {
    let mut tool = json!({ "name": "tools", "kind": "mcp", "serverName": "double" });
    if let (Some(tool), Some(keys)) = (tool.as_object_mut(), keys.as_object()) {
        tool.extend(keys.clone());
    }
    tool
}

/// Returns a scripted prompt for the provider `echo` with these tools.
pub(crate) fn prompt(tools: Value, script: Value) -> Prompt {
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let front = json!({ "name": "scripted", "model": model, "tools": tools });
    Runtime::default().load_str(&format!("---\n{front}\n---\nuser:\nHello?\n"), "p.prompty", ".").expect("it loads")
}

pub(crate) fn calls(names: &[&str]) -> Value {
    let calls = names.iter().map(|name| {
        let arguments = if name.ends_with("add") { json!({ "a": 2, "b": 3 }) } else { json!({}) };
        json!({ "name": name, "arguments": arguments })
    });
    json!({ "tool_calls": calls.collect::<Vec<_>>() })
}

/// Returns a prompt whose model calls these tools in sequence.
pub(crate) fn scripted(tools: Value, names: &[&str]) -> Prompt {
    let mut script: Vec<_> = names.iter().map(|name| calls(&[*name])).collect();
    script.push(json!({ "text": "Done." }));
    prompt(tools, json!(script))
}

/// Returns the tool results that the model received, in order.
pub(crate) fn told(run: &TurnRun) -> Vec<String> {
    let tools = run.messages.iter().filter(|message| message.role == tympan_core::Role::Tool);
    tools.map(|message| message.to_text()).collect()
}

/// Returns the error codes of the tool results of a turn, in order.
pub(crate) fn error_codes(runtime: &Runtime, prompt: &Prompt) -> Vec<Option<String>> {
    let codes = Arc::new(Mutex::new(Vec::new()));
    let listener = codes.clone();
    let settings = TurnSettings {
        on_event: Some(Arc::new(move |event: &AgentEvent| {
            if let AgentEvent::Turn(TurnEvent::ToolResult { result, .. }) = event {
                let code = match &result.status {
                    ToolStatus::Ok => None,
                    ToolStatus::Error { code } => Some(code.clone()),
                };
                listener.lock().expect("nobody panicked").push(code);
            }
        })),
        ..TurnSettings::default()
    };
    runtime.turn(prompt, Inputs::new(), &settings).expect("it ends well");
    let codes = codes.lock().expect("nobody panicked");
    codes.clone()
}
