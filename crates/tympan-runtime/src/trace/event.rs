//! What the stages of a run tell their spans.
//!
//! Where untrusted values are masked, text whose writer is not known counts as untrusted, and so does what a model
//! answers: it may repeat what it was given.

use serde_json::json;
use tympan_core::template::input::GivenMap;
use tympan_core::{Prompt, Rendered, Result};

#[cfg(feature = "providers")]
pub(crate) use super::model_event::*;
use crate::trace::{Span, mask_inputs, mask_rendered};

/// What must not be told, wherever it turns up.
pub(crate) fn hide(span: &Span, prompt: &Prompt) {
    if span.is_enabled() {
        span.hide(&prompt.secrets());
    }
}

/// The inputs of a prompt.
pub(crate) fn inputs(span: &Span, prompt: &Prompt, inputs: GivenMap<'_>) {
    hide(span, prompt);
    span.inputs(|| {
        let inputs = inputs.to_json();
        let shown = if span.masks_untrusted() { mask_inputs(prompt, &inputs) } else { json!(inputs) };
        json!({ "prompt": prompt.spec().name, "inputs": shown })
    });
}

/// What a template became.
pub(crate) fn rendered(span: &Span, rendered: &Result<Rendered>) {
    span.outcome(rendered, |rendered| match span.masks_untrusted() {
        true => mask_rendered(rendered).into(),
        false => rendered.text().into(),
    });
}

/// A prompt that was loaded, without its credentials.
pub(crate) fn loaded(span: &Span, prompt: &Result<Prompt>) {
    if let Ok(prompt) = prompt {
        hide(span, prompt);
    }
    span.outcome(prompt, |prompt| prompt.spec().to_json_redacted());
}
