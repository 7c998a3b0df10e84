//! Anthropic's Messages API.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::body::Entries;
use super::cache::{Breakpoint, CacheControl};
use super::functions::{Function, Parameters};
use super::media::{Media, Source};
use super::parts::{MessageParts, Part, Parts, or_placeholder, split_messages};
use super::schema::{ResponseSchema, ResponseSchemaKind};
use super::tool_calls::{answered, calls};
use super::{Ask, cannot_carry};
use crate::chat::message::Role;
use crate::error::{Error, Kind, Result};
use crate::spec::CacheMode;
use crate::spec::schema::PropertyKind;
use crate::spec::strict_schema::Dialect;

/// The default token limit of a response. The API requires one.
const DEFAULT_MAX_TOKENS: i64 = 4096;

/// The body of a request.
pub(super) struct Request<'a> {
    ask: &'a Ask<'a>,
    system: Vec<Block<'a>>,
    messages: Vec<Message<'a>>,
    /// Whether the stable prefix consists of the tools alone.
    caches_tools: bool,
}

impl<'a> Request<'a> {
    pub(super) fn new(ask: &'a Ask<'a>) -> Result<Self> {
        let (mut system, mut messages) = (Vec::new(), Vec::<Message<'a>>::with_capacity(ask.messages.len()));
        let split = split_messages(ask.messages)?;
        let caches = ask.options.cache == Some(CacheMode::Auto);
        let breakpoint = Breakpoint::find(&split).filter(|_| caches);
        for (index, MessageParts { message, parts }) in split.into_iter().enumerate() {
            let cut = breakpoint.filter(|breakpoint| breakpoint.message == index).map(|breakpoint| breakpoint.bytes);
            if matches!(message.role, Role::System | Role::Developer) {
                add_system(parts, cut, ask, &mut system)?;
                continue;
            }
            let blocks = match content_blocks(message) {
                Some(blocks) => Content::Json(blocks.iter().filter(|block| !is_blank_text(block)).collect()),
                None => Content::Blocks(blocks(parts, message.role, cut, ask)?),
            };
            add_message(message, blocks, &mut messages);
        }
        Ok(Self { ask, system, messages, caches_tools: caches && breakpoint.is_none() })
    }
}

/// Adds system text. It precedes the conversation, whatever its original position: the API has no other place for it.
fn add_system<'a>(parts: Parts<'a>, cut: Option<usize>, ask: &Ask<'_>, system: &mut Vec<Block<'a>>) -> Result<()> {
    if let Some(media) = parts.media().next() {
        return Err(cannot_carry(&ask.target, &format!("{} in a system message", media.kind.as_str())));
    }
    for text in parts.texts() {
        push_text(text, cut, system);
    }
    Ok(())
}

/// Adds a message, unless it is empty: the API refuses empty messages. Consecutive tool results are merged into one user message, because the API
/// requires the results of all calls together.
fn add_message<'a>(message: &'a crate::chat::message::Message, content: Content<'a>, messages: &mut Vec<Message<'a>>) {
    if let Some(tool_use_id) = answered(message) {
        let is_error =
            message.metadata.as_ref().and_then(|metadata| metadata.get("is_error")) == Some(&Json::Bool(true));
        let result = Block::ToolResult { tool_use_id, content, is_error };
        if let Some(Message { content: Content::Blocks(blocks), is_results: true, .. }) = messages.last_mut() {
            blocks.push(result);
        } else {
            messages.push(Message { role: "user", content: Content::Blocks(vec![result]), is_results: true });
        }
        return;
    }
    let role = if message.role == Role::Assistant { "assistant" } else { "user" };
    let content = match content {
        Content::Json(blocks) => Content::Json(blocks),
        Content::Blocks(mut blocks) => {
            blocks.extend(calls(message).map(|call| {
                let input = arguments(call.arguments);
                Block::ToolUse { id: call.id, name: call.name, input }
            }));
            Content::Blocks(blocks)
        }
    };
    if !content.is_empty() {
        messages.push(Message { role, content, is_results: false });
    }
}

/// Parses the arguments of a call into the map that the API requires. Text that is not a map is wrapped in one.
fn arguments(text: &str) -> Json {
    let parsed = crate::wire::arguments::parse(text).map(|(map, _)| Json::Object(map));
    parsed.unwrap_or_else(|_| json!({ "arguments": text }))
}

/// Returns the blocks that the model itself sent, such as signed reasoning, which the API requires back unchanged. They
/// are always a list, which the attributes of a role marker cannot contain.
fn content_blocks(message: &crate::chat::message::Message) -> Option<&Vec<Json>> {
    let blocks = message.metadata.as_ref()?.get("content_blocks")?;
    blocks.as_array().filter(|_| message.role == Role::Assistant)
}

/// Returns whether a text has nothing but white space. The API refuses such a block.
fn is_blank(text: &str) -> bool {
    text.trim_start().is_empty()
}

