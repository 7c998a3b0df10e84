//! Converts messages for consumers that do not see where rich inputs are, such as other programs and languages.

use super::media::{Media, Source};
use super::parts::{Part, Parts, parts};
use crate::chat::message::{Content, ContentPart, MediaPart, Message, TextPart};
use crate::error::Result;
use crate::spec::schema::PropertyKind;

/// Moves images, audio and files, which texts contain as nonces, into content parts of their own. A model receives the
/// same content as without this conversion.
///
/// # Errors
/// Returns an error if an input cannot be used as its declared kind.
pub fn inline_media(messages: &mut [Message]) -> Result<()> {
    for message in messages {
        let has_places = |part: &ContentPart| matches!(part, ContentPart::Text(text) if !text.anchors.is_empty());
        if message.content.iter().any(has_places)
            && let Parts::Many(parts) = parts(message)?
        {
            let content: Content = parts.iter().map(content_part).collect();
            message.content = content;
        }
    }
    Ok(())
}

fn content_part(part: &Part<'_>) -> ContentPart {
    let media = match part {
        Part::Text(text) => return ContentPart::Text(TextPart::new(*text)),
        Part::Media(media) => media,
    };
    let part = media_part(media);
    match media.kind {
        PropertyKind::Image => ContentPart::Image(part),
        PropertyKind::Audio => ContentPart::Audio(part),
        _ => ContentPart::File(part),
    }
}

fn media_part(media: &Media<'_>) -> MediaPart {
    let (value, media_type) = match &media.source {
        Source::Url(url) => (*url, None),
        Source::Data { uri: Some(uri), media_type, .. } => (*uri, *media_type),
        Source::Data { data, media_type, .. } => (*data, *media_type),
    };
    let owned = |text: Option<&str>| text.map(str::to_owned);
    MediaPart {
        value: value.to_owned(),
        media_type: owned(media_type),
        detail: owned(media.detail),
        file_name: owned(media.file_name),
    }
}
