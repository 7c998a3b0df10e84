//! The body of a response, with time and size limits.

use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::BoxStream;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use tokio::time::{Instant, Sleep};

use crate::net::client::content::{self, Content, Expected};
use crate::net::client::failure::{Failure, broken_off, timeout};
use crate::net::client::options::HttpOptions;
use crate::net::client::retry::Again;
use crate::net::io;
use crate::{Error, Kind, Result};

/// A response that arrives in chunks.
///
/// Nothing is read ahead, so a slow reader slows down the provider. Dropping the stream closes the connection, unless
/// the response was read to its end.
pub struct ByteStream {
    status: u16,
    content_type: Option<String>,
    request_id: Option<String>,
    content: Content,
    origin: String,
    /// The ID of the process that owns the connection.
    process: u32,
    /// The connection, until the response is over.
    live: Option<Live>,
    /// The first chunk, which was read to determine the kind of content.
    first: Option<Bytes>,
    received: u64,
    limits: Limits,
}

struct Live {
    body: BoxStream<'static, reqwest::Result<Bytes>>,
    timer: Pin<Box<Sleep>>,
    /// The kind of timeout that the timer is running for, if it is running.
    running: Option<Kind>,
    /// The deadline for the first byte, until it arrives.
    first_byte: Option<Instant>,
}

/// The limits of a response.
struct Limits {
    first_byte: Duration,
    idle: Duration,
    total: Duration,
    bytes: u64,
    /// The deadline for the whole response.
    deadline: Instant,
}

impl ByteStream {
    /// Takes over a response whose head has arrived. This must be called on the driver, whose clock is used.
    pub(super) fn new(response: Response, options: &HttpOptions, first_byte: Instant, deadline: Instant) -> Self {
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        Self {
            status: response.status().as_u16(),
            content_type: header(CONTENT_TYPE.as_str()),
            request_id: header("x-request-id").or_else(|| header("request-id")),
            content: Content::Json,
            origin: response.url().origin().ascii_serialization(),
            process: std::process::id(),
            first: None,
            received: 0,
            limits: Limits {
                first_byte: options.first_byte_timeout,
                idle: options.idle_timeout,
                total: options.total_timeout,
                bytes: options.max_response_bytes,
                deadline,
            },
            live: Some(Live {
                body: Box::pin(response.bytes_stream()),
                timer: Box::pin(tokio::time::sleep_until(first_byte.min(deadline))),
                running: None,
                first_byte: Some(first_byte),
            }),
        }
    }

    /// Waits for the first byte and determines the kind of content.
    pub(super) async fn begin(mut self, response: Announced, expected: Expected) -> Result<Self, Failure> {
        response.check(self.limits.bytes).map_err(Failure::for_good)?;
        let first = self.next().await.transpose().map_err(|error| {
            // No part of the response has been used, so a retry repeats nothing.
            let again = if error.kind() == Kind::Truncated { Again::Soon } else { Again::Never };
            Failure { again, ..Failure::for_good(error) }
        })?;
        let begin = first.as_deref().unwrap_or_default();
        self.content = content::judge(self.content_type.as_deref(), begin, expected).map_err(Failure::for_good)?;
        self.first = first;
        Ok(self)
    }

    /// Returns the status, which is from 200 to 299, because all others are errors.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the kind of content.
    pub fn content(&self) -> Content {
        self.content
    }

    /// Returns the content type, as the provider sent it.
    pub fn content_type(&self) -> Option<&str> {
        self.content_type.as_deref()
    }

    /// Returns the provider's ID for the request, for support inquiries.
    pub fn request_id(&self) -> Option<&str> {
        self.request_id.as_deref()
    }

    /// Returns the next chunk, which has any size but is never empty. After an error, returns `None`.
    pub async fn next(&mut self) -> Option<Result<Bytes>> {
        poll_fn(|context| self.poll_piece(context)).await
    }

    /// Returns the next chunk like [`ByteStream::next`], but blocks the thread. This works inside and outside of async
    /// code.
    pub fn wait_next(&mut self) -> Option<Result<Bytes>> {
        io::wait(self.next())
    }

