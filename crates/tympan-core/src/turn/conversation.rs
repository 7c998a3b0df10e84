//! The conversation that an error carries, and how answers and results become messages of it.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::tools::ToolResult;
use crate::chat::message::{Content, Message, Role};
use crate::error::Error;
use crate::json::JsonMap;
use crate::wire::response::{Answer, ToolCall};

/// What a turn had come to when it failed.
struct Conversation(Vec<Message>);

impl Error {
    /// Adds the conversation that this happened in, so that the caller can go on with it.
    #[must_use]
    pub fn with_conversation(self, messages: Vec<Message>) -> Self {
        self.attach(Arc::new(Conversation(messages)))
    }

    /// The conversation that this happened in. Every call of a tool in it has its result.
    pub fn conversation(&self) -> &[Message] {
        self.attached::<Conversation>().map_or(&[], |conversation| &conversation.0)
    }
}

/// An answer as the assistant's message: calls as OpenAI has them, which the wire layer turns into what the provider
/// has, and the provider's own blocks where it wants them back.
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

/// Gives calls of an answer a name of their own where the provider did not: a result has to say whose it is. Blocks of
/// a provider's own have the names in them, and stay as they are.
pub(super) fn make_distinct(calls: &mut [ToolCall], round: u32) {
    let mut names = HashSet::new();
    for (index, call) in calls.iter_mut().enumerate() {
        if call.id.is_empty() || names.contains(&call.id) {
            call.id = format!("call_{round}_{index}");
        }
        names.insert(call.id.clone());
    }
}

/// A result as a message. One without any part still is a message: providers want a result for each call.
pub(super) fn tool_message(call: &ToolCall, result: ToolResult) -> Message {
    let content = if result.parts.is_empty() { Content::text("") } else { result.parts };
    let metadata = JsonMap::from_iter([("tool_call_id".to_owned(), Json::from(call.id.as_str()))]);
    Message { role: Role::Tool, content, metadata: Some(metadata) }
}
