//! OpenAI's Responses API.

use serde::Deserialize;
use serde_json::Value as Json;

use super::accumulator::ResponseAccumulator;
use super::content::{RawText, Text, raw_text, text};
use super::tool_calls::ToolCallFragment;
use super::{failure, usage};
use crate::error::Result;
use crate::json::JsonMap;
use crate::wire::response::{Answer, Delta, FinishReason, Output, Response, ToolCall};
use crate::wire::sse::Event;

const EXPECTED: &str = "a response with `output`";

/// A complete response. In a stream, the first and the last event contain one.
#[derive(Deserialize)]
struct Whole<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    status: Option<Text<'a>>,
    #[serde(borrow)]
    incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(borrow)]
    output: Option<Vec<Item<'a>>>,
    #[serde(borrow)]
    output_text: Option<Text<'a>>,
    usage: Option<JsonMap>,
    error: Option<Json>,
}

#[derive(Deserialize)]
struct IncompleteDetails<'a> {
    #[serde(borrow)]
    reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    call_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<RawText<'a>>,
    #[serde(borrow)]
    content: Option<Vec<Part<'a>>>,
    #[serde(borrow)]
    summary: Option<Vec<Part<'a>>>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
}

impl Item<'_> {
    /// Returns the tool call, if the item is one. Falls back to the item's ID if it has no call ID.
    fn call(&self) -> Option<ToolCallFragment<'_>> {
        let id = match text(&self.call_id) {
            "" => text(&self.id),
            id => id,
        };
        let call = ToolCallFragment { number: None, id, name: text(&self.name), arguments: raw_text(&self.arguments) };
        (text(&self.r#type) == "function_call").then_some(call)
    }

    /// Adds the item's content to an answer.
    fn add_to(&self, answer: &mut Answer) {
        if let Some(ToolCallFragment { id, name, arguments, .. }) = self.call() {
            let call = ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() };
            answer.tool_calls.push(call);
        }
        for (index, part) in self.summary.iter().flatten().enumerate() {
            if index > 0 {
                answer.thinking.push_str(BETWEEN_SUMMARIES);
            }
            answer.thinking.push_str(text(&part.text));
        }
        for part in self.content.iter().flatten() {
            match text(&part.r#type) {
                "output_text" => answer.text.push_str(text(&part.text)),
                "reasoning_text" => answer.thinking.push_str(text(&part.text)),
                "refusal" => answer.refusal.get_or_insert_default().push_str(text(&part.refusal)),
                _ => {}
            }
        }
    }
}

const BETWEEN_SUMMARIES: &str = "\n\n";

/// Decodes a complete response.
pub(super) fn decode(body: &[u8]) -> Result<Response> {
    let whole: Whole<'_> = failure::parse(body, EXPECTED)?;
    if let Some(error) = whole.error {
        return Err(failure::reported_error(&error));
    }
    if whole.output.is_none() && whole.output_text.is_none() {
        return Err(failure::unexpected(EXPECTED, body));
    }
    let has_blocks = whole.has_blocks();
    let mut response = whole.into_response();
    if let (true, Output::Answer(answer)) = (has_blocks, &mut response.output) {
        #[derive(Deserialize)]
        struct Blocks {
            output: Json,
        }
        answer.blocks = Some(failure::parse::<Blocks>(body, EXPECTED)?.output);
    }
    Ok(response)
}

impl Whole<'_> {
    /// Returns whether there is anything besides messages, which the provider requires back unchanged.
    fn has_blocks(&self) -> bool {
        self.output.iter().flatten().any(|item| text(&item.r#type) != "message")
    }

    fn into_response(self) -> Response {
        let mut answer = Answer::default();
        self.output.iter().flatten().for_each(|item| item.add_to(&mut answer));
        if answer.text.is_empty() {
            answer.text.push_str(text(&self.output_text));
        }
        let finish_reason = self.finish_reason(!answer.tool_calls.is_empty());
        Response {
            id: self.id.map(|id| id.0.into_owned()),
            model: self.model.map(|model| model.0.into_owned()),
            output: Output::Answer(answer),
            finish_reason,
            usage: self.usage.map(usage::openai),
        }
    }

    fn finish_reason(&self, calls_tools: bool) -> Option<FinishReason> {
        let reason = self.incomplete_details.as_ref().map_or("", |details| text(&details.reason));
        Some(match (text(&self.status), reason) {
            ("", _) => return None,
            ("completed", _) if calls_tools => FinishReason::ToolCalls,
            ("completed", _) => FinishReason::Stop,
            ("incomplete", "max_output_tokens") => FinishReason::Length,
            ("incomplete", "content_filter") => FinishReason::ContentFilter,
            (status, "") => FinishReason::Other(status.to_owned()),
            (_, reason) => FinishReason::Other(reason.to_owned()),
        })
    }
}

/// The protocol-specific state of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The complete response from the last event, if it has one.
    last: Option<Box<Response>>,
}

