//! Printing values: as JSON, except that top-level strings are not quoted and `none` prints as an empty string.

use crate::error::{Error, Kind, Result};
use crate::template::input::{InputList, InputMap, InputRef, View};
use crate::template::value::dict::Dict;
use crate::template::value::limits::MAX_VALUE_DEPTH;
use crate::template::value::{Repr, Value};
use crate::text::origin::Origin;
use crate::text::traced::TracedText;

/// Appends a value to traced text, each part with its own origin.
pub(crate) fn print(value: &Value<'_>, out: &mut TracedText) -> Result<()> {
    if value.push_pieces(out) {
        return Ok(());
    }
    let origin = value.origin;
    match &value.repr {
        Repr::Unset | Repr::Undefined | Repr::Silent | Repr::Absent | Repr::None => out.push("", origin),
        Repr::Int(int) => out.push(itoa::Buffer::new().format(*int), origin),
        Repr::Bool(true) => out.push("true", origin),
        Repr::Bool(false) => out.push("false", origin),
        Repr::Float(float) => out.push_with(origin, |text| push_float(*float, text)),
        Repr::Big(int) => out.push(itoa::Buffer::new().format(**int), origin),
        _ => print_nested(value, value.origin, 0, out)?,
    }
    Ok(())
}

/// Appends an input value to traced text.
#[inline]
pub(crate) fn print_given(given: InputRef<'_>, origin: Origin, out: &mut TracedText) -> Result<()> {
    match given.view() {
        View::Str(text) => {
            out.push(text, origin);
            Ok(())
        }
        _ => print(&Value::from_input(given, origin), out),
    }
}

/// Returns the printed text without origins.
pub(crate) fn to_plain_string(value: &Value<'_>) -> Result<String> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let mut out = TracedText::default();
    print(value, &mut out)?;
    Ok(out.as_str().to_owned())
}

/// Appends a value inside a container, as JSON.
fn print_nested(value: &Value<'_>, outer: Origin, depth: u16, out: &mut TracedText) -> Result<()> {
    if depth > MAX_VALUE_DEPTH {
        return Err(too_deep());
    }
    let origin = value.origin | outer;
    match &value.repr {
        Repr::Unset | Repr::Undefined | Repr::Silent | Repr::Absent | Repr::None => out.push("null", origin),
        Repr::Str(text) => out.push_with(origin, |out| push_json_string(text, out)),
        Repr::Text(text) => {
            out.push("\"", outer);
            for (piece, piece_origin) in text.traced.pieces() {
                out.push_with(piece_origin | origin, |out| push_json_escaped(piece, out));
            }
            out.push("\"", outer);
        }
        Repr::InputList(list) => {
            let mut text = String::new();
            push_list(*list, depth, &mut text)?;
            out.push(&text, origin);
        }
        Repr::InputMap(map) => {
            let mut text = String::new();
            push_map(*map, depth, &mut text)?;
            out.push(&text, origin);
        }
        Repr::List(list) => {
            let shape = origin | list.shape;
            out.push("[", shape);
            for (index, item) in list.items.iter().enumerate() {
                if index > 0 {
                    out.push(", ", shape);
                }
                print_nested(item, origin, depth + 1, out)?;
            }
            out.push("]", shape);
        }
        Repr::Dict(dict) => print_dict(dict, origin, depth, out)?,
        Repr::Namespace(_) => out.push("<namespace>", origin),
        Repr::Loop(_) => out.push("<loop>", origin),
        Repr::Macro(value) => out.push_with(origin, |out| {
            out.push_str("<macro ");
            out.push_str(&value.def.name);
            out.push('>');
        }),
        Repr::Function(function) => out.push(function.name(), origin),
        Repr::Rich(_) => return Err(rich_in_text()),
        Repr::Bool(_) | Repr::Int(_) | Repr::Big(_) | Repr::Float(_) => print(&value.clone().also(outer), out)?,
    }
    Ok(())
}

/// Returns the cost in bytes of printing a value as JSON with `indent` spaces for each level. Counting stops above
/// `most`. A container that contains another one many times is small in memory, but large when printed.
pub(crate) fn cost(value: &Value<'_>, indent: usize, most: usize) -> usize {
    let mut cost = Cost { bytes: 0, indent, most };
    cost.add(value, 0);
    cost.bytes
}

/// The size of a piece of text in addition to its bytes.
const PIECE: usize = 16;

/// Returns the maximum length of a text when it is written as JSON. Some writers also escape HTML's special characters.
fn escaped_len(text: &str) -> usize {
    let escaped = |byte: &u8| *byte < 0x20 || matches!(*byte, b'"' | b'\\' | b'<' | b'>' | b'&' | b'\'' | 0x7f);
    text.len().saturating_add(5 * text.bytes().filter(escaped).count())
}

struct Cost {
    bytes: usize,
    indent: usize,
    most: usize,
}

