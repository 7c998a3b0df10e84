//! Turns whose prompt has one tool of the kind `openapi`.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tympan_core::turn::TurnEvent;
use tympan_core::{ContentPart, Inputs, Prompt, Role};
use tympan_runtime::tool::ToolAddresses;
use tympan_runtime::{AgentEvent, Result, Runtime, RuntimeOptions, TurnSettings};

use crate::faults::client::{Waits, options};

/// Creates a runtime whose tools may call this machine, and whose client does not wait.
pub(crate) fn runtime() -> Runtime {
    runtime_with(|_| ())
}

pub(crate) fn runtime_with(change: impl FnOnce(&mut RuntimeOptions)) -> Runtime {
    let tool_addresses =
        ToolAddresses { allow_hosts: vec!["localhost".into(), "127.0.0.1".into()], ..ToolAddresses::default() };
    let mut options = RuntimeOptions { http: options(&Waits::default()), tool_addresses, ..RuntimeOptions::default() };
    change(&mut options);
    Runtime::new(options)
}

/// Returns a prompt with this tool, and a model that makes these calls in parallel and then answers.
pub(crate) fn prompt(runtime: &Runtime, tool: &Value, calls: &[(&str, Value)]) -> Prompt {
    let calls: Vec<_> = calls.iter().map(|(name, arguments)| json!({ "name": name, "arguments": arguments })).collect();
    let script = json!([{ "tool_calls": calls }, { "text": "Done." }]);
    let model = json!({ "provider": "echo", "options": { "additionalProperties": { "script": script } } });
    let mut tool = tool.clone();
    tool["name"] = json!("service");
    tool["kind"] = json!("openapi");
    let front = json!({ "name": "test", "model": model, "tools": [tool] });
    let text = format!("---\n{front}\n---\nuser:\nGo on.\n");
    runtime.load_str(&text, "test.prompty", env!("CARGO_MANIFEST_DIR")).expect("it is a prompt")
}

/// Returns the results of these calls as text, in order.
pub(crate) fn call(runtime: &Runtime, tool: &Value, calls: &[(&str, Value)]) -> Result<Vec<String>> {
    Ok(parts(runtime, tool, calls)?.iter().map(|part| part.as_text().unwrap_or("(media)").to_owned()).collect())
}

/// Returns the result of one call as text.
pub(crate) fn call_one(runtime: &Runtime, tool: &Value, name: &str, arguments: Value) -> String {
    let told = call(runtime, tool, &[(name, arguments)]).expect("the turn ends well");
    assert_eq!(told.len(), 1, "{told:?}");
    told.into_iter().next().unwrap_or_default()
}

/// Returns the results of these calls as parts, in order.
pub(crate) fn parts(runtime: &Runtime, tool: &Value, calls: &[(&str, Value)]) -> Result<Vec<ContentPart>> {
    let prompt = prompt(runtime, tool, calls);
    let run = runtime.turn(&prompt, Inputs::new(), &TurnSettings::default())?;
    let tools = run.messages.iter().filter(|message| message.role == Role::Tool);
    Ok(tools.flat_map(|message| message.content.iter().cloned()).collect())
}

/// Returns the result of one call, and whether it is a failure, which the text does not show.
pub(crate) fn status(runtime: &Runtime, tool: &Value, name: &str, arguments: Value) -> (String, bool) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (keep, prompt) = (seen.clone(), prompt(runtime, tool, &[(name, arguments)]));
    let on_event: Arc<dyn Fn(&AgentEvent) + Send + Sync> = Arc::new(move |event| {
        if let AgentEvent::Turn(TurnEvent::ToolResult { result, .. }) = event {
            let text = result.parts.iter().filter_map(ContentPart::as_text).collect::<String>();
            keep.lock().expect("nobody panicked").push((text, result.is_error()));
        }
    });
    let settings = TurnSettings { on_event: Some(on_event), ..TurnSettings::default() };
    runtime.turn(&prompt, Inputs::new(), &settings).expect("the turn ends well");
    let seen = seen.lock().expect("nobody panicked");
    seen.first().cloned().expect("there is a result")
}
