//! Messages with the origin of every part of their texts.

use serde_json::{Value as Json, json};
use tympan_core::chat::guard::marks;
use tympan_core::chat::message::MediaPart;
use tympan_core::chat::rendered::Rendered;
use tympan_core::chat::text_segment::{SegmentedMessage, TextSegment};
use tympan_core::json::JsonMap;
use tympan_core::prompt::Entropy;
use tympan_core::wire::inline_segmented_media;
use tympan_core::{ContentPart, Message, RenderOptions, Result};

use super::offsets::units_of;
use super::options::{Options, inputs};
use super::{Prompt, findings};

/// Renders a prompt, and converts the messages to JSON.
///
/// # Errors
/// Returns an error if the file does not load, if an argument is invalid, or if rendering fails.
pub(super) fn render(file: &Prompt, inputs_json: &str, options_json: &str, entropy: Entropy<'_>) -> Result<Json> {
    let (values, options) = (inputs(inputs_json)?, Options::parse(options_json)?);
    let prompt = file.loaded()?;
    let rendered = render_text(prompt, &values, &options, entropy)?;
    let mut messages = prompt.messages_with_segments(&rendered)?;
    let media: Vec<_> = messages.iter().map(media_inputs).collect();
    let stable = prompt.stable_prefixes(&rendered).unwrap_or_default();
    // An image that cannot be used stays a placeholder, as in `tympan messages`.
    let unusable = inline_segmented_media(&mut messages).err();
    let warnings = prompt.kind_warnings((&values).into()).into_iter().chain(prompt.unknown_inputs((&values).into()));
    let warnings = warnings.map(|warning| findings::diagnostic_to_json(&warning, &file.source, &file.offsets));
    let unusable = unusable.map(|error| findings::error_to_json(&error, &file.source, &file.offsets));
    let warnings = warnings.chain(unusable);
    let shown = messages.iter().zip(media).map(|(message, media)| message_to_json(message, media, &rendered));
    let shown = shown.collect::<Json>();
    let inputs = rendered.inputs().inputs().iter().map(|input| json!({"name": input.name, "trusted": input.trusted}));
    Ok(json!({
        "messages": shown,
        "advisory": advisory(&messages, &rendered),
        "name": rendered.name(),
        "variant": rendered.variant(),
        "text_hash": rendered.render_hash(),
        "template_hash": rendered.template_hash(),
        "render_hash": rendered.render_hash(),
        "stable_bytes": stable,
        "warnings": warnings.collect::<Json>(),
        "inputs": inputs.collect::<Json>(),
    }))
}

/// Renders the text of a prompt.
///
/// # Errors
/// Returns an error if rendering fails.
pub(super) fn render_text(
    prompt: &tympan_core::Prompt,
    inputs: &JsonMap,
    options: &Options,
    entropy: Entropy<'_>,
) -> Result<Rendered> {
    let guard = options.guard();
    let options = RenderOptions {
        variant: options.variant.as_deref(),
        lenient: options.lenient,
        strict: options.strict,
        seed: options.seed,
        guard: guard.as_ref(),
        entropy: Some(entropy),
        ..RenderOptions::default()
    };
    prompt.render_with(inputs, &options)
}

/// Returns the message that explains the guard to the model, and its index among the messages.
fn advisory(messages: &[SegmentedMessage], rendered: &Rendered) -> Option<Json> {
    let guard = rendered.guard()?;
    let mut all: Vec<Message> = messages.iter().map(|message| message.message.clone()).collect();
    let before = all.len();
    guard.insert_into(&mut all);
    let same = messages.iter().zip(&all).take_while(|(message, now)| message.message == **now).count();
    let index = (all.len() > before).then_some(same);
    Some(json!({"role": guard.role, "text": guard.advisory, "index": index}))
}

/// Returns the names of the inputs that are images, audio and files in the texts of a message, in order.
fn media_inputs(message: &SegmentedMessage) -> Vec<String> {
    let anchors = message.message.content.iter().flat_map(|part| match part {
        ContentPart::Text(text) => text.anchors.as_slice(),
        _ => &[],
    });
    anchors.map(|anchor| anchor.input.name.clone()).collect()
}

/// Converts a message to JSON. `media` are the names of the inputs that its media come from; those of a thread all come
/// from the thread.
fn message_to_json(message: &SegmentedMessage, media: Vec<String>, rendered: &Rendered) -> Json {
    let names: Vec<_> = rendered.inputs().names(message.origin).collect();
    let mut media = media.into_iter();
    let parts = message.message.content.iter().zip(&message.segments);
    let parts = parts.map(|(part, segments)| match (part, part.as_media()) {
        (_, Some(found)) => {
            let own = media.next();
            let inputs = own.as_deref().map_or_else(|| names.clone(), |name| vec![name]);
            media_to_json(part.kind(), found, &inputs, rendered)
        }
        (part, None) => {
            let text = part.as_text().unwrap_or_default();
            json!({"kind": "text", "text": text, "segments": segments_to_json(text, segments, rendered)})
        }
    });
    let parts = parts.collect::<Json>();
    json!({
        "role": message.message.role,
        "attributes": message.message.metadata.clone().unwrap_or_default(),
        "parts": parts,
        "inputs": names,
    })
}

fn media_to_json(kind: &str, media: &MediaPart, inputs: &[&str], rendered: &Rendered) -> Json {
    let is_trusted = |name: &str| rendered.inputs().inputs().iter().any(|input| input.name == name && input.trusted);
    let is_url = ["data:", "http:", "https:"].iter().any(|scheme| media.value.starts_with(scheme));
    let (url, data) = if is_url { (Some(&media.value), None) } else { (None, Some(&media.value)) };
    json!({
        "kind": kind,
        "media_type": media.media_type,
        "url": url,
        "data": data,
        "detail": media.detail,
        "file_name": media.file_name,
        "inputs": inputs,
        "trusted": inputs.iter().all(|name| is_trusted(name)),
    })
}

/// Converts the segments of a text to JSON, with the markers of the guard as segments of their own.
fn segments_to_json(text: &str, segments: &[TextSegment], rendered: &Rendered) -> Json {
    let marks = if rendered.guard().is_some() { marks(text, segments, rendered.inputs()) } else { Vec::new() };
    let mut marks = marks.into_iter().peekable();
    let (mut at, mut units) = (0, 0);
    let mut list = Vec::with_capacity(segments.len());
    let mut push = |segment: &TextSegment, end: usize, is_guard: bool| {
        let start = units;
        units += units_of(&text.as_bytes()[at..end]);
        at = end;
        list.push(json!({
            "start": start,
            "end": units,
            "inputs": rendered.inputs().names(segment.origin).collect::<Vec<_>>(),
            "trusted": rendered.inputs().is_trusted(segment.origin),
            "guard": is_guard,
        }));
        at
    };
    for segment in segments {
        let mut start = segment.range.start;
        while let Some(mark) = marks.next_if(|mark| mark.end <= segment.range.end) {
            if start < mark.start {
                push(segment, mark.start, false);
            }
            start = push(segment, mark.end, true);
        }
        if start < segment.range.end {
            push(segment, segment.range.end, false);
        }
    }
    list.into()
}
