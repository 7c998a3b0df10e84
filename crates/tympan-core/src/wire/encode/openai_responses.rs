//! OpenAI's Responses API.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::Ask;
use super::body::Entries;
use super::functions::{Function, Parameters, listed};
use super::media::{Media, Source};
use super::openai_chat::{DEFAULT_FILE_NAME, InputAudio, OUTPUT_NAME, is_empty};
use super::parts::{MessageParts, Part, Parts, or_placeholder, split_messages};
use super::schema::{ResponseSchema, ResponseSchemaKind};
use super::tool_calls::{answered, calls};
use crate::chat::message::Role;
use crate::error::Result;
use crate::spec::schema::PropertyKind;

/// The resolution of images for which the host sets none.
const DEFAULT_DETAIL: &str = "auto";

/// The body of a request.
pub(super) struct Request<'a> {
    ask: &'a Ask<'a>,
    instructions: Option<Cow<'a, str>>,
    input: Vec<Item<'a>>,
}

impl<'a> Request<'a> {
    pub(super) fn new(ask: &'a Ask<'a>) -> Result<Self> {
        let mut messages = split_messages(ask.messages)?.into_iter().peekable();
        let mut instructions = Vec::new();
        // Leading system and developer messages become instructions. Later ones keep their position in the
        // conversation.
        while let Some(MessageParts { parts: Parts::Text(text), .. }) = messages.next_if(is_instruction) {
            instructions.extend(Some(text).filter(|text| !text.is_empty()));
        }
        let instructions = match instructions.as_slice() {
            [] => None,
            [only] => Some(Cow::Borrowed(*only)),
            several => Some(Cow::Owned(several.join("\n\n"))),
        };
        let mut input = Vec::with_capacity(messages.len());
        let keeps_empty = ask.target.provider.quirks.empty_messages;
        for message in messages.filter(|message| keeps_empty || !is_empty(message)) {
            add_items(message, ask, &mut input)?;
        }
        Ok(Self { ask, instructions, input })
    }
}

fn is_instruction(message: &MessageParts<'_>) -> bool {
    matches!(message.message.role, Role::System | Role::Developer) && matches!(message.parts, Parts::Text(_))
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ask = self.ask;
        let mut body = Entries::new(serializer.serialize_map(None)?);
        body.put("model", ask.target.model)?;
        body.put_some("instructions", self.instructions.as_deref())?;
        body.put("input", &self.input)?;
        body.put_options(ask)?;
        body.put_some("tools", listed(ask.functions, Tool::new))?;
        let several = ask.options.allow_multiple_tool_calls.filter(|_| !ask.functions.is_empty());
        body.put_some("parallel_tool_calls", several)?;
        body.put_some("text", (!ask.outputs.is_empty()).then(|| Text::new(ask)))?;
        if ask.stream {
            body.put("stream", &true)?;
        }
        body.end_with(&ask.options.additional_properties)
    }
}

/// An item of the conversation: a message, a tool call or its result.
#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Message { role: &'static str, content: Content<'a> },
    Call { r#type: &'static str, call_id: &'a str, name: &'a str, arguments: &'a str },
    Output { r#type: &'static str, call_id: &'a str, output: Content<'a> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    InputText {
        text: &'a str,
    },
    OutputText {
        text: &'a str,
    },
    InputImage {
        image_url: Cow<'a, str>,
        /// Unlike Chat Completions, this API requires it.
        detail: &'a str,
    },
    InputAudio {
        input_audio: InputAudio<'a>,
    },
    #[serde(rename = "input_file")]
    FileUrl {
        file_url: &'a str,
    },
    InputFile {
        filename: &'a str,
        file_data: Cow<'a, str>,
    },
}

fn add_items<'a>(message: MessageParts<'a>, ask: &Ask<'_>, items: &mut Vec<Item<'a>>) -> Result<()> {
    let MessageParts { message, parts } = message;
    let role = match message.role {
        Role::Developer if !ask.target.provider.quirks.developer => Role::System,
        role => role,
    };
    let is_empty = parts.is_empty();
    let content = content(parts, role, ask)?;
    if let Some(call_id) = answered(message) {
        items.push(Item::Output { r#type: "function_call_output", call_id, output: content });
        return Ok(());
    }
    let mut calls = calls(message).peekable();
    if !is_empty || calls.peek().is_none() {
        items.push(Item::Message { role: role.as_str(), content });
    }
    items.extend(calls.map(|call| Item::Call {
        r#type: "function_call",
        call_id: call.id,
        name: call.name,
        arguments: call.arguments,
    }));
    Ok(())
}

fn content<'a>(parts: Parts<'a>, role: Role, ask: &Ask<'_>) -> Result<Content<'a>> {
    Ok(match parts {
        Parts::Text(text) => Content::Text(text),
        Parts::Many(parts) if parts.is_empty() => Content::Text(""),
        Parts::Many(parts) => {
            Content::Blocks(parts.into_iter().map(|part| block(part, role, ask)).collect::<Result<_>>()?)
        }
    })
}

fn block<'a>(part: Part<'a>, role: Role, ask: &Ask<'_>) -> Result<Block<'a>> {
    match part {
        Part::Text(text) if role == Role::Assistant => Ok(Block::OutputText { text }),
        Part::Text(text) => Ok(Block::InputText { text }),
        Part::Media(media) => {
            or_placeholder(media_block(&media, ask), media.kind, role, |text| Block::InputText { text })
        }
    }
}

fn media_block<'a>(media: &Media<'a>, ask: &Ask<'_>) -> Result<Block<'a>> {
    Ok(match media.kind {
        PropertyKind::Audio => Block::InputAudio { input_audio: InputAudio::new(media, ask)? },
        PropertyKind::File => file(media)?,
        _ => Block::InputImage { image_url: media.uri()?, detail: media.detail.unwrap_or(DEFAULT_DETAIL) },
    })
}

fn file<'a>(media: &Media<'a>) -> Result<Block<'a>> {
    Ok(match media.source {
        Source::Url(file_url) => Block::FileUrl { file_url },
        Source::Data { .. } => {
            Block::InputFile { filename: media.file_name.unwrap_or(DEFAULT_FILE_NAME), file_data: media.uri()? }
        }
    })
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    parameters: &'a Parameters<'a>,
    /// Unlike in Chat Completions, the default is true.
    strict: bool,
}

impl<'a> Tool<'a> {
    fn new(function: &'a Function<'a>) -> Self {
        let Function { name, description, parameters, strict } = function;
        Self { r#type: "function", name, description: *description, parameters, strict: *strict }
    }
}

/// The required format of the response.
#[derive(Serialize)]
struct Text<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    name: &'static str,
    strict: bool,
    schema: ResponseSchemaKind<'a>,
}

impl<'a> Text<'a> {
    fn new(ask: &Ask<'a>) -> Self {
        let ResponseSchema { schema, is_strict, .. } = ResponseSchema::new(ask.outputs, super::dialect(&ask.target));
        Self { format: Format { r#type: "json_schema", name: OUTPUT_NAME, strict: is_strict, schema } }
    }
}
