//! Servers at an address, over streamable HTTP. We use our own HTTP client, which does not follow redirects and limits
//! what it reads.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream::{BoxStream, StreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tympan_core::spec::Secret;
use tympan_core::{Error, Result};
use url::Url;

use crate::host::runtime::RuntimeOptions;
use crate::model::token::TokenSource;
use crate::net::client::{self, shown};
use crate::tool::mcp::list::unavailable;
use crate::tool::mcp::message::{self, Notes, Problem};
use crate::tool::mcp::server::Address;

/// How many times to resume an interrupted event stream.
const MAX_RESUMPTIONS: usize = 3;

/// Why a request failed.
#[derive(Debug)]
pub(super) struct HttpFailure {
    /// The error to report.
    pub(super) error: Error,
    /// Whether the server may have received the request.
    pub(super) may_have_begun: bool,
}

impl fmt::Display for HttpFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl StdError for HttpFailure {}

impl From<HttpFailure> for Failed {
    fn from(failure: HttpFailure) -> Self {
        Self::Client(failure)
    }
}

type Failed = StreamableHttpError<HttpFailure>;
type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// Creates a transport for a server at an address.
///
/// # Errors
/// Returns an error if the address or a header is invalid, or if the address comes from a prompt and is not allowed.
pub(super) fn transport(
    address: &Address,
    options: &RuntimeOptions,
    notes: Notes,
) -> Result<StreamableHttpClientTransport<Http>> {
    let url = if address.is_of_prompt {
        options.tool_addresses.check(&address.url)?
    } else {
        let invalid = |reason| unavailable(format_args!("invalid URL of the MCP server: {reason}"));
        Url::parse(&address.url).map_err(invalid)?
    };
    let client = if address.is_of_prompt {
        client::of_tools(&options.http, options.tool_addresses.resolver())?
    } else {
        client::of_host(&options.http, &url)?
    };
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(MAX_RESUMPTIONS);
    let mut config = StreamableHttpClientTransportConfig::with_uri(url.as_str())
        .custom_headers(headers(address)?)
        .max_sse_event_size(message::MAX_BYTES)
        // A new session may have different tools, so it must not be started automatically.
        .reinit_on_expired_session(false);
    config.retry_config = Arc::new(backoff);
    if let Some(key) = &address.key {
        config = config.auth_header(key.expose());
    }
    let origin = url.origin().ascii_serialization();
    Ok(StreamableHttpClientTransport::with_client(
        Http { client, origin: origin.into(), notes, token: address.token.clone() },
        config,
    ))
}

fn headers(address: &Address) -> Result<Headers> {
    let headers = address.headers.iter().map(|(name, value)| {
        let invalid = || unavailable(format_args!("invalid header `{}` for the MCP server", shown(name)));
        let name = HeaderName::try_from(name).map_err(|_| invalid())?;
        let mut value = HeaderValue::try_from(value.expose()).map_err(|_| invalid())?;
        value.set_sensitive(true);
        Ok((name, value))
    });
    headers.collect()
}

/// An HTTP client for one server.
#[derive(Clone)]
pub(super) struct Http {
    client: Client,
    origin: Arc<str>,
    notes: Notes,
    /// Where the access token comes from that is sent instead of a key.
    token: Option<Arc<TokenSource>>,
}

