//! Images, audio and files.

use std::borrow::Cow;

use serde_json::Value as Json;

use crate::chat::message::MediaPart;
use crate::chat::message::{RichInput, RichValue};
use crate::error::{Error, Kind, Result};
use crate::spec::schema::PropertyKind;

/// An image, audio or a file.
pub(super) struct Media<'a> {
    pub(super) kind: PropertyKind,
    pub(super) source: Source<'a>,
    pub(super) detail: Option<&'a str>,
    pub(super) file_name: Option<&'a str>,
}

/// The source of the media.
pub(super) enum Source<'a> {
    /// A URL that the provider fetches. Tympan never does.
    Url(&'a str),
    /// Base64 data, whose type may be unknown.
    Data {
        media_type: Option<&'a str>,
        data: &'a str,
        /// The data as a `data:` URI, if it was provided as one.
        uri: Option<&'a str>,
    },
}

impl<'a> Media<'a> {
    /// Converts a part of a message. It comes from the host and is sent as is.
    pub(super) fn of_part(kind: PropertyKind, part: &'a MediaPart) -> Self {
        let source = source(&part.value, part.media_type.as_deref());
        let detail = part.detail.as_deref().filter(|detail| !detail.is_empty());
        Self { kind, source, detail, file_name: part.file_name.as_deref() }
    }

    /// Converts an input.
    ///
    /// # Errors
    /// Returns an error if the input is not a URL, a `data:` URI or base64. A path is not accepted: naming a file in an
    /// input must never cause the file to be read.
    pub(super) fn of_input(input: &'a RichInput) -> Result<Self> {
        let RichValue::Media(value) = &input.value else {
            return Err(misfit(input, "found a thread"));
        };
        let text = |keys: &[&str]| keys.iter().find_map(|key| value.get(key)?.as_str());
        let (given, media_type) = match value {
            Json::String(text) => (Some(text.as_str()), None),
            Json::Object(_) => (text(&["value", "source", "url", "data"]), text(&["mediaType", "media_type"])),
            _ => (None, None),
        };
        let given = given.ok_or_else(|| misfit(input, "expected a string or a map with a `value`"))?;
        let source = source(given, media_type);
        if let Source::Data { data, .. } = &source
            && !is_base64(data)
        {
            return Err(misfit(input, "expected an http(s) URL, a data: URI with base64, or base64"));
        }
        let detail = text(&["detail"]).filter(|detail| !detail.is_empty());
        Ok(Self { kind: input.kind, source, detail, file_name: text(&["filename", "fileName"]) })
    }

    /// Returns the URL, or the data as a `data:` URI.
    ///
    /// # Errors
    /// Returns an error if the type of the data is unknown.
    pub(super) fn uri(&self) -> Result<Cow<'a, str>> {
        match &self.source {
            Source::Url(url) => Ok(Cow::Borrowed(url)),
            Source::Data { uri: Some(uri), .. } => Ok(Cow::Borrowed(uri)),
            Source::Data { data, .. } => Ok(Cow::Owned(format!("data:{};base64,{data}", self.media_type()?))),
        }
    }

    /// Returns the MIME type, either as declared or as detected from the data.
    ///
    /// # Errors
    /// Returns an error if the type is unknown.
    pub(super) fn media_type(&self) -> Result<&'a str> {
        let Source::Data { media_type, data, .. } = &self.source else { return Ok("") };
        media_type.or_else(|| sniff(data)).ok_or_else(|| {
            let kind = self.kind.as_str();
            Error::new(Kind::InvalidRequest, format_args!("unknown media type of base64 data of kind {kind}"))
                .with_help("pass a map with `value` and `mediaType`, or a data: URI")
        })
    }
}

fn misfit(input: &RichInput, reason: &str) -> Error {
    let RichInput { name, kind, .. } = input;
    Error::new(Kind::InvalidInput, format_args!("cannot use `{name}` as {}: {reason}", kind.as_str()))
        .with_help("pass a URL, or the content as base64; paths are not read")
}

fn source<'a>(value: &'a str, media_type: Option<&'a str>) -> Source<'a> {
    if is_url(value) {
        return Source::Url(value);
    }
    match value.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) {
        Some((own_type, data)) => {
            let own_type = own_type.split(';').next().filter(|own| !own.is_empty());
            Source::Data { media_type: own_type.or(media_type), data, uri: Some(value) }
        }
        None => Source::Data { media_type, data: value, uri: None },
    }
}

fn is_url(value: &str) -> bool {
    let begins = |scheme: &str| value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    begins("https://") || begins("http://")
}

/// Returns whether a text is base64 with padding, as providers require.
fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    !body.is_empty() && text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(is_digit)
}

/// Detects the MIME type from the first bytes of the data.
fn sniff(data: &str) -> Option<&'static str> {
    const BEGINNINGS: [(&str, &str); 9] = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGODdh", "image/gif"),
        ("R0lGODlh", "image/gif"),
        ("JVBERi0", "application/pdf"),
        ("SUQz", "audio/mpeg"),
        ("ZkxhQ", "audio/flac"),
        ("T2dnUw", "audio/ogg"),
        ("UklGR", "RIFF"),
    ];
    let (_, found) = BEGINNINGS.iter().find(|(beginning, _)| data.starts_with(beginning))?;
    match *found {
        // A RIFF file names its format after its length field.
        "RIFF" if data.get(12..16) == Some("RUJQ") => Some("image/webp"),
        "RIFF" => Some("audio/wav"),
        other => Some(other),
    }
}
