//! Threads: conversations that are passed as inputs.
//!
//! Messages have the form that Tympan writes, or the form in which the APIs of providers return and accept them.

mod item;
mod part;

use std::collections::HashSet;

use serde_json::Value as Json;

use self::item::ResponseItem;
use self::part::Parts;
use crate::chat::message::{Content, Message, Role};
use crate::error::{Error, Kind, Result};
use crate::template::input::{InputMap, InputRef, View};

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

/// Parses a thread: a list of messages, or a map with such a list under `messages`. Keys that Tympan does not know are
/// kept as metadata.
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
        add_item(item, roles, &mut calls, &mut messages).map_err(at)?;
    }
    Ok(messages)
}

fn invalid(details: impl std::fmt::Display) -> Error {
    Error::new(Kind::InvalidThread, details)
        .with_help("write a list of messages, each with a `role` and a `content` that is a string or a list of parts")
}

/// Adds the messages of an item: usually one.
fn add_item(
    value: InputRef<'_>,
    roles: ThreadRoles,
    calls: &mut ToolCalls,
    messages: &mut Vec<Message>,
) -> Result<(), String> {
    let View::Map(map) = value.view() else {
        return Err(format!("expected a map with a `role` and a `content`, found {}", value.type_name()));
    };
    // The role is usually the first key, so that looking at the keys is faster than a lookup.
    if map.iter().all(|(key, _)| key != "role")
        && let Some(kind) = map.get("type").and_then(InputRef::as_str)
        && let Some(item) = ResponseItem::parse(kind, map)?
    {
        return item.add_to(calls, messages);
    }
    let first = messages.len();
    add_message(map, roles, messages)?;
    messages[first..].iter().try_for_each(|message| calls.check(message))
}

/// Adds a message with a role. Results of tools that are parts of it become messages before it.
fn add_message(map: InputMap<'_>, roles: ThreadRoles, messages: &mut Vec<Message>) -> Result<(), String> {
    let mut role = None;
    let mut message = Message { role: Role::User, content: Content::default(), metadata: None };
    // Most messages have plain text, which needs no parts.
    let mut has_text = false;
    let mut parts = None;
    for (key, value) in map.iter() {
        match key {
            "role" => role = value.as_str().and_then(Role::from_name),
            "content" | "parts" => match value.view() {
                View::Str(text) => (message.content, has_text, parts) = (Content::text(text), true, None),
                _ => (has_text, parts) = (false, Some(Box::new(Parts::parse(value)?))),
            },
            "metadata" => add_metadata(&mut message, value)?,
            // Programs that write every field of a type write null for those without a value.
            "name" | "tool_calls" | "toolCalls" | "tool_call_id" | "toolCallId" if value.is_null() => {}
            "toolCalls" => insert(&mut message, "tool_calls", value),
            "toolCallId" => insert(&mut message, "tool_call_id", value),
            _ => insert(&mut message, key, value),
        }
    }
    let role = role.ok_or("expected `role` to be system, developer, user, assistant or tool")?;
    if roles == ThreadRoles::NoInstructions && matches!(role, Role::System | Role::Developer) {
        return Err("system and developer messages are not allowed in threads".to_owned());
    }
    message.role = role;
    let Some(parts) = parts else {
        let may_be_empty = || role == Role::Assistant && metadata(&message, "tool_calls").is_some();
        if !has_text && !may_be_empty() {
            return Err("missing `content`".to_owned());
        }
        messages.push(message);
        return Ok(());
    };
    add_parts(message, *parts, messages)
}

/// Adds a message whose content is a list of parts.
fn add_parts(mut message: Message, parts: Parts, messages: &mut Vec<Message>) -> Result<(), String> {
    let role = message.role;
    let Parts { content, calls, mut results, blocks } = parts;
    message.content = content;
    add_calls(&mut message, calls);
    if let Some(blocks) = blocks {
        if role != Role::Assistant {
            return Err("a part with reasoning or a call is only allowed in assistant messages".to_owned());
        }
        message.metadata.get_or_insert_default().entry("content_blocks").or_insert(blocks);
    }
    let Some(result) = results.first_mut() else {
        messages.push(message);
        return Ok(());
    };
    if !matches!(role, Role::User | Role::Tool) {
        return Err("a part of type `tool_result` is only allowed in user messages".to_owned());
    }
    let rest = if message.content.is_empty() {
        let own = message.metadata.take().unwrap_or_default();
        let metadata = result.metadata.get_or_insert_default();
        for (key, value) in own {
            metadata.entry(key).or_insert(value);
        }
        None
    } else {
        Some(message)
    };
    messages.extend(results);
    messages.extend(rest);
    Ok(())
}

/// Adds calls that are parts of the content to the list of calls, where a call with the same ID may already be.
fn add_calls(message: &mut Message, calls: Vec<Json>) {
    if calls.is_empty() {
        return;
    }
    let Json::Array(list) = call_list(message) else { return };
    let known: HashSet<String> = list.iter().filter_map(|call| call.get("id")?.as_str()).map(str::to_owned).collect();
    let is_new = |call: &Json| call["id"].as_str().is_none_or(|id| !known.contains(id));
    list.extend(calls.into_iter().filter(is_new));
}

/// Returns the list of calls of a message, and creates it if necessary.
fn call_list(message: &mut Message) -> &mut Json {
    message.metadata.get_or_insert_default().entry("tool_calls").or_insert_with(|| Json::Array(Vec::new()))
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
