//! What model calls and tools report to their spans.

use serde_json::{Value as Json, json};
use tympan_core::spec::REDACTED;
use tympan_core::spec::flow::Effect;
use tympan_core::turn::{ToolResult, ToolRun};
use tympan_core::wire::response::{Output, Response};
use tympan_core::{ContentPart, JsonMap, Message, Outcome, Prompt, Result};

use crate::trace::event::hide;
use crate::trace::{Span, untrusted};

/// Records the messages that a model receives.
pub(crate) fn record_request(span: &Span, prompt: &Prompt, messages: &[Message]) {
    hide(span, prompt);
    span.inputs(|| {
        let shown = |message: &Message| match span.masks_untrusted() {
            true => json!({ "role": message.role, "content": untrusted(message.to_text().len()) }),
            false => json!(message),
        };
        json!({ "prompt": prompt.spec().name, "messages": messages.iter().map(shown).collect::<Vec<_>>() })
    });
}

/// Records the response of a model.
pub(crate) fn record_response(span: &Span, response: &Response) {
    span.response(response);
    span.result(|| {
        let text = |text: &str| if span.masks_untrusted() { untrusted(text.len()) } else { text.to_owned() };
        let output = match &response.output {
            Output::Answer(answer) => json!({
                "text": text(&answer.text),
                "thinking": text(&answer.thinking),
                "refusal": answer.refusal.as_deref().map(text),
                "tool_calls": answer.tool_calls.iter().map(|call| {
                    json!({ "id": call.id, "name": call.name, "arguments": text(&call.arguments) })
                }).collect::<Vec<_>>(),
            }),
            Output::Embeddings(vectors) => json!({ "embeddings": vectors.len() }),
            Output::Images(images) => json!({ "images": images.len() }),
            _ => Json::Null,
        };
        json!({
            "id": response.id,
            "model": response.model,
            "finish_reason": response.finish_reason.as_ref().map(|reason| reason.as_str()),
            "output": output,
            "usage": response.usage.as_ref().map(|usage| &usage.reported),
        })
    });
}

/// Records a tool call. Bound arguments are not shown, because they may be session tokens and the like. An effect that
/// nobody declared is recorded as null, so that such tools can be found.
pub(crate) fn record_tool_call(span: &Span, run: &ToolRun, effect: Option<Effect>, bound: &[String]) {
    span.tool(&run.name, Some(&run.id));
    span.inputs(|| {
        let shown = |(name, value): (&String, &Json)| {
            let value = match bound.contains(name) {
                true => REDACTED.into(),
                false if span.masks_untrusted() => untrusted(value.to_string().len()).into(),
                false => value.clone(),
            };
            (name.clone(), value)
        };
        let arguments: JsonMap = run.arguments.iter().map(shown).collect();
        json!({ "name": run.name, "arguments": arguments, "effect": effect, "label": run.label })
    });
}

/// Records what a tool returned.
pub(crate) fn record_tool_result(span: &Span, result: &ToolResult) {
    span.result(|| {
        let text: String = result.parts.iter().filter_map(ContentPart::as_text).collect();
        let text = if span.masks_untrusted() { untrusted(text.len()) } else { text };
        json!({ "status": result.status, "text": text, "parts": result.parts.len() })
    });
}

/// Records the outcome of a call.
pub(crate) fn record_outcome(span: &Span, outcome: &Result<Outcome>) {
    span.outcome(outcome, |outcome| {
        let json = outcome.to_json();
        if span.masks_untrusted() { untrusted(json.to_string().len()).into() } else { json }
    });
}

/// Records only the error of a failed result.
pub(crate) fn record_error<T>(span: &Span, result: Result<T>) -> Result<T> {
    result.inspect_err(|error| span.error(error))
}
