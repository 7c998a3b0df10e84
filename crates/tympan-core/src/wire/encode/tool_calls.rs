//! Calls of tools in the history of a conversation.

use serde_json::Value as Json;

use crate::chat::message::{Message, Role};

/// A call that the model has made.
pub(super) struct ToolCall<'a> {
    pub(super) id: &'a str,
    pub(super) name: &'a str,
    /// The arguments, as JSON in a string.
    pub(super) arguments: &'a str,
}

/// The list of calls that an assistant's message carries.
///
/// Attributes of a role marker cannot be a list: no input writes calls that the model did not make.
pub(super) fn call_list(message: &Message) -> Option<&Json> {
    let calls = message.metadata.as_ref()?.get("tool_calls")?;
    let is_list = calls.as_array().is_some_and(|calls| !calls.is_empty());
    (message.role == Role::Assistant && is_list).then_some(calls)
}

/// The calls of an assistant's message.
pub(super) fn calls(message: &Message) -> impl Iterator<Item = ToolCall<'_>> {
    call_list(message).and_then(Json::as_array).into_iter().flatten().map(|call| {
        // Calls are kept as OpenAI has them. Hosts also write them without the level in between.
        let function = call.get("function").unwrap_or(call);
        ToolCall { id: text_of(call, "id"), name: text_of(function, "name"), arguments: text_of(function, "arguments") }
    })
}

fn text_of<'a>(of: &'a Json, key: &str) -> &'a str {
    of.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// The call that a tool's message answers.
pub(super) fn answered(message: &Message) -> Option<&str> {
    message.metadata.as_ref()?.get("tool_call_id")?.as_str().filter(|_| message.role == Role::Tool)
}
