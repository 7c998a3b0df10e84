//! The `echo` provider: a deterministic stand-in for a model that needs no key and no network.
//!
//! It answers with the last user message, or, if the prompt declares `outputs`, with values that match them. With a
//! script, it can call tools first:
//!
//! ```yaml
//! model:
//!   provider: echo
//!   options:
//!     additionalProperties:
//!       script: ${file:script.yaml}
//! ```
//!
//! The script is a list of rounds, each with a `text`, a `refusal`, an `error` or `tool_calls`:
//!
//! ```yaml
//! - tool_calls:
//!     - name: get_weather
//!       arguments: {city: Paris}
//! - text: It is sunny in Paris.
//! ```

use serde_json::{Value as Json, json};

use super::EncodeOptions;
use super::model_selection::ModelSelection;
use crate::chat::message::{ContentPart, Message, Role};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::prompt::Prompt;
use crate::spec::schema::{Property, PropertyKind};
use crate::text::hash::sha256_hex;
use crate::wire::response::{Answer, Delta, FinishReason, Output, Response, ToolCall, Usage};

/// The name of the provider and of its model.
pub const ECHO: &str = "echo";

/// The number of dimensions of the embeddings.
const DIMENSIONS: usize = 8;

/// A PNG image of one transparent pixel, as base64.
const PICTURE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Answers as a model would, using only the prompt and the messages. The API type is `api_type`, or the prompt's if
/// `None`.
///
/// # Errors
/// Returns an error if `echo` does not support the API type, if the script is invalid, or if the current round of the
/// script is an `error`.
pub fn answer(prompt: &Prompt, messages: &[Message], api_type: Option<&str>) -> Result<Response> {
    let selection = ModelSelection::new(prompt, &EncodeOptions { api_type, ..EncodeOptions::default() });
    let output = match selection.api_type.unwrap_or("chat") {
        "chat" | "responses" => Output::Answer(chat(prompt, messages)?),
        "embedding" => Output::Embeddings(messages.iter().map(|message| vector(&spoken(message))).collect()),
        "image" => Output::Images(vec![PICTURE.to_owned()]),
        other => {
            return Err(Error::new(Kind::UnsupportedApi, other).with_help(
                "echo supports chat, embedding and \
            image",
            ));
        }
    };
    let finish_reason = match &output {
        Output::Answer(answer) if !answer.tool_calls.is_empty() => FinishReason::ToolCalls,
        _ => FinishReason::Stop,
    };
    let usage = usage(messages, &output);
    Ok(Response {
        id: Some(format!("echo-{}", &sha256_hex(transcript(messages))[..12])),
        model: Some(ECHO.to_owned()),
        output,
        finish_reason: Some(finish_reason),
        usage: Some(usage),
    })
}

/// Splits a response into the deltas that a stream would deliver, one word at a time.
pub fn deltas(response: &Response) -> Vec<Delta> {
    let words = response.deltas().into_iter().flat_map(|delta| match delta {
        Delta::Text(text) => text.split_inclusive(char::is_whitespace).map(|word| Delta::Text(word.into())).collect(),
        other => vec![other],
    });
    words.collect()
}

fn chat(prompt: &Prompt, messages: &[Message]) -> Result<Answer> {
    // Each assistant message since the last user message is a round that is already complete.
    let since_user = messages.iter().rev().take_while(|message| message.role != Role::User);
    let round = since_user.filter(|message| message.role == Role::Assistant).count();
    if let Some(script) = script(prompt) {
        return scripted(script, round);
    }
    let outputs = &prompt.spec().outputs;
    if !outputs.is_empty() {
        return Ok(Answer { text: object(outputs).to_string(), ..Answer::default() });
    }
    let last_user = messages.iter().rev().find(|message| message.role == Role::User);
    let text = last_user.or(messages.last()).map(spoken).unwrap_or_default();
    Ok(Answer { text, ..Answer::default() })
}

/// Returns the text of a message, with placeholders for images and other media.
fn spoken(message: &Message) -> String {
    let mut out = String::new();
    for part in message.content.iter() {
        match part {
            ContentPart::Text(text) => {
                let mut at = 0;
                for anchor in &text.anchors {
                    out.push_str(&text.value[at..anchor.range.start]);
                    out.push_str(&format!("[{} {}]", anchor.input.kind.as_str(), anchor.input.name));
                    at = anchor.range.end;
                }
                out.push_str(&text.value[at..]);
            }
            ContentPart::Image(_) => out.push_str("[image]"),
            ContentPart::Audio(_) => out.push_str("[audio]"),
            ContentPart::File(_) => out.push_str("[file]"),
        }
    }
    out
}

