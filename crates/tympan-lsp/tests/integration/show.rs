//! Answers as text, for fixtures.

use serde_json::Value as Json;

/// Returns the range as `line:character-line:character`, counted from 1.
pub(crate) fn range(range: &Json) -> String {
    let at = |end: &str, unit: &str| range[end][unit].as_u64().unwrap_or_default() + 1;
    let (line, end_line) = (at("start", "line"), at("end", "line"));
    let (column, end_column) = (at("start", "character"), at("end", "character"));
    match line == end_line {
        true => format!("{line}:{column}-{end_column}"),
        false => format!("{line}:{column}-{end_line}:{end_column}"),
    }
}

pub(crate) fn diagnostics(list: &Json) -> String {
    let lines = list.as_array().into_iter().flatten().map(|found| {
        let severity = match found["severity"].as_u64() {
            Some(1) => "error",
            Some(2) => "warning",
            _ => "other",
        };
        let tag = match found["tags"][0].as_u64() {
            Some(1) => " (unnecessary)",
            Some(2) => " (deprecated)",
            _ => "",
        };
        let message = found["message"].as_str().unwrap_or_default().replace('\n', " / ");
        let mut lines =
            format!("{} {severity} {}{tag} {message}\n", range(&found["range"]), found["code"].as_str().unwrap_or("?"));
        for related in found["relatedInformation"].as_array().into_iter().flatten() {
            lines +=
                &format!("  {} {}\n", range(&related["location"]["range"]), related["message"].as_str().unwrap_or("?"));
        }
        lines
    });
    lines.collect()
}
