//! When to retry a model call, and how long to wait.

use std::time::Duration;

use crate::error::{Class, Error, Kind};

/// The maximum wait, in seconds.
const MAX_SECONDS: f64 = 60.0;

/// Returns whether a retry may succeed. This is the case for network and provider errors.
///
/// The following never succeed on retry: refused redirects, problems with the prompt, its inputs, its credentials or
/// the host's limits, refusals by the model, and cancellation. Errors that the provider reports are retried, because a
/// stream has no other way to report that the provider is overloaded. The exception is an HTTP status that blames the
/// request itself, such as one for an invalid key.
pub(super) fn is_transient(error: &Error) -> bool {
    match error.kind() {
        _ if error.is_permanent() => false,
        Kind::RedirectRefused => false,
        Kind::Provider | Kind::UnexpectedResponse | Kind::StreamParse | Kind::ContentType => true,
        kind => kind.class() == Class::Connection,
    }
}

/// Returns how long to wait after this many failures.
pub(super) fn backoff(failures: u32, jitter: f64) -> Duration {
    let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
    let exponent = i32::try_from(failures.min(10)).unwrap_or(10);
    Duration::from_secs_f64((2_f64.powi(exponent) + jitter).min(MAX_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_minute() {
        let seconds = |failures, jitter| backoff(failures, jitter).as_secs_f64();
        assert_eq!([seconds(1, 0.0), seconds(2, 0.5), seconds(3, 1.0)], [2.0, 4.5, 9.0]);
        assert_eq!([seconds(6, 0.0), seconds(u32::MAX, 1.0)], [60.0, 60.0]);
        assert_eq!([seconds(1, f64::NAN), seconds(1, -5.0), seconds(1, 1e300)], [2.0, 2.0, 3.0]);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        for kind in Kind::ALL.iter().filter(|kind| kind.class() == Class::Connection) {
            assert_eq!(is_transient(&Error::new(*kind, "x")), *kind != Kind::RedirectRefused, "{}", kind.code());
        }
        for kind in [Kind::MissingKey, Kind::InvalidRequest, Kind::Refused, Kind::Cancelled, Kind::ResponseTooLarge] {
            assert!(!is_transient(&Error::new(kind, "x")), "{}", kind.code());
        }
        assert!(is_transient(&Error::new(Kind::Provider, "x")));
        assert!(!is_transient(&Error::new(Kind::Provider, "x").permanent()));
    }
}