impl Cost {
    /// Adds a value or a bracket on a level. Returns whether counting should continue.
    fn line(&mut self, bytes: usize, level: usize) -> bool {
        const NODE: usize = 8;
        let indent = self.indent.saturating_mul(level);
        self.bytes = self.bytes.saturating_add(NODE).saturating_add(bytes).saturating_add(indent);
        self.bytes <= self.most && level <= usize::from(MAX_VALUE_DEPTH)
    }

    fn add(&mut self, value: &Value<'_>, level: usize) -> bool {
        let next = level + 1;
        match &value.repr {
            Repr::List(list) => list.items.iter().all(|item| self.add(item, next)) && self.line(0, level),
            Repr::Dict(dict) => {
                let mut entries = dict.entries().iter();
                entries.all(|(key, value)| self.add(key, next) && self.add(value, next)) && self.line(0, level)
            }
            Repr::InputList(items) => items.iter().all(|item| self.add_given(item, next)) && self.line(0, level),
            Repr::InputMap(map) => {
                map.iter().all(|(key, value)| self.line(escaped_len(key), 0) && self.add_given(value, next))
                    && self.line(0, level)
            }
            _ => self.line(value.as_str().map_or(0, escaped_len) + PIECE * value.pieces().saturating_sub(1), level),
        }
    }

    fn add_given(&mut self, given: InputRef<'_>, level: usize) -> bool {
        match given.view() {
            View::Str(text) => self.line(escaped_len(text), level),
            View::List(_) | View::Map(_) if level > usize::from(MAX_VALUE_DEPTH) => false,
            View::List(_) | View::Map(_) => self.add(&Value::from_input(given, Origin::default()), level),
            _ => self.line(0, level),
        }
    }
}

fn print_dict(dict: &Dict<'_>, origin: Origin, depth: u16, out: &mut TracedText) -> Result<()> {
    let shape = origin | dict.shape();
    out.push("{", shape);
    for (index, (key, value)) in dict.entries().iter().enumerate() {
        if index > 0 {
            out.push(", ", shape);
        }
        // Keys in JSON are strings, whatever type the template used.
        if key.as_str().is_some() {
            print_nested(key, origin, depth + 1, out)?;
        } else {
            out.push("\"", shape);
            print_nested(key, origin, depth + 1, out)?;
            out.push("\"", shape);
        }
        out.push(": ", shape);
        print_nested(value, origin, depth + 1, out)?;
    }
    out.push("}", shape);
    Ok(())
}

pub(crate) fn rich_in_text() -> Error {
    Error::new(Kind::RichInputMisused, "a thread, image, file or audio input cannot be used as text")
        .with_help("use it alone, as {{ name }}; test it with {% if name %}")
}

pub(crate) fn too_deep() -> Error {
    Error::new(Kind::LimitExceeded, format_args!("value is nested more than {MAX_VALUE_DEPTH} levels deep"))
}

fn push_given(given: InputRef<'_>, depth: u16, out: &mut String) -> Result<()> {
    if depth > MAX_VALUE_DEPTH {
        return Err(too_deep());
    }
    match given.view() {
        View::Null => out.push_str("null"),
        View::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        View::Str(text) => push_json_string(text, out),
        View::Int(int) => out.push_str(itoa::Buffer::new().format(int)),
        View::Uint(int) => out.push_str(itoa::Buffer::new().format(int)),
        View::Float(float) => push_float(float, out),
        View::List(list) => push_list(list, depth, out)?,
        View::Map(map) => push_map(map, depth, out)?,
    }
    Ok(())
}

fn push_list(list: InputList<'_>, depth: u16, out: &mut String) -> Result<()> {
    out.push('[');
    for (index, item) in list.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        push_given(item, depth + 1, out)?;
    }
    out.push(']');
    Ok(())
}

fn push_map(map: InputMap<'_>, depth: u16, out: &mut String) -> Result<()> {
    out.push('{');
    for (index, (key, value)) in map.iter().enumerate() {
        out.push_str(if index > 0 { ", " } else { "" });
        push_json_string(key, out);
        out.push_str(": ");
        push_given(value, depth + 1, out)?;
    }
    out.push('}');
    Ok(())
}

/// Appends the shortest digits that parse back to the same number, always recognizable as a float.
pub(crate) fn push_float(float: f64, out: &mut String) {
    if float.is_nan() {
        out.push_str("NaN");
    } else if float.is_infinite() {
        out.push_str(if float < 0.0 { "-inf" } else { "inf" });
    } else {
        out.push_str(zmij::Buffer::new().format_finite(float));
    }
}

fn push_json_string(text: &str, out: &mut String) {
    out.push('"');
    push_json_escaped(text, out);
    out.push('"');
}

fn push_json_escaped(text: &str, out: &mut String) {
    let mut copied = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escape = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0x00..=0x1f => "",
            _ => continue,
        };
        out.push_str(&text[copied..at]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{byte:04x}"));
        } else {
            out.push_str(escape);
        }
        copied = at + 1;
    }
    out.push_str(&text[copied..]);
}
