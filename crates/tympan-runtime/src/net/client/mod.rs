//! The HTTP client of the runtime.
//!
//! It transports bytes: it sends a [`WireRequest`] and returns a response of limited size, either complete or as a
//! stream. [`tympan_core::wire`] encodes and decodes the bytes. Timeouts, retries and redirects are described in the
//! guide under *The network*, and configured with [`HttpOptions`].

use std::fmt;
use std::sync::Arc;

use tympan_core::wire::WireRequest;

use crate::model::spending::Reservation;
use crate::net::io::{self, PerProcess, Task};
use crate::{Error, Result};

mod body;
mod call;
mod content;
mod failure;
mod once;
mod options;
mod pool;
mod redirect;
mod retry;
pub(crate) mod tls;
mod upload;

pub use body::ByteStream;
pub use content::Content;
pub use options::{HttpOptions, ProxyPolicy, Sleep};
pub use upload::FileBody;

pub(crate) use failure::{own, reason, shown};
pub(crate) use once::{Answer, send_once};
pub(crate) use pool::{of_host, of_tools};

use call::Call;
use content::Expected;
use failure::Failure;
use pool::Pools;
use upload::RequestBody;

/// An HTTP client with its connections. Clones share them.
#[derive(Clone)]
pub struct HttpClient(Arc<Shared>);

struct Shared {
    options: Arc<HttpOptions>,
    /// The connection pools. A child process must not use the connections of its parent.
    pools: PerProcess<Result<Pools>>,
}

/// A complete response.
#[derive(Clone, PartialEq, Eq)]
pub struct WireResponse {
    /// The status, which is from 200 to 299, because all others are errors.
    pub status: u16,
    /// The content type, as the provider sent it.
    pub content_type: Option<String>,
    /// The provider's ID for the request, for support inquiries.
    pub request_id: Option<String>,
    /// The body. It looks like JSON, but has not been parsed.
    pub body: Vec<u8>,
}

impl fmt::Debug for WireResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireResponse")
            .field("status", &self.status)
            .field("content_type", &self.content_type)
            .field("request_id", &self.request_id)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

impl HttpClient {
    /// Creates a client. It does not connect yet.
    ///
    /// # Errors
    ///
    /// Returns [`Kind::InvalidRequest`](crate::Kind::InvalidRequest) if the proxy, the user agent or the certificates
    /// are invalid.
    pub fn new(options: HttpOptions) -> Result<Self> {
        let shared = Shared { options: Arc::new(options), pools: PerProcess::new() };
        shared.pools()?;
        Ok(Self(Arc::new(shared)))
    }

    /// Returns the options.
    pub fn options(&self) -> &HttpOptions {
        &self.0.options
    }

    /// Sends a request and reads the whole response.
    ///
    /// Dropping the task closes the connection.
    pub fn send(&self, request: WireRequest) -> Task<WireResponse> {
        self.send_within(request, None)
    }

    /// Sends a request like [`HttpClient::send`]. Each attempt after a failure that may have cost something needs a
    /// reservation of its own.
    pub(crate) fn send_within(
        &self,
        request: WireRequest,
        reservation: Option<Arc<Reservation>>,
    ) -> Task<WireResponse> {
        let shared = Arc::clone(&self.0);
        io::spawn(async move {
            let call = shared.call(request, Expected::Json)?;
            let mut stream = call.open(reservation).await.map_err(|failure| failure.error)?;
            let body = stream.read_to_end().await?;
            let (status, content_type, request_id) = stream.into_head();
            Ok(WireResponse { status, content_type, request_id, body })
        })
    }

    /// Sends a request. The task completes when the first byte of the response arrives; the rest is available as a
    /// stream.
    ///
    /// Dropping the task, and later the stream, closes the connection.
    pub fn stream(&self, request: WireRequest) -> Task<ByteStream> {
        self.stream_within(request, None)
    }

    /// Sends a request like [`HttpClient::stream`], with reservations like [`HttpClient::send_within`].
    pub(crate) fn stream_within(
        &self,
        request: WireRequest,
        reservation: Option<Arc<Reservation>>,
    ) -> Task<ByteStream> {
        let shared = Arc::clone(&self.0);
        io::spawn(async move {
            shared.call(request, Expected::Events)?.open(reservation).await.map_err(|failure| failure.error)
        })
    }

    /// Sends a request to a resource of a provider's API, with options of its own, and reads the whole response.
    pub(crate) fn transfer(&self, transfer: Transfer) -> Task<Result<Vec<u8>, TransferError>> {
        let shared = Arc::clone(&self.0);
        io::spawn(async move {
            let call = shared.transfer(transfer, Expected::Json)?;
            let mut stream = match call.open(None).await {
                Ok(stream) => stream,
                Err(failure) => return Ok(Err(failure.into())),
            };
            Ok(stream.read_to_end().await.map_err(|error| Failure::for_good(error).into()))
        })
    }

    /// Requests a file with a JSON document per line, with options of its own.
    pub(crate) fn download(&self, transfer: Transfer) -> Task<ByteStream> {
        let shared = Arc::clone(&self.0);
        io::spawn(async move {
            let call = shared.transfer(transfer, Expected::Lines)?;
            call.open(None).await.map_err(|failure| failure.error)
        })
    }
}

/// A request to a resource of a provider's API.
pub(crate) struct Transfer {
    pub(crate) request: WireRequest,
    /// A body that replaces the request's, and is read while it is sent.
    pub(crate) file: Option<FileBody>,
    /// Whether to send the request again even if the server may have acted on it.
    pub(crate) is_repeatable: bool,
    pub(crate) options: HttpOptions,
}

/// Why a request failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TransferError {
    /// The error.
    pub error: Error,
    /// Whether the server may have done what was requested.
    pub is_outcome_unknown: bool,
}

impl From<Failure> for TransferError {
    fn from(failure: Failure) -> Self {
        Self { error: failure.error, is_outcome_unknown: !failure.is_without_effect }
    }
}

/// The request was not sent.
impl From<Error> for TransferError {
    fn from(error: Error) -> Self {
        Self { error, is_outcome_unknown: false }
    }
}

impl Shared {
    fn pools(&self) -> Result<&Pools> {
        self.pools.get(|| Pools::new(&self.options)).as_ref().map_err(Clone::clone)
    }

    fn call(&self, request: WireRequest, expected: Expected) -> Result<Call> {
        Call::new(Arc::clone(&self.options), self.pools()?, request, expected)
    }

    fn transfer(&self, transfer: Transfer, expected: Expected) -> Result<Call> {
        let Transfer { request, file, is_repeatable, options } = transfer;
        let call = Call::new(Arc::new(options), self.pools()?, request, expected)?;
        let call = if is_repeatable { call } else { call.once() };
        Ok(match file {
            Some(file) => call.with_body(RequestBody::File(file)),
            None => call,
        })
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HttpClient").field(&self.0.options).finish()
    }
}
