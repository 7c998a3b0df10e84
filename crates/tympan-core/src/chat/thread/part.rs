//! The parts of a message, in Tympan's form and in those of OpenAI's and Anthropic's APIs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::chat::message::{Content, ContentPart, MediaPart, Message, Role, TextPart};
use crate::json::JsonMap;
use crate::template::input::{InputMap, InputRef, View};

/// The content of a message. Some APIs write calls of tools and their results as parts of it.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) content: Content,
    /// Calls of tools, in the form in which metadata has them.
    pub(super) calls: Vec<Json>,
    /// The results of tools, as messages.
    pub(super) results: Vec<Message>,
    /// All parts as they are, if an API requires them back unchanged.
    pub(super) blocks: Option<Json>,
}

impl Parts {
    /// Parses the content of a message.
    pub(super) fn parse(value: InputRef<'_>) -> Result<Self, String> {
        let list = match value.view() {
            View::Str(text) => return Ok(Self { content: Content::text(text), ..Self::default() }),
            View::Null => return Ok(Self { content: Content::text(""), ..Self::default() }),
            View::List(list) => list,
            _ => {
                let found = value.type_name();
                return Err(format!("expected `content` to be a string or a list of parts, found {found}"));
            }
        };
        let mut parts = Self::default();
        let mut has_own = false;
        for item in list.iter() {
            match Part::parse(item)? {
                Part::Content(part) => parts.content.push(part),
                Part::Call(call) => parts.calls.push(call),
                Part::Result(result) => parts.results.push(result),
                Part::Own => has_own = true,
            }
        }
        parts.blocks = has_own.then(|| value.to_json());
        Ok(parts)
    }

    /// Parses the content of a tool's result, which cannot contain calls.
    pub(super) fn parse_result(value: Option<InputRef<'_>>) -> Result<Content, String> {
        match value.map(InputRef::view) {
            Some(View::List(list)) => list.iter().map(parse_content).collect(),
            Some(View::Str(text)) => Ok(Content::text(text)),
            None | Some(View::Null) => Ok(Content::text("")),
            Some(_) => Err("expected the result of a tool to be a string or a list of parts".to_owned()),
        }
    }
}

enum Part {
    Content(ContentPart),
    Call(Json),
    Result(Message),
    /// A part that only the API that wrote it understands, such as signed reasoning.
    Own,
}

impl Part {
    fn parse(value: InputRef<'_>) -> Result<Self, String> {
        let View::Map(map) = value.view() else { return parse_content(value).map(Self::Content) };
        let kind = kind_of(map);
        Ok(match kind {
            "tool_use" => Self::Call(tool_use(map)?),
            "tool_result" => Self::Result(tool_result(map)?),
            "thinking" | "redacted_thinking" | "server_tool_use" | "mcp_tool_use" => Self::Own,
            _ if kind.ends_with("_tool_result") => Self::Own,
            _ => Self::Content(content_part(kind, map)?),
        })
    }
}

/// Parses a part that is text, an image, audio or a file.
fn parse_content(value: InputRef<'_>) -> Result<ContentPart, String> {
    match value.view() {
        View::Str(text) => Ok(text_part(text)),
        View::Map(map) => content_part(kind_of(map), map),
        _ => Err(format!("expected a part to be a map or a string, found {}", value.type_name())),
    }
}

fn kind_of(map: InputMap<'_>) -> &str {
    text(map, &["kind", "type"]).unwrap_or_default()
}

fn content_part(kind: &str, map: InputMap<'_>) -> Result<ContentPart, String> {
    let missing = || "expected a part with a string `value`".to_owned();
    Ok(match kind {
        "text" | "input_text" | "output_text" => {
            text_part(text(map, &["value", "source", "text"]).ok_or_else(missing)?)
        }
        "refusal" => text_part(text(map, &["value", "refusal", "text"]).ok_or_else(missing)?),
        "image" | "image_url" | "input_image" => ContentPart::Image(media(map).ok_or_else(missing)?),
        "audio" | "input_audio" => ContentPart::Audio(media(map).ok_or_else(missing)?),
        "file" | "input_file" | "document" => ContentPart::File(media(map).ok_or_else(missing)?),
        _ => return Err("expected the `kind` of a part to be text, image, audio or file".to_owned()),
    })
}

/// Parses an image, audio or a document. APIs write its fields beside the type, or in a map of their own.
fn media(map: InputMap<'_>) -> Option<MediaPart> {
    const NESTED: [&str; 4] = ["source", "image_url", "input_audio", "file"];
    const VALUES: [&str; 8] = ["value", "source", "text", "image_url", "url", "data", "file_data", "file_url"];
    let nested = NESTED.iter().find_map(|key| match map.get(key)?.view() {
        View::Map(nested) => Some(nested),
        _ => None,
    });
    let either = |keys: &[&str]| text(map, keys).or_else(|| text(nested?, keys));
    let value = either(&VALUES)?;
    // Anthropic writes a text document as it is. Everything else is a URL or base64.
    let is_plain = nested.is_some_and(|nested| text(nested, &["type"]) == Some("text"));
    let media_type = either(&["mediaType", "media_type"]).map(str::to_owned);
    Some(MediaPart {
        value: if is_plain { STANDARD.encode(value) } else { value.to_owned() },
        media_type: media_type.or_else(|| either(&["format"]).map(audio_type)),
        detail: either(&["detail"]).map(str::to_owned),
        file_name: either(&["fileName", "filename", "title"]).map(str::to_owned),
    })
}

/// Returns the MIME type for an audio format of OpenAI's APIs.
fn audio_type(format: &str) -> String {
    let format = if format == "mp3" { "mpeg" } else { format };
    format!("audio/{format}")
}

fn tool_use(map: InputMap<'_>) -> Result<Json, String> {
    let (Some(id), Some(name)) = (text(map, &["id"]), text(map, &["name"])) else {
        return Err("expected a part of type `tool_use` with a string `id` and `name`".to_owned());
    };
    Ok(call(id, name, map.get("input")))
}

/// Returns a call of a tool in the form in which metadata has it.
pub(super) fn call(id: &str, name: &str, arguments: Option<InputRef<'_>>) -> Json {
    let arguments = match arguments.map(InputRef::view) {
        None | Some(View::Null) => "{}".to_owned(),
        Some(View::Str(text)) => text.to_owned(),
        Some(_) => arguments.map(InputRef::to_json).unwrap_or_default().to_string(),
    };
    json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } })
}

fn tool_result(map: InputMap<'_>) -> Result<Message, String> {
    let Some(id) = text(map, &["tool_use_id"]) else {
        return Err("expected a part of type `tool_result` with a string `tool_use_id`".to_owned());
    };
    let mut message = result(id, Parts::parse_result(map.get("content"))?);
    if let Some(View::Bool(true)) = map.get("is_error").map(InputRef::view) {
        message.metadata.get_or_insert_default().insert("is_error".to_owned(), true.into());
    }
    Ok(message)
}

/// Returns the message with the result of a call.
pub(super) fn result(id: &str, content: Content) -> Message {
    let metadata = JsonMap::from_iter([("tool_call_id".to_owned(), id.into())]);
    Message { role: Role::Tool, content, metadata: Some(metadata) }
}

/// Returns the first of these keys that has a string.
pub(super) fn text<'a>(map: InputMap<'a>, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| map.get(key)?.as_str())
}

fn text_part(value: &str) -> ContentPart {
    ContentPart::Text(TextPart::new(value))
}
