//! The content type of a response.

use crate::{Error, Kind, Result};

/// The kind of content in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// A JSON document. Some servers send one even if a stream was requested.
    Json,
    /// Server-sent events.
    EventStream,
    /// A JSON document per line.
    Lines,
}

/// The kind of content that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// A JSON document.
    Json,
    /// Server-sent events, or else a JSON document.
    Events,
    /// A JSON document per line. Services store such files with any content type.
    Lines,
}

impl Expected {
    /// Returns the value of the header `accept`.
    pub(super) const fn accept(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Events => "text/event-stream, application/json",
            Self::Lines => "application/x-ndjson, application/json, */*",
        }
    }
}

/// The maximum number of characters of a content type to show in an error.
const SHOWN_TYPE: usize = 60;

/// Determines the kind of content from the content type and the beginning of the body.
///
/// A missing or generic content type is accepted, because small servers may not send one. A web page is always
/// rejected.
///
/// # Errors
///
/// Returns [`Kind::ContentType`] for anything but JSON or what is expected.
pub(super) fn judge(content_type: Option<&str>, begin: &[u8], expected: Expected) -> Result<Content> {
    let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start().first();
    let content = match essence.as_str() {
        _ if begin == Some(&b'<') => None,
        "text/html" => None,
        _ if expected == Expected::Lines => Some(Content::Lines),
        "application/json" | "text/json" => Some(Content::Json),
        "text/event-stream" => Some(Content::EventStream),
        "" | "text/plain" | "application/octet-stream" => match begin {
            Some(b'{' | b'[') => Some(Content::Json),
            _ => Some(Content::EventStream),
        },
        other if other.ends_with("+json") => Some(Content::Json),
        _ => None,
    };
    match content {
        Some(Content::EventStream) if expected != Expected::Events => Err(unexpected(&essence, "JSON")),
        Some(content) => Ok(content),
        None if expected == Expected::Events => Err(unexpected(&essence, "an event stream")),
        None => Err(unexpected(&essence, "JSON")),
    }
}

fn unexpected(essence: &str, expected: &str) -> Error {
    let plain = |c: &char| c.is_ascii_alphanumeric() || "/+-._".contains(*c);
    let found: String = essence.chars().filter(plain).take(SHOWN_TYPE).collect();
    let found = if found.is_empty() { "no content type" } else { &found };
    Error::new(Kind::ContentType, format_args!("expected {expected}, found {found}"))
        .with_help("another server, such as a proxy or a login page, may have responded; check the base URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let json = Some(Content::Json);
        let events = Some(Content::EventStream);
        let cases = [
            (Some("application/json"), "{}", json, json),
            (Some("Application/JSON; charset=utf-8"), " \n[", json, json),
            (Some("application/problem+json"), "{}", json, json),
            (Some("text/event-stream"), "data: 1", None, events),
            (Some("text/event-stream;charset=utf-8"), "", None, events),
            (Some("text/event-stream"), "<!doctype html>", None, None),
            (Some("application/json"), "\u{feff} <html>", None, None),
            (Some("text/html"), "{}", None, None),
            (Some("text/html"), "<html>", None, None),
            (Some("image/png"), "\u{89}PNG", None, None),
            (Some("text/plain"), "{\"a\":1}", json, json),
            (Some("text/plain"), "upstream is down", None, events),
            (None, "{}", json, json),
            (None, "data: 1", None, events),
            (None, "<html>", None, None),
        ];
        for (content_type, begin, sent, streamed) in cases {
            let found = |expected| judge(content_type, begin.as_bytes(), expected).ok();
            assert_eq!(found(Expected::Json), sent, "{content_type:?} {begin}");
            assert_eq!(found(Expected::Events), streamed, "{content_type:?} {begin}");
            let is_page = begin.contains('<') || content_type == Some("text/html");
            assert_eq!(found(Expected::Lines), (!is_page).then_some(Content::Lines), "{content_type:?} {begin}");
        }
    }

    #[test]
    fn a_hostile_content_type_is_shown_in_part() {
        let error =
            judge(Some(&format!("text/\u{1b}[31m{}", "x".repeat(9000))), b"{}", Expected::Json).expect_err("no type");
        assert!(error.message().len() < 200 && !error.message().contains('\u{1b}'), "{error}");
    }
}
