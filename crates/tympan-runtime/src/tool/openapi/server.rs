//! The location of a service. The document specifies it; the endpoint of a connection overrides its scheme, host and
//! port, and a connection sets the variables of its servers.

use serde_json::Value as Json;
use tympan_core::{Error, JsonMap, Kind, Result};
use url::{Origin, ParseError, Url};

use crate::net::client::shown;
use crate::tool::openapi::Reason;
use crate::tool::openapi::document::{Document, text_of};
use crate::tool::openapi::request::MAX_ADDRESS;

/// The maximum number of servers to consider.
const MAX_SERVERS: usize = 32;

/// The location of a service.
#[derive(Clone, Debug)]
pub(super) struct ServerLocation {
    /// The base URL of the operations, unless they have servers of their own.
    pub(super) base: Url,
    /// The origin of the document's servers, if the connection overrides it.
    overridden: Option<Origin>,
    /// The values of the servers' variables.
    variables: JsonMap,
}

impl ServerLocation {
    /// Determines the location of a document's operations.
    ///
    /// `endpoint` is the URL of the connection, and `address` that of the document itself, if any. The author of the
    /// prompt or the host wrote the endpoint, so it overrides the document: the endpoint's path is used if it has one,
    /// and else the path of the document's server.
    ///
    /// # Errors
    /// Returns an error if there is no URL, or if a variable has no such value.
    pub(super) fn new(
        document: Document<'_>,
        endpoint: Option<&Url>,
        address: Option<&Url>,
        variables: &JsonMap,
    ) -> Result<Self> {
        check_variables(document, variables)?;
        // Relative URLs are resolved against the URL of the document.
        let servers = listed(document.root, address.or(endpoint), variables);
        let location = |base: Url, overridden| Self { base, overridden, variables: variables.clone() };
        let Some(endpoint) = endpoint else {
            let first = servers.into_iter().next().ok_or_else(|| {
                Error::new(Kind::ToolUnavailable, "the document does not name a server")
                    .with_help("set `endpoint` in the tool's `connection`, or `servers` in the document")
            })?;
            return Ok(location(first, None));
        };
        let same = servers.iter().find(|server| server.origin() == endpoint.origin());
        let overridden = same.is_none().then(|| servers.first().map(Url::origin)).flatten();
        let mut base = endpoint.clone();
        if endpoint.path() == "/" {
            let path = same.or(servers.first()).map(|server| server.path().to_owned());
            base.set_path(&path.or_else(|| first_path(document.root, variables)).unwrap_or_default());
        }
        Ok(location(base, overridden))
    }

    /// Returns the base URL of an operation. All operations of a tool must have the same origin, because they share a
    /// key.
    pub(super) fn of_operation(&self, item: &Json, operation: &Json) -> Result<Url, Reason> {
        let Some(own) = [operation, item].into_iter().find(|level| level.get("servers").is_some()) else {
            return Ok(self.base.clone());
        };
        let mut servers = listed(own, Some(&self.base), &self.variables).into_iter();
        let found = servers.find_map(|server| {
            let origin = server.origin();
            let is_overridden = self.overridden.as_ref() == Some(&origin);
            if origin == self.base.origin() {
                return Some(server);
            }
            let mut base = self.base.clone();
            base.set_path(server.path());
            is_overridden.then_some(base)
        });
        found.ok_or_else(|| "the operation has its own server on another host".to_owned())
    }
}

/// Checks that the document's servers have the variables that a connection sets, and that the values are allowed.
fn check_variables(document: Document<'_>, variables: &JsonMap) -> Result<()> {
    let servers = document.root.get("servers").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
    let declared = |name: &str| {
        servers.iter().take(MAX_SERVERS).filter_map(|server| server.get("variables")?.get(name)).collect::<Vec<_>>()
    };
    for (name, value) in variables {
        let found = declared(name);
        let wrong = |reason: &str| {
            Error::new(Kind::ToolMismatch, format_args!("server variable `{}`: {reason}", shown(name)))
                .with_help("`variables` of the connection are those that the document's servers declare")
        };
        if found.is_empty() {
            return Err(wrong("no server of the document has it"));
        }
        if !value.is_string() {
            return Err(wrong("expected a string"));
        }
        let is_allowed = |declared: &&Json| {
            let listed = declared.get("enum").and_then(Json::as_array);
            listed.is_none_or(|listed| listed.contains(value))
        };
        if !found.iter().any(is_allowed) {
            return Err(wrong("the document does not allow this value"));
        }
    }
    Ok(())
}

/// Returns the servers at a level of the document that have valid URLs.
fn listed(level: &Json, relative_to: Option<&Url>, values: &JsonMap) -> Vec<Url> {
    let servers = level.get("servers").and_then(Json::as_array).filter(|servers| !servers.is_empty());
    let Some(servers) = servers else {
        // The specification's default is `/`.
        return relative_to.and_then(|base| base.join("/").ok()).into_iter().collect();
    };
    let parse = |server: &Json| {
        let text = with_variables(text_of(server, "url")?, server.get("variables"), values)?;
        match (Url::parse(&text), relative_to) {
            // A scheme that is a variable without a value leaves an invalid URL, not a relative one.
            (Err(ParseError::RelativeUrlWithoutBase), Some(base)) if !text.contains("://") => base.join(&text).ok(),
            (parsed, _) => parsed.ok(),
        }
    };
    servers.iter().take(MAX_SERVERS).filter_map(parse).collect()
}

/// Returns the path of the first server, even if its scheme or host is a variable without a value.
fn first_path(root: &Json, values: &JsonMap) -> Option<String> {
    let server = root.get("servers")?.get(0)?;
    let text = with_variables(text_of(server, "url")?, server.get("variables"), values)?;
    let (_, rest) = text.split_once("://")?;
    let path = &rest[rest.find('/')?..];
    Some(path.split(['?', '#']).next().unwrap_or_default().to_owned())
}

/// Substitutes the variables in a URL: their values, or else their defaults. Returns `None` if the result is too long.
fn with_variables(template: &str, variables: Option<&Json>, values: &JsonMap) -> Option<String> {
    let mut text = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            rest = after;
            break;
        };
        let declared = variables.and_then(|all| all.get(name));
        let set = declared.and_then(|_| values.get(name)?.as_str());
        text.push_str(set.or_else(|| text_of(declared?, "default")).unwrap_or_default());
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
