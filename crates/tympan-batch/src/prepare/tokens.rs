//! Counts the input tokens of requests.

use serde_json::Value as Json;
use tympan_runtime::model::tokens::{Encoding, MESSAGE_TOKENS};

/// Counts the tokens of lines, exactly for models whose vocabulary is published.
pub(crate) struct ExactCount(Encoding);

impl ExactCount {
    pub(crate) fn new(model: &str) -> Self {
        Self(Encoding::of_model(model))
    }

    /// Returns the number of tokens in a line. Names of keys and options do not count.
    pub(crate) fn line(&self, line: &[u8]) -> u64 {
        let Ok(json) = serde_json::from_slice::<Json>(line) else { return line.len() as u64 };
        let body = json.get("body").or_else(|| json.get("params")).unwrap_or(&json);
        let keys = ["system", "messages", "input", "instructions", "tools", "response_format", "text", "output_config"];
        keys.iter().filter_map(|key| body.get(key)).map(|value| self.value(value)).sum()
    }

    fn value(&self, value: &Json) -> u64 {
        match value {
            Json::String(text) => self.0.count(text) as u64,
            Json::Array(items) => items.iter().map(|item| self.value(item)).sum(),
            Json::Object(map) => {
                let own = if map.contains_key("role") { MESSAGE_TOKENS as u64 } else { 0 };
                let values = map.iter().filter(|(key, _)| *key != "role").map(|(_, value)| self.value(value));
                own + values.sum::<u64>()
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => 0,
        }
    }
}
