//! Threads: conversations that are passed as inputs.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::chat::message::{Content, ContentPart, MediaPart, Message, Role, TextPart};
use crate::error::{Error, Kind, Result};
use crate::template::input::{InputRef, View};

/// The roles that messages of a thread may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ThreadRoles {
    /// All roles, as in the specification.
    #[default]
    Any,
    /// All roles except `system` and `developer`, for hosts that do not know who wrote the thread.
    NoInstructions,
}

/// Parses a thread: a list of messages, or a map with such a list under `messages`.
///
/// # Errors
/// Returns an error if an item is not a valid message. The error gives the index of the message and what was expected.
/// It never quotes the thread.
pub fn parse_thread(value: &Json, roles: ThreadRoles) -> Result<Vec<Message>> {
    parse_given(value.into(), roles)
}

/// Parses a thread from any input value, JSON or not.
pub(crate) fn parse_given(value: InputRef<'_>, roles: ThreadRoles) -> Result<Vec<Message>> {
    let list = match value.view() {
        View::List(list) => list,
        View::Map(map) => match map.get("messages").map(InputRef::view) {
            Some(View::List(list)) => list,
            _ => return Err(invalid("expected a list of messages, found a map")),
        },
        _ => return Err(invalid(format_args!("expected a list of messages, found {}", value.type_name()))),
    };
    let mut messages = Vec::with_capacity(list.len());
    let mut calls = ToolCalls::default();
    for (index, item) in list.iter().enumerate() {
        let at = |reason: String| invalid(format_args!("message {index}: {reason}"));
        messages.push(parse_message(item, roles).map_err(at)?);
        calls.check(&messages[index]).map_err(at)?;
    }
    Ok(messages)
}

fn invalid(details: impl std::fmt::Display) -> Error {
    Error::new(Kind::InvalidThread, details)
        .with_help("write a list of messages, each with a `role` and a `content` that is a string or a list of parts")
}

fn parse_message(value: InputRef<'_>, roles: ThreadRoles) -> Result<Message, String> {
    let View::Map(map) = value.view() else {
        return Err(format!("expected a map with a `role` and a `content`, found {}", value.type_name()));
    };
    let mut role = None;
    let mut message = Message { role: Role::User, content: Content::default(), metadata: None };
    let mut has_content = false;
    for (key, value) in map.iter() {
        match key {
            "role" => role = value.as_str().and_then(Role::from_name),
            "content" | "parts" => {
                message.content = parse_content(value)?;
                has_content = true;
            }
            "metadata" => add_metadata(&mut message, value)?,
            "name" => insert(&mut message, "name", value),
            "tool_calls" | "toolCalls" => insert(&mut message, "tool_calls", value),
            "tool_call_id" | "toolCallId" => insert(&mut message, "tool_call_id", value),
            _ => return Err("unknown key; put extra fields under `metadata`".to_owned()),
        }
    }
    let role = role.ok_or("expected `role` to be system, developer, user, assistant or tool")?;
    if roles == ThreadRoles::NoInstructions && matches!(role, Role::System | Role::Developer) {
        return Err("system and developer messages are not allowed in threads".to_owned());
    }
    message.role = role;
    let may_be_empty = role == Role::Assistant && metadata(&message, "tool_calls").is_some();
    if !has_content && !may_be_empty {
        return Err("missing `content`".to_owned());
    }
    Ok(message)
}

fn insert(message: &mut Message, key: &str, value: InputRef<'_>) {
    message.metadata.get_or_insert_default().insert(key.to_owned(), value.to_json());
}

fn metadata<'m>(message: &'m Message, key: &str) -> Option<&'m Json> {
    message.metadata.as_ref()?.get(key)
}

fn add_metadata(message: &mut Message, value: InputRef<'_>) -> Result<(), String> {
    match value.view() {
        View::Null => Ok(()),
        View::Map(map) => {
            let metadata = message.metadata.get_or_insert_default();
            metadata.extend(map.iter().map(|(key, value)| (key.to_owned(), value.to_json())));
            Ok(())
        }
        _ => Err(format!("expected `metadata` to be a map, found {}", value.type_name())),
    }
}

fn parse_content(value: InputRef<'_>) -> Result<Content, String> {
    match value.view() {
        View::Str(text) => Ok(Content::text(text)),
        View::Null => Ok(Content::text("")),
        View::List(parts) => parts.iter().map(parse_part).collect(),
        _ => Err(format!("expected `content` to be a string or a list of parts, found {}", value.type_name())),
    }
}

fn parse_part(value: InputRef<'_>) -> Result<ContentPart, String> {
    let View::Map(map) = value.view() else {
        return match value.view() {
            View::Str(text) => Ok(text_part(text)),
            _ => Err(format!("expected a part to be a map or a string, found {}", value.type_name())),
        };
    };
    let text = |name: &str| map.get(name).and_then(InputRef::as_str).map(str::to_owned);
    let kind = text("kind").or_else(|| text("type")).unwrap_or_default();
    let value = text("value").or_else(|| text("source")).or_else(|| text("text"));
    let value = value.ok_or("expected a part with a string `value`")?;
    let media =
        |value| MediaPart { value, media_type: text("mediaType"), detail: text("detail"), file_name: text("fileName") };
    match kind.as_str() {
        "text" => Ok(text_part(&value)),
        "image" => Ok(ContentPart::Image(media(value))),
        "audio" => Ok(ContentPart::Audio(media(value))),
        "file" => Ok(ContentPart::File(media(value))),
        _ => Err("expected the `kind` of a part to be text, image, audio or file".to_owned()),
    }
}

fn text_part(value: &str) -> ContentPart {
    ContentPart::Text(TextPart::new(value))
}

/// The tool calls of a thread so far. Only assistant messages may call tools, and a tool message must answer an earlier
/// call.
#[derive(Default)]
struct ToolCalls {
    ids: HashSet<String>,
}

impl ToolCalls {
    fn check(&mut self, message: &Message) -> Result<(), String> {
        if let Some(calls) = metadata(message, "tool_calls") {
            if message.role != Role::Assistant {
                return Err("`tool_calls` is only allowed in assistant messages".to_owned());
            }
            let ids = calls.as_array().into_iter().flatten().filter_map(|call| call.get("id")?.as_str());
            self.ids.extend(ids.map(str::to_owned));
        }
        let answered = metadata(message, "tool_call_id").and_then(Json::as_str);
        match (message.role, answered) {
            (Role::Tool, Some(id)) if self.ids.contains(id) => Ok(()),
            (Role::Tool, _) => Err("expected a `tool_call_id` from an earlier assistant message".to_owned()),
            (_, Some(_)) => Err("`tool_call_id` is only allowed in tool messages".to_owned()),
            (_, None) => Ok(()),
        }
    }
}
