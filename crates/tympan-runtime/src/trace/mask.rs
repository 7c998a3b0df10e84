//! Masks text from untrusted inputs in traces, and keeps the author's text.

use std::ops::Range;

use serde_json::{Value as Json, json};
use tympan_core::chat::Place;
use tympan_core::{Inputs, Prompt, Rendered, Result};

/// Returns the inputs of a prompt, with a placeholder for each untrusted one.
pub fn mask_inputs(prompt: &Prompt, inputs: &Inputs) -> Json {
    let trusted = |name: &str| prompt.variables().iter().any(|input| input.name == name && input.trusted);
    let masked = inputs.iter().map(|(name, value)| {
        let value = if trusted(name) { value.clone() } else { Json::String(mask_value(value)) };
        (name.clone(), value)
    });
    Json::Object(masked.collect())
}

fn mask_value(value: &Json) -> String {
    untrusted(value.as_str().map_or_else(|| value.to_string().len(), str::len))
}

/// Returns the placeholder for this many bytes of untrusted text.
pub fn untrusted(bytes: usize) -> String {
    format!("[UNTRUSTED {bytes} bytes]")
}

/// Returns a rendered text, with a placeholder for each part from an untrusted input.
pub fn mask_rendered(rendered: &Rendered) -> String {
    mask_range(rendered, 0..rendered.text().len())
}

fn mask_range(rendered: &Rendered, range: Range<usize>) -> String {
    let mut masked = String::with_capacity(range.len());
    for segment in rendered.segments() {
        let part = segment.range.start.max(range.start)..segment.range.end.min(range.end);
        if part.is_empty() {
            continue;
        }
        if rendered.is_trusted(&segment) {
            masked.push_str(&rendered.text()[part]);
        } else {
            masked.push_str(&untrusted(part.len()));
        }
    }
    masked
}

/// Returns the messages of a rendered text, with placeholders for text from untrusted inputs. Threads are masked
/// completely, and media and message attributes are omitted, because they are not part of the text.
///
/// # Errors
/// Returns an error if [`Prompt::messages_with_places`] does.
pub fn mask_messages(prompt: &Prompt, rendered: &Rendered) -> Result<Json> {
    let messages = prompt.messages_with_places(rendered)?.into_iter().map(|(message, place)| {
        let content = match place {
            Place::Text(range) => mask_range(rendered, range),
            Place::Thread(_) => untrusted(message.to_text().len()),
        };
        json!({ "role": message.role.as_str(), "content": content })
    });
    Ok(messages.collect())
}
