//! Handles: results that the model does not see.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Value as Json, json};

use crate::chat::message::{Content, ContentPart};
use crate::json::JsonMap;
use crate::turn::label::Label;
use crate::wire::Function;

/// The tool that reads a hidden value.
pub const READ_VALUE: &str = "read_value";

/// The tool that extracts a value from a hidden one.
pub const EXTRACT_VALUE: &str = "extract_value";

/// The maximum length of the word in a handle's name.
const MAX_WORD: usize = 20;

/// The maximum number of bytes of all hidden values of a turn.
const MAX_BYTES: usize = 256 << 20;

/// Returns the tools for hidden values, as models see them.
pub(crate) fn value_functions() -> [Function; 2] {
    let handle = json!({"type": "string", "description": "The handle, such as $page_1."});
    let read = Function {
        name: READ_VALUE.to_owned(),
        description: Some(
            "Shows the content of a handle. Afterwards, tools that change or send something may need approval."
                .to_owned(),
        ),
        parameters: json!({"type": "object", "properties": {"value": handle}, "required": ["value"]}),
        strict: false,
    };
    let schema = json!({
        "type": "object",
        "description": "The JSON Schema of the answer. The answer is shown for a boolean, an enum, an integer with \
            minimum and maximum, a number with minimum, maximum and multipleOf, and a date (format: date) with \
            formatMinimum and formatMaximum. Any other answer becomes another handle.",
    });
    let extract = Function {
        name: EXTRACT_VALUE.to_owned(),
        description: Some("Answers a question about the content of a handle, without showing the content.".to_owned()),
        parameters: json!({
            "type": "object",
            "properties": {
                "value": handle,
                "question": {"type": "string", "description": "What to find out."},
                "schema": schema,
            },
            "required": ["value", "question", "schema"],
        }),
        strict: false,
    };
    [read, extract]
}

/// A result that the model does not see.
#[derive(Clone, Debug)]
pub(crate) struct Handle {
    pub(crate) content: Content,
    pub(crate) label: Label,
    /// The tool that it came from.
    pub(crate) tool: String,
}

/// The hidden results of a turn, by the names of their handles.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handles {
    handles: IndexMap<String, Handle>,
    counts: HashMap<String, u32>,
    bytes: usize,
}

impl Handles {
    /// Hides a value. Returns the text that the model sees instead: the handle, and what kind of value it is.
    pub(crate) fn hide(&mut self, handle: Handle, is_error: bool) -> String {
        let kind = if is_error { "error".to_owned() } else { describe(&handle.content) };
        let (size, tool) = (shown_size(size(&handle.content)), handle.tool.clone());
        self.add(handle, |name| format!("{name}: {kind}, {size}, from {tool}"))
    }

    /// Hides an extracted value. Whoever wrote the content decides about the value, and so about its type and size, and
    /// there can be many of them. So the model sees only what it asked for.
    pub(crate) fn hide_extracted(&mut self, handle: Handle, schema: &Json) -> String {
        let tool = handle.tool.clone();
        self.add(handle, |name| format!("{name}: {}, extracted from the result of {tool}", asked_for(schema)))
    }

    fn add(&mut self, handle: Handle, shown: impl FnOnce(&str) -> String) -> String {
        let word = word_of(&handle.tool);
        let count = self.counts.entry(word.clone()).or_default();
        *count += 1;
        let name = format!("${word}_{count}");
        let bytes = self.bytes.saturating_add(size(&handle.content));
        if bytes > MAX_BYTES {
            let tool = &handle.tool;
            return format!(
                "Error: the result of `{tool}` was dropped, because the hidden values of this turn are too large"
            );
        }
        self.bytes = bytes;
        let text = shown(&name);
        self.handles.insert(name, handle);
        text
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Handle> {
        self.handles.get(name)
    }

    /// Returns the handles among the values, and everything in them.
    pub(crate) fn of(&self, values: &JsonMap) -> Vec<&Handle> {
        let mut found = Vec::new();
        if !self.handles.is_empty() {
            values.values().for_each(|value| self.collect(value, &mut found));
        }
        found
    }

    fn collect<'a>(&'a self, value: &Json, found: &mut Vec<&'a Handle>) {
        match value {
            Json::String(text) => found.extend(self.get(text)),
            Json::Array(items) => items.iter().for_each(|item| self.collect(item, found)),
            Json::Object(map) => map.values().for_each(|value| self.collect(value, found)),
            _ => {}
        }
    }

    /// Puts the contents of handles in. What the contents contain is not looked at again.
    pub(crate) fn resolve(&self, values: &JsonMap, as_json: bool) -> JsonMap {
        values.iter().map(|(name, value)| (name.clone(), self.resolved(value, as_json))).collect()
    }

    fn resolved(&self, value: &Json, as_json: bool) -> Json {
        match value {
            Json::String(text) => match self.get(text) {
                Some(handle) => handle.value(as_json),
                None => value.clone(),
            },
            Json::Array(items) => items.iter().map(|item| self.resolved(item, as_json)).collect(),
            Json::Object(map) => Json::Object(self.resolve(map, as_json)),
            other => other.clone(),
        }
    }
}

