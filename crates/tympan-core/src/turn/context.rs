//! The context budget: which messages fit, and the summary that replaces the others.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::chat::guard::Guard;
use crate::chat::message::{ContentPart, Message, Role};

/// The size, in characters, of a part that is not text.
const PART_CHARS: usize = 200;

/// The overhead of a message, in addition to its role and its content.
const MESSAGE_CHARS: usize = 4;

/// The maximum reserve for a summary. The reserve is otherwise a twentieth of the budget.
const MAX_RESERVE: usize = 5000;

/// The maximum number of characters in a summary.
const MAX_SUMMARY: usize = 4000;

/// The maximum number of characters of each message in a summary.
const MAX_QUOTED: usize = 200;

/// The minimum number of messages to keep, whatever the budget, not counting system and developer messages.
const KEPT: usize = 2;

/// A host-provided tokenizer that returns the size of a message.
pub type CountTokens = Arc<dyn Fn(&Message) -> usize + Send + Sync>;

/// A limit on the size of the conversation that is sent to a model.
#[derive(Clone)]
#[non_exhaustive]
pub enum ContextBudget {
    /// A number of characters.
    Chars(usize),
    /// A number of tokens.
    Tokens {
        /// The maximum number of tokens.
        budget: usize,
        /// The function that counts the tokens of a message. It must be deterministic.
        count: CountTokens,
    },
}

impl fmt::Debug for ContextBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chars(budget) => f.debug_tuple("Chars").field(budget).finish(),
            Self::Tokens { budget, .. } => f.debug_tuple("Tokens").field(budget).finish(),
        }
    }
}

/// The messages to drop because they no longer fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// The indexes of the dropped messages, in ascending order.
    dropped: Vec<usize>,
    /// The index at which to insert the summary.
    at: usize,
    /// The maximum number of characters in the summary.
    room: usize,
}

impl ContextBudget {
    const fn budget(&self) -> usize {
        match self {
            Self::Chars(budget) | Self::Tokens { budget, .. } => *budget,
        }
    }

    fn size(&self, message: &Message) -> usize {
        match self {
            Self::Chars(_) => chars(message),
            Self::Tokens { count, .. } => count(message),
        }
    }
}

/// Tracks which part of a conversation fits.
#[derive(Debug)]
pub(super) struct Context {
    budget: Option<ContextBudget>,
    /// The sizes of the messages counted so far. Counting all messages again in each round would dominate the running
    /// time of a long turn.
    sizes: Vec<usize>,
}

impl Context {
    pub(super) const fn new(budget: Option<ContextBudget>) -> Self {
        Self { budget, sizes: Vec::new() }
    }

    /// Returns the oldest messages to drop, or `None` if all messages fit or none can be dropped.
    ///
    /// The specification drops messages one by one. Here, an assistant message with tool calls is dropped together with
    /// the results, because providers reject one without the other. The specification would also insert an empty
    /// summary if nothing can be dropped; that would only make the conversation longer.
    pub(super) fn cut(&mut self, messages: &[Message]) -> Option<Cut> {
        let (budget, sizes) = (self.budget.as_ref()?, &mut self.sizes);
        sizes.extend(messages[sizes.len()..].iter().map(|message| budget.size(message)));
        let mut total = sum(sizes);
        if total <= budget.budget() {
            return None;
        }
        let limit = budget.budget() - (budget.budget() / 20).min(MAX_RESERVE);
        let start = messages.iter().take_while(|message| is_instruction(message)).count();
        let mut left = messages.iter().filter(|message| !is_instruction(message)).count();
        let mut dropped = Vec::new();
        let mut at = start;
        while total > limit && at < messages.len() {
            // System and developer messages are never dropped, whatever their position.
            if is_instruction(&messages[at]) {
                at += 1;
                continue;
            }
            let end = group_end(messages, at);
            if left < end - at + KEPT {
                break;
            }
            left -= end - at;
            total = total.saturating_sub(sum(&sizes[at..end]));
            dropped.extend(at..end);
            at = end;
        }
        let room = budget.budget().saturating_sub(total);
        let room = if matches!(budget, ContextBudget::Tokens { .. }) { room.saturating_mul(3) } else { room };
        (!dropped.is_empty()).then(|| Cut { dropped, at: start, room: room.clamp(MAX_QUOTED, MAX_SUMMARY) })
    }

