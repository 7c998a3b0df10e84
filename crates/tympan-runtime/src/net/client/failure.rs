//! Errors of requests. Their messages contain no key, and nothing of the URL beyond its origin.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use crate::net::client::retry::Again;
use crate::{Error, Kind};

/// The maximum number of characters of external text to show.
const SHOWN: usize = 200;

/// Why an attempt failed, whether a retry may succeed, and whether the server may have done what was requested.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    pub(super) again: Again,
    /// Whether the server certainly did nothing.
    pub(super) is_without_effect: bool,
}

impl Failure {
    pub(super) fn for_good(error: Error) -> Self {
        Self { error, again: Again::Never, is_without_effect: false }
    }

    /// The server certainly did nothing.
    pub(super) fn without_effect(self) -> Self {
        Self { is_without_effect: true, ..self }
    }

    /// No answer came.
    pub(super) fn no_answer(failure: reqwest::Error, origin: &str, connect_timeout: Duration) -> Self {
        if let Some(own) = own(&failure) {
            // Either no connection was made, or the body was not sent to its end.
            return Self::for_good(own.clone()).without_effect();
        }
        if failure.is_connect() && failure.is_timeout() {
            let error = timeout(Kind::ConnectTimeout, origin, connect_timeout);
            return Self { error, again: Again::Soon, is_without_effect: true };
        }
        let error = Error::new(Kind::Unreachable, format_args!("{origin}: {}", reason(&failure)));
        let (is_distrusted, is_without_effect) = (distrusted(&failure), failure.is_connect());
        let error = error.with_cause(failure);
        if is_distrusted {
            let help = "the certificate is not trusted; if you trust its issuer, add its root certificate with \
                HttpOptions::extra_roots";
            return Self::for_good(error.with_help(help)).without_effect();
        }
        let error = error.with_help("check the URL, the network and the proxy");
        Self { error, again: Again::Soon, is_without_effect }
    }
}

/// Returns an error for an exceeded time limit.
pub(super) fn timeout(kind: Kind, origin: &str, limit: Duration) -> Error {
    Error::new(kind, format_args!("{origin} (after {} s)", limit.as_secs_f64()))
}

/// Returns an error for a response that was interrupted.
pub(super) fn broken_off(failure: &reqwest::Error, origin: &str) -> Error {
    Error::new(Kind::Truncated, format_args!("{origin}: {}", reason(failure)))
}

/// Returns the innermost cause. The outer errors add no information, and may contain the URL.
pub(crate) fn reason(failure: &reqwest::Error) -> String {
    let chain = std::iter::successors(failure.source(), |error| (*error).source());
    shown(&chain.last().map_or_else(|| "the request failed".to_owned(), ToString::to_string))
}

/// Returns our own error, if it caused an error of the client. The DNS resolver of tools returns such errors.
pub(crate) fn own(failure: &reqwest::Error) -> Option<&Error> {
    std::iter::successors(failure.source(), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// Returns whether the certificate was rejected. A retry would fail in the same way.
fn distrusted(failure: &(dyn StdError + 'static)) -> bool {
    // The source of an `io::Error` is the source of its inner error, which hides the inner error itself.
    let held = failure.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    matches!(failure.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
        || held.is_some_and(|held| distrusted(held))
        || failure.source().is_some_and(distrusted)
}

/// Shortens external text to a single line, and removes control characters.
pub(crate) fn shown(text: &str) -> String {
    // Only look at the beginning, so that the cost does not depend on the length of the text.
    let beginning = &text[..text.floor_char_boundary(16 * SHOWN)];
    let line = beginning.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if shown.len() < line.len() || beginning.len() < text.len() {
        shown.push('…');
    }
    shown
}
