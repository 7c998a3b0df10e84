//! Anthropic's Messages API.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::accumulator::ResponseAccumulator;
use super::content::{RawText, Text, text};
use super::tool_calls::ToolCallFragment;
use super::{failure, usage};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::wire::response::{Answer, Delta, FinishReason, Output, Response, ToolCall};
use crate::wire::sse::Event;

const EXPECTED: &str = "a message with `content`";

/// The maximum number of content blocks in one response.
const MAX_BLOCKS: usize = 1024;

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    usage: Option<JsonMap>,
    error: Option<Json>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<RawText<'a>>,
}

/// Decodes a complete response.
pub(super) fn decode(body: &[u8]) -> Result<Response> {
    let message: Message<'_> = failure::parse(body, EXPECTED)?;
    if let Some(error) = message.error {
        return Err(failure::reported_error(&error));
    }
    let Some(content) = message.content else { return Err(failure::unexpected(EXPECTED, body)) };
    let mut answer = Answer::default();
    let mut has_blocks = false;
    for block in &content {
        match text(&block.r#type) {
            "text" => answer.text.push_str(text(&block.text)),
            kind => {
                has_blocks = true;
                answer.thinking.push_str(text(&block.thinking));
                if kind == "tool_use" {
                    let arguments = block.input.as_ref().map_or("{}", |input| &input.0).to_owned();
                    let (id, name) = (text(&block.id).to_owned(), text(&block.name).to_owned());
                    answer.tool_calls.push(ToolCall { id, name, arguments });
                }
            }
        }
    }
    if has_blocks {
        #[derive(Deserialize)]
        struct Blocks {
            content: Json,
        }
        answer.blocks = Some(failure::parse::<Blocks>(body, EXPECTED)?.content);
    }
    Ok(Response {
        id: message.id.map(|id| id.0.into_owned()),
        model: message.model.map(|model| model.0.into_owned()),
        output: Output::Answer(answer),
        finish_reason: message.stop_reason.map(|reason| finish_reason(&reason.0)),
        usage: message.usage.map(usage::anthropic),
    })
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "tool_use" => FinishReason::ToolCalls,
        "refusal" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// The protocol-specific state of a stream.
#[derive(Debug, Default)]
pub(super) struct Stream {
    blocks: Vec<StreamedBlock>,
    /// The usage so far. Later events override earlier ones.
    reported: JsonMap,
}

/// A content block, as much of it as has arrived.
#[derive(Debug)]
struct StreamedBlock {
    index: u64,
    block: JsonMap,
    /// The JSON text of a tool's input.
    input: String,
}

#[derive(Deserialize)]
struct StreamEvent<'a> {
    #[serde(borrow)]
    r#type: Option<Text<'a>>,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<Start<'a>>,
    content_block: Option<JsonMap>,
    #[serde(borrow)]
    delta: Option<StreamDelta<'a>>,
    usage: Option<JsonMap>,
    error: Option<Json>,
}

#[derive(Deserialize)]
struct Start<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    usage: Option<JsonMap>,
}

