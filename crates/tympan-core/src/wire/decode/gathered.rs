//! What a stream has added up to so far, whatever its protocol.

use serde_json::Value as Json;

use super::content::{Text, text};
use super::tool_calls::ToolCalls;
use crate::error::Result;
use crate::wire::response::{Answer, Delta, FinishReason, Output, Response, Usage};

/// What every protocol's streams have in common.
#[derive(Debug)]
pub(super) struct Gathered {
    id: Option<String>,
    model: Option<String>,
    pub(super) text: String,
    thinking: String,
    pub(super) calls: ToolCalls,
    pub(super) finish_reason: Option<FinishReason>,
    usage: Option<Usage>,
    /// Whether the answer has come to its end.
    pub(super) is_done: bool,
}

impl Gathered {
    /// Nothing yet.
    pub(super) fn new(max_tool_calls: usize) -> Self {
        Self {
            id: None,
            model: None,
            text: String::new(),
            thinking: String::new(),
            calls: ToolCalls::new(max_tool_calls),
            finish_reason: None,
            usage: None,
            is_done: false,
        }
    }

    /// Notes who answers, the first time that it is said.
    pub(super) fn identify(&mut self, id: &Option<Text<'_>>, model: &Option<Text<'_>>) {
        for (known, said) in [(&mut self.id, text(id)), (&mut self.model, text(model))] {
            if known.is_none() && !said.is_empty() {
                *known = Some(said.to_owned());
            }
        }
    }

    /// More text.
    pub(super) fn add_text(&mut self, more: &str, deltas: &mut Vec<Delta>) {
        if !more.is_empty() {
            self.text.push_str(more);
            deltas.push(Delta::Text(more.to_owned()));
        }
    }

    /// More of what the model thinks.
    pub(super) fn add_thinking(&mut self, more: &str, deltas: &mut Vec<Delta>) {
        if !more.is_empty() {
            self.thinking.push_str(more);
            deltas.push(Delta::Thinking(more.to_owned()));
        }
    }

    /// What it has cost so far.
    pub(super) fn set_usage(&mut self, usage: Usage, deltas: &mut Vec<Delta>) {
        deltas.push(Delta::Usage(usage.clone()));
        self.usage = Some(usage);
    }

    /// The answer.
    pub(super) fn finish(self, blocks: Option<Json>) -> Result<Response> {
        let Self { id, model, text, thinking, calls, finish_reason, usage, .. } = self;
        let answer = Answer { text, thinking, refusal: None, tool_calls: calls.finish()?, blocks };
        Ok(Response { id, model, output: Output::Answer(answer), finish_reason, usage })
    }
}
