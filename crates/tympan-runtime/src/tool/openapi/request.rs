//! Converts arguments to a request. Whatever a model writes, the request goes to the operation that it called.

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::Value as Json;
use tympan_core::{Error, JsonMap, Kind, Result};
use url::Url;

use crate::net::client::shown;
use crate::tool::openapi::Reason;
use crate::tool::openapi::operation::{BODY, Body, Location, Operation, Parameter, PathPart};
use crate::tool::openapi::security::KeyPlace;
use crate::tool::openapi::serialize::{Pair, Style, encode, joined, one, pairs};
use crate::tool::openapi::upload::{Uploads, multipart};

/// The maximum length of a URL, in bytes.
pub(super) const MAX_ADDRESS: usize = 16 << 10;

/// The headers that parameters cannot set. They control the HTTP request, carry credentials, or are derived from the
/// request.
const RESERVED: [&str; 21] = [
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "host",
    "http2-settings",
    "idempotency-key",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// Returns whether a header, in lowercase, is reserved.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// A request without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServiceRequest {
    /// The method, in uppercase.
    pub method: String,
    /// The URL.
    pub url: Url,
    /// The headers, in order, with names in lowercase.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

impl Operation {
    /// Builds a request from arguments.
    ///
    /// # Errors
    /// Returns an error, worded for the model, if the arguments are invalid.
    pub(super) fn request(&self, arguments: &JsonMap, uploads: &Uploads) -> Result<ServiceRequest> {
        let refused = |argument: &str, reason: Reason| {
            Error::new(Kind::InvalidRequest, format_args!("`{}`: {reason}", shown(argument)))
        };
        let known =
            |name: &String| name == BODY && self.body.is_some() || self.parameters.iter().any(|p| p.argument == *name);
        if let Some(unknown) = arguments.keys().find(|name| !known(name)) {
            return Err(refused(unknown, "unknown parameter".to_owned()));
        }
        let (mut query, mut headers, mut cookies) = (Vec::new(), vec![accept()], Vec::new());
        for parameter in self.parameters.iter().filter(|parameter| parameter.location != Location::Path) {
            // A null value counts as missing, because only JSON can represent null.
            let value = arguments.get(&parameter.argument).filter(|value| !value.is_null());
            let Some(value) = value else { continue };
            let refused = |reason| refused(&parameter.argument, reason);
            match parameter.location {
                Location::Query => query.extend(self.query(parameter, value).map_err(refused)?),
                Location::Cookie => {
                    let text = one(&parameter.name, value, parameter.style, false, encode).map_err(refused)?;
                    cookies.push(format!("{}={text}", parameter.name));
                }
                Location::Header | Location::Path => headers.push(header(parameter, value).map_err(refused)?),
            }
        }
        if !cookies.is_empty() {
            headers.push(("cookie".to_owned(), cookies.join("; ")));
        }
        let body = match (&self.body, arguments.get(BODY)) {
            (Some(how), Some(value)) => {
                let (content_type, body) = body(how, value, uploads).map_err(|reason| refused(BODY, reason))?;
                headers.push(("content-type".to_owned(), content_type));
                Some(body)
            }
            _ => None,
        };
        let path = self.path(arguments)?;
        Ok(ServiceRequest { method: self.method.to_string(), url: self.address(&path, &query)?, headers, body })
    }

    fn query(&self, parameter: &Parameter, value: &Json) -> Result<Vec<Pair>, Reason> {
        let pairs = pairs(&parameter.name, value, parameter.style, parameter.explode)?;
        match &self.security.place {
            Some(KeyPlace::Query(key)) if pairs.iter().any(|pair| pair.name == *key) => {
                Err("reserved for the API key".to_owned())
            }
            _ => Ok(pairs),
        }
    }

    fn path(&self, arguments: &JsonMap) -> Result<String> {
        let mut path = String::new();
        for piece in &self.path {
            match piece {
                PathPart::Text(text) => path.push_str(text),
                PathPart::Parameter(index) => {
                    let Some(parameter) = self.parameters.get(*index) else { continue };
                    path.push_str(&path_value(parameter, arguments.get(&parameter.argument)).map_err(|reason| {
                        Error::new(Kind::InvalidRequest, format_args!("`{}`: {reason}", shown(&parameter.argument)))
                    })?);
                }
            }
        }
        Ok(path)
    }

    /// Returns the URL of the request, if it is still below the server's.
    fn address(&self, path: &str, query: &[Pair]) -> Result<Url> {
        let refused = |reason: &str| Error::new(Kind::InvalidRequest, reason);
        let base = self.base.path().trim_end_matches('/');
        let whole = format!("{base}{path}");
        if !is_straight(&whole) {
            return Err(refused("a value would change the path"));
        }
        let mut text = format!("{}{whole}", self.base.origin().ascii_serialization());
        if !query.is_empty() {
            text = format!("{text}?{}", joined(query));
        }
        if text.len() > MAX_ADDRESS {
            return Err(refused("the URL would be too long"));
        }
        let url = Url::parse(&text).map_err(|_| refused("invalid URL"))?;
        // The checks above should ensure this, but the request carries a key, so check again.
        let is_same = url.origin() == self.base.origin() && url.path() == whole && url.fragment().is_none();
        let is_plain = url.username().is_empty() && url.password().is_none();
        if is_same && is_plain { Ok(url) } else { Err(refused("a value would change the URL")) }
    }

    /// Returns whether the same request can safely be sent twice.
    pub(super) fn is_repeatable(&self) -> bool {
        self.method != Method::POST && self.method != Method::PATCH
    }
}

fn accept() -> (String, String) {
    ("accept".to_owned(), "application/json, text/*;q=0.9, image/*;q=0.9, */*;q=0.1".to_owned())
}

/// Returns whether no segment of a path is `.` or `..`. URL parsers also recognize percent-encoded dots.
pub(super) fn is_straight(path: &str) -> bool {
    path.split('/').all(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain != "." && plain != ".."
    })
}

