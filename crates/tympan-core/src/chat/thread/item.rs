//! Items of OpenAI's Responses API that have no role.

use serde_json::Value as Json;

use super::part::{Parts, call, result, text};
use super::{ToolCalls, call_list};
use crate::chat::message::{Content, Message, Role};
use crate::template::input::InputMap;

/// An item without a role.
pub(super) enum ResponseItem {
    /// A call of a tool. It belongs to the assistant message before it.
    Call { id: String, call: Json },
    /// The result of a call.
    Result(Message),
    /// Reasoning, which is not part of the conversation.
    Reasoning,
}

impl ResponseItem {
    /// Parses an item. Returns `None` if the type is unknown.
    pub(super) fn parse(kind: &str, map: InputMap<'_>) -> Result<Option<Self>, String> {
        let required =
            |key: &str| text(map, &[key]).ok_or_else(|| format!("expected a `{kind}` with a string `{key}`"));
        Ok(match kind {
            "function_call" => {
                let (id, name) = (required("call_id")?, required("name")?);
                Some(Self::Call { id: id.to_owned(), call: call(id, name, map.get("arguments")) })
            }
            "function_call_output" => {
                Some(Self::Result(result(required("call_id")?, Parts::parse_result(map.get("output"))?)))
            }
            "reasoning" => Some(Self::Reasoning),
            _ => None,
        })
    }

    /// Adds the item to the messages.
    pub(super) fn add_to(self, calls: &mut ToolCalls, messages: &mut Vec<Message>) -> Result<(), String> {
        match self {
            Self::Reasoning => {}
            Self::Result(message) => {
                calls.check(&message)?;
                messages.push(message);
            }
            Self::Call { id, call } => {
                if messages.last().is_none_or(|last| last.role != Role::Assistant) {
                    messages.push(Message { role: Role::Assistant, content: Content::default(), metadata: None });
                }
                if let Some(Json::Array(list)) = messages.last_mut().map(call_list) {
                    list.push(call);
                }
                calls.ids.insert(id);
            }
        }
        Ok(())
    }
}
