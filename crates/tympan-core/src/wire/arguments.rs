//! Lenient parsing of tool call arguments.
//!
//! Models wrap JSON in code fences, surround it with prose, and leave trailing commas. The parser accepts all of that
//! without guessing. Anything that still is not a JSON object is an error that can be reported to the model; it never
//! becomes an empty object.

use serde_json::Value as Json;

use crate::json::JsonMap;

/// A repair that was needed to parse the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Repair {
    /// Removed a code fence around the arguments.
    Fence,
    /// Extracted the first object from surrounding prose.
    Prose,
    /// Removed trailing commas.
    TrailingCommas,
}

impl Repair {
    /// Returns a description of the repair.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fence => "removed a code fence",
            Self::Prose => "extracted the first object from text",
            Self::TrailingCommas => "removed trailing commas",
        }
    }
}

/// Parses arguments. Blank text parses as an empty object, because some models call tools without parameters that way.
///
/// # Errors
/// Returns the reason why the text is not a JSON object, worded for a model. It does not quote the arguments.
pub fn parse(text: &str) -> Result<(JsonMap, Option<Repair>), String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok((JsonMap::new(), None));
    }
    let reason = match object(text) {
        Ok(map) => return Ok((map, None)),
        Err(reason) => reason,
    };
    let inside = without_fence(text);
    if let Some(map) = inside.and_then(|inside| object(inside).ok()) {
        return Ok((map, Some(Repair::Fence)));
    }
    let block = first_object(text);
    if let Some(map) = block.and_then(|block| object(block).ok()) {
        return Ok((map, Some(Repair::Prose)));
    }
    let candidates = [Some(text), inside, block];
    let repaired = candidates.into_iter().flatten().find_map(|text| object(&without_trailing_commas(text)).ok());
    repaired.map(|map| (map, Some(Repair::TrailingCommas))).ok_or(reason)
}

fn object(text: &str) -> Result<JsonMap, String> {
    match serde_json::from_str(text) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(other) => Err(format!("expected an object, found {}", kind(&other))),
        Err(error) => {
            // Serde's reason, which precedes the position, quotes nothing from the text.
            let place = format!(" at line {} column {}", error.line(), error.column());
            Err(error.to_string().trim_end_matches(&place).to_owned() + &place)
        }
    }
}

const fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// Returns the contents of a code fence if the whole text is one.
fn without_fence(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("```")?.strip_suffix("```")?;
    let (language, body) = inside.split_once('\n').unwrap_or(("", inside));
    let is_language = language.trim().chars().all(|char| char.is_ascii_alphanumeric());
    Some(if is_language { body } else { inside }.trim())
}

/// Returns the first object in a text, from its opening brace to the matching closing one.
fn first_object(text: &str) -> Option<&str> {
    let start = text.find('{')?;
    let mut depth = 0_usize;
    let mut strings = Strings::default();
    for (at, byte) in text.bytes().enumerate().skip(start) {
        if strings.is_inside(byte) {
            continue;
        }
        match byte {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(&text[start..=at]);
                }
            }
            _ => {}
        }
    }
    None
}

/// Removes commas before a closing brace or bracket, except inside strings.
fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut strings = Strings::default();
    for (at, char) in text.char_indices() {
        let is_inside = char.is_ascii() && strings.is_inside(char as u8) || !char.is_ascii() && strings.in_string;
        let is_last = || text[at + 1..].trim_start().starts_with(['}', ']']);
        if is_inside || char != ',' || !is_last() {
            out.push(char);
        }
    }
    out
}

/// Tracks, byte by byte, whether the input is inside a JSON string.
#[derive(Default)]
struct Strings {
    in_string: bool,
    escaped: bool,
}

impl Strings {
    /// Returns whether the next byte is part of a string, including its quotes.
    fn is_inside(&mut self, byte: u8) -> bool {
        if !self.in_string {
            self.in_string = byte == b'"';
            return self.in_string;
        }
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_string = false,
            _ => {}
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_write_is_read() {
        let cases = [
            ("{\"a\": 1}", r#"{"a":1}"#, None),
            ("  ", "{}", None),
            ("```json\n{\"a\": 1}\n```", r#"{"a":1}"#, Some(Repair::Fence)),
            ("```{\"a\": 1}```", r#"{"a":1}"#, Some(Repair::Fence)),
            ("Sure! {\"a\": \"}\\\"{\"} is it.", r#"{"a":"}\"{"}"#, Some(Repair::Prose)),
            ("{\"a\": [1, 2,], \"b\": \",]\",\n}", r#"{"a":[1,2],"b":",]"}"#, Some(Repair::TrailingCommas)),
            ("```json\n{\"a\": \"é,]\",}\n```", r#"{"a":"é,]"}"#, Some(Repair::TrailingCommas)),
        ];
        for (text, expected, repair) in cases {
            let (map, how) = parse(text).unwrap_or_else(|reason| panic!("{text}: {reason}"));
            assert_eq!((Json::Object(map).to_string().as_str(), how), (expected, repair), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["\"x\"", "[1]", "null", "{oops", "no JSON here", "{\"a\": 1", "}{", &"[".repeat(100_000)] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("\"secret\"").expect_err("it is a string"), "expected an object, found a string");
    }
}