#[derive(Deserialize)]
struct StreamEvent<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    output_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    delta: Option<RawText<'a>>,
    #[serde(borrow)]
    arguments: Option<RawText<'a>>,
    #[serde(borrow)]
    item: Option<Item<'a>>,
    #[serde(borrow)]
    response: Option<Whole<'a>>,
    error: Option<Json>,
}

impl Stream {
    /// Reads an event of a stream.
    pub(super) fn read_event(
        &mut self,
        accumulator: &mut ResponseAccumulator,
        event: Event<'_>,
        deltas: &mut Vec<Delta>,
    ) -> Result<()> {
        // Not part of this protocol, but some proxies end every stream with it.
        if event.data == "[DONE]" {
            return Ok(());
        }
        let read: StreamEvent<'_> = serde_json::from_str(event.data).map_err(|error| failure::unreadable(&error))?;
        let kind = match text(&read.r#type) {
            "" => event.name.unwrap_or_default(),
            kind => kind,
        };
        let number = read.output_index;
        match kind {
            "response.output_text.delta" => accumulator.add_text(raw_text(&read.delta), deltas),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                accumulator.add_thinking(raw_text(&read.delta), deltas);
            }
            "response.reasoning_summary_part.added" if read.summary_index > Some(0) => {
                accumulator.add_thinking(BETWEEN_SUMMARIES, deltas);
            }
            "response.refusal.delta" => return Err(failure::refused(raw_text(&read.delta))),
            "response.function_call_arguments.delta" => {
                let arguments = raw_text(&read.delta);
                accumulator.calls.add(ToolCallFragment { number, arguments, ..ToolCallFragment::default() }, deltas)?;
            }
            "response.function_call_arguments.done" if !accumulator.calls.has_arguments(number) => {
                let arguments = raw_text(&read.arguments);
                accumulator.calls.add(ToolCallFragment { number, arguments, ..ToolCallFragment::default() }, deltas)?;
            }
            "response.output_item.added" | "response.output_item.done" => {
                if let Some(call) = read.item.as_ref().and_then(Item::call) {
                    let arguments = if accumulator.calls.has_arguments(number) { "" } else { call.arguments };
                    accumulator.calls.add(ToolCallFragment { number, arguments, ..call }, deltas)?;
                }
            }
            "error" | "response.error" => return Err(failure::error_in_event(event.data)),
            _ => match (read.error, read.response) {
                (Some(error), _) => return Err(failure::reported_error(&error)),
                (None, Some(response)) => self.read_response(kind, response, accumulator, event.data, deltas)?,
                (None, None) => {}
            },
        }
        Ok(())
    }

    /// Reads an event about the response as a whole.
    fn read_response(
        &mut self,
        kind: &str,
        mut response: Whole<'_>,
        accumulator: &mut ResponseAccumulator,
        data: &str,
        deltas: &mut Vec<Delta>,
    ) -> Result<()> {
        if let Some(error) = &response.error {
            return Err(failure::reported_error(error));
        }
        accumulator.identify(&response.id, &response.model);
        match kind {
            "response.failed" | "response.cancelled" => return Err(failure::error_in_event(data)),
            "response.completed" | "response.incomplete" => {}
            _ => return Ok(()),
        }
        accumulator.is_done = true;
        if let Some(reported) = response.usage.take() {
            accumulator.set_usage(usage::openai(reported), deltas);
        }
        accumulator.finish_reason = response.finish_reason(!accumulator.calls.is_empty());
        // The last event repeats the whole response, including all blocks that must be sent back.
        if response.output.as_ref().is_some_and(|output| !output.is_empty()) {
            let has_blocks = response.has_blocks();
            let mut last = response.into_response();
            if let (true, Output::Answer(answer)) = (has_blocks, &mut last.output) {
                let mut data: Json = serde_json::from_str(data).map_err(|error| failure::unreadable(&error))?;
                answer.blocks = Some(data["response"]["output"].take());
            }
            self.last = Some(Box::new(last));
        }
        Ok(())
    }

    /// Returns the complete response.
    pub(super) fn finish(self, accumulator: ResponseAccumulator) -> Result<Response> {
        let response = accumulator.finish(None)?;
        Ok(match self.last {
            Some(last) => Response { output: last.output, finish_reason: last.finish_reason, ..response },
            None => response,
        })
    }
}
