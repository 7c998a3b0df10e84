//! The location of a service. The document specifies it; a connection can select one of the document's servers, or
//! provide the location if the document does not.

use serde_json::Value as Json;
use tympan_core::{Error, Kind, Result};
use url::{ParseError, Url};

use crate::net::client::shown;
use crate::tool::openapi::Reason;
use crate::tool::openapi::document::{Document, text_of};
use crate::tool::openapi::request::MAX_ADDRESS;

/// The maximum number of servers to consider.
const MAX_SERVERS: usize = 32;

/// Returns the base URL of a document's operations, unless they override it.
///
/// `endpoint` is the URL of the connection, and `address` that of the document itself, if any.
///
/// # Errors
/// Returns an error if there is no base URL, or if the connection's origin is not one of the document's servers.
pub(super) fn base(document: Document<'_>, endpoint: Option<&Url>, address: Option<&Url>) -> Result<Url> {
    // Relative URLs are resolved against the URL of the document.
    let servers = listed(document.root, address.or(endpoint));
    let Some(first) = servers.first() else {
        return Err(Error::new(Kind::ToolUnavailable, "the document does not name a server")
            .with_help("set `endpoint` in the tool's `connection`, or `servers` in the document"));
    };
    let Some(endpoint) = endpoint else { return Ok(first.clone()) };
    let Some(same) = servers.iter().find(|server| server.origin() == endpoint.origin()) else {
        let details = format_args!(
            "the connection points to {}, but the document to {}",
            endpoint.origin().ascii_serialization(),
            first.origin().ascii_serialization()
        );
        return Err(Error::new(Kind::ToolMismatch, details)
            .with_help("requests go to the server of the document; use the same scheme, host and port in both"));
    };
    Ok(if endpoint.path() == "/" { same.clone() } else { endpoint.clone() })
}

/// Returns the base URL of an operation. All operations of a tool must have the same origin, because they share a key.
pub(super) fn base_of(item: &Json, operation: &Json, base: &Url) -> Result<Url, Reason> {
    let Some(own) = [operation, item].into_iter().find(|level| level.get("servers").is_some()) else {
        return Ok(base.clone());
    };
    let same = listed(own, Some(base)).into_iter().find(|server| server.origin() == base.origin());
    same.ok_or_else(|| "the operation has its own server on another host".to_owned())
}

/// Returns the servers at a level of the document that have valid URLs.
fn listed(level: &Json, relative_to: Option<&Url>) -> Vec<Url> {
    let servers = level.get("servers").and_then(Json::as_array).filter(|servers| !servers.is_empty());
    let Some(servers) = servers else {
        // The specification's default is `/`.
        return relative_to.and_then(|base| base.join("/").ok()).into_iter().collect();
    };
    let parse = |server: &Json| {
        let text = with_variables(text_of(server, "url")?, server.get("variables"))?;
        match (Url::parse(&text), relative_to) {
            (Err(ParseError::RelativeUrlWithoutBase), Some(base)) => base.join(&text).ok(),
            (parsed, _) => parsed.ok(),
        }
    };
    servers.iter().take(MAX_SERVERS).filter_map(parse).collect()
}

/// Substitutes the default values of variables in a URL. Returns `None` if the result is too long.
fn with_variables(template: &str, variables: Option<&Json>) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            rest = after;
            break;
        };
        text.push_str(variables.and_then(|all| text_of(all.get(name)?, "default")).unwrap_or_default());
        rest = after;
        if text.len() > MAX_ADDRESS {
            return None;
        }
    }
    Some(text + rest).filter(|text| text.len() <= MAX_ADDRESS)
}

/// Rejects a base URL with a user name, a password, a query or a fragment.
pub(super) fn check(base: &Url) -> Result<()> {
    let is_plain = base.username().is_empty() && base.password().is_none() && base.query().is_none();
    if is_plain && base.fragment().is_none() && base.has_host() {
        return Ok(());
    }
    let host = shown(base.host_str().unwrap_or_default());
    Err(Error::new(
        Kind::ToolUnavailable,
        format_args!(
            "the URL of the server at `{host}` has a user, a query or a \
        fragment"
        ),
    )
    .with_help("write a URL such as https://api.example.com/v1"))
}