fn path_value(parameter: &Parameter, value: Option<&Json>) -> Result<String, Reason> {
    let value = value.ok_or("missing")?;
    let texts: Vec<String> = texts(value);
    // An empty segment, or one with its own path, would call a different operation.
    if texts.is_empty() || texts.iter().any(String::is_empty) {
        return Err("a path parameter cannot be empty".to_owned());
    }
    let climbs = |text: &String| text.split(['/', '\\', ';']).any(|segment| segment == "." || segment == "..");
    if texts.iter().any(climbs) {
        return Err("a path parameter cannot contain `.` or `..` segments".to_owned());
    }
    one(&parameter.name, value, parameter.style, parameter.explode, encode)
}

/// Returns all texts in a value that would appear in a path.
fn texts(value: &Json) -> Vec<String> {
    match value {
        Json::Array(items) => items.iter().flat_map(texts).collect(),
        Json::Object(map) => {
            map.iter().flat_map(|(key, value)| std::iter::once(key.clone()).chain(texts(value))).collect()
        }
        Json::String(text) => vec![text.clone()],
        other => vec![other.to_string()],
    }
}

fn header(parameter: &Parameter, value: &Json) -> Result<(String, String), Reason> {
    let text = one(&parameter.name, value, parameter.style, parameter.explode, str::to_owned)?;
    let is_line = text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
    if !is_line || HeaderValue::from_str(&text).is_err() {
        return Err("a header must be one line of ASCII".to_owned());
    }
    Ok((parameter.name.to_ascii_lowercase(), text))
}

fn body(how: &Body, value: &Json, uploads: &Uploads) -> Result<(String, Vec<u8>), Reason> {
    let styles = match how {
        Body::Multipart { files } => return multipart(value, files, uploads),
        Body::Json { content_type } => return Ok((content_type.clone(), value.to_string().into_bytes())),
        Body::Form { styles } => styles,
    };
    let map = value.as_object().ok_or("a form must be a map")?;
    let mut all = Vec::new();
    for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        let own = styles.iter().find(|(of, ..)| of == name).map(|(_, style, explode)| (*style, *explode));
        let is_nested = |value: &Json| value.is_object() || value.is_array();
        let (style, explode) = own.unwrap_or(match value {
            Json::Object(_) => (Style::Json, false),
            Json::Array(items) if items.iter().any(is_nested) => (Style::Json, false),
            _ => (Style::Form, true),
        });
        all.extend(pairs(name, value, style, explode)?);
    }
    Ok(("application/x-www-form-urlencoded".to_owned(), joined(&all).into_bytes()))
}