    /// Replaces the dropped messages with a summary. Returns how many were dropped.
    ///
    /// A summary repeats text from tools and users, so the guard wraps all of it.
    pub(super) fn apply(
        &mut self,
        cut: &Cut,
        messages: &mut Vec<Message>,
        summary: Option<&str>,
        guard: Option<&Guard>,
    ) -> usize {
        let summary = match summary {
            Some(summary) => summary.to_owned(),
            None => summarize(cut.dropped.iter().map(|index| &messages[*index])),
        };
        let summary = truncate(&summary, cut.room);
        let summary = guard.map_or_else(|| summary.to_owned(), |guard| guard.wrap_text(summary));
        remove(messages, &cut.dropped);
        remove(&mut self.sizes, &cut.dropped);
        let message = Message::text(Role::User, format!("[Context summary: {summary}]"));
        self.sizes.insert(cut.at, self.budget.as_ref().map_or(0, |budget| budget.size(&message)));
        messages.insert(cut.at, message);
        cut.dropped.len()
    }
}

impl Cut {
    /// Returns the indexes of the messages that no longer fit, in ascending order.
    pub(super) fn dropped(&self) -> &[usize] {
        &self.dropped
    }

    /// Returns the index of the summary.
    pub(super) fn summary_index(&self) -> usize {
        self.at
    }

    /// Returns the messages that no longer fit.
    pub(super) fn messages(&self, of: &[Message]) -> Vec<Message> {
        self.dropped.iter().map(|index| of[*index].clone()).collect()
    }
}

/// Removes the items at these indexes, which must be in ascending order.
fn remove<T>(items: &mut Vec<T>, places: &[usize]) {
    let mut places = places.iter().peekable();
    let mut index = 0;
    items.retain(|_| {
        let goes = places.next_if(|place| **place == index).is_some();
        index += 1;
        !goes
    });
}

/// Returns the total size without overflow, because a host-provided tokenizer may return any number.
fn sum(sizes: &[usize]) -> usize {
    sizes.iter().fold(0, |sum, size| sum.saturating_add(*size))
}

const fn is_instruction(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

fn tool_calls(message: &Message) -> Option<&Vec<Json>> {
    let calls = message.metadata.as_ref()?.get("tool_calls")?.as_array()?;
    (message.role == Role::Assistant).then_some(calls)
}

/// Returns the end of the group of messages that must be dropped together with this one.
fn group_end(messages: &[Message], start: usize) -> usize {
    if tool_calls(&messages[start]).is_none() {
        return start + 1;
    }
    start + 1 + messages[start + 1..].iter().take_while(|message| message.role == Role::Tool).count()
}

/// Returns the size of a message in characters, as the specification defines it. The provider's own blocks do not
/// count.
fn chars(message: &Message) -> usize {
    let parts = message.content.iter().map(|part| match part {
        ContentPart::Text(text) => text.value.chars().count(),
        _ => PART_CHARS,
    });
    let calls = message.metadata.as_ref().and_then(|metadata| metadata.get("tool_calls"));
    let calls = calls.map_or(0, |calls| calls.to_string().chars().count());
    message.role.as_str().len() + MESSAGE_CHARS + parts.sum::<usize>() + calls
}

/// Summarizes messages. Tool results are omitted, but the calls are listed.
fn summarize<'m>(messages: impl Iterator<Item = &'m Message>) -> String {
    let mut lines = Vec::new();
    for message in messages {
        let text = message.to_text();
        match message.role {
            Role::User => lines.push(format!("User asked: {}", truncate(&text, MAX_QUOTED))),
            Role::Assistant => {
                if !text.is_empty() {
                    lines.push(format!("Assistant: {}", truncate(&text, MAX_QUOTED)));
                }
                if let Some(calls) = tool_calls(message) {
                    let names: Vec<_> = calls.iter().filter_map(name).collect();
                    lines.push(format!("  Called tools: {}", names.join(", ")));
                }
            }
            _ => {}
        }
    }
    lines.join("\n")
}

