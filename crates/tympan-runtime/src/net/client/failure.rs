//! What can go wrong with a request, in words that hold no address beyond its origin and no key.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use crate::net::client::retry::Again;
use crate::{Error, Kind};

/// How many characters of foreign text are shown.
const SHOWN: usize = 200;

/// Why an attempt failed, and whether another one may succeed.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: Error,
    pub(super) again: Again,
}

impl Failure {
    pub(super) fn for_good(error: Error) -> Self {
        Self { error, again: Again::Never }
    }

    /// No answer came.
    pub(super) fn no_answer(failure: reqwest::Error, origin: &str, connect_timeout: Duration) -> Self {
        if let Some(own) = own(&failure) {
            return Self::for_good(own.clone());
        }
        if failure.is_connect() && failure.is_timeout() {
            return Self { error: timeout(Kind::ConnectTimeout, origin, connect_timeout), again: Again::Soon };
        }
        let error = Error::new(Kind::Unreachable, format_args!("{origin}: {}", reason(&failure)));
        let is_distrusted = distrusted(&failure);
        let error = error.with_cause(failure);
        if is_distrusted {
            let help = "its certificate is not trusted: a host can add an authority of its own to the built-in ones";
            return Self::for_good(error.with_help(help));
        }
        Self { error: error.with_help("check the address, the network and the proxy"), again: Again::Soon }
    }
}

/// Something took too long.
pub(super) fn timeout(kind: Kind, origin: &str, limit: Duration) -> Error {
    Error::new(kind, format_args!("{origin}, within {} s", limit.as_secs_f64()))
}

/// An answer broke off.
pub(super) fn broken_off(failure: &reqwest::Error, origin: &str) -> Error {
    Error::new(Kind::Truncated, format_args!("{origin}: {}", reason(failure)))
}

/// The innermost reason. The outer ones say only that there was one, and may name the address.
pub(crate) fn reason(failure: &reqwest::Error) -> String {
    let chain = std::iter::successors(failure.source(), |error| (*error).source());
    shown(&chain.last().map_or_else(|| "the request was not possible".to_owned(), ToString::to_string))
}

/// An error of ours behind one of the client: what looks names up has words of its own.
pub(crate) fn own(failure: &reqwest::Error) -> Option<&Error> {
    std::iter::successors(failure.source(), |error| (*error).source()).find_map(|error| error.downcast_ref())
}

/// Whether a certificate was refused. It will be the next time, too.
fn distrusted(failure: &(dyn StdError + 'static)) -> bool {
    // An error of the system names as its source what is behind the one that it holds, and so hides that.
    let held = failure.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    matches!(failure.downcast_ref(), Some(rustls::Error::InvalidCertificate(_)))
        || held.is_some_and(|held| distrusted(held))
        || failure.source().is_some_and(distrusted)
}

/// Foreign text in one short line.
pub(crate) fn shown(text: &str) -> String {
    // What is shown of a text does not depend on how long it is, nor does finding it.
    let beginning = &text[..text.floor_char_boundary(16 * SHOWN)];
    let line = beginning.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if shown.len() < line.len() || beginning.len() < text.len() {
        shown.push('…');
    }
    shown
}