impl Http {
    async fn send(
        &self,
        request: RequestBuilder,
        session: Option<&str>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<Response, Failed> {
        let mut request = request.headers(HeaderMap::from_iter(headers));
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session);
        }
        let token = match &self.token {
            Some(source) => Some(source.token().await.map_err(|error| HttpFailure { error, may_have_begun: false })?),
            None => None,
        };
        if let Some(key) = token.as_ref().map(Secret::expose).or(key.as_deref()) {
            request = request.bearer_auth(key);
        }
        let response = request.send().await.map_err(|failure| self.failed(&failure))?;
        if let (Some(source), Some(token)) = (&self.token, &token) {
            source.after(token, response.status().as_u16());
        }
        Ok(response)
    }

    /// Converts an error. The message contains no key, and nothing of the URL beyond its origin.
    fn failed(&self, failure: &reqwest::Error) -> HttpFailure {
        let error = client::own(failure).cloned();
        let error = error.unwrap_or_else(|| unavailable(format_args!("{}: {}", self.origin, client::reason(failure))));
        HttpFailure { error, may_have_begun: !failure.is_connect() }
    }

    /// Returns an error for an unsuccessful response.
    fn refused(&self, response: &Response) -> HttpFailure {
        let status = response.status().as_u16();
        let error = unavailable(format_args!("{} returned status {status}", self.origin));
        let error = match status {
            401 | 403 => error.with_help("the server requires a key, or rejected the one it received"),
            300..=399 => error.with_help("set the URL that the server redirects to: redirects are not followed"),
            _ => error,
        };
        // A rejected request has not been started. Not all servers use the correct status for an expired session.
        HttpFailure { error, may_have_begun: !response.status().is_client_error() }
    }

    fn problem(&self, problem: Problem) -> HttpFailure {
        self.notes.keep(problem.into());
        HttpFailure { error: problem.into(), may_have_begun: true }
    }

    /// Reads the body of a response, up to the size limit.
    async fn body(&self, mut response: Response) -> Result<Vec<u8>, Failed> {
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(|failure| self.failed(&failure))? {
            if body.len() + piece.len() > message::MAX_BYTES {
                return Err(self.problem(Problem::TooLarge).into());
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// Returns the events of a response. The stream ends at the first error.
    fn events(&self, response: Response) -> Events {
        // Counts the bytes since the last event, which bounds the size of an event.
        let unread = Arc::new(AtomicUsize::new(0));
        let (counter, http) = (unread.clone(), self.clone());
        let bytes = response.bytes_stream().map(move |piece| {
            let piece = piece.map_err(|failure| http.failed(&failure).error)?;
            let count = counter.fetch_add(piece.len(), Ordering::Relaxed) + piece.len();
            if count > message::MAX_BYTES { Err(http.problem(Problem::TooLarge).error) } else { Ok(piece) }
        });
        let http = self.clone();
        let checked = move |event: Result<Sse, SseError>| {
            unread.store(0, Ordering::Relaxed);
            let event = event?;
            let data = event.data.as_deref().unwrap_or_default();
            message::check(data.as_bytes()).map_err(|problem| broken(http.problem(problem).error))?;
            Ok(event)
        };
        SseStream::from_bytes_stream(bytes).map(checked).boxed()
    }
}

fn broken(error: Error) -> SseError {
    SseError::Body(Box::new(error))
}

impl StreamableHttpClient for Http {
    type Error = HttpFailure;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let request = self
            .client
            .post(&*uri)
            .header(ACCEPT, format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}"))
            .header(CONTENT_TYPE, JSON_MIME_TYPE)
            .body(serde_json::to_vec(&message)?);
        let response = self.send(request, session_id.as_deref(), auth_header, custom_headers).await?;
        match response.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => return Ok(StreamableHttpPostResponse::Accepted),
            StatusCode::NOT_FOUND if session_id.is_some() => return Err(StreamableHttpError::SessionExpired),
            status if !status.is_success() => return Err(self.refused(&response).into()),
            _ => {}
        }
        let session = response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
        let is_of = |kind: &str| {
            let given = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
            given.get(..kind.len()).is_some_and(|given| given.eq_ignore_ascii_case(kind.as_bytes()))
        };
        if is_of(EVENT_STREAM_MIME_TYPE) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let ClientJsonRpcMessage::Request(request) = message else { return Ok(StreamableHttpPostResponse::Accepted) };
        if !is_of(JSON_MIME_TYPE) {
            return Err(self.problem(Problem::NoMessage).into());
        }
        let body = self.body(response).await?;
        let answer = message::read(&body).and_then(|read| message::answer_to(&request.id, read));
        let answer = answer.map_err(|problem| self.problem(problem))?;
        Ok(StreamableHttpPostResponse::Json(answer, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failed> {
        // Servers that do not allow clients to end sessions reject this, which is not an error.
        self.send(self.client.delete(&*uri), Some(&session_id), auth_header, custom_headers).await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failed> {
        let mut request = self.client.get(&*uri).header(ACCEPT, EVENT_STREAM_MIME_TYPE);
        if let Some(last) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, last);
        }
        let response = self.send(request, session_id.as_deref(), auth_header, custom_headers).await?;
        match response.status() {
            // Servers without a stream use various status codes to say so.
            status if status.is_client_error() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(self.refused(&response).into()),
            _ => Ok(self.events(response)),
        }
    }
}

/// Returns whether an error guarantees that the server has not started the request.
pub(super) fn is_not_begun(error: &(dyn StdError + 'static)) -> bool {
    match error.downcast_ref::<Failed>() {
        Some(StreamableHttpError::SessionExpired) => true,
        Some(StreamableHttpError::Client(failure)) => !failure.may_have_begun,
        _ => false,
    }
}
