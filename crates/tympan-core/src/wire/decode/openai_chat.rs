//! OpenAI's Chat Completions, including the variations of compatible servers.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value as Json;

use super::accumulator::ResponseAccumulator;
use super::content::{Content, RawText, Text, raw_text, text};
use super::tool_calls::ToolCallFragment;
use super::{failure, usage};
use crate::error::Result;
use crate::json::JsonMap;
use crate::wire::response::{Answer, Delta, FinishReason, Output, Response, ToolCall};
use crate::wire::sse::Event;

const EXPECTED: &str = "a chat completion with `choices`";

/// The data of the event that ends a stream.
const DONE: &str = "[DONE]";

/// A complete response or a chunk of a stream. They differ in one name only: `message` or `delta`.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<JsonMap>,
    error: Option<Json>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<Message<'a>>,
    #[serde(borrow)]
    delta: Option<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    /// The reasoning, as DeepSeek, vLLM and others name it.
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    /// The reasoning, as OpenRouter, Groq and others name it. Other servers may send something other than text.
    #[serde(borrow)]
    reasoning: Option<RawText<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<RawText<'a>>,
}

impl Message<'_> {
    /// Returns the model's reasoning.
    fn thinking(&self) -> Cow<'_, str> {
        let named = match text(&self.reasoning_content) {
            "" => raw_text(&self.reasoning),
            thinking => thinking,
        };
        match &self.content {
            Some(content) if !content.thinking.is_empty() => Cow::Owned(content.thinking.clone() + named),
            _ => Cow::Borrowed(named),
        }
    }

    fn text(&self) -> &str {
        self.content.as_ref().map_or("", |content| &content.text)
    }
}

impl<'a> Call<'a> {
    fn fragment(&self) -> ToolCallFragment<'_> {
        let function = self.function.as_ref();
        ToolCallFragment {
            number: self.index,
            id: text(&self.id),
            name: function.map_or("", |function| text(&function.name)),
            arguments: function.map_or("", |function| raw_text(&function.arguments)),
        }
    }
}

/// Decodes a complete response.
pub(super) fn decode(body: &[u8]) -> Result<Response> {
    let completion: Completion<'_> = failure::parse(body, EXPECTED)?;
    if let Some(error) = completion.error {
        return Err(failure::reported_error(&error));
    }
    let choice = completion.choices.and_then(|choices| choices.into_iter().find(is_first));
    let Some((message, reason)) = choice.and_then(|choice| Some((choice.message?, choice.finish_reason))) else {
        return Err(failure::unexpected(EXPECTED, body));
    };
    let tool_calls = message.tool_calls.iter().flatten().map(|call| {
        let ToolCallFragment { id, name, arguments, .. } = call.fragment();
        ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    });
    let answer = Answer {
        text: message.text().to_owned(),
        thinking: message.thinking().into_owned(),
        refusal: Some(text(&message.refusal).to_owned()).filter(|refusal| !refusal.is_empty()),
        tool_calls: tool_calls.collect(),
        blocks: None,
    };
    Ok(Response {
        id: completion.id.map(|id| id.0.into_owned()),
        model: completion.model.map(|model| model.0.into_owned()),
        output: Output::Answer(answer),
        finish_reason: reason.map(|reason| finish_reason(&reason.0)),
        usage: completion.usage.map(usage::openai),
    })
}

/// Returns whether this is the first choice. Any others, which a prompt can request with `n`, are ignored.
fn is_first(choice: &Choice<'_>) -> bool {
    choice.index.unwrap_or(0) == 0
}

fn finish_reason(reason: &str) -> FinishReason {
    match reason {
        "stop" => FinishReason::Stop,
        "length" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// Reads an event of a stream.
pub(super) fn read_event(
    accumulator: &mut ResponseAccumulator,
    event: Event<'_>,
    deltas: &mut Vec<Delta>,
) -> Result<()> {
    if event.data == DONE {
        accumulator.is_done = true;
        return Ok(());
    }
    let chunk: Completion<'_> = serde_json::from_str(event.data).map_err(|error| failure::unreadable(&error))?;
    if let Some(error) = chunk.error {
        return Err(failure::reported_error(&error));
    }
    if event.name == Some("error") {
        return Err(failure::error_in_event(event.data));
    }
    accumulator.identify(&chunk.id, &chunk.model);
    for choice in chunk.choices.iter().flatten().filter(|choice| is_first(choice)) {
        if let Some(delta) = &choice.delta {
            accumulator.add_thinking(&delta.thinking(), deltas);
            accumulator.add_text(delta.text(), deltas);
            for call in delta.tool_calls.iter().flatten() {
                accumulator.calls.add(call.fragment(), deltas)?;
            }
            if !text(&delta.refusal).is_empty() {
                return Err(failure::refused(text(&delta.refusal)));
            }
        }
        if let Some(reason) = &choice.finish_reason {
            accumulator.finish_reason = Some(finish_reason(&reason.0));
        }
    }
    if let Some(reported) = chunk.usage {
        accumulator.set_usage(usage::openai(reported), deltas);
    }
    Ok(())
}
