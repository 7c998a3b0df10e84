//! The arguments of a tool call, read as kindly as can be done without guessing.
//!
//! Models wrap JSON in fences, put prose around it, and leave commas behind the last item. All of that is read. What
//! still is no JSON object is an error that the model can be told: it never becomes an empty object.

use serde_json::Value as Json;

use crate::json::JsonMap;

/// What had to be done before arguments could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A fence around them was taken away.
    Fence,
    /// The first object in a text was taken.
    Prose,
    /// Commas behind a last item were taken away.
    TrailingCommas,
}

impl Repair {
    /// What was done, in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fence => "took away a fence",
            Self::Prose => "took the first object of a text",
            Self::TrailingCommas => "took away trailing commas",
        }
    }
}

/// Reads arguments. Nothing at all is an object without members: that is how some models call what takes nothing.
///
/// # Errors
/// Why it is no JSON object, in words that a model can use. The arguments are not quoted.
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
            // What comes before the place is serde's reason, which quotes nothing of the text.
            let place = format!(" at line {} column {}", error.line(), error.column());
            Err(error.to_string().trim_end_matches(&place).to_owned() + &place)
        }
    }
}

const fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "true or false",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

/// What stands between the fences of a text that is nothing else.
fn without_fence(text: &str) -> Option<&str> {
    let inside = text.strip_prefix("```")?.strip_suffix("```")?;
    let (language, body) = inside.split_once('\n').unwrap_or(("", inside));
    let is_language = language.trim().chars().all(|char| char.is_ascii_alphanumeric());
    Some(if is_language { body } else { inside }.trim())
}

/// The first object in a text, from its brace to the one that closes it.
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

/// The text without commas before a closing brace or bracket, but for those in strings.
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

/// Knows, byte by byte, what is inside the strings of JSON.
#[derive(Default)]
struct Strings {
    in_string: bool,
    escaped: bool,
}

impl Strings {
    /// Whether the next byte is part of a string, its quotes included.
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
