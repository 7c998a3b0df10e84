//! OpenAI's Chat Completions.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value as Json;

use super::body::Entries;
use super::functions::{Function, Parameters, listed};
use super::media::{Media, Source};
use super::parts::{MessageParts, Part, Parts, or_placeholder, split_messages};
use super::schema::{ResponseSchema, ResponseSchemaKind};
use super::tool_calls::{answered, call_list};
use super::{Ask, cannot_carry};
use crate::chat::message::Role;
use crate::error::Result;
use crate::spec::schema::PropertyKind;
use crate::wire::compatible::JsonSchema;

/// The name of the schema for structured output.
pub(super) const OUTPUT_NAME: &str = "structured_output";

/// The body of a request.
pub(super) struct Request<'a> {
    ask: &'a Ask<'a>,
    messages: Vec<Message<'a>>,
}

impl<'a> Request<'a> {
    pub(super) fn new(ask: &'a Ask<'a>) -> Result<Self> {
        let keeps_empty = ask.target.provider.quirks.empty_messages;
        let messages = split_messages(ask.messages)?;
        let messages = messages.into_iter().filter(|parts| keeps_empty || !is_empty(parts));
        let messages = messages.map(|parts| Message::new(parts, ask)).collect::<Result<_>>()?;
        Ok(Self { ask, messages })
    }

    /// Returns the value of `messages`, which directly follows the model.
    pub(super) fn messages(&self) -> &impl Serialize {
        &self.messages
    }
}

/// Returns whether a message has neither content nor a call, and is not the result of one.
pub(super) fn is_empty(parts: &MessageParts<'_>) -> bool {
    parts.parts.is_empty() && call_list(parts.message).is_none() && answered(parts.message).is_none()
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ask = self.ask;
        let quirks = ask.target.provider.quirks;
        let mut body = Entries::new(serializer.serialize_map(None)?);
        body.put("model", ask.target.model)?;
        body.put("messages", &self.messages)?;
        body.put_options(ask)?;
        body.put_some("tools", listed(ask.functions, Tool::new))?;
        // The provider rejects this option if there are no tools.
        let several = ask.options.allow_multiple_tool_calls.filter(|_| !ask.functions.is_empty());
        body.put_some("parallel_tool_calls", several)?;
        body.put_some("response_format", (!ask.outputs.is_empty()).then(|| Format::new(ask)))?;
        if ask.stream {
            body.put("stream", &true)?;
            body.put_some("stream_options", quirks.stream_usage.then_some(StreamOptions { include_usage: true }))?;
        }
        body.end_with(&ask.options.additional_properties)
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// A message. Only metadata that the API defines is sent, and only in its place: the attributes of a role marker can
/// contain text from an input, and the nonce of a marker is internal. Neither may ever override a role or content.
#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audio: Option<AudioId<'a>>,
}

/// Audio that the API has sent before.
#[derive(Serialize)]
struct AudioId<'a> {
    id: &'a str,
}

