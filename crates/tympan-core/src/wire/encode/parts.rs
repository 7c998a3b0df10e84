//! The content of messages: text, and the rich inputs in it.

use super::media::Media;
use crate::chat::message::{ContentPart, Message, Role, TextPart};
use crate::error::Result;
use crate::spec::schema::PropertyKind;

/// A message, with its content split into parts.
pub(super) struct MessageParts<'a> {
    pub(super) message: &'a Message,
    pub(super) parts: Parts<'a>,
}

/// The content of a message.
pub(super) enum Parts<'a> {
    /// A single text.
    Text(&'a str),
    /// Several parts, a single part that is not text, or no parts at all.
    Many(Vec<Part<'a>>),
}

/// A part of a message.
pub(super) enum Part<'a> {
    Text(&'a str),
    Media(Media<'a>),
}

/// Splits the content of messages into parts where necessary.
///
/// # Errors
/// Returns an error if an input cannot be used as its declared kind.
pub(super) fn split_messages(messages: &[Message]) -> Result<Vec<MessageParts<'_>>> {
    messages.iter().map(|message| Ok(MessageParts { message, parts: parts(message)? })).collect()
}

/// Splits the content of a message into parts where necessary.
///
/// # Errors
/// Returns an error if an input cannot be used as its declared kind.
pub(super) fn parts(message: &Message) -> Result<Parts<'_>> {
    if let [ContentPart::Text(text)] = &*message.content
        && text.anchors.is_empty()
    {
        return Ok(Parts::Text(&text.value));
    }
    let mut parts = Vec::with_capacity(message.content.len());
    for part in message.content.iter() {
        match part {
            ContentPart::Text(text) => split(text, &mut parts)?,
            ContentPart::Image(part) => parts.push(Part::Media(Media::of_part(PropertyKind::Image, part))),
            ContentPart::Audio(part) => parts.push(Part::Media(Media::of_part(PropertyKind::Audio, part))),
            ContentPart::File(part) => parts.push(Part::Media(Media::of_part(PropertyKind::File, part))),
        }
    }
    Ok(Parts::Many(parts))
}

/// Replaces a media block that failed to encode with a placeholder text, if it is part of a tool's result.
///
/// Nobody can fix what a tool returned. Without the placeholder, media that the protocol cannot carry, or that is not
/// what it claims to be, would end the turn.
pub(super) fn or_placeholder<B>(
    block: Result<B>,
    kind: PropertyKind,
    role: Role,
    text_block: fn(&'static str) -> B,
) -> Result<B> {
    match block {
        Err(_) if role == Role::Tool => Ok(text_block(match kind {
            PropertyKind::Image => "[an image that cannot be shown]",
            PropertyKind::Audio => "[audio that cannot be played]",
            _ => "[a file that cannot be read]",
        })),
        block => block,
    }
}

/// Splits a text at its rich inputs. Whitespace between them is dropped, and so is an empty text: several providers
/// refuse an empty block.
fn split<'a>(part: &'a TextPart, parts: &mut Vec<Part<'a>>) -> Result<()> {
    if part.anchors.is_empty() {
        if !part.value.is_empty() {
            parts.push(Part::Text(&part.value));
        }
        return Ok(());
    }
    let mut start = 0;
    let push_text = |parts: &mut Vec<Part<'a>>, text: &'a str| {
        if !text.trim().is_empty() {
            parts.push(Part::Text(text));
        }
    };
    for anchor in &part.anchors {
        push_text(parts, part.value.get(start..anchor.range.start).unwrap_or_default());
        parts.push(Part::Media(Media::of_input(&anchor.input)?));
        start = anchor.range.end;
    }
    push_text(parts, part.value.get(start..).unwrap_or_default());
    Ok(())
}

impl<'a> Parts<'a> {
    /// Returns the texts, in order.
    pub(super) fn texts(&self) -> Vec<&'a str> {
        match self {
            Self::Text(text) => vec![text],
            Self::Many(parts) => parts.iter().filter_map(Part::as_text).collect(),
        }
    }

    /// Returns whether there is no content at all.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Many(parts) => parts.is_empty(),
        }
    }

    /// Returns the parts that are not text.
    pub(super) fn media(&self) -> impl Iterator<Item = &Media<'a>> {
        let parts = if let Self::Many(parts) = self { parts.as_slice() } else { &[] };
        parts.iter().filter_map(|part| if let Part::Media(media) = part { Some(media) } else { None })
    }
}

impl<'a> Part<'a> {
    pub(super) fn as_text(&self) -> Option<&'a str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }
}
