//! What a person sees who approves a call.

use serde::Serialize;
use serde_json::Value as Json;

use super::Flow;
use super::policy::Reason;
use crate::chat::message::{Message, Role};
use crate::json::JsonMap;
use crate::spec::flow::Effect;
use crate::turn::label::{Label, Source};
use crate::turn::tools::ToolRun;

/// The maximum number of bytes to quote on each side of a value.
const QUOTED: usize = 40;

/// The maximum number of bytes of a hidden value to quote.
const MAX_QUOTED: usize = 2000;

/// The minimum length of a value to search for inside of words. Shorter ones occur everywhere.
const MIN_IN_WORDS: usize = 3;

/// A call that needs approval, with everything that a person needs to decide about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Approval {
    /// The call. Bound arguments are not included, and handles are not resolved.
    #[serde(skip)]
    pub run: ToolRun,
    /// The effect of the tool, if it is declared.
    pub effect: Option<Effect>,
    /// Why the policy asks. Empty if it does not: the tool itself requires approval, or the host asks about every call.
    pub reasons: Vec<Reason>,
    /// Whether the tool itself requires approval.
    pub required_by_tool: bool,
    /// The label of everything that the model had read.
    pub context: Label,
    /// Where the arguments came from.
    pub arguments: Vec<ArgumentOrigin>,
}

impl Approval {
    /// Creates a question about a call of which nothing else is known. [`Turn::approval`](crate::turn::Turn::approval)
    /// knows more.
    pub fn new(run: ToolRun) -> Self {
        let (reasons, context, arguments) = (Vec::new(), Label::default(), Vec::new());
        Self { run, effect: None, reasons, required_by_tool: false, context, arguments }
    }

    /// Returns the reasons in one sentence.
    pub fn reason(&self) -> String {
        let reasons: Vec<_> = self.reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    }
}

/// Where the value of an argument came from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ArgumentOrigin {
    /// The parameter.
    pub parameter: String,
    /// The handle that the model passed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// Where the value occurs in the conversation, or where the content of the handle came from. `None` if the model
    /// wrote it and it occurs nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Whether this origin is trusted.
    pub trusted: bool,
    /// The text around the value, or the content of the handle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quote: Option<Quote>,
}

/// A quoted text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quote {
    /// The text before the value.
    pub before: String,
    /// The value.
    pub value: String,
    /// The text after the value.
    pub after: String,
}

/// Finds out where the arguments of a call came from.
pub(super) fn origins(flow: &Flow, arguments: &JsonMap, messages: &[Message]) -> Vec<ArgumentOrigin> {
    let mut origins = Vec::new();
    for (parameter, value) in arguments {
        leaves(value, &mut |leaf| {
            if origins.len() < 100 {
                origins.push(origin(flow, parameter, leaf, messages));
            }
        });
    }
    origins
}

/// Visits the texts and numbers in a value.
fn leaves(value: &Json, visit: &mut dyn FnMut(String)) {
    match value {
        Json::String(text) => visit(text.clone()),
        Json::Number(number) => visit(number.to_string()),
        Json::Array(items) => items.iter().for_each(|item| leaves(item, visit)),
        Json::Object(map) => map.values().for_each(|item| leaves(item, visit)),
        Json::Null | Json::Bool(_) => {}
    }
}

fn origin(flow: &Flow, parameter: &str, value: String, messages: &[Message]) -> ArgumentOrigin {
    let parameter = parameter.to_owned();
    if let Some(handle) = flow.handles.get(&value) {
        let text = handle.text();
        let end = text.floor_char_boundary(MAX_QUOTED);
        let quote = Quote { before: String::new(), value: text[..end].to_owned(), after: String::new() };
        let (source, trusted) = (handle.label.sources.first().cloned(), handle.label.trusted);
        return ArgumentOrigin { parameter, handle: Some(value), source, trusted, quote: Some(quote) };
    }
    let mut found: Option<ArgumentOrigin> = None;
    for (message, label) in messages.iter().zip(&flow.labels) {
        // What the model wrote itself says nothing about where it came from.
        if message.role == Role::Assistant {
            continue;
        }
        for (part, label) in message.content.iter().zip(&label.parts) {
            let Some((text, start)) = part.as_text().and_then(|text| Some((text, find(text, &value)?))) else {
                continue;
            };
            let end = start + value.len();
            let mut ranges = label.ranges.iter().filter(|range| range.range.start < end && start < range.range.end);
            let first = ranges.next().map_or(&label.label, |range| &range.label);
            let (trusted, source) = ranges.fold((first.trusted, first.sources.first()), |(trusted, source), range| {
                (trusted && range.label.trusted, source.or(range.label.sources.first()))
            });
            if found.as_ref().is_none_or(|found| found.trusted && !trusted) {
                let quote = Some(quote(text, start, end));
                let (parameter, source) = (parameter.clone(), source.cloned());
                found = Some(ArgumentOrigin { parameter, handle: None, source, trusted, quote });
            }
        }
    }
    found.unwrap_or(ArgumentOrigin {
        parameter,
        handle: None,
        source: None,
        trusted: flow.context.trusted,
        quote: None,
    })
}

/// Finds a value in a text. A short one must be a whole word.
fn find(text: &str, value: &str) -> Option<usize> {
    if value.len() >= MIN_IN_WORDS {
        return text.find(value);
    }
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    let is_word = |start: usize| {
        let (before, after) = (&text[..start], &text[start + value.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    };
    text.match_indices(value).map(|(start, _)| start).find(|start| !value.is_empty() && is_word(*start))
}

fn quote(text: &str, start: usize, end: usize) -> Quote {
    let from = text.floor_char_boundary(start.saturating_sub(QUOTED));
    let to = text.ceil_char_boundary((end + QUOTED).min(text.len()));
    Quote { before: text[from..start].to_owned(), value: text[start..end].to_owned(), after: text[end..to].to_owned() }
}
