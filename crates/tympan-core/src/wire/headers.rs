//! Request headers.

use super::compatible::{Auth, Provider};
use super::{Header, HeaderValue};
use crate::error::{Error, Kind, Result};
use crate::spec::Secret;

/// The version of Anthropic's API to request. Anthropic requires this header.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The `user-agent` of every request.
const USER_AGENT: &str = concat!("tympan/", env!("CARGO_PKG_VERSION"));

/// Builds the headers of a request. A token replaces the key and is sent as a bearer token.
///
/// # Errors
/// Returns an error if the key is empty or contains a character that a header cannot carry. The error does not quote
/// the key.
pub(super) fn headers(
    provider: &Provider,
    key: Option<&Secret>,
    token: Option<&Secret>,
    has_body: bool,
    stream: bool,
) -> Result<Vec<Header>> {
    let mut headers = Vec::with_capacity(5);
    let mut plain = |name: &str, value: &str| {
        headers.push(Header { name: name.to_owned(), value: HeaderValue::Plain(value.to_owned()) });
    };
    if has_body {
        plain("content-type", "application/json");
    }
    plain("accept", if stream { "text/event-stream" } else { "application/json" });
    plain("user-agent", USER_AGENT);
    if provider.auth == Auth::XApiKey {
        plain("anthropic-version", ANTHROPIC_VERSION);
    }
    let auth = if token.is_some() { Auth::Bearer } else { provider.auth };
    if let Some(key) = token.or(key) {
        check_key(key)?;
        let value = HeaderValue::Secret { prefix: auth.prefix(), secret: key.clone() };
        headers.push(Header { name: auth.header().to_owned(), value });
    }
    Ok(headers)
}

/// Rejects keys with characters that are not allowed in a header. A line break in a key could inject another header.
fn check_key(key: &Secret) -> Result<()> {
    let key = key.expose();
    if !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    let reason = if key.is_empty() {
        "the API key is empty"
    } else {
        "the API key contains a line break, a space or another character that is not allowed in headers"
    };
    Err(Error::new(Kind::InvalidRequest, reason).with_help("check for a trailing line break or quotes around the key"))
}