    /// Reads the rest of the response.
    pub(super) async fn read_to_end(&mut self) -> Result<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(piece) = self.next().await {
            all.extend_from_slice(&piece?);
        }
        Ok(all)
    }

    /// Reads up to `most` bytes, stopping at the first error.
    pub(super) async fn read_some(mut self, most: usize) -> Vec<u8> {
        let mut some = Vec::new();
        while let Some(Ok(piece)) = self.next().await {
            some.extend_from_slice(&piece[..piece.len().min(most - some.len())]);
            if some.len() == most {
                break;
            }
        }
        some
    }

    /// Returns the status, the content type and the request ID.
    pub(super) fn into_head(mut self) -> (u16, Option<String>, Option<String>) {
        (self.status, self.content_type.take(), self.request_id.take())
    }

    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let piece = match io::same_process(self.process) {
            Ok(()) => ready!(self.poll_body(context)),
            Err(error) => self.live.as_ref().map(|_| Err(error)),
        };
        if !matches!(piece, Some(Ok(_))) {
            self.close();
        }
        Poll::Ready(piece)
    }

    fn poll_body(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes>>> {
        let Some(live) = &mut self.live else { return Poll::Ready(None) };
        loop {
            let piece = match live.body.as_mut().poll_next(context) {
                Poll::Ready(piece) => piece,
                Poll::Pending => {
                    let kind = ready!(live.poll_timer(&self.limits, context));
                    return Poll::Ready(Some(Err(self.limits.exceeded(kind, &self.origin))));
                }
            };
            live.running = None;
            match piece {
                Some(Ok(piece)) if piece.is_empty() => continue,
                Some(Ok(piece)) => {
                    live.first_byte = None;
                    self.received = self.received.saturating_add(piece.len() as u64);
                    return Poll::Ready(Some(self.limits.check(self.received, &self.origin).map(|()| piece)));
                }
                Some(Err(failure)) => return Poll::Ready(Some(Err(broken_off(&failure, &self.origin)))),
                None => return Poll::Ready(None),
            }
        }
    }

    /// Closes the connection, if this process owns it.
    fn close(&mut self) {
        let live = self.live.take();
        if io::same_process(self.process).is_err() {
            // Threads that no longer exist in this process may hold its locks, so dropping it could block forever.
            mem::forget(live);
        }
    }
}

impl Live {
    /// Returns the limit that was exceeded. The timer starts when a reader begins to wait.
    fn poll_timer(&mut self, limits: &Limits, context: &mut Context<'_>) -> Poll<Kind> {
        let kind = match self.running {
            Some(kind) => kind,
            None => {
                let (at, kind) = match self.first_byte {
                    Some(at) => (at, Kind::FirstByteTimeout),
                    None => (later(limits.idle), Kind::IdleTimeout),
                };
                let (at, kind) = if limits.deadline < at { (limits.deadline, Kind::TotalTimeout) } else { (at, kind) };
                self.timer.as_mut().reset(at);
                *self.running.insert(kind)
            }
        };
        self.timer.as_mut().poll(context).map(|()| kind)
    }
}

impl Limits {
    fn check(&self, received: u64, origin: &str) -> Result<()> {
        if received > self.bytes {
            return Err(Error::new(Kind::ResponseTooLarge, format_args!("more than {} bytes", self.bytes)));
        }
        if Instant::now() > self.deadline {
            return Err(self.exceeded(Kind::TotalTimeout, origin));
        }
        Ok(())
    }

    fn exceeded(&self, kind: Kind, origin: &str) -> Error {
        let limit = match kind {
            Kind::FirstByteTimeout => self.first_byte,
            Kind::IdleTimeout => self.idle,
            _ => self.total,
        };
        timeout(kind, origin, limit)
    }
}

/// What the head of a response says about its body.
pub(super) struct Announced {
    length: Option<u64>,
    /// Whether the body has an encoding that is not supported.
    encoded: bool,
}

impl Announced {
    pub(super) fn by(response: &Response) -> Self {
        let encoding =
            response.headers().get(CONTENT_ENCODING).map(|encoding| encoding.as_bytes().to_ascii_lowercase());
        Self { length: response.content_length(), encoded: encoding.is_some_and(|encoding| encoding != b"identity") }
    }

    /// Rejects a body that exceeds the size limit or has an unsupported encoding.
    pub(super) fn check(&self, most: u64) -> Result<()> {
        if let Some(length) = self.length.filter(|length| *length > most) {
            let error = Error::new(Kind::ResponseTooLarge, format_args!("{length} bytes"));
            return Err(error.with_help(format!("the limit is {most} bytes")));
        }
        if self.encoded {
            return Err(Error::new(Kind::ContentType, "compressed, but no compression was requested"));
        }
        Ok(())
    }
}

/// Returns the time after this duration, capped at thirty years to avoid overflow.
pub(super) fn later(wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(wait.min(FAR)).unwrap_or(now)
}

impl Stream for ByteStream {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_piece(context)
    }
}

impl Drop for ByteStream {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream")
            .field("origin", &self.origin)
            .field("status", &self.status)
            .field("content", &self.content)
            .field("request_id", &self.request_id)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}
