//! A request: validation, sending, redirects and retries.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::{Client, Method, Request, Response};
use tokio::time::{Instant, timeout_at};
use tympan_core::Redactor;
use tympan_core::wire::{self, Header, Protocol, WireRequest};
use url::Url;

use crate::model::spending::Reservation;
use crate::net::client::body::{Announced, ByteStream, later};
use crate::net::client::content::Expected;
use crate::net::client::failure::{Failure, timeout};
use crate::net::client::options::HttpOptions;
use crate::net::client::pool::Pools;
use crate::net::client::redirect::{self, MAX_REDIRECTS};
use crate::net::client::retry::{self, Again};
use crate::net::client::upload::RequestBody;
use crate::{Error, Kind, Result};

/// The headers that control the framing and the destination of a message. They are derived from the request and cannot
/// be set, which prevents request smuggling.
const RESERVED: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request that is being sent.
pub(super) struct Call {
    options: Arc<HttpOptions>,
    client: Client,
    protocol: Protocol,
    expected: Expected,
    /// Whether to retry even if the server may have acted on the request.
    is_repeatable: bool,
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: RequestBody,
    redactor: Redactor,
    deadline: Instant,
}

impl Call {
    pub(super) fn new(
        options: Arc<HttpOptions>,
        pools: &Pools,
        request: WireRequest,
        expected: Expected,
    ) -> Result<Self> {
        let url = address(&request.url)?;
        let mut redactor = Redactor::default();
        let headers = headers(&request.headers, expected, &mut redactor)?;
        redactor.register_all(&tympan_core::secret::url::secrets_of_url(&request.url));
        let method = Method::from_bytes(request.method.as_bytes())
            .map_err(|_| Error::new(Kind::InvalidRequest, "invalid HTTP method"))?;
        Ok(Self {
            client: pools.client(&url).clone(),
            deadline: later(options.total_timeout),
            protocol: request.protocol,
            body: RequestBody::Bytes(request.body.into()),
            options,
            expected,
            is_repeatable: true,
            method,
            url,
            headers,
            redactor,
        })
    }

    /// Replaces the body.
    pub(super) fn with_body(self, body: RequestBody) -> Self {
        Self { body, ..self }
    }

    /// Sends the request again only if the server certainly did nothing.
    pub(super) fn once(self) -> Self {
        Self { is_repeatable: false, ..self }
    }

    /// Sends the request, with retries, until the response begins.
    pub(super) async fn open(self, reservation: Option<Arc<Reservation>>) -> Result<ByteStream, Failure> {
        let mut attempt = 0;
        loop {
            let failure = match self.attempt().await {
                Ok(stream) => return Ok(stream),
                Err(failure) => failure,
            };
            let error = failure.error.clone();
            let wait = self.wait_before_next(attempt, failure)?;
            if let Some(reservation) = &reservation {
                reservation.renew(&error).await.map_err(Failure::for_good)?;
            }
            (self.options.sleep)(wait).await;
            attempt += 1;
        }
    }

    /// Returns how long to wait before the next attempt, or the failure if there is none.
    fn wait_before_next(&self, attempt: u32, failure: Failure) -> Result<Duration, Failure> {
        let Failure { error, again, is_without_effect } = failure;
        let failed = |error| Failure { error, again: Again::Never, is_without_effect };
        let wait = match again {
            Again::Never => return Err(failed(error)),
            _ if !self.is_repeatable && !is_without_effect => return Err(failed(error)),
            Again::After(wait) if wait > self.options.max_retry_wait => {
                let most = self.options.max_retry_wait.as_secs();
                let wait = wait.as_secs();
                return Err(failed(error.with_help(format!(
                    "the provider asks to wait {wait} s; the limit of this client is \
                    {most} s"
                ))));
            }
            _ if attempt >= self.options.max_retries => {
                let tried = format!("tried {} times", u64::from(attempt) + 1);
                let help = error.help().map_or_else(|| tried.clone(), |help| format!("{help}; {tried}"));
                return Err(failed(error.with_help(help)));
            }
            Again::After(wait) => wait,
            Again::Soon => retry::backoff(self.options.backoff_base, attempt),
        };
        if later(wait) > self.deadline {
            return Err(failed(error));
        }
        tracing::debug!(code = error.code(), attempt, wait_ms = wait.as_millis(), "retrying a request");
        Ok(wait)
    }

