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

use super::model_selection::ModelSelection;
use super::{EncodeOptions, encoded_schema};
use crate::chat::message::{ContentPart, Message, Role};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::prompt::Prompt;
use crate::spec::json_schema;
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
        let value = encoded_schema(outputs, &[]).map_or_else(|| object(outputs), |schema| Example::of(&schema));
        return Ok(Answer { text: value.to_string(), ..Answer::default() });
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

/// The maximum depth of an example. Schemas can be recursive.
const MAX_EXAMPLE_DEPTH: usize = 12;

/// The depth from which an example contains only what is required. That ends recursion.
const MAX_OPTIONAL_DEPTH: usize = 4;

/// The maximum number of values of an example. References can multiply them.
const MAX_EXAMPLE_VALUES: usize = 1_000;

/// Builds a value that matches a JSON Schema, as far as that is easy.
struct Example<'s> {
    root: &'s Json,
    /// The number of values left.
    left: usize,
}

impl<'s> Example<'s> {
    fn of(schema: &'s Json) -> Json {
        Self { root: schema, left: MAX_EXAMPLE_VALUES }.value("", schema, 0)
    }

    fn value(&mut self, name: &str, schema: &'s Json, depth: usize) -> Json {
        self.left = self.left.saturating_sub(1);
        if depth > MAX_EXAMPLE_DEPTH || self.left == 0 {
            return Json::Null;
        }
        let first = |key: &str| schema.get(key).and_then(Json::as_array).and_then(|list| list.first());
        let written = ["default", "const", "example"].iter().find_map(|key| schema.get(*key));
        if let Some(value) = written.or_else(|| first("examples")).or_else(|| first("enum")) {
            return value.clone();
        }
        if let Some(target) = json_schema::reference(schema, self.root) {
            return self.value(name, target, depth + 1);
        }
        let choices = ["anyOf", "oneOf"].iter().find_map(|key| first(key));
        if let (Some(choice), None) = (choices, schema.get("type")) {
            return self.value(name, choice, depth + 1);
        }
        let kind = match schema.get("type") {
            Some(Json::Array(names)) => names.first().and_then(Json::as_str),
            Some(name) => name.as_str(),
            None => None,
        };
        let all = schema.get("allOf").and_then(Json::as_array);
        match kind {
            Some("integer" | "number") => number(schema),
            Some("boolean") => false.into(),
            Some("null") => Json::Null,
            Some("array") => self.list(schema, depth),
            Some("string") => text(name, schema).into(),
            Some("object") => self.map(schema, depth),
            _ if schema.get("properties").is_some() || all.is_some() => self.map(schema, depth),
            _ => name.into(),
        }
    }

    fn list(&mut self, schema: &'s Json, depth: usize) -> Json {
        let first = schema.get("prefixItems").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        let least = schema.get("minItems").and_then(Json::as_u64).and_then(|least| usize::try_from(least).ok());
        let rest = schema.get("items").filter(|items| items.is_object());
        let wanted = usize::from(first.is_empty() && rest.is_some() && depth < MAX_OPTIONAL_DEPTH);
        let count = least.unwrap_or(wanted).max(first.len());
        let declared = (0..count.min(self.left)).map_while(|index| first.get(index).or(rest));
        let declared: Vec<_> = declared.collect();
        declared.into_iter().map(|schema| self.value("", schema, depth + 1)).collect()
    }

    fn map(&mut self, schema: &'s Json, depth: usize) -> Json {
        let mut map = JsonMap::new();
        let list = |key: &str| schema.get(key).and_then(Json::as_array).into_iter().flatten();
        let combined = list("allOf").chain(list("anyOf").take(1)).chain(list("oneOf").take(1));
        for part in combined.collect::<Vec<_>>() {
            match self.value("", part, depth + 1) {
                Json::Object(members) => map.extend(members),
                other if schema.get("properties").is_none() => return other,
                _ => {}
            }
        }
        let required = schema.get("required").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
        for (name, declared) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
            if depth < MAX_OPTIONAL_DEPTH || required.iter().any(|one| one == name) {
                map.insert(name.clone(), self.value(name, declared, depth + 1));
            }
        }
        map.into()
    }
}

fn number(schema: &Json) -> Json {
    if let Some(least) = schema.get("minimum").filter(|least| least.is_number()) {
        return least.clone();
    }
    let above = schema.get("exclusiveMinimum").and_then(Json::as_i64).map(|least| least.saturating_add(1));
    let below = schema.get("exclusiveMaximum").and_then(Json::as_i64).map(|most| most.saturating_sub(1));
    let most = below.or_else(|| schema.get("maximum").and_then(Json::as_i64)).filter(|most| *most < 0);
    above.or(most).unwrap_or(0).into()
}

fn text(name: &str, schema: &Json) -> String {
    let length = |key: &str| schema.get(key).and_then(Json::as_u64).and_then(|length| usize::try_from(length).ok());
    let mut text = name.to_owned();
    let missing = length("minLength").unwrap_or(0).saturating_sub(text.chars().count());
    text.extend(std::iter::repeat_n('x', missing.min(MAX_EXAMPLE_VALUES)));
    match length("maxLength") {
        Some(most) => text.chars().take(most).collect(),
        None => text,
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
