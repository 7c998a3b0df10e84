//! Chat messages as plain data.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::json::JsonMap;
use crate::spec::schema::PropertyKind;
use crate::template::RichText;

pub use crate::spec::role::Role;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// The role of the message.
    pub role: Role,
    /// The content, as a list of parts. It is never empty in a message that was split from a prompt.
    pub content: Content,
    /// The attributes of the role marker, or the additional fields of a thread's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonMap>,
}

impl Message {
    /// Creates a message with one text part.
    pub fn text(role: Role, value: impl Into<String>) -> Self {
        Self { role, content: Content::text(value), metadata: None }
    }

    /// Returns the text parts joined into one string, for display.
    pub fn to_text(&self) -> String {
        self.content.iter().filter_map(ContentPart::as_text).collect()
    }
}

/// The parts of a message. Most messages have one part, which is stored inline without an allocation.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Content(SmallVec<[ContentPart; 1]>);

impl Content {
    /// Creates content with one text part.
    pub fn text(value: impl Into<String>) -> Self {
        Self::one(ContentPart::Text(TextPart::new(value)))
    }

    /// Creates content with one part.
    pub fn one(part: ContentPart) -> Self {
        Self(SmallVec::from_buf([part]))
    }

    /// Appends a part.
    pub fn push(&mut self, part: ContentPart) {
        self.0.push(part);
    }
}

impl Deref for Content {
    type Target = [ContentPart];
    fn deref(&self) -> &[ContentPart] {
        &self.0
    }
}

impl DerefMut for Content {
    fn deref_mut(&mut self) -> &mut [ContentPart] {
        &mut self.0
    }
}

impl FromIterator<ContentPart> for Content {
    fn from_iter<I: IntoIterator<Item = ContentPart>>(parts: I) -> Self {
        Self(parts.into_iter().collect())
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for part in &self.0 {
            list.serialize_element(part)?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(|parts| Self(SmallVec::from_vec(parts)))
    }
}

/// A part of a message's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ContentPart {
    /// Text.
    Text(TextPart),
    /// An image.
    Image(MediaPart),
    /// Audio.
    Audio(MediaPart),
    /// A document.
    File(MediaPart),
}

impl ContentPart {
    /// Returns the text of a text part, or `None` for other parts.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(&part.value),
            _ => None,
        }
    }

    /// Returns an image, audio or document, or `None` for text.
    pub fn as_media(&self) -> Option<&MediaPart> {
        match self {
            Self::Text(_) => None,
            Self::Image(part) | Self::Audio(part) | Self::File(part) => Some(part),
        }
    }

    /// Returns the kind of part as it is written in JSON: `text`, `image`, `audio` or `file`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::File(_) => "file",
        }
    }
}

/// Text, and the positions of images, audio and documents in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text. Rich inputs are represented by their nonces.
    pub value: String,
    /// The positions of rich inputs. They are recorded, not found by searching for nonces: text that merely looks like
    /// a nonce is only text.
    #[serde(skip)]
    pub anchors: Vec<Anchor>,
    /// The number of leading bytes that the author wrote and that no input contributed to. It is only computed for
    /// prompts with `cache: auto`, and is 0 otherwise.
    #[serde(skip)]
    pub stable: usize,
}

impl TextPart {
    /// Creates text without rich inputs.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), anchors: Vec::new(), stable: 0 }
    }
}

/// A rich input inside a text part.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// The byte range of the nonce in the text.
    pub range: Range<usize>,
    /// The input.
    pub input: Arc<RichInput>,
}

/// A thread, image, file or audio input, and the nonce that represents it in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct RichInput {
    /// The input's name.
    pub name: String,
    /// The input's kind.
    pub kind: PropertyKind,
    /// The nonce, `__PROMPTY_THREAD_<16 hex digits>_<name>__`, new for every render.
    pub nonce: String,
    /// The input's value.
    pub value: RichValue,
}

impl RichText for RichInput {
    fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Returns the size of a thread. Images, audio and documents are shared between copies and count as 0.
    fn copy_bytes(&self) -> usize {
        let RichValue::Thread(messages) = &self.value else { return 0 };
        let part = |part: &ContentPart| match part {
            ContentPart::Text(text) => text.value.len(),
            ContentPart::Image(media) | ContentPart::Audio(media) | ContentPart::File(media) => media.value.len(),
        };
        let message = |message: &Message| {
            let metadata = message.metadata.iter().flatten().map(|(key, value)| key.len() + json_bytes(value));
            let parts = message.content.iter().map(|content| size_of::<ContentPart>() + part(content));
            size_of::<Message>() + parts.sum::<usize>() + metadata.sum::<usize>()
        };
        messages.iter().map(message).sum()
    }
}

/// Estimates how many bytes a JSON value takes up.
fn json_bytes(value: &serde_json::Value) -> usize {
    let inner = match value {
        serde_json::Value::String(text) => text.len(),
        serde_json::Value::Array(items) => items.iter().map(json_bytes).sum(),
        serde_json::Value::Object(map) => map.iter().map(|(key, value)| 64 + key.len() + json_bytes(value)).sum(),
        _ => 0,
    };
    inner + size_of::<serde_json::Value>()
}

/// The value of a rich input.
#[derive(Clone, Debug, PartialEq)]
pub enum RichValue {
    /// The messages of a thread.
    Thread(Vec<Message>),
    /// An image, audio or a document, as passed by the caller.
    Media(serde_json::Value),
}

/// An image, audio or a document, as a URL or as base64 data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaPart {
    /// A URL, or base64 data.
    pub value: String,
    /// The MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The level of detail, for images only: `auto`, `low` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The name of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}
