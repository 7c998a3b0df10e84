//! Converts messages for consumers that do not see where rich inputs are, such as other programs and languages.

use std::ops::Range;

use super::media::{Media, Source};
use super::parts::{Part, Parts, parts};
use crate::chat::message::{Content, ContentPart, MediaPart, Message, TextPart};
use crate::chat::text_segment::{SegmentedMessage, TextSegment};
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

/// Moves images, audio and files into content parts of their own, like [`inline_media`], and keeps the segments of the
/// texts.
///
/// # Errors
/// Returns an error if an input cannot be used as its declared kind.
pub fn inline_segmented_media(messages: &mut [SegmentedMessage]) -> Result<()> {
    for SegmentedMessage { message, segments, .. } in messages {
        let before = message.content.clone();
        inline_media(std::slice::from_mut(message))?;
        if message.content.len() != before.len() || message.content != before {
            *segments = split_segments(&before, segments);
        }
    }
    Ok(())
}

/// Splits the segments of a content at its rich inputs, as its text is split.
fn split_segments(content: &Content, segments: &[Vec<TextSegment>]) -> Vec<Vec<TextSegment>> {
    let mut split = Vec::new();
    for (part, segments) in content.iter().zip(segments) {
        let ContentPart::Text(text) = part else {
            split.push(Vec::new());
            continue;
        };
        let mut start = 0;
        let push_text = |split: &mut Vec<Vec<TextSegment>>, range: Range<usize>| {
            if !text.value[range.clone()].trim().is_empty() {
                split.push(segments.iter().filter_map(|segment| within(segment, &range)).collect());
            }
        };
        for anchor in &text.anchors {
            push_text(&mut split, start..anchor.range.start);
            split.push(Vec::new());
            start = anchor.range.end;
        }
        push_text(&mut split, start..text.value.len());
    }
    split
}

/// Returns the part of a segment that is in a range, relative to the range.
fn within(segment: &TextSegment, range: &Range<usize>) -> Option<TextSegment> {
    let (start, end) = (segment.range.start.max(range.start), segment.range.end.min(range.end));
    let is_inside = start < end;
    is_inside.then(|| TextSegment { range: start - range.start..end - range.start, origin: segment.origin })
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
