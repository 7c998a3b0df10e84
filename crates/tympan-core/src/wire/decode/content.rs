//! Values that providers encode in more than one way.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value as Json;

/// Text that is borrowed where possible. Unlike a plain `Cow`, it also borrows inside an `Option`.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Returns the text, or an empty string.
pub(super) fn text<'t>(text: &'t Option<Text<'_>>) -> &'t str {
    text.as_ref().map_or("", |text| &text.0)
}

/// Text, or any JSON list or map serialized to text. Some servers send arguments as an object.
#[derive(Debug, Default)]
pub(super) struct RawText<'a>(pub(super) Cow<'a, str>);

/// Returns the text, or an empty string.
pub(super) fn raw_text<'t>(raw: &'t Option<RawText<'_>>) -> &'t str {
    raw.as_ref().map_or("", |raw| &raw.0)
}

impl<'de: 'a, 'a> Deserialize<'de> for RawText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawTextVisitor)
    }
}

struct RawTextVisitor;

impl<'de> Visitor<'de> for RawTextVisitor {
    type Value = RawText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or JSON")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(RawText(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(RawText(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let json = Json::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RawText(Cow::Owned(json.to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        let json = Json::deserialize(SeqAccessDeserializer::new(seq))?;
        Ok(RawText(Cow::Owned(json.to_string())))
    }
}

/// The content of a message: text, or a list of parts, some of which may be reasoning.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) thinking: String,
}

/// A part of a message's content.
#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Content<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of parts")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content { text: Cow::Borrowed(text), thinking: String::new() })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content { text: Cow::Owned(text.to_owned()), thinking: String::new() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut content = Content::default();
        while let Some(part) = seq.next_element::<Part<'de>>()? {
            content.text.to_mut().push_str(text(&part.text));
            if let Some(thinking) = part.thinking {
                content.thinking.push_str(&thinking.text);
            }
        }
        Ok(content)
    }
}