impl<'a> Message<'a> {
    fn new(parts: MessageParts<'a>, ask: &Ask<'_>) -> Result<Self> {
        let message = parts.message;
        let role = match message.role {
            Role::Developer if !ask.target.provider.quirks.developer => Role::System,
            role => role,
        };
        let tool_calls = call_list(message);
        let content = match parts.parts {
            Parts::Text(text) => Content::Text(text),
            Parts::Many(parts) if parts.is_empty() && tool_calls.is_some() => Content::Nothing,
            Parts::Many(parts) if parts.is_empty() => Content::Text(""),
            Parts::Many(parts) => {
                Content::Blocks(parts.into_iter().map(|part| Block::new(part, role, ask)).collect::<Result<_>>()?)
            }
        };
        let metadata = |key| message.metadata.as_ref().and_then(|metadata| metadata.get(key));
        let name = metadata("name").and_then(Json::as_str);
        let is_own_answer = role == Role::Assistant && ask.target.provider.quirks.answer_fields;
        let refusal = metadata("refusal").and_then(Json::as_str).filter(|_| is_own_answer);
        let audio = metadata("audio").and_then(|audio| audio.get("id")?.as_str()).filter(|_| is_own_answer);
        let audio = audio.map(|id| AudioId { id });
        let tool_call_id = answered(message);
        Ok(Self { role: role.as_str(), content, name, tool_calls, tool_call_id, refusal, audio })
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Nothing,
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: FileData<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
}

/// Audio, in this protocol and in the Responses API.
#[derive(Serialize)]
pub(super) struct InputAudio<'a> {
    data: &'a str,
    format: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum FileData<'a> {
    Url { url: &'a str },
    Data { filename: &'a str, file_data: Cow<'a, str> },
}

impl<'a> Block<'a> {
    fn new(part: Part<'a>, role: Role, ask: &Ask<'_>) -> Result<Self> {
        match part {
            Part::Text(text) => Ok(Self::Text { text }),
            Part::Media(media) => {
                or_placeholder(Self::media(&media, ask), media.kind, role, |text| Self::Text { text })
            }
        }
    }

    fn media(media: &Media<'a>, ask: &Ask<'_>) -> Result<Self> {
        Ok(match media.kind {
            PropertyKind::Audio => Self::InputAudio { input_audio: InputAudio::new(media, ask)? },
            PropertyKind::File => Self::File { file: FileData::new(media)? },
            _ => Self::ImageUrl { image_url: ImageUrl { url: media.uri()?, detail: media.detail } },
        })
    }
}

impl<'a> FileData<'a> {
    fn new(media: &Media<'a>) -> Result<Self> {
        Ok(match media.source {
            Source::Url(url) => Self::Url { url },
            Source::Data { .. } => {
                Self::Data { filename: media.file_name.unwrap_or(DEFAULT_FILE_NAME), file_data: media.uri()? }
            }
        })
    }
}

/// The default file name. The API requires one, but callers do not have to provide it.
pub(super) const DEFAULT_FILE_NAME: &str = "file";

impl<'a> InputAudio<'a> {
    /// Encodes audio data. These APIs do not fetch audio from a URL.
    pub(super) fn new(media: &Media<'a>, ask: &Ask<'_>) -> Result<Self> {
        let Source::Data { data, .. } = media.source else {
            return Err(cannot_carry(&ask.target, "audio by URL"));
        };
        Ok(Self { data, format: audio_format(media.media_type()?) })
    }
}

/// Returns the API's name for an audio type.
fn audio_format(media_type: &str) -> &str {
    match media_type {
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mp3" | "audio/mpeg" => "mp3",
        other => other.strip_prefix("audio/").unwrap_or(other),
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: &'a Parameters<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
}

impl<'a> Tool<'a> {
    fn new(function: &'a Function<'a>) -> Self {
        let Function { name, description, parameters, strict } = function;
        let strict = strict.then_some(true);
        Self { r#type: "function", function: ToolFunction { name, description: *description, parameters, strict } }
    }
}

/// The required format of the response.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema {
        json_schema: NamedSchema<'a>,
    },
    JsonObject {
        #[serde(skip_serializing_if = "Option::is_none")]
        schema: Option<ResponseSchemaKind<'a>>,
    },
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: ResponseSchemaKind<'a>,
}

impl<'a> Format<'a> {
    fn new(ask: &Ask<'a>) -> Self {
        let ResponseSchema { schema, is_strict, .. } = ResponseSchema::new(ask.outputs, super::dialect(&ask.target));
        match ask.target.provider.quirks.json_schema {
            JsonSchema::Own => {
                Self::JsonSchema { json_schema: NamedSchema { name: OUTPUT_NAME, strict: is_strict, schema } }
            }
            JsonSchema::InJsonObject => Self::JsonObject { schema: Some(schema) },
            JsonSchema::Never => Self::JsonObject { schema: None },
        }
    }
}
