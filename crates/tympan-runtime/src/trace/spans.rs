//! Reads the spans of `.tracy` files, those of other programs included.

use serde_json::Value as Json;
use tympan_core::wire::response::Usage;

/// Returns the model that answered or, if unknown, the model that was requested.
pub fn span_model(json: &Json) -> Option<&str> {
    let attributes = &json["__attributes"];
    let names = [&attributes["gen_ai.response.model"], &attributes["gen_ai.request.model"], &json["result"]["model"]];
    names.into_iter().find_map(Json::as_str)
}

/// Returns the usage of a span itself, from any provider's field names.
pub fn span_usage(json: &Json) -> Usage {
    let (usage, attributes) = (&json["result"]["usage"], &json["__attributes"]);
    let count = |value: &Json| value.as_u64();
    let first = |values: [&Json; 3]| values.into_iter().find_map(count).unwrap_or(0);
    let read = &usage["cache_read_input_tokens"];
    let written = &usage["cache_creation_input_tokens"];
    let cached = first([read, &usage["prompt_tokens_details"]["cached_tokens"], &usage["cached_input_tokens"]]);
    let written = first([written, &usage["cache_write_tokens"], &Json::Null]);
    let input = first([&usage["input_tokens"], &usage["prompt_tokens"], &attributes["gen_ai.usage.input_tokens"]]);
    // Anthropic does not count cached tokens as input tokens.
    let beside = if read.is_null() { 0 } else { cached.saturating_add(written) };
    Usage {
        input_tokens: input.saturating_add(beside),
        output_tokens: first([
            &usage["output_tokens"],
            &usage["completion_tokens"],
            &attributes["gen_ai.usage.output_tokens"],
        ]),
        cached_input_tokens: cached,
        cache_write_tokens: written,
        ..Usage::default()
    }
}
