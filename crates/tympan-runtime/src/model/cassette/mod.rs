//! Cassettes: recorded exchanges with a provider, stored as readable files, so that a run can be replayed offline.
//!
//! A file contains one exchange. It is found by a hash of the request, which covers everything that the provider would
//! see except the credentials and the `user-agent`. Only complete responses are recorded, and secrets are removed
//! before anything is written to disk.

mod difference;
mod stream_redaction;

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tympan_core::json::canonical_json;
use tympan_core::text::hash::sha256_hex;
use tympan_core::wire::{HeaderValue, WireRequest};
use tympan_core::{Error, Kind, Result};
use url::Url;

use crate::file::{read, write};

/// The version of the file format.
const VERSION: u32 = 1;

/// The maximum size of a file, in bytes. It is larger than any response that the client accepts.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Whether to record or replay exchanges.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cassette {
    /// Calls the provider, and records the exchange in this directory.
    Record(PathBuf),
    /// Never calls the provider. Responses come from this directory; if there is none, the call fails.
    Replay(PathBuf),
}

/// The contents of a file.
#[derive(Serialize, Deserialize)]
struct Exchange {
    version: u32,
    request: Request,
    response: Recorded,
}

/// A request without the parts that differ between machines.
#[derive(Serialize, Deserialize)]
struct Request {
    method: String,
    url: String,
    stream: bool,
    headers: BTreeMap<String, String>,
    body: Json,
}

/// A complete response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Recorded {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The content type.
    pub(crate) content_type: Option<String>,
    /// The content.
    #[serde(flatten)]
    pub(crate) content: Content,
}

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Content {
    /// A complete body, as JSON.
    Body(Json),
    /// A stream, in its original chunks.
    Chunks(Vec<String>),
}

impl Recorded {
    /// Converts a complete response.
    pub(crate) fn whole(status: u16, content_type: Option<String>, body: &[u8]) -> Self {
        let text = || Json::String(String::from_utf8_lossy(body).into_owned());
        let body = serde_json::from_slice(body).unwrap_or_else(|_| text());
        Self { status, content_type, content: Content::Body(body) }
    }

    /// Converts a streamed response. If a chunk ends in the middle of a character, the whole character is moved to the
    /// next chunk.
    pub(crate) fn streamed(status: u16, content_type: Option<String>, chunks: &[Vec<u8>]) -> Self {
        let mut pieces: Vec<String> = Vec::with_capacity(chunks.len());
        let mut pending = Vec::new();
        for chunk in chunks {
            pending.extend_from_slice(chunk);
            let whole = match str::from_utf8(&pending) {
                Ok(text) => text.len(),
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Err(_) => pending.len(),
            };
            if whole > 0 {
                pieces.push(String::from_utf8_lossy(&pending[..whole]).into_owned());
                pending.drain(..whole);
            }
        }
        if !pending.is_empty() {
            pieces.push(String::from_utf8_lossy(&pending).into_owned());
        }
        Self { status, content_type, content: Content::Chunks(pieces) }
    }

    /// Returns the bytes of the response, in the chunks to deliver.
    pub(crate) fn pieces(&self) -> Vec<Vec<u8>> {
        match &self.content {
            Content::Body(Json::String(text)) => vec![text.clone().into_bytes()],
            Content::Body(body) => vec![body.to_string().into_bytes()],
            Content::Chunks(chunks) => chunks.iter().map(|chunk| chunk.clone().into_bytes()).collect(),
        }
    }

    /// Redacts the response. If a secret spans several chunks or events, the chunks are merged.
    fn scrubbed(self, scrub: &dyn Fn(Json) -> Json) -> Self {
        let content = match self.content {
            Content::Body(body) => Content::Body(scrub(body)),
            Content::Chunks(chunks) => {
                let joined = chunks.concat();
                let scrubbed = scrub(Json::String(joined.clone()));
                let scrubbed = stream_redaction::scrub(scrubbed.as_str().unwrap_or_default(), scrub);
                Content::Chunks(if scrubbed == joined { chunks } else { vec![scrubbed] })
            }
        };
        let content_type = self.content_type.map(|text| match scrub(Json::String(text)) {
            Json::String(clean) => clean,
            _ => String::new(),
        });
        Self { content, content_type, ..self }
    }
}

/// Records an exchange, replacing any existing one with the same request.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(crate) fn record(
    directory: &Path,
    request: &WireRequest,
    response: Recorded,
    scrub: &dyn Fn(Json) -> Json,
) -> Result<()> {
    let request = describe(request, scrub);
    let path = directory.join(file_name(&request));
    let exchange = Exchange { version: VERSION, request, response: response.scrubbed(scrub) };
    let text = serde_json::to_string_pretty(&exchange).map_err(|error| cannot("write", &path, &error))? + "\n";
    let written = fs::create_dir_all(directory).and_then(|()| write::put(&path, text.as_bytes(), 0o600));
    written.map_err(|error| cannot("write", &path, &error))
}