    async fn attempt(&self) -> Result<ByteStream, Failure> {
        let first_byte = later(self.options.first_byte_timeout);
        let response = self.follow(first_byte).await?;
        let status = response.status();
        let again = retry::for_status(status.as_u16(), response.headers());
        let announced = Announced::by(&response);
        let stream = ByteStream::new(response, &self.options, first_byte, self.deadline);
        if status.is_success() {
            return stream.begin(announced, self.expected).await;
        }
        let body = stream.read_some(self.options.max_error_bytes).await;
        let body = String::from_utf8_lossy(&body);
        let body = self.redactor.text(&body);
        let error = wire::decode_error(self.protocol, status.as_u16(), body.as_bytes());
        let error = match again {
            Again::After(wait) => error.with_retry_after(wait),
            Again::Never | Again::Soon => error,
        };
        // The server has refused the request. After a timeout of its own or an internal error, nobody knows.
        let is_without_effect = (400..500).contains(&status.as_u16()) && status.as_u16() != 408;
        Err(Failure { error, again, is_without_effect })
    }

    /// Returns the head of the response, after following redirects within the origin.
    async fn follow(&self, first_byte: Instant) -> Result<Response, Failure> {
        let refused = |error| Failure::for_good(error).without_effect();
        let mut url = self.url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let response = self.exchange(url.clone(), first_byte).await?;
            let location = response.headers().get(LOCATION).map(HeaderValue::as_bytes);
            match redirect::target(&url, response.status(), location).map_err(refused)? {
                Some(target) => url = target,
                None => return Ok(response),
            }
        }
        let what = format!("more than {MAX_REDIRECTS} redirects");
        Err(refused(Error::new(Kind::RedirectRefused, what)))
    }

    async fn exchange(&self, url: Url, first_byte: Instant) -> Result<Response, Failure> {
        let mut request = Request::new(self.method.clone(), url);
        request.headers_mut().clone_from(&self.headers);
        if let Some(length) = self.body.length() {
            request.headers_mut().insert(CONTENT_LENGTH, length.into());
        }
        *request.body_mut() = self.body.to_body();
        execute(&self.client, request, &self.options, first_byte, self.deadline).await
    }
}

/// Sends a request once, and waits for the head of the response.
pub(super) async fn execute(
    client: &Client,
    request: Request,
    options: &HttpOptions,
    first_byte: Instant,
    deadline: Instant,
) -> Result<Response, Failure> {
    let origin = request.url().origin().ascii_serialization();
    let (at, kind, limit) = if deadline < first_byte {
        (deadline, Kind::TotalTimeout, options.total_timeout)
    } else {
        (first_byte, Kind::FirstByteTimeout, options.first_byte_timeout)
    };
    match timeout_at(at, client.execute(request)).await {
        Ok(answer) => answer.map_err(|error| Failure::no_answer(error.without_url(), &origin, options.connect_timeout)),
        Err(_) => Err(Failure::for_good(timeout(kind, &origin, limit))),
    }
}

/// Parses a URL. It may contain a key, so it is not shown in errors.
fn address(text: &str) -> Result<Url> {
    let invalid =
        || Error::new(Kind::InvalidRequest, "invalid URL").with_help("write http://host/path or https://host/path");
    let url = Url::parse(text).map_err(|_| invalid())?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() { Ok(url) } else { Err(invalid()) }
}

fn headers(from: &[Header], expected: Expected, redactor: &mut Redactor) -> Result<HeaderMap> {
    let mut headers = HeaderMap::with_capacity(from.len() + 2);
    headers.insert(ACCEPT, HeaderValue::from_static(expected.accept()));
    if expected == Expected::Events {
        // Compression would delay events until enough of them are buffered.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    for Header { name, value } in from {
        let invalid = |what: &str| Error::new(Kind::InvalidRequest, format_args!("header {name:?} {what}"));
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(Error::new(Kind::InvalidRequest, "invalid header name"));
        };
        if RESERVED.contains(&parsed.as_str()) {
            return Err(invalid("cannot be set: the client sets it"));
        }
        let help = "use one line of printable ASCII; a key read from a file often ends with a line break";
        let invalid_value = || invalid("contains characters that are not allowed in HTTP headers").with_help(help);
        let value_text = Some(value.expose()).filter(|text| text.is_ascii()).ok_or_else(invalid_value)?;
        let mut exposed = HeaderValue::from_str(&value_text).map_err(|_| invalid_value())?;
        if let wire::HeaderValue::Secret { secret, .. } = value {
            exposed.set_sensitive(true);
            redactor.register(secret.expose());
        }
        headers.insert(parsed, exposed);
    }
    Ok(headers)
}