impl Handle {
    /// Returns the text of the content, without pictures and other media.
    pub(crate) fn text(&self) -> String {
        self.content.iter().filter_map(ContentPart::as_text).collect()
    }

    fn value(&self, as_json: bool) -> Json {
        let text = self.text();
        if as_json && let Ok(value) = serde_json::from_str(&text) {
            return value;
        }
        Json::String(text)
    }
}

/// Returns the last word of a tool's name: `page` for `fetch_page`.
fn word_of(tool: &str) -> String {
    let mut words = tool.split(|char: char| !char.is_ascii_alphanumeric());
    let word = words.rfind(|word| !word.is_empty()).unwrap_or("value");
    let word: String = word.chars().take(MAX_WORD).collect();
    word.to_ascii_lowercase()
}

fn size(content: &Content) -> usize {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(text) => text.value.len(),
        ContentPart::Image(media) | ContentPart::Audio(media) | ContentPart::File(media) => media.value.len(),
    };
    content.iter().map(part).sum()
}

/// Describes the type of a value, and nothing that it contains.
fn describe(content: &Content) -> String {
    match &content[..] {
        [] => "nothing".to_owned(),
        [ContentPart::Text(text)] => match serde_json::from_str(&text.value) {
            Ok(value) => type_of(&value),
            Err(_) => "text".to_owned(),
        },
        [part] => part.kind().to_owned(),
        parts => {
            let mut kinds: Vec<_> = parts.iter().map(ContentPart::kind).collect();
            kinds.dedup();
            kinds.join(" and ")
        }
    }
}

/// Describes the type that a schema asks for.
fn asked_for(schema: &Json) -> &'static str {
    match schema.get("type").and_then(Json::as_str) {
        Some("string") => "text",
        Some("boolean") => "boolean",
        Some("integer" | "number") => "number",
        Some("object") => "object",
        Some("array") => "list",
        _ => "value",
    }
}

fn type_of(value: &Json) -> String {
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(_) => "boolean".to_owned(),
        Json::Number(_) => "number".to_owned(),
        Json::String(_) => "text".to_owned(),
        Json::Object(_) => "object".to_owned(),
        Json::Array(items) => {
            let one = |value: &Json| match value {
                Json::Array(_) => "lists",
                Json::Object(_) => "objects",
                Json::String(_) => "texts",
                Json::Number(_) => "numbers",
                _ => "values",
            };
            let mut kinds = items.iter().map(one);
            let first = kinds.next().unwrap_or("values");
            let kind = if kinds.all(|kind| kind == first) { first } else { "values" };
            format!("list of {} {kind}", items.len())
        }
    }
}

/// Formats a size with at most two digits, so that it says little about the content.
fn shown_size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "two digits are shown")]
    let (number, unit) = match bytes {
        0..1_000 => (bytes as f64, "B"),
        1_000..1_000_000 => (bytes as f64 / 1e3, "kB"),
        _ => (bytes as f64 / 1e6, "MB"),
    };
    let digits = 10f64.powf((number.max(1.0).log10().floor() - 1.0).max(0.0));
    let number = if number < 10.0 { number } else { (number / digits).round() * digits };
    if number < 10.0 && unit != "B" { format!("{number:.1} {unit}") } else { format!("{number:.0} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::label::Label;

    fn hide(handles: &mut Handles, tool: &str, text: &str) -> String {
        handles.hide(Handle { content: Content::text(text), label: Label::unknown(), tool: tool.to_owned() }, false)
    }

    #[test]
    fn handles_say_type_and_size() {
        let mut handles = Handles::default();
        let page = hide(&mut handles, "fetch_page", &"EVIL ".repeat(2_810));
        assert_eq!(page, "$page_1: text, 14 kB, from fetch_page");
        assert_eq!(hide(&mut handles, "fetch_page", ""), "$page_2: text, 0 B, from fetch_page");
        let list = hide(&mut handles, "list-emails", r#"[{"EVIL": 1}, {"from": "EVIL"}]"#);
        assert_eq!(list, "$emails_1: list of 2 objects, 31 B, from list-emails");
        assert_eq!(hide(&mut handles, "get", r#"{"EVIL": 1}"#), "$get_1: object, 11 B, from get");
        assert_eq!(hide(&mut handles, "→", "true"), "$value_1: boolean, 4 B, from →");
        assert_eq!(shown_size(1_249_999), "1.2 MB");
        assert_eq!(shown_size(987), "990 B");
    }

    #[test]
    fn contents_are_put_in_once() {
        let mut handles = Handles::default();
        hide(&mut handles, "page", "see $page_2");
        hide(&mut handles, "page", "$page_1");
        let given = json!({"a": "$page_1", "b": ["$page_2", "x $page_1"], "c": {"d": "$page_3"}});
        let given = given.as_object().expect("it is a map");
        assert_eq!(handles.of(given).len(), 2);
        let resolved = Json::Object(handles.resolve(given, false));
        assert_eq!(resolved, json!({"a": "see $page_2", "b": ["$page_1", "x $page_1"], "c": {"d": "$page_3"}}));
    }
}
