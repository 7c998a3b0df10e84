//! Redirects. A request carries a key, so it may only be redirected within its origin.

use reqwest::StatusCode;
use url::{ParseError, Url};

use crate::{Error, Kind, Result};

/// The maximum number of redirects of a request.
pub(super) const MAX_REDIRECTS: usize = 3;

/// Returns the target of a redirect, if the response is one.
///
/// # Errors
///
/// Returns [`Kind::RedirectRefused`] if the target is invalid or has a different origin, or if the status would drop
/// the body.
pub(super) fn target(from: &Url, status: StatusCode, location: Option<&[u8]>) -> Result<Option<Url>> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let refused = |what: &str| {
        Error::new(Kind::RedirectRefused, format_args!("status {} to {what}", status.as_u16()))
            .with_help("set the URL that the provider redirects to: credentials are not sent to another origin")
    };
    let location = location.and_then(|location| std::str::from_utf8(location).ok());
    let to = location.ok_or(ParseError::EmptyHost).and_then(|location| from.join(location));
    let to = to.map_err(|_| refused("an invalid URL"))?;
    // The path and the query may contain credentials; the origin does not.
    let origin = to.origin().ascii_serialization();
    if to.origin() != from.origin() || !to.username().is_empty() || to.password().is_some() {
        return Err(refused(&origin));
    }
    if !matches!(status.as_u16(), 307 | 308) {
        return Err(refused(&format!("{origin}, which would drop the request body")));
    }
    Ok(Some(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn follow(from: &str, status: u16, to: &str) -> Result<Option<Url>> {
        let from = Url::parse(from).expect("an address");
        target(&from, StatusCode::from_u16(status).expect("a status"), Some(to.as_bytes()))
    }

    #[test]
    fn the_same_origin_is_followed() {
        for to in ["/b", "b?x=1", "https://a.example/b", "https://a.example:443/b", "//a.example/b"] {
            for status in [307, 308] {
                let url = follow("https://a.example/a", status, to).expect("it is allowed").expect("it is followed");
                assert_eq!(url.host_str(), Some("a.example"), "{to}");
            }
        }
        assert_eq!(follow("https://a.example/a", 304, "/b").expect("it is none"), None);
    }

    #[test]
    fn anything_else_is_refused_without_showing_more_than_the_origin() {
        let others = [
            "http://a.example/SECRET",
            "https://a.example:8443/?k=SECRET",
            "https://b.example/?k=SECRET#SECRET",
            "https://a.example.b.example/SECRET",
            "https://a.example@b.example/SECRET",
            "https://SECRET:SECRET@a.example/",
            "//b.example/SECRET",
            "\\\\b.example/SECRET",
            "file:///SECRET",
            "data:,SECRET",
            "https://a.example./SECRET",
            "http://[SECRET",
        ];
        for to in others {
            let error = follow("https://a.example/a", 307, to).expect_err(to);
            assert_eq!(error.kind(), Kind::RedirectRefused, "{to}");
            assert!(!format!("{error} {error:?}").contains("SECRET"), "{error:?}");
        }
        for status in [301, 302, 303] {
            assert!(follow("https://a.example/a", status, "/b").is_err(), "{status}");
        }
        assert!(target(&Url::parse("https://a.example").expect("an address"), StatusCode::FOUND, None).is_err());
    }
}
