//! Error responses and unexpected responses.

use serde_json::Value as Json;

use crate::error::{Error, Kind, Result};
use crate::secret::credential::redact;
use crate::wire::Protocol;

/// The maximum number of characters of a response to quote in an error.
const MAX_EXCERPT: usize = 200;

/// The maximum size of a response that is parsed for an error message, in bytes.
const MAX_READ: usize = 1 << 20;

/// Converts an error response with this HTTP status to an error.
pub fn decode_error(protocol: Protocol, status: u16, body: &[u8]) -> Error {
    let kind = match status {
        429 | 500.. => Kind::ProviderUnavailable,
        _ => Kind::Provider,
    };
    let message = match read(body) {
        Some(json) => message(&json),
        None => cut(String::from_utf8_lossy(&body[..body.len().min(4 * MAX_EXCERPT)]).trim()),
    };
    let error = match message.is_empty() {
        true => Error::new(kind, format_args!("HTTP {status}")),
        false => Error::new(kind, format_args!("HTTP {status}: {message}")),
    };
    let error = error.with_status(status);
    // What these say may be another the next time: too slow, in conflict, too early, too many.
    let error = match status {
        400..500 if !matches!(status, 408 | 409 | 425 | 429) => error.permanent(),
        _ => error,
    };
    let help = match status {
        401 | 403 => "check the API key and its permissions",
        404 => "check the model name and the endpoint",
        400 | 422 => match protocol {
            Protocol::AnthropicMessages | Protocol::OpenAiChat => "check the options and the messages",
            _ => "check the options",
        },
        429 => "wait and try again, or send fewer requests",
        _ => return error,
    };
    error.with_help(help)
}

/// Converts an error that a stream or a successful response reports.
pub(super) fn reported_error(error: &Json) -> Error {
    Error::new(Kind::Provider, message(error))
}

/// Converts an error that takes up all of an event's data.
pub(super) fn error_in_event(data: &str) -> Error {
    match serde_json::from_str::<Json>(data) {
        Ok(mut json) => match json.get_mut("response").map(Json::take) {
            Some(response) if response.get("error").is_some() => reported_error(&response),
            _ => reported_error(&json),
        },
        Err(error) => unreadable(&error),
    }
}

/// Returns an error with the model's explanation for refusing to answer.
pub(super) fn refused(refusal: &str) -> Error {
    Error::new(Kind::Refused, cut(refusal))
}

/// Returns an error for stream data that does not parse.
pub(super) fn unreadable(error: &serde_json::Error) -> Error {
    let details = match error.is_data() {
        true => format!("unexpected event format at column {}", error.column()),
        false => format!("event is not JSON, at line {}, column {}", error.line(), error.column()),
    };
    Error::new(Kind::StreamParse, details)
}

/// Parses a complete response body.
pub(super) fn parse<'a, T: serde::Deserialize<'a>>(body: &'a [u8], expected: &str) -> Result<T> {
    serde_json::from_slice(body).map_err(|_| unexpected(expected, body))
}

/// Returns an error for a response with an unexpected format. If the body reports an error of its own, returns that
/// instead.
pub(super) fn unexpected(expected: &str, body: &[u8]) -> Error {
    let found = match read(body) {
        Some(json) if json.get("error").is_some_and(|error| !error.is_null()) => return reported_error(&json),
        Some(json) => excerpt(json),
        None if body.is_empty() => "nothing".to_owned(),
        None if body.len() > MAX_READ => format!("{} bytes of other data", body.len()),
        None => cut(String::from_utf8_lossy(&body[..body.len().min(4 * MAX_EXCERPT)]).trim()),
    };
    Error::new(Kind::UnexpectedResponse, format_args!("expected {expected}, found {found}")).with_help(
        "the prompt's `provider` and `apiType` determine how the response is parsed; check that they \
            match the endpoint",
    )
}

fn read(body: &[u8]) -> Option<Json> {
    (body.len() <= MAX_READ).then(|| serde_json::from_slice(body).ok()).flatten()
}

/// Returns the message of an error, in any of the formats that providers use.
fn message(json: &Json) -> String {
    let json = json.as_array().and_then(|items| items.first()).unwrap_or(json);
    let inner = match json.get("error") {
        Some(inner) if !inner.is_null() => inner,
        _ => json,
    };
    let text = inner.as_str().or_else(|| ["message", "detail", "msg"].iter().find_map(|key| inner.get(*key)?.as_str()));
    let Some(text) = text else { return excerpt(json.clone()) };
    let codes: Vec<_> = ["type", "status", "code"]
        .iter()
        .filter_map(|key| match inner.get(*key)? {
            // A code is a single word. Longer strings are something else.
            Json::String(code) if code != "error" && code.len() <= 60 => Some(code.clone()),
            Json::Number(code) => Some(code.to_string()),
            _ => None,
        })
        .collect();
    match codes.is_empty() {
        true => cut(text),
        false => format!("{} ({})", cut(text), codes.join(", ")),
    }
}

/// Returns redacted, shortened JSON for an error message.
fn excerpt(mut json: Json) -> String {
    redact(&mut json);
    cut(&json.to_string())
}

/// Shortens a text for an error message: the beginning, on one line, without control characters.
fn cut(text: &str) -> String {
    let mut chars = text.chars().map(|char| if char.is_whitespace() { ' ' } else { char }).filter(|c| !c.is_control());
    let start: String = chars.by_ref().take(MAX_EXCERPT).collect();
    match chars.next() {
        Some(_) => start.trim_end().to_owned() + "…",
        None => start,
    }
}