fn name(call: &Json) -> Option<&str> {
    call.get("function").unwrap_or(call).get("name")?.as_str()
}

/// Returns at most `max` characters of a text.
pub(super) fn truncate(text: &str, max: usize) -> &str {
    text.char_indices().nth(max).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn calling(text: &str, names: &[&str]) -> Message {
        let mut message = Message::text(Role::Assistant, text);
        let calls: Json = names.iter().map(|name| json!({"id": name, "function": {"name": name}})).collect();
        message.metadata = json!({"tool_calls": calls}).as_object().cloned();
        message
    }

    fn trimmed(budget: usize, mut messages: Vec<Message>) -> Vec<String> {
        let mut context = Context::new(Some(ContextBudget::Chars(budget)));
        if let Some(cut) = context.cut(&messages) {
            context.apply(&cut, &mut messages, None, None);
            assert_eq!(context.sizes, messages.iter().map(chars).collect::<Vec<_>>());
        }
        messages.iter().map(|message| format!("{}: {}", message.role.as_str(), message.to_text())).collect()
    }

    fn text(role: Role, length: usize) -> Message {
        Message::text(role, "x".repeat(length))
    }

    #[test]
    fn what_a_message_counts() {
        assert_eq!(chars(&Message::text(Role::User, "é€")), 4 + 4 + 2);
        let mut message = calling("", &["a"]);
        assert_eq!(chars(&message), 9 + 4 + r#"[{"id":"a","function":{"name":"a"}}]"#.len());
        message.content.push(serde_json::from_value(json!({"kind": "image", "value": "x"})).expect("it is a part"));
        assert_eq!(chars(&message), 9 + 4 + 200 + r#"[{"id":"a","function":{"name":"a"}}]"#.len());
    }

    #[test]
    fn what_fits_stays() {
        let messages = vec![text(Role::System, 90), text(Role::User, 92)];
        assert_eq!(trimmed(200, messages.clone()).len(), 2);
        assert_eq!(trimmed(199, messages).len(), 2, "two messages always stay");
    }

    #[test]
    fn the_oldest_go_and_a_summary_comes() {
        let messages = vec![
            text(Role::System, 10),
            Message::text(Role::User, "one"),
            Message::text(Role::Assistant, "two"),
            text(Role::User, 500),
            Message::text(Role::Assistant, "four"),
            Message::text(Role::User, "five"),
        ];
        let after = trimmed(100, messages);
        assert_eq!(after.len(), 4);
        assert!(after[1].starts_with("user: [Context summary: User asked: one\nAssistant: two\nUser asked: xxx"));
        assert!(after[1].chars().count() < 250);
        assert_eq!(after[2..], ["assistant: four", "user: five"]);
    }

    #[test]
    fn a_result_goes_with_its_call() {
        let messages = vec![
            text(Role::User, 300),
            calling("", &["a", "b"]),
            text(Role::Tool, 300),
            text(Role::Tool, 10),
            Message::text(Role::Developer, "stays"),
            Message::text(Role::Assistant, "so"),
            Message::text(Role::User, "now"),
        ];
        let after = trimmed(300, messages.clone());
        assert_eq!(
            after.iter().map(String::as_str).collect::<Vec<_>>()[1..],
            ["developer: stays", "assistant: so", "user: now"]
        );
        assert!(after[0].ends_with("\n  Called tools: a, b]"));
        // The group is not dropped if too few messages would remain.
        let last = trimmed(100, messages[..4].to_vec());
        assert_eq!(last.len(), 4);
        assert!(last[0].starts_with("user: [Context summary: User asked: x"));
    }

    #[test]
    fn tokens_are_counted_by_the_host() {
        let count: CountTokens = Arc::new(|_| 10);
        let budget = ContextBudget::Tokens { budget: 30, count };
        let messages = vec![text(Role::User, 1); 5];
        let cut = Context::new(Some(budget)).cut(&messages).expect("it is too much");
        assert_eq!(cut.dropped, [0, 1, 2], "29 tokens are left for two messages");
    }
}
