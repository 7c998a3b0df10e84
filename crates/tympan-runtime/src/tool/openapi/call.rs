//! Calls of operations: sends a request with its key, and converts the response for the model.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Request, StatusCode};
use serde::de::IgnoredAny;
use tympan_core::chat::message::{ContentPart, MediaPart};
use tympan_core::spec::Secret;
use tympan_core::{Content, Redactor};
use url::Url;

use crate::Result;
use crate::model::token::TokenSource;
use crate::net::client::Answer;
use crate::net::client::shown;
use crate::net::reach::ToolReach;
use crate::tool::http::ToolClient;
use crate::tool::openapi::operation::{Operation, essence};
use crate::tool::openapi::request::ServiceRequest;
use crate::tool::openapi::schema::bounded_text;
use crate::tool::openapi::upload::Uploads;
use crate::tool::{Invocation, Tool, ToolError, ToolOutput};

/// The maximum number of bytes of a response to read. The model receives fewer.
const MAX_ANSWER: u64 = 8 << 20;
/// The maximum number of characters of an error response.
const MAX_ERROR: usize = 4_000;
/// The image types that models accept.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// An operation and everything needed to call it.
pub(super) struct Call {
    pub(super) operation: Operation,
    pub(super) key: Option<Secret>,
    /// Where the key comes from, if it is an access token.
    pub(super) token: Option<TokenSource>,
    /// What its requests carry, unless the host itself configured the address.
    pub(super) reach: Option<ToolReach>,
    pub(super) client: Arc<ToolClient>,
    pub(super) redactor: Arc<Redactor>,
    /// The files that its requests may carry.
    pub(super) uploads: Arc<Uploads>,
    /// Whether the declaration marks the tool as idempotent.
    pub(super) is_idempotent: bool,
}

/// The implementation of one function.
pub(super) struct Caller(pub(super) Arc<Call>);

impl Tool for Caller {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let call = self.0.clone();
        Box::pin(async move { call.perform(&invocation).await })
    }

    fn is_idempotent(&self) -> bool {
        self.0.is_idempotent || self.0.operation.is_repeatable()
    }
}

impl Call {
    async fn perform(&self, invocation: &Invocation) -> Result<ToolOutput, ToolError> {
        self.reach.as_ref().map_or(Ok(()), |reach| reach.check(&invocation.runtime))?;
        let attempt = self.attempt().await?;
        let request = attempt.request(invocation).map_err(|error| attempt.scrubbed(error.message()))?;
        let url = request.url().clone();
        let answer = self.client.send(request, MAX_ANSWER).await.map_err(|error| attempt.scrubbed(error.message()))?;
        if let (Some(source), Some(token)) = (&self.token, &attempt.key) {
            source.after(token, answer.status.as_u16());
        }
        if answer.status.is_success() { attempt.output(&answer) } else { Err(attempt.failure(&url, &answer)) }
    }

    /// Prepares a call with the key, or with the current token.
    async fn attempt(&self) -> Result<Attempt<'_>> {
        let Some(source) = &self.token else {
            return Ok(Attempt { call: self, key: self.key.clone(), redactor: Cow::Borrowed(&self.redactor) });
        };
        let key = source.token().await?;
        let mut redactor = Redactor::clone(&self.redactor);
        for token in source.issued() {
            redactor.register(token.expose());
            redactor.register_all(
                &self.operation.security.place.iter().flat_map(|place| place.secrets(&token)).collect::<Vec<_>>(),
            );
        }
        Ok(Attempt { call: self, key: Some(key), redactor: Cow::Owned(redactor) })
    }
}

/// A call with its key, and what responses to it must not contain.
struct Attempt<'a> {
    call: &'a Call,
    key: Option<Secret>,
    redactor: Cow<'a, Redactor>,
}

