//! Compares two requests.

use serde_json::Value as Json;

/// The maximum number of differences to show.
const SHOWN: usize = 5;
/// The maximum number of characters of a value to show.
const MAX_VALUE: usize = 60;

/// A difference between two values.
pub(super) struct Difference {
    path: String,
    recorded: Option<String>,
    asked: Option<String>,
}

/// Returns all differences between two values, in order.
pub(super) fn between(recorded: &Json, asked: &Json) -> Vec<Difference> {
    let mut differences = Vec::new();
    compare(String::new(), Some(recorded), Some(asked), &mut differences);
    differences
}

fn compare(path: String, recorded: Option<&Json>, asked: Option<&Json>, differences: &mut Vec<Difference>) {
    match (recorded, asked) {
        (Some(a), Some(b)) if a == b => {}
        (Some(Json::Object(a)), Some(Json::Object(b))) => {
            for (key, value) in a {
                compare(below(&path, key), Some(value), b.get(key), differences);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                compare(below(&path, key), None, Some(value), differences);
            }
        }
        (Some(Json::Array(a)), Some(Json::Array(b))) => {
            for index in 0..a.len().max(b.len()) {
                compare(format!("{path}[{index}]"), a.get(index), b.get(index), differences);
            }
        }
        (a, b) => differences.push(Difference { path, recorded: a.map(brief), asked: b.map(brief) }),
    }
}

fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn brief(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_VALUE) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Formats the first few differences.
pub(super) fn show(differences: &[Difference]) -> String {
    let shown = differences.iter().take(SHOWN).map(|Difference { path, recorded, asked }| match (recorded, asked) {
        (Some(recorded), Some(asked)) => format!("{path}: recorded {recorded}, requested {asked}"),
        (Some(recorded), None) => format!("{path}: recorded {recorded}, not requested"),
        (None, asked) => format!("{path}: not recorded, requested {}", asked.as_deref().unwrap_or_default()),
    });
    let mut text = shown.collect::<Vec<_>>().join("; ");
    if differences.len() > SHOWN {
        text.push_str(&format!("; and {} more differences", differences.len() - SHOWN));
    }
    text
}
