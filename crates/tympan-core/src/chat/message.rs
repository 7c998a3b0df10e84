//! Chat messages, as plain data.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use crate::json::JsonMap;
use crate::spec::schema::PropertyKind;
use crate::template::RichText;

pub use crate::spec::role::Role;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, as a list of parts; never empty in a message that was split from a prompt.
    pub content: Content,
    /// Attributes of the role marker, or what a thread's message carried besides its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonMap>,
}

impl Message {
    /// A message with one text part.
    pub fn text(role: Role, value: impl Into<String>) -> Self {
        Self { role, content: Content::text(value), metadata: None }
    }

    /// The text parts joined, for people who only want to read it.
    pub fn to_text(&self) -> String {
        self.content.iter().filter_map(ContentPart::as_text).collect()
    }
}

/// The parts of a message. Most messages have one, which then needs no allocation of its own.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Content(SmallVec<[ContentPart; 1]>);

impl Content {
    /// One text part.
    pub fn text(value: impl Into<String>) -> Self {
        Self::one(ContentPart::Text(TextPart::new(value)))
    }

    /// One part.
    pub fn one(part: ContentPart) -> Self {
        Self(SmallVec::from_buf([part]))
    }

    /// Adds a part at the end.
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

/// A piece of a message's content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text.
    Text(TextPart),
    /// A picture.
    Image(MediaPart),
    /// Sound.
    Audio(MediaPart),
    /// A document.
    File(MediaPart),
}

impl ContentPart {
    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(&part.value),
            _ => None,
        }
    }
}

/// Text, and where in it pictures, sound or documents stand.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextPart {
    /// The text; a rich input stands in it as its nonce.
    pub value: String,
    /// Where rich inputs stand. A place, not a search for the nonce, decides: text that merely
    /// looks like a nonce is only text.
    #[serde(skip)]
    pub anchors: Vec<Anchor>,
    /// How many bytes at its beginning the author wrote and no input had a part in. It is 0 where nobody has asked: only
    /// prompts with `cache: auto` do.
    #[serde(skip)]
    pub stable: usize,
}

impl TextPart {
    /// Text without rich inputs in it.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), anchors: Vec::new(), stable: 0 }
    }
}

/// A rich input inside a text part.
#[derive(Clone, Debug, PartialEq)]
pub struct Anchor {
    /// The bytes of the text that its nonce takes up.
    pub range: Range<usize>,
    /// The input.
    pub input: Arc<RichInput>,
}

/// A thread, image, file or audio input, and the nonce that stands for it in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct RichInput {
    /// The input's name.
    pub name: String,
    /// Its kind.
    pub kind: PropertyKind,
    /// `__PROMPTY_THREAD_<16 hex digits>_<name>__`, new for every render.
    pub nonce: String,
    /// Its value.
    pub value: RichValue,
}

impl RichText for RichInput {
    fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Pictures, sound and documents are shared, so only threads count.
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

/// About how many bytes a JSON value takes up.
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
    /// A picture, sound or document, as the caller gave it.
    Media(serde_json::Value),
}

/// A picture, sound or document: by address or as base64 data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaPart {
    /// An address, or base64 data.
    pub value: String,
    /// The MIME type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// How closely to look: `auto`, `low` or `high`; pictures only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What a document is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_name: Option<String>,
}
