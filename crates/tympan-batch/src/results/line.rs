//! Lines of answers.
//!
//! A line is JSON written by Tympan, around a body that a provider wrote. The body is found by its position and parsed
//! later, so that a body that cannot be parsed is an error of its row and not of its file.

use serde_json::{Value as Json, json};
use tympan_core::wire::response::Response;

/// What a row was answered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// The body of a provider's response.
    Body(Vec<u8>),
    /// A response that was decoded when it arrived.
    Response(Box<Response>),
    /// An error.
    Error { message: String, code: Option<String> },
}

/// A line of answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AnswerLine {
    pub(crate) row: u64,
    pub(crate) custom_id: String,
    pub(crate) attempt: u64,
    pub(crate) reply: Reply,
}

impl AnswerLine {
    /// Parses a line.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        let members = members(line).ok_or("expected a JSON object")?;
        let find = |key: &str| members.iter().find(|(name, _)| *name == key.as_bytes()).map(|(_, value)| *value);
        let number = |key: &str| find(key).and_then(|value| serde_json::from_slice::<u64>(value).ok());
        let row = number("row").ok_or("expected the number of a row as `row`")?;
        let custom_id = find("custom_id").and_then(|value| serde_json::from_slice(value).ok());
        let custom_id = custom_id.ok_or("expected text as `custom_id`")?;
        let reply = if let Some(body) = find("body") {
            Reply::Body(body.to_vec())
        } else if let Some(response) = find("response") {
            let response = serde_json::from_slice(response).map_err(|error| format!("invalid `response`: {error}"))?;
            Reply::Response(Box::new(response))
        } else {
            Reply::of_error(find("error").ok_or("expected `body`, `response` or `error`")?)
        };
        Ok(Self { row, custom_id, attempt: number("attempt").unwrap_or(1), reply })
    }

    /// Returns whether the row was answered without an error.
    pub(crate) fn is_answer(&self) -> bool {
        !matches!(self.reply, Reply::Error { .. })
    }

    /// Returns the message of the error, if the row was not answered.
    pub(crate) fn into_error(self) -> Option<String> {
        match self.reply {
            Reply::Error { message, .. } => Some(message),
            Reply::Body(_) | Reply::Response(_) => None,
        }
    }

    /// Writes the line as JSON. Bodies of providers are written by those who receive them.
    pub(crate) fn to_json(&self) -> Json {
        let mut json = json!({ "row": self.row, "custom_id": self.custom_id, "attempt": self.attempt });
        match &self.reply {
            Reply::Response(response) => json["response"] = json!(response),
            Reply::Error { message, code } => json["error"] = json!({ "message": message, "code": code }),
            Reply::Body(body) => json["body"] = serde_json::from_slice(body).unwrap_or_default(),
        }
        json
    }
}

impl Reply {
    fn of_error(error: &[u8]) -> Self {
        let error: Json = serde_json::from_slice(error).unwrap_or_default();
        let text = |key: &str| error.get(key).and_then(Json::as_str).map(str::to_owned);
        let message = text("message").or_else(|| error.as_str().map(str::to_owned));
        Self::Error { message: message.unwrap_or_else(|| "an error without a message".to_owned()), code: text("code") }
    }
}

/// Returns the names and the values of an object's members, as they are written. The work and the stack do not depend on
/// how deeply the values are nested.
fn members(line: &[u8]) -> Option<Vec<(&[u8], &[u8])>> {
    let inner = line.trim_ascii().strip_prefix(b"{")?.strip_suffix(b"}")?;
    let mut found = Vec::new();
    let mut rest = inner.trim_ascii();
    while !rest.is_empty() {
        let (name, after) = split_text(rest)?;
        let after = after.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        let end = end_of_value(after)?;
        let (value, after) = after.split_at_checked(end)?;
        found.push((name, value.trim_ascii_end()));
        rest = match after.trim_ascii_start().split_first() {
            None => after.get(after.len()..)?,
            Some((b',', more)) if !more.trim_ascii().is_empty() => more.trim_ascii_start(),
            Some(_) => return None,
        };
    }
    Some(found)
}

/// Splits JSON text in quotes from what follows it.
fn split_text(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let inner = text.strip_prefix(b"\"")?;
    let end = end_of_text(inner)?;
    Some((inner.get(..end)?, inner.get(end + 1..)?))
}

/// Returns the position of the quote that ends a text.
fn end_of_text(inner: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match inner.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Returns where a value ends: before the comma that follows it, or at the end.
fn end_of_value(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at += 1 + end_of_text(text.get(at + 1..)?)?,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    (depth == 0 && at > 0).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_their_position() {
        let line = br#" {"row": 3 ,"a\"b":"x,}\"","body":{"a":[1,{"b":"]"}]}} "#;
        let found = members(line).expect("an object");
        let found: Vec<_> =
            found.iter().map(|(name, value)| (String::from_utf8_lossy(name), String::from_utf8_lossy(value))).collect();
        assert_eq!(found.len(), 3);
        assert_eq!((&*found[0].0, &*found[0].1), ("row", "3"));
        assert_eq!((&*found[1].0, &*found[1].1), (r#"a\"b"#, r#""x,}\"""#));
        assert_eq!((&*found[2].0, &*found[2].1), ("body", r#"{"a":[1,{"b":"]"}]}"#));
        for wrong in ["", "[]", "{\"a\":1,}", "{\"a\"}", "{\"a\":}", "{\"a\":[}", "{a:1}", "{\"a\":1", "{\"a\":\"x}"] {
            assert_eq!(members(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(members(b"{}"), Some(Vec::new()));
    }

    #[test]
    fn a_body_of_any_depth_is_a_body() {
        let deep = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
        let line = format!("{{\"row\":1,\"custom_id\":\"j-1\",\"attempt\":1,\"body\":{deep}}}");
        let answer = AnswerLine::parse(line.as_bytes()).expect("a line");
        assert_eq!(answer.reply, Reply::Body(deep.into_bytes()));
    }
}
