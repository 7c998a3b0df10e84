//! A backend that writes `.tracy` files: one per trace, created atomically and readable only by their owner.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::{Number, Value as Json, json};
use tympan_core::JsonMap;

use crate::file::time::UtcTime;
use crate::file::write::create;
use crate::trace::record::{SpanId, SpanRecord, Trace};
use crate::trace::worker::{Backend, BackendError};

/// The maximum number of bytes of a span's name in a file name.
const MAX_NAME_BYTES: usize = 100;

/// The number of consecutive file numbers to try before using a random one.
const MAX_NUMBERS: u32 = 16;

/// Writes each trace to a file in a folder when its root has ended.
#[derive(Debug)]
pub struct TracyBackend {
    folder: PathBuf,
    /// The file names used in the current second, and how many times.
    taken: HashMap<String, u32>,
    second: String,
}

impl TracyBackend {
    /// Creates a backend that writes to a folder. The folder is created when needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), taken: HashMap::new(), second: String::new() }
    }

    /// Writes a new file with an unused name.
    fn write(&mut self, name: &str, second: String, text: &str) -> Result<(), BackendError> {
        fs::create_dir_all(&self.folder)?;
        let stem = format!("{}.{second}", sanitized(name));
        if self.second != second {
            self.second = second;
            self.taken.clear();
        }
        let number = self.taken.entry(stem.clone()).or_insert(0);
        for _ in 0..MAX_NUMBERS {
            let path = numbered(&self.folder, &stem, *number);
            *number += 1;
            match create(&path, text.as_bytes(), 0o600) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                other => return Ok(other?),
            }
        }
        // Another process is writing many files to the same folder.
        let random = getrandom::u64()?;
        Ok(create(&self.folder.join(format!("{stem}.{random:016x}.tracy")), text.as_bytes(), 0o600)?)
    }
}

impl Backend for TracyBackend {
    fn trace(&mut self, trace: &Trace) -> Result<(), BackendError> {
        let text = serde_json::to_string_pretty(&trace.to_json())? + "\n";
        self.write(&trace.root.begun.name, UtcTime::from(trace.root.end).compact(), &text)
    }
}

fn numbered(folder: &Path, stem: &str, number: u32) -> PathBuf {
    match number {
        0 => folder.join(format!("{stem}.tracy")),
        _ => folder.join(format!("{stem}.{number}.tracy")),
    }
}

/// Converts a span's name for use in a file name: letters, digits, `-`, `_` and inner dots.
fn sanitized(name: &str) -> String {
    let mut clean: String = name
        .chars()
        .take(MAX_NAME_BYTES)
        .map(|char| if char.is_alphanumeric() || matches!(char, '-' | '_' | '.') { char } else { '_' })
        .collect();
    clean.truncate(clean.floor_char_boundary(MAX_NAME_BYTES));
    // A leading dot would hide the file, and `..` would be another folder.
    match clean.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if clean.is_empty() => "trace".to_owned(),
        None => clean,
    }
}

impl Trace {
    /// Converts the trace to the JSON format of the Prompty specification, which `.tracy` files use.
    pub fn to_json(&self) -> Json {
        let mut children: HashMap<SpanId, Vec<&SpanRecord>> = HashMap::new();
        for span in &self.spans {
            if let Some(parent) = span.begun.parent {
                children.entry(parent).or_default().push(span);
            }
        }
        let (root, _) = frame(&self.root, None, &mut children);
        json!({ "runtime": "rust", "version": env!("CARGO_PKG_VERSION"), "trace": root })
    }
}

/// The name of the spans of turns, whose names in a file have a number.
const TURN: &str = "turn";

/// Returns a span with its descendants, and their total usage. `number` is its place among the turns of its parent.
fn frame(
    span: &SpanRecord,
    number: Option<u64>,
    children: &mut HashMap<SpanId, Vec<&SpanRecord>>,
) -> (JsonMap, JsonMap) {
    let mut below = children.remove(&span.begun.span_id).unwrap_or_default();
    // The children are in the order in which they ended.
    below.sort_by_key(|child| child.begun.start);
    let mut usage = JsonMap::new();
    add_usage(&mut usage, span.fields.get("result").and_then(|result| result.get("usage")).and_then(Json::as_object));
    let mut frames = Vec::with_capacity(below.len());
    let mut turns = 0;
    for child in below {
        turns += u64::from(child.begun.name == TURN);
        let (map, used) = frame(child, (child.begun.name == TURN).then_some(turns), children);
        frames.push(Json::Object(map));
        add_usage(&mut usage, Some(&used));
    }
    let mut map = JsonMap::new();
    map.insert("name".into(), name(span, number).into());
    map.insert(
        "__time".into(),
        json!({
            "start": UtcTime::from(span.begun.start).precise(),
            "end": UtcTime::from(span.end).precise(),
            "duration": milliseconds(span),
        }),
    );
    map.insert("signature".into(), signature(span).into());
    for (key, value) in ["signature", "inputs", "result"].into_iter().filter_map(|key| span.fields.get_key_value(key)) {
        map.insert(key.clone(), value.clone());
    }
    map.extend(span.fields.iter().map(|(key, value)| (key.clone(), value.clone())));
    match span.begun.name.as_str() {
        "prepare" => show_messages(&mut map, &frames),
        "execute" => show_exchange(&mut map),
        _ => {}
    }
    if let Some(error) = &span.error {
        map.insert("result".into(), error.to_json());
    }
    if !span.attributes.is_empty() {
        map.insert("__attributes".into(), Json::Object(span.attributes.clone()));
    }
    map.insert("__frames".into(), Json::Array(frames));
    if !usage.is_empty() {
        map.insert("__usage".into(), Json::Object(usage.clone()));
    }
    (map, usage)
}

