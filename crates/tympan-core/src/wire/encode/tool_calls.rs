//! Tool calls in the conversation history.

use serde_json::Value as Json;

use crate::chat::message::{Message, Role};

/// A call that the model has made.
pub(super) struct ToolCall<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    /// The arguments, as JSON text.
    pub(super) arguments: &'a str,
}

/// Returns the list of calls in an assistant message.
///
/// The attributes of a role marker cannot contain a list, so an input cannot forge calls that the model did not make.
pub(super) fn call_list(message: &Message) -> Option<&Json> {
    let calls = message.metadata.as_ref()?.get("tool_calls")?;
    let is_list = calls.as_array().is_some_and(|calls| !calls.is_empty());
    (message.role == Role::Assistant && is_list).then_some(calls)
}

/// Returns the calls in an assistant message.
pub(super) fn calls(message: &Message) -> impl Iterator<Item = ToolCall<'_>> {
    call_list(message).and_then(Json::as_array).into_iter().flatten().map(|call| {
        // Calls are stored in OpenAI's format. Hosts may also write them without the nested `function` object.
        let function = call.get("function").unwrap_or(call);
        ToolCall { id: text_of(call, "id"), name: text_of(function, "name"), arguments: text_of(function, "arguments") }
    })
}

fn text_of<'a>(of: &'a Json, key: &str) -> &'a str {
    of.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// Returns the ID of the call that a tool message answers.
pub(super) fn answered(message: &Message) -> Option<&str> {
    message.metadata.as_ref()?.get("tool_call_id")?.as_str().filter(|_| message.role == Role::Tool)
}