impl Attempt<'_> {
    fn request(&self, invocation: &Invocation) -> Result<Request> {
        let mut request = self
            .call
            .operation
            .request(&invocation.run.arguments, &self.call.uploads)
            .and_then(|made| outgoing(made, self.call))?;
        if !self.call.operation.is_repeatable()
            && let Ok(key) = HeaderValue::from_str(&invocation.idempotency_key)
        {
            request.headers_mut().insert(HeaderName::from_static("idempotency-key"), key);
        }
        if let (Some(key), Some(place)) = (&self.key, &self.call.operation.security.place) {
            place.put(key, &mut request)?;
        }
        Ok(request)
    }

    fn scrubbed(&self, text: &str) -> ToolError {
        self.redactor.text(text).into_owned().into()
    }

    fn output(&self, answer: &Answer) -> Result<ToolOutput, ToolError> {
        let content_type = content_type(&answer.headers);
        if PICTURES.contains(&content_type.as_str()) {
            let part = MediaPart {
                value: STANDARD.encode(&answer.body),
                media_type: Some(content_type),
                detail: None,
                file_name: None,
            };
            return Ok(Content::one(ContentPart::Image(part)).into());
        }
        if answer.body.is_empty() {
            return Ok(format!("Done: status {}, empty response.", answer.status.as_u16()).into());
        }
        match self.text(&answer.body) {
            Some(text) => Ok(text.into()),
            None => {
                let (size, kind) = (answer.body.len(), shown(&content_type));
                Err(self.scrubbed(&format!("the response is {size} bytes of `{kind}`, which cannot be shown")))
            }
        }
    }

    /// Converts a body to redacted text. Whitespace is removed from JSON; other text is unchanged.
    fn text(&self, body: &[u8]) -> Option<String> {
        let text = std::str::from_utf8(body).ok()?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let looks_binary = text.chars().any(|char| char.is_control() && !char.is_whitespace() && char != '\u{1b}');
        let is_json = serde_json::from_str::<IgnoredAny>(text).is_ok();
        match (is_json, looks_binary) {
            (true, _) => Some(self.redactor.text(&compact(text)).into_owned()),
            (false, true) => None,
            (false, false) => Some(self.redactor.text(text).into_owned()),
        }
    }

    fn failure(&self, url: &Url, answer: &Answer) -> ToolError {
        let status = answer.status;
        let mut text = format!("status {}", status.as_u16());
        if let Some(reason) = status.canonical_reason() {
            text = format!("{text} {reason}");
        }
        if status.is_redirection() {
            return self.scrubbed(&format!("{text}{}", elsewhere(url, status, &answer.headers)));
        }
        match self.text(&answer.body).filter(|body| !body.is_empty()) {
            Some(body) => self.scrubbed(&format!("{text}: {}", bounded_text(&body, MAX_ERROR))),
            None => text.into(),
        }
    }
}

/// Removes whitespace between JSON values. Numbers are copied verbatim, whatever their length.
fn compact(json: &str) -> String {
    let mut compact = String::with_capacity(json.len());
    let (mut in_string, mut is_escaped) = (false, false);
    for char in json.chars() {
        if in_string || !char.is_ascii_whitespace() {
            compact.push(char);
        }
        if char == '"' && !is_escaped {
            in_string = !in_string;
        }
        is_escaped = in_string && char == '\\' && !is_escaped;
    }
    compact
}

/// Describes the target of a redirect. The query is not included, because it may contain a credential.
fn elsewhere(url: &Url, status: StatusCode, headers: &HeaderMap) -> String {
    if status == StatusCode::NOT_MODIFIED {
        return String::new();
    }
    let location = headers.get(LOCATION).and_then(|location| location.to_str().ok());
    let to = location.and_then(|location| url.join(location).ok()).filter(Url::has_host);
    let to = to.map(|to| format!(" to {}{}", to.origin().ascii_serialization(), shown(to.path())));
    format!("{}: redirects are not followed", to.unwrap_or_default())
}

fn content_type(headers: &HeaderMap) -> String {
    essence(headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default())
}

fn outgoing(made: ServiceRequest, call: &Call) -> Result<Request> {
    let ServiceRequest { url, headers, body, .. } = made;
    let mut request = Request::new(call.operation.method.clone(), url);
    for (name, value) in headers {
        let invalid = || crate::Error::new(crate::Kind::InvalidRequest, "invalid header");
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
        request.headers_mut().insert(name, HeaderValue::from_str(&value).map_err(|_| invalid())?);
    }
    *request.body_mut() = body.map(Into::into);
    Ok(request)
}