fn is_blank_text(block: &Json) -> bool {
    let text = block.get("text").and_then(Json::as_str);
    block.get("type").and_then(Json::as_str) == Some("text") && text.is_some_and(is_blank)
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ask = self.ask;
        let mut body = Entries::new(serializer.serialize_map(None)?);
        body.put("model", ask.target.model)?;
        if !self.system.is_empty() {
            body.put("system", &System(&self.system))?;
        }
        body.put("messages", &self.messages)?;
        if ask.options.max_output_tokens.is_none() {
            body.put("max_tokens", &DEFAULT_MAX_TOKENS)?;
        }
        body.put_options(ask)?;
        if let Some((last, others)) = ask.functions.split_last() {
            let mut tools: Vec<_> = others.iter().map(|function| Tool::new(function, None)).collect();
            tools.push(Tool::new(last, self.caches_tools.then_some(CacheControl::EPHEMERAL)));
            body.put("tools", &tools)?;
            if ask.options.allow_multiple_tool_calls == Some(false) {
                body.put("tool_choice", &ToolChoice { r#type: "auto", disable_parallel_tool_use: true })?;
            }
        }
        body.put_some("output_config", OutputConfig::new(ask))?;
        if ask.stream {
            body.put("stream", &true)?;
        }
        body.end_with(&ask.options.additional_properties)
    }
}

/// The system prompt: a single text, unless part of it is to be cached.
struct System<'a>(&'a [Block<'a>]);

impl Serialize for System<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut texts = Vec::with_capacity(self.0.len());
        for block in self.0 {
            match block {
                Block::Text { text, cache_control: None } => texts.push(*text),
                _ => return self.0.serialize(serializer),
            }
        }
        match texts.as_slice() {
            [only] => serializer.serialize_str(only),
            several => serializer.serialize_str(&several.join("\n\n")),
        }
    }
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip)]
    is_results: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Json(Vec<&'a Json>),
    Blocks(Vec<Block<'a>>),
}

impl Content<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Json(blocks) => blocks.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: BlockSource<'a>,
    },
    Document {
        source: BlockSource<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Json,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Content::is_empty")]
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockSource<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
    Text { media_type: &'static str, data: Cow<'a, str> },
}

fn blocks<'a>(parts: Parts<'a>, role: Role, cut: Option<usize>, ask: &Ask<'_>) -> Result<Vec<Block<'a>>> {
    let mut blocks = Vec::new();
    match parts {
        Parts::Text(text) => push_text(text, cut, &mut blocks),
        Parts::Many(parts) => {
            blocks.reserve(parts.len());
            for (index, part) in parts.into_iter().enumerate() {
                match part {
                    Part::Text(text) => push_text(text, cut.filter(|_| index == 0), &mut blocks),
                    Part::Media(media) => {
                        let placeholder = |text| Block::Text { text, cache_control: None };
                        blocks.push(or_placeholder(media_block(&media, ask), media.kind, role, placeholder)?);
                    }
                }
            }
        }
    }
    Ok(blocks)
}

/// Adds a text, unless it is blank. If the prefix to cache ends within it, adds two blocks.
fn push_text<'a>(text: &'a str, cut: Option<usize>, blocks: &mut Vec<Block<'a>>) {
    let cut = cut.and_then(|cut| text.split_at_checked(cut)).filter(|(stable, _)| !is_blank(stable));
    let (stable, rest) = cut.unwrap_or(("", text));
    if !stable.is_empty() {
        blocks.push(Block::Text { text: stable, cache_control: Some(CacheControl::EPHEMERAL) });
    }
    if !is_blank(rest) {
        blocks.push(Block::Text { text: rest, cache_control: None });
    }
}

fn media_block<'a>(media: &Media<'a>, ask: &Ask<'_>) -> Result<Block<'a>> {
    let source = match (&media.source, media.kind) {
        (_, PropertyKind::Audio) => return Err(cannot_carry(&ask.target, "audio")),
        (Source::Url(url), _) => BlockSource::Url { url },
        (Source::Data { data, .. }, PropertyKind::File) if media.media_type()?.starts_with("text/") => {
            BlockSource::Text { media_type: "text/plain", data: decoded(data)? }
        }
        (Source::Data { data, .. }, _) => BlockSource::Base64 { media_type: media.media_type()?, data },
    };
    Ok(match media.kind {
        PropertyKind::File => Block::Document { source, title: media.file_name },
        _ => Block::Image { source },
    })
}

/// Decodes a text document, which is sent as plain text.
fn decoded(data: &str) -> Result<Cow<'_, str>> {
    let text = STANDARD.decode(data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.map(Cow::Owned).ok_or_else(|| {
        Error::new(Kind::InvalidRequest, "text document: expected UTF-8 encoded as base64")
            .with_help("encode its bytes as base64, or set another `mediaType`")
    })
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    input_schema: &'a Parameters<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    strict: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> Tool<'a> {
    fn new(function: &'a Function<'a>, cache_control: Option<CacheControl>) -> Self {
        let Function { name, description, parameters, strict } = function;
        let strict = strict.then_some(true);
        Self { name, description: *description, input_schema: parameters, strict, cache_control }
    }
}

#[derive(Serialize)]
struct ToolChoice {
    r#type: &'static str,
    disable_parallel_tool_use: bool,
}

/// The required format of the response.
#[derive(Serialize)]
struct OutputConfig<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: ResponseSchemaKind<'a>,
}

impl<'a> OutputConfig<'a> {
    /// Returns `None` if there is no schema that the API accepts: it refuses those that it cannot enforce.
    fn new(ask: &Ask<'a>) -> Option<Self> {
        if ask.outputs.is_empty() {
            return None;
        }
        let ResponseSchema { schema, is_unusable, .. } = ResponseSchema::new(ask.outputs, Dialect::Anthropic);
        (!is_unusable).then(|| Self { format: Format { r#type: "json_schema", schema } })
    }
}
