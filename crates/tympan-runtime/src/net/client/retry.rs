//! Decides when to retry a request.

use std::time::{Duration, SystemTime};

use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// Whether to retry after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// Do not retry: it would fail in the same way, or the response had already begun.
    Never,
    /// Retry soon.
    Soon,
    /// Retry after the time that the provider requests.
    After(Duration),
}

/// The maximum wait that the provider did not request.
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// Returns whether to retry after a response with this status.
pub(super) fn for_status(status: u16, headers: &HeaderMap) -> Again {
    match status {
        501 => Again::Never,
        429 | 500..=599 => wanted(headers, SystemTime::now()).map_or(Again::Soon, Again::After),
        _ => Again::Never,
    }
}

/// Returns the wait that the provider requests, if it is valid.
fn wanted(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| seconds(text, 1e-3));
    milliseconds.or_else(|| {
        let after = text(RETRY_AFTER.as_str())?;
        let date = |text| httpdate::parse_http_date(text).ok();
        // Compare the two dates from the provider, because its clock may be wrong.
        let until = || date(after)?.duration_since(text(DATE.as_str()).and_then(date).unwrap_or(now)).ok();
        seconds(after, 1.0).or_else(until).filter(|wait| !wait.is_zero())
    })
}

/// Parses a positive number of seconds. A value that is too large becomes the maximum duration.
fn seconds(text: &str, unit: f64) -> Option<Duration> {
    let seconds = text.parse::<f64>().ok()? * unit;
    // This also rejects NaN and infinity.
    (seconds > 0.0 && seconds.is_finite()).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// Returns a wait of random length, so that many clients that failed together do not retry at the same time.
pub(super) fn backoff(base: Duration, attempt: u32) -> Duration {
    let most = base.saturating_mul(2_u32.saturating_pow(attempt)).min(MAX_BACKOFF.max(base));
    // Without randomness, use the longest wait.
    let share = getrandom::u32().map_or(1.0, |random| f64::from(random) / f64::from(u32::MAX));
    Duration::try_from_secs_f64(most.as_secs_f64() * share).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    type Pairs<'a> = &'a [(&'static str, &'static str)];

    fn headers(pairs: Pairs<'_>) -> HeaderMap {
        pairs.iter().map(|(k, v)| (HeaderName::from_static(k), HeaderValue::from_static(v))).collect()
    }

    #[test]
    fn statuses() {
        let none = HeaderMap::new();
        for status in [429, 500, 502, 503, 504, 529] {
            assert_eq!(for_status(status, &none), Again::Soon, "{status}");
        }
        for status in [400, 401, 403, 404, 408, 409, 413, 422, 501, 600] {
            assert_eq!(for_status(status, &none), Again::Never, "{status}");
        }
    }

    #[test]
    fn what_the_provider_wants() {
        let cases: &[(Pairs<'_>, Option<Duration>)] = &[
            (&[("retry-after", "5")], Some(Duration::from_secs(5))),
            (&[("retry-after", " 1.5 ")], Some(Duration::from_millis(1500))),
            (&[("retry-after-ms", "20"), ("retry-after", "5")], Some(Duration::from_millis(20))),
            (&[("retry-after-ms", "soon"), ("retry-after", "5")], Some(Duration::from_secs(5))),
            (&[("retry-after", "86400000")], Some(Duration::from_secs(86_400_000))),
            (&[("retry-after", "1e300")], Some(Duration::MAX)),
            (
                &[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), ("date", "Sun, 06 Nov 1994 08:49:30 GMT")],
                Some(Duration::from_secs(7)),
            ),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT"), ("date", "Sun, 06 Nov 1994 08:49:40 GMT")], None),
            (&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")], None),
            (&[("retry-after", "0")], None),
            (&[("retry-after", "-5")], None),
            (&[("retry-after", "NaN")], None),
            (&[("retry-after", "inf")], None),
            (&[("retry-after", "")], None),
            (&[("retry-after", "later")], None),
            (&[], None),
        ];
        for (pairs, expected) in cases {
            assert_eq!(wanted(&headers(pairs), SystemTime::now()), *expected, "{pairs:?}");
        }
        let base = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_770);
        let date = headers(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]);
        assert_eq!(wanted(&date, base), Some(Duration::from_secs(7)));
    }

    #[test]
    fn waits_are_random_and_bounded() {
        let base = Duration::from_millis(500);
        for (attempt, most) in [(0, 500), (1, 1000), (2, 2000), (4, 8000), (5, 8000), (u32::MAX, 8000)] {
            let waits: Vec<_> = (0..50).map(|_| backoff(base, attempt)).collect();
            assert!(waits.iter().all(|wait| *wait <= Duration::from_millis(most)), "{attempt}: {waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]), "{attempt}: all the same");
        }
        assert_eq!(backoff(Duration::ZERO, 3), Duration::ZERO);
    }
}