/// Returns the name of a frame. Prompty's viewer takes the number of a turn from its name: the number that the host
/// set, or else its place among several turns of one trace.
fn name(span: &SpanRecord, number: Option<u64>) -> String {
    let own = span.fields.get("turn").and_then(Json::as_u64);
    match own.or(number).filter(|_| span.begun.name == TURN) {
        Some(number) => format!("{TURN} {number}"),
        None => span.begun.name.clone(),
    }
}

/// Returns the signature of a span that recorded none. Prompty's viewer recognizes the stages of a run and the
/// provider of a model call by their signatures.
fn signature(span: &SpanRecord) -> String {
    let name = span.begun.name.as_str();
    let provider = span.attributes.get("gen_ai.provider.name").and_then(Json::as_str);
    match (name, provider) {
        ("execute", Some(provider)) => format!("prompty.{provider}.executor.invoke"),
        ("execute", None) => "prompty.executor.invoke".to_owned(),
        ("process", _) => "prompty.processor.invoke".to_owned(),
        ("load" | "prepare" | "render" | "parse" | "run" | "invoke" | TURN | "execute_tool", _) => {
            format!("prompty.{name}")
        }
        _ => name.to_owned(),
    }
}

/// Makes the messages the result of their preparation, as in Prompty's own traces.
fn show_messages(map: &mut JsonMap, frames: &[Json]) {
    let parsed = frames.iter().find(|frame| frame["name"] == "parse").map(|frame| &frame["result"]);
    if let Some(messages) = parsed.filter(|messages| messages.is_array()) {
        map.insert("result".into(), messages.clone());
    }
}

/// Adds the conversation and the answer of a model call in the places where Prompty's viewer looks for them.
fn show_exchange(map: &mut JsonMap) {
    if let Some(Json::Object(inputs)) = map.get_mut("inputs")
        && let Some(messages) = inputs.shift_remove("messages")
    {
        inputs.insert("data".into(), messages);
    }
    if let Some(Json::Object(result)) = map.get_mut("result")
        && let Some(answer) = result.get("output").filter(|output| output.get("text").is_some())
    {
        let call = |call: &Json| {
            let function = json!({ "name": call["name"], "arguments": call["arguments"] });
            json!({ "id": call["id"], "type": "function", "function": function })
        };
        let calls: Vec<_> = answer["tool_calls"].as_array().into_iter().flatten().map(call).collect();
        let mut message = json!({ "role": "assistant", "content": answer["text"] });
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        result.insert("choices".into(), json!([{ "message": message }]));
    }
}

/// Adds the numbers of a usage, under the provider's names.
fn add_usage(total: &mut JsonMap, usage: Option<&JsonMap>) {
    for (key, value) in usage.into_iter().flatten() {
        let Json::Number(number) = value else { continue };
        let sum = match total.get(key) {
            Some(Json::Number(so_far)) => add(so_far, number),
            _ => number.clone(),
        };
        total.insert(key.clone(), Json::Number(sum));
    }
}

fn add(a: &Number, b: &Number) -> Number {
    match (a.as_u64(), b.as_u64()) {
        (Some(a), Some(b)) => a.saturating_add(b).into(),
        _ => Number::from_f64(a.as_f64().unwrap_or(0.0) + b.as_f64().unwrap_or(0.0)).unwrap_or_else(|| a.clone()),
    }
}

/// Returns the duration of a span in milliseconds, to the microsecond.
fn milliseconds(span: &SpanRecord) -> f64 {
    (span.duration.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::sanitized;

    #[test]
    fn names_stay_in_their_folder() {
        let cases = [
            ("tympan.run", "tympan.run"),
            ("../../etc/x", "_._.._etc_x"),
            ("/tmp/x", "_tmp_x"),
            ("a\0b\nc", "a_b_c"),
            ("\u{202e}cod.exe", "_cod.exe"),
            ("..", "_."),
            ("", "trace"),
            ("größe", "größe"),
        ];
        for (name, expected) in cases {
            assert_eq!(sanitized(name), expected);
        }
        assert!(sanitized(&"ö".repeat(5000)).len() <= 100);
    }
}
