//! JSON maps, the canonical form of JSON that hashes are computed from, and paths to values.

pub mod path;

use serde_json::Value as Json;

/// An ordered map from names to JSON values.
pub type JsonMap = serde_json::Map<String, Json>;

/// Serializes JSON in its canonical form: keys sorted by code point, no whitespace.
pub fn canonical_json(value: Json) -> String {
    sorted(value).to_string()
}

/// Sorts the keys of a value recursively.
fn sorted(value: Json) -> Json {
    match value {
        Json::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Json::Object(entries.into_iter().collect())
        }
        Json::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}
