//! Records the data of each stage of a run in its span.
//!
//! If untrusted values are masked, text of unknown origin counts as untrusted. So do model responses, because they may
//! repeat their input.

use serde_json::json;
use tympan_core::template::input::InputMap;
use tympan_core::{Prompt, Rendered, Result};

#[cfg(feature = "providers")]
pub(crate) use super::model_event::*;
use crate::trace::{Span, mask_inputs, mask_rendered};

/// Hides the secrets of a prompt in the whole trace.
pub(crate) fn hide(span: &Span, prompt: &Prompt) {
    if span.is_enabled() {
        span.hide(&prompt.secrets());
    }
}

/// Records the inputs of a prompt.
pub(crate) fn record_inputs(span: &Span, prompt: &Prompt, inputs: InputMap<'_>) {
    hide(span, prompt);
    span.inputs(|| {
        let inputs = inputs.to_json();
        let shown = if span.masks_untrusted() { mask_inputs(prompt, &inputs) } else { json!(inputs) };
        json!({ "prompt": prompt.spec().name, "inputs": shown })
    });
}

/// Records the rendered text.
pub(crate) fn record_render(span: &Span, rendered: &Result<Rendered>) {
    span.outcome(rendered, |rendered| match span.masks_untrusted() {
        true => mask_rendered(rendered).into(),
        false => rendered.text().into(),
    });
}

/// Records a prompt that was loaded, without its credentials.
pub(crate) fn record_prompt(span: &Span, prompt: &Result<Prompt>) {
    if let Ok(prompt) = prompt {
        hide(span, prompt);
    }
    span.outcome(prompt, |prompt| prompt.spec().to_json_redacted());
}