/// Returns the recorded response to a request.
///
/// # Errors
/// Returns an error if there is none, describing the differences from the most similar request, or if a file cannot be
/// read.
pub(crate) fn replay(directory: &Path, request: &WireRequest, scrub: &dyn Fn(Json) -> Json) -> Result<Recorded> {
    let request = describe(request, scrub);
    let name = file_name(&request);
    let path = directory.join(&name);
    match file_bytes(directory, &name) {
        Ok(bytes) => Ok(parse(&path, &bytes)?.response),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(unknown(directory, &request)),
        Err(error) => Err(cannot("read", &path, &error)),
    }
}

fn file_bytes(directory: &Path, name: impl AsRef<Path>) -> std::io::Result<Vec<u8>> {
    read::open_in(directory, name).and_then(|file| read::bytes(file, MAX_FILE_BYTES))
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Exchange> {
    let exchange: Exchange = serde_json::from_slice(bytes).map_err(|error| cannot("read", path, &error))?;
    if exchange.version != VERSION {
        let reason = format!("unsupported version {}, expected {VERSION}", exchange.version);
        return Err(cannot("read", path, &reason));
    }
    Ok(exchange)
}

fn cannot(what: &str, path: &Path, reason: &dyn std::fmt::Display) -> Error {
    Error::new(Kind::InvalidCassette, format_args!("cannot {what} {}: {reason}", path.display()))
        .with_help("delete the file and record it again")
}

/// Returns an error for an unknown request, with the differences from the most similar one.
fn unknown(directory: &Path, asked: &Request) -> Error {
    let details = format!("{} {} in {}", asked.method, asked.url, directory.display());
    let error = Error::new(Kind::UnknownExchange, details);
    let Ok(files) = fs::read_dir(directory) else {
        return error.with_help("the directory does not exist; record the exchange first");
    };
    let names = files.filter_map(|file| Some(PathBuf::from(file.ok()?.file_name())));
    let names = names.filter(|name| name.extension().is_some_and(|extension| extension == "json"));
    let known = names.filter_map(|name| {
        let path = directory.join(&name);
        let exchange = parse(&path, &file_bytes(directory, &name).ok()?).ok()?;
        let asked = serde_json::to_value(asked).ok()?;
        let differences = difference::between(&serde_json::to_value(&exchange.request).ok()?, &asked);
        Some((differences, path))
    });
    // If several are equally similar, choose the first by name, so that the result is the same on every machine.
    let nearest = known.min_by(|(a, path_a), (b, path_b)| a.len().cmp(&b.len()).then_with(|| path_a.cmp(path_b)));
    match nearest {
        None => error.with_help("the directory contains no recordings"),
        Some((differences, path)) => {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            error.with_help(format!(
                "the closest recording is {name}, which differs in {}",
                difference::show(&differences)
            ))
        }
    }
}

fn file_name(request: &Request) -> String {
    let canonical = serde_json::to_value(request).map(canonical_json).unwrap_or_default();
    let model = request.body.get("model").and_then(Json::as_str).unwrap_or("request");
    let model: String = model
        .chars()
        .map(|char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' })
        .take(40)
        .collect();
    format!("{model}.{}.json", &sha256_hex(canonical)[..24])
}

fn describe(request: &WireRequest, scrub: &dyn Fn(Json) -> Json) -> Request {
    let text = || Json::String(request.body.clone());
    let body = if request.body.is_empty() {
        Json::Null
    } else {
        serde_json::from_str(&request.body).unwrap_or_else(|_| text())
    };
    let headers = request.headers.iter().filter(|header| header.name != "user-agent");
    let headers = headers.filter_map(|header| match &header.value {
        HeaderValue::Plain(value) => Some((header.name.clone(), value.clone())),
        HeaderValue::Secret { .. } => None,
    });
    Request {
        method: request.method.to_owned(),
        url: scrubbed_url(&request.url, scrub),
        stream: request.stream,
        headers: headers.collect(),
        body: scrub(body),
    }
}

/// Removes credentials from a URL.
fn scrubbed_url(url: &str, scrub: &dyn Fn(Json) -> Json) -> String {
    let Ok(mut parsed) = Url::parse(url) else { return String::new() };
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    if parsed.query().is_some() {
        let pairs: Vec<_> = parsed.query_pairs().into_owned().collect();
        let pairs = pairs.into_iter().map(|(name, value)| {
            let map = Json::Object([(name.clone(), Json::String(value))].into_iter().collect());
            let value = scrub(map).get(&name).and_then(Json::as_str).unwrap_or_default().to_owned();
            (name, value)
        });
        let pairs: Vec<_> = pairs.collect();
        parsed.query_pairs_mut().clear().extend_pairs(pairs);
    }
    match scrub(Json::String(parsed.to_string())) {
        Json::String(url) => url,
        _ => String::new(),
    }
}
