//! Requests of tools, sent once, with limits on the response.

use reqwest::header::HeaderMap;
use reqwest::{Client, Request, StatusCode};

use crate::Result;
use crate::net::client::body::{Announced, ByteStream, later};
use crate::net::client::call::execute;
use crate::net::client::options::HttpOptions;

/// A response with any status.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Sends a request and reads the whole response. Does not retry or follow redirects, because only the caller knows
/// whether that is safe.
///
/// This must be called on the driver, whose clock is used.
///
/// # Errors
/// Returns an error if there is no response, or if it exceeds the limits of these options.
pub(crate) async fn send_once(client: &Client, request: Request, options: &HttpOptions) -> Result<Answer> {
    let (first_byte, deadline) = (later(options.first_byte_timeout), later(options.total_timeout));
    let response = execute(client, request, options, first_byte, deadline).await.map_err(|failure| failure.error)?;
    Announced::by(&response).check(options.max_response_bytes)?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = ByteStream::new(response, options, first_byte, deadline).read_to_end().await?;
    Ok(Answer { status, headers, body })
}
