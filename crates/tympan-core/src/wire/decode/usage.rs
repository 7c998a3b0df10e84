//! Token usage, under each provider's names.

use serde_json::Value as Json;

use crate::json::JsonMap;
use crate::wire::response::Usage;

/// Converts usage under OpenAI's names, old and new, and those of compatible servers.
pub(super) fn openai(reported: JsonMap) -> Usage {
    let number = |names: &[&str]| names.iter().find_map(|name| reported.get(*name)?.as_u64());
    let detail =
        |groups: &[&str], name: &str| groups.iter().find_map(|group| reported.get(*group)?.get(name)?.as_u64());
    let input_tokens = number(&["prompt_tokens", "input_tokens"]).unwrap_or(0);
    let output_tokens = number(&["completion_tokens", "output_tokens"]).unwrap_or(0);
    let inputs = ["prompt_tokens_details", "input_tokens_details"];
    let outputs = ["completion_tokens_details", "output_tokens_details"];
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: number(&["total_tokens"]).unwrap_or(input_tokens.saturating_add(output_tokens)),
        // DeepSeek uses a different name.
        cached_input_tokens: detail(&inputs, "cached_tokens")
            .or_else(|| number(&["prompt_cache_hit_tokens"]))
            .unwrap_or(0),
        cache_write_tokens: 0,
        reasoning_tokens: detail(&outputs, "reasoning_tokens").unwrap_or(0),
        reported: numbers(reported),
    }
}

/// Converts usage under Anthropic's names. Its `input_tokens` exclude tokens read from or written to the cache.
pub(super) fn anthropic(reported: JsonMap) -> Usage {
    let number = |name: &str| reported.get(name).and_then(Json::as_u64).unwrap_or(0);
    let cached_input_tokens = number("cache_read_input_tokens");
    let cache_write_tokens = number("cache_creation_input_tokens");
    let input_tokens = number("input_tokens").saturating_add(cached_input_tokens).saturating_add(cache_write_tokens);
    let output_tokens = number("output_tokens");
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        cached_input_tokens,
        cache_write_tokens,
        reasoning_tokens: 0,
        reported: numbers(reported),
    }
}

/// Keeps only the numbers, including those in nested objects.
fn numbers(reported: JsonMap) -> JsonMap {
    let kept = reported.into_iter().filter_map(|(name, value)| match value {
        Json::Number(_) => Some((name, value)),
        Json::Object(details) => Some((name, Json::Object(numbers(details)))),
        _ => None,
    });
    kept.filter(|(_, value)| value.as_object().is_none_or(|details| !details.is_empty())).collect()
}
