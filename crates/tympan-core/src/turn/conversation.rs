//! The conversation in an error, and the conversion of answers and results to messages.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::tools::ToolResult;
use crate::chat::message::{Content, Message, Role};
use crate::error::Error;
use crate::json::JsonMap;
use crate::wire::response::{Answer, ToolCall};

/// The conversation at the time that a turn failed.
struct Conversation(Vec<Message>);

impl Error {
    /// Adds the conversation in which the error occurred, so that the caller can continue it.
    #[must_use]
    pub fn with_conversation(self, messages: Vec<Message>) -> Self {
        self.attach(Arc::new(Conversation(messages)))
    }

    /// Returns the conversation in which the error occurred. Every tool call in it has its result.
    pub fn conversation(&self) -> &[Message] {
        self.attached::<Conversation>().map_or(&[], |conversation| &conversation.0)
    }
}

/// Converts an answer to an assistant message. Tool calls use OpenAI's format, which the wire layer converts to the
/// provider's. The provider's own blocks are included if it requires them back.
pub(super) fn assistant_message(answer: &Answer) -> Message {
    let mut message = Message::text(Role::Assistant, answer.text.as_str());
    let mut metadata = JsonMap::new();
    if !answer.tool_calls.is_empty() {
        metadata.insert("tool_calls".to_owned(), answer.tool_calls.iter().map(call_json).collect());
    }
    if let Some(blocks) = &answer.blocks {
        metadata.insert("content_blocks".to_owned(), blocks.clone());
    }
    message.metadata = (!metadata.is_empty()).then_some(metadata);
    message
}

fn call_json(call: &ToolCall) -> Json {
    json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
}

/// Assigns unique IDs to calls that lack one, because a result must refer to its call. Not used for answers with the
/// provider's own blocks, which already contain the IDs.
pub(super) fn make_distinct(calls: &mut [ToolCall], round: u32) {
    let mut names = HashSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || names.contains(&call.id) {
            call.id = format!("call_{round}_{index}");
        }
        names.insert(call.id.clone());
    }
}

/// Converts a result to a message. An empty result becomes empty text, because providers require a result for each
/// call.
pub(super) fn tool_message(call: &ToolCall, result: ToolResult) -> Message {
    let content = if result.parts.is_empty() { Content::text("") } else { result.parts };
    let metadata = JsonMap::from_iter([("tool_call_id".to_owned(), Json::from(call.id.as_str()))]);
    Message { role: Role::Tool, content, metadata: Some(metadata) }
}
