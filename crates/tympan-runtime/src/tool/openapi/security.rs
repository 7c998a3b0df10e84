//! Authentication: what a document requires, and how a key is added to a request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reqwest::Request;
use reqwest::header::{AUTHORIZATION, COOKIE, HeaderName, HeaderValue};
use serde_json::Value as Json;
use tympan_core::spec::Secret;
use tympan_core::{Error, Kind, Result};

use crate::net::client::shown;
use crate::tool::openapi::Reason;
use crate::tool::openapi::document::{Document, text_of};
use crate::tool::openapi::request::is_reserved;
use crate::tool::openapi::serialize::encode;

/// The maximum number of alternative security requirements to consider.
const MAX_CHOICES: usize = 32;

/// Where a key is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyPlace {
    /// `Authorization: Bearer …`
    Bearer,
    /// `Authorization: Basic …`, with a user name and a password.
    Basic,
    Header(HeaderName),
    Query(String),
    Cookie(String),
}

/// The security requirements of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Security {
    /// Where to send the key, if there is one.
    pub(super) place: Option<KeyPlace>,
    /// Whether the operation can be called without a key.
    pub(super) is_optional: bool,
}

/// Determines the security requirements of an operation.
///
/// # Errors
/// Returns an error if the operation requires more than a single key.
pub(super) fn of(document: Document<'_>, operation: &Json) -> Result<Security, Reason> {
    // An empty list overrides the document's requirements: the operation has none.
    let listed = operation.get("security").or_else(|| document.root.get("security")).and_then(Json::as_array);
    let Some(choices) = listed.filter(|choices| !choices.is_empty()) else {
        return Ok(Security { place: None, is_optional: true });
    };
    let mut security = Security::default();
    let mut why_not = None;
    for choice in choices.iter().take(MAX_CHOICES).filter_map(Json::as_object) {
        let mut names = choice.keys();
        match (names.next(), names.next()) {
            (None, _) => security.is_optional = true,
            (Some(_), Some(_)) => why_not = Some("the operation needs several keys at once".to_owned()),
            (Some(name), None) => match place(document, name) {
                Ok(place) => security.place = security.place.or(Some(place)),
                Err(reason) => why_not = Some(reason),
            },
        }
    }
    match why_not {
        Some(reason) if security.place.is_none() && !security.is_optional => Err(reason),
        _ => Ok(security),
    }
}

fn place(document: Document<'_>, name: &str) -> Result<KeyPlace, Reason> {
    let schemes = document.root.pointer("/components/securitySchemes");
    let scheme = schemes.and_then(|schemes| schemes.get(name));
    let scheme = scheme.ok_or_else(|| format!("unknown security scheme `{}`", shown(name)))?;
    let scheme = document.resolve(scheme)?;
    let kind = text_of(scheme, "type").unwrap_or_default();
    let field = || text_of(scheme, "name").filter(|name| !name.is_empty()).map(str::to_owned);
    let way = text_of(scheme, "scheme").unwrap_or_default().to_ascii_lowercase();
    let place = match (kind, text_of(scheme, "in").unwrap_or_default()) {
        ("http", _) if way == "bearer" => Some(KeyPlace::Bearer),
        ("http", _) if way == "basic" => Some(KeyPlace::Basic),
        ("oauth2" | "openIdConnect", _) => Some(KeyPlace::Bearer),
        ("apiKey", "header") => field().and_then(|name| header(&name)).map(KeyPlace::Header),
        ("apiKey", "query") => field().map(KeyPlace::Query),
        ("apiKey", "cookie") => field().filter(|name| is_token(name)).map(KeyPlace::Cookie),
        _ => None,
    };
    place.ok_or_else(|| format!("unsupported security scheme `{}`", shown(name)))
}

/// Returns the name of a header that may contain a key.
fn header(name: &str) -> Option<HeaderName> {
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    (name == AUTHORIZATION || !is_reserved(name.as_str())).then_some(name)
}

/// Returns whether a text is a valid cookie name.
pub(super) fn is_token(text: &str) -> bool {
    !text.is_empty() && HeaderName::from_bytes(text.as_bytes()).is_ok()
}

impl KeyPlace {
    /// Adds a key to a request.
    ///
    /// # Errors
    /// Returns an error if the key contains characters that HTTP does not allow there.
    pub(super) fn put(&self, key: &Secret, request: &mut Request) -> Result<()> {
        let key = key.expose().trim();
        match self {
            Self::Bearer => insert(request, AUTHORIZATION, &format!("Bearer {key}")),
            Self::Basic => {
                // A key without a colon is a user name without a password.
                let pair = if key.contains(':') { key.to_owned() } else { format!("{key}:") };
                insert(request, AUTHORIZATION, &format!("Basic {}", STANDARD.encode(pair)))
            }
            Self::Header(name) => insert(request, name.clone(), key),
            Self::Query(name) => {
                let pair = format!("{}={}", encode(name), encode(key));
                let query = request.url().query().map_or(pair.clone(), |query| format!("{query}&{pair}"));
                request.url_mut().set_query(Some(&query));
                Ok(())
            }
            Self::Cookie(name) => {
                let others = request.headers().get(COOKIE).and_then(|value| value.to_str().ok());
                let pair = format!("{name}={}", encode(key));
                let all = others.map_or(pair.clone(), |others| format!("{others}; {pair}"));
                insert(request, COOKIE, &all)
            }
        }
    }

    /// Returns the parts of a key that must not appear in a response.
    pub(super) fn secrets(&self, key: &Secret) -> Vec<Secret> {
        let mut secrets = vec![key.clone()];
        if let (Self::Basic, Some((_, password))) = (self, key.expose().split_once(':')) {
            secrets.push(Secret::new(password));
        }
        secrets
    }
}

fn insert(request: &mut Request, name: HeaderName, value: &str) -> Result<()> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        Error::new(Kind::InvalidRequest, "the key contains characters that are not allowed in HTTP headers")
            .with_help("use one line of printable ASCII; a key read from a file often ends with a line break")
    })?;
    value.set_sensitive(true);
    request.headers_mut().insert(name, value);
    Ok(())
}