#[derive(Deserialize)]
struct StreamDelta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
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
        if let Some(error) = &read.error {
            return Err(failure::reported_error(error));
        }
        let kind = match text(&read.r#type) {
            "" => event.name.unwrap_or_default(),
            kind => kind,
        };
        match kind {
            "message_start" => {
                if let Some(start) = read.message {
                    accumulator.identify(&start.id, &start.model);
                    self.add_usage(start.usage, accumulator, deltas);
                }
            }
            "content_block_start" => {
                let block = read.content_block.unwrap_or_default();
                self.begin(read.index.unwrap_or(0), block, accumulator, deltas)?;
            }
            "content_block_delta" => {
                if let Some(delta) = &read.delta {
                    self.add(read.index.unwrap_or(0), delta, accumulator, deltas)?;
                }
            }
            "message_delta" => {
                if let Some(reason) = read.delta.and_then(|delta| delta.stop_reason) {
                    accumulator.finish_reason = Some(finish_reason(&reason.0));
                }
                self.add_usage(read.usage, accumulator, deltas);
            }
            "message_stop" => accumulator.is_done = true,
            "error" => return Err(failure::error_in_event(event.data)),
            // The provider may add new event types at any time.
            _ => {}
        }
        Ok(())
    }

    fn add_usage(&mut self, reported: Option<JsonMap>, accumulator: &mut ResponseAccumulator, deltas: &mut Vec<Delta>) {
        if let Some(reported) = reported {
            self.reported.extend(reported.into_iter().filter(|(_, value)| !value.is_null()));
            accumulator.set_usage(usage::anthropic(self.reported.clone()), deltas);
        }
    }

    fn begin(
        &mut self,
        index: u64,
        block: JsonMap,
        accumulator: &mut ResponseAccumulator,
        deltas: &mut Vec<Delta>,
    ) -> Result<()> {
        if self.blocks.iter().any(|known| known.index == index) {
            return Err(Error::new(Kind::StreamParse, "a content block starts twice"));
        }
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(Error::new(Kind::ResponseTooLarge, format_args!("more than {MAX_BLOCKS} content blocks")));
        }
        let part = |name: &str| block.get(name).and_then(Json::as_str).unwrap_or_default();
        match part("type") {
            "text" => accumulator.add_text(part("text"), deltas),
            "thinking" => accumulator.add_thinking(part("thinking"), deltas),
            "tool_use" => {
                let input = block.get("input").filter(|input| input.as_object().is_some_and(|input| !input.is_empty()));
                let arguments = input.map(Json::to_string).unwrap_or_default();
                let fragment =
                    ToolCallFragment { number: Some(index), id: part("id"), name: part("name"), arguments: &arguments };
                accumulator.calls.add(fragment, deltas)?;
            }
            _ => {}
        }
        self.blocks.push(StreamedBlock { index, block, input: String::new() });
        Ok(())
    }

    fn add(
        &mut self,
        index: u64,
        delta: &StreamDelta<'_>,
        accumulator: &mut ResponseAccumulator,
        deltas: &mut Vec<Delta>,
    ) -> Result<()> {
        let Some(streamed) = self.blocks.iter_mut().rfind(|known| known.index == index) else {
            return Err(Error::new(Kind::StreamParse, "received a delta for a content block that has not started"));
        };
        for (name, more) in [("text", &delta.text), ("thinking", &delta.thinking), ("signature", &delta.signature)] {
            append(&mut streamed.block, name, text(more));
        }
        accumulator.add_text(text(&delta.text), deltas);
        accumulator.add_thinking(text(&delta.thinking), deltas);
        let arguments = text(&delta.partial_json);
        streamed.input.push_str(arguments);
        if streamed.kind() == Some("tool_use") && !arguments.is_empty() {
            accumulator
                .calls
                .add(ToolCallFragment { number: Some(index), arguments, ..ToolCallFragment::default() }, deltas)?;
        }
        Ok(())
    }

    /// Returns the complete response.
    pub(super) fn finish(mut self, accumulator: ResponseAccumulator) -> Result<Response> {
        self.blocks.sort_by_key(|streamed| streamed.index);
        let has_blocks = self.blocks.iter().any(|streamed| streamed.kind() != Some("text"));
        let blocks = self.blocks.into_iter().map(StreamedBlock::finish);
        let blocks = has_blocks.then(|| blocks.collect());
        let mut response = accumulator.finish(blocks)?;
        if let Output::Answer(answer) = &mut response.output {
            // A call of a tool without parameters has no input fragments.
            let empty = answer.tool_calls.iter_mut().filter(|call| call.arguments.is_empty());
            empty.for_each(|call| call.arguments.push_str("{}"));
        }
        Ok(response)
    }
}

impl StreamedBlock {
    fn kind(&self) -> Option<&str> {
        self.block.get("type")?.as_str()
    }

    /// Returns the block to send back to the provider, which accepts only JSON as a tool's input.
    fn finish(mut self) -> Json {
        if !self.input.is_empty() {
            let input = serde_json::from_str(&self.input).unwrap_or_else(|_| json!({}));
            self.block.insert("input".to_owned(), input);
        }
        Json::Object(self.block)
    }
}

/// Appends text to a field of a block.
fn append(block: &mut JsonMap, name: &str, more: &str) {
    match block.get_mut(name) {
        _ if more.is_empty() => {}
        Some(Json::String(text)) => text.push_str(more),
        _ => {
            block.insert(name.to_owned(), Json::from(more));
        }
    }
}
