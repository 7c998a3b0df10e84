//! The accumulated state of a stream, shared by all protocols.

use serde_json::Value as Json;

use super::content::{Text, text};
use super::tool_calls::ToolCalls;
use crate::error::Result;
use crate::wire::response::{Answer, Delta, FinishReason, Output, Response, Usage};

/// The parts of a response that have arrived so far.
#[derive(Debug)]
pub(super) struct ResponseAccumulator {
    id: Option<String>,
    model: Option<String>,
    pub(super) text: String,
    thinking: String,
    pub(super) calls: ToolCalls,
    pub(super) finish_reason: Option<FinishReason>,
    usage: Option<Usage>,
    /// Whether the response is complete.
    pub(super) is_done: bool,
}

impl ResponseAccumulator {
    /// Creates an empty state.
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

    /// Records the response's ID and model from the first event that has them.
    pub(super) fn identify(&mut self, id: &Option<Text<'_>>, model: &Option<Text<'_>>) {
        for (known, value) in [(&mut self.id, text(id)), (&mut self.model, text(model))] {
            if known.is_none() && !value.is_empty() {
                *known = Some(value.to_owned());
            }
        }
    }

    /// Appends text.
    pub(super) fn add_text(&mut self, more: &str, deltas: &mut Vec<Delta>) {
        if !more.is_empty() {
            self.text.push_str(more);
            deltas.push(Delta::Text(more.to_owned()));
        }
    }

    /// Appends reasoning.
    pub(super) fn add_thinking(&mut self, more: &str, deltas: &mut Vec<Delta>) {
        if !more.is_empty() {
            self.thinking.push_str(more);
            deltas.push(Delta::Thinking(more.to_owned()));
        }
    }

    /// Replaces the usage.
    pub(super) fn set_usage(&mut self, usage: Usage, deltas: &mut Vec<Delta>) {
        deltas.push(Delta::Usage(usage.clone()));
        self.usage = Some(usage);
    }

    /// Returns the complete response.
    pub(super) fn finish(self, blocks: Option<Json>) -> Result<Response> {
        let Self { id, model, text, thinking, calls, finish_reason, usage, .. } = self;
        let answer = Answer { text, thinking, refusal: None, tool_calls: calls.finish()?, blocks };
        Ok(Response { id, model, output: Output::Answer(answer), finish_reason, usage })
    }
}