fn script(prompt: &Prompt) -> Option<&Json> {
    prompt.spec().model.as_ref()?.options.additional_properties.get("script")
}

fn scripted(script: &Json, round: usize) -> Result<Answer> {
    let wrong = |details: String| {
        Error::new(Kind::InvalidRequest, format_args!("echo script: {details}"))
            .with_help("write a list of rounds, each with `text`, `refusal`, `error` or `tool_calls`")
    };
    let rounds = script.as_array().ok_or_else(|| wrong("expected a list of rounds".to_owned()))?;
    let step = rounds.get(round).ok_or_else(|| wrong(format!("no round {}", round + 1)))?;
    let text = |key: &str| step.get(key).and_then(Json::as_str).map(str::to_owned);
    if let Some(message) = text("error") {
        return Err(Error::new(Kind::Provider, message));
    }
    let calls = step.get("tool_calls").and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default();
    let tool_calls: Option<Vec<_>> =
        calls.iter().enumerate().map(|(index, call)| tool_call(call, round, index)).collect();
    let tool_calls = tool_calls.ok_or_else(|| wrong(format!("round {}: tool call without a name", round + 1)))?;
    let (text, refusal) = (text("text"), text("refusal"));
    if text.is_none() && refusal.is_none() && tool_calls.is_empty() {
        return Err(wrong(format!("round {}: expected `text`, `refusal`, `error` or `tool_calls`", round + 1)));
    }
    Ok(Answer { text: text.unwrap_or_default(), refusal, tool_calls, ..Answer::default() })
}

fn tool_call(call: &Json, round: usize, index: usize) -> Option<ToolCall> {
    let id = call.get("id").and_then(Json::as_str).map(str::to_owned);
    let arguments = match call.get("arguments") {
        None => "{}".to_owned(),
        // A string is used verbatim, so that a script can imitate malformed JSON from a model.
        Some(Json::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    };
    Some(ToolCall {
        id: id.unwrap_or_else(|| format!("call_{}_{}", round + 1, index + 1)),
        name: call.get("name")?.as_str()?.to_owned(),
        arguments,
    })
}

fn object(properties: &[Property]) -> Json {
    let entries = properties.iter().map(|property| (property.name.clone(), value(property)));
    Json::Object(entries.collect::<JsonMap>())
}

/// Returns a value that matches a declaration: the author's default, example or first enum value if there is one.
fn value(property: &Property) -> Json {
    let written = property.default.as_ref().or(property.example.as_ref());
    let written = written.or_else(|| property.enum_values.as_ref()?.first());
    if let Some(value) = written {
        return value.clone();
    }
    match property.kind {
        PropertyKind::Integer => 0.into(),
        PropertyKind::Float => 0.0.into(),
        PropertyKind::Boolean => false.into(),
        PropertyKind::Array => property.items.iter().map(|items| value(items)).collect(),
        PropertyKind::Thread => json!([]),
        PropertyKind::Object => object(&property.properties),
        PropertyKind::String | PropertyKind::Image | PropertyKind::File | PropertyKind::Audio => {
            property.name.clone().into()
        }
    }
}

/// Derives a vector of length one from the hash of a text.
fn vector(text: &str) -> Vec<f64> {
    let digits = sha256_hex(text);
    let parts = digits.as_bytes().chunks(2).take(DIMENSIONS);
    let byte = |part: &[u8]| str::from_utf8(part).ok().and_then(|hex| u8::from_str_radix(hex, 16).ok());
    let numbers: Vec<f64> = parts.map(|part| f64::from(byte(part).unwrap_or_default()) - 127.5).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f64>().sqrt();
    numbers.into_iter().map(|number| number / length).collect()
}

/// Counts words instead of tokens, because `echo` has no tokenizer.
fn usage(messages: &[Message], output: &Output) -> Usage {
    let words = |text: &str| text.split_whitespace().count() as u64;
    let input_tokens = messages.iter().map(|message| words(&spoken(message))).sum();
    let output_tokens = match output {
        Output::Answer(answer) => {
            words(&answer.text) + answer.tool_calls.iter().map(|call| words(&call.arguments)).sum::<u64>()
        }
        Output::Embeddings(_) | Output::Images(_) => 0,
    };
    let total_tokens = input_tokens + output_tokens;
    let reported = json!({"input_tokens": input_tokens, "output_tokens": output_tokens, "total_tokens": total_tokens});
    let reported = reported.as_object().cloned().unwrap_or_default();
    Usage { input_tokens, output_tokens, total_tokens, reported, ..Usage::default() }
}

fn transcript(messages: &[Message]) -> String {
    let lines = messages.iter().map(|message| format!("{}:{}", message.role.as_str(), spoken(message)));
    lines.collect::<Vec<_>>().join("\n")
}
