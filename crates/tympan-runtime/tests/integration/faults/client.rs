//! Clients for the test server, which do not wait before retries, and helpers for their errors.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tympan_core::spec::Secret;
use tympan_core::wire::{Header, HeaderValue, Protocol, WireRequest};
use tympan_runtime::net::client::{ByteStream, HttpClient, HttpOptions, ProxyPolicy};
use tympan_runtime::{Error, Kind, Result};

/// A key that only the server may receive.
pub(crate) const KEY: &str = "sk-live-CANARY";

/// Returns a request with the key.
pub(crate) fn post(url: String) -> WireRequest {
    WireRequest {
        protocol: Protocol::OpenAiChat,
        stream: false,
        method: "POST",
        url,
        headers: vec![
            Header { name: "content-type".into(), value: HeaderValue::Plain("application/json".into()) },
            Header {
                name: "authorization".into(),
                value: HeaderValue::Secret { prefix: "Bearer ", secret: Secret::new(KEY) },
            },
        ],
        body: r#"{"model":"m"}"#.into(),
    }
}

/// The waits that a client would have made.
#[derive(Clone, Default)]
pub(crate) struct Waits(Arc<Mutex<Vec<Duration>>>);

impl Waits {
    pub(crate) fn seen(&self) -> Vec<Duration> {
        self.0.lock().expect("nobody panicked").clone()
    }
}

/// Returns options for a client that does not wait, but records how long it would have waited.
pub(crate) fn options(waits: &Waits) -> HttpOptions {
    let waits = waits.clone();
    HttpOptions {
        proxy: ProxyPolicy::None,
        sleep: Arc::new(move |wait| {
            waits.0.lock().expect("nobody panicked").push(wait);
            Box::pin(std::future::ready(()))
        }),
        ..HttpOptions::default()
    }
}

/// Returns a client with default options, except that it does not wait.
pub(crate) fn client() -> HttpClient {
    client_with(|_| ())
}

pub(crate) fn client_with(change: impl FnOnce(&mut HttpOptions)) -> HttpClient {
    let mut options = options(&Waits::default());
    change(&mut options);
    HttpClient::new(options).expect("the options are good")
}

/// Returns all bytes of a stream, and how it ended.
pub(crate) fn drain(mut stream: ByteStream) -> (Vec<u8>, Result<()>) {
    let mut all = Vec::new();
    loop {
        match stream.wait_next() {
            Some(Ok(piece)) => all.extend_from_slice(&piece),
            Some(Err(error)) => return (all, Err(error)),
            None => return (all, Ok(())),
        }
    }
}

/// Formats everything visible about an error.
pub(crate) fn shown(error: &Error) -> String {
    let mut shown = format!("{error} {error:?} {}", error.help().unwrap_or_default());
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        shown.push_str(&format!(" {inner} {inner:?}"));
        source = inner.source();
    }
    shown
}

/// Returns the error of an operation that must fail in this way, and checks that it does not contain the key.
#[track_caller]
pub(crate) fn fails<T: std::fmt::Debug>(result: Result<T>, kind: Kind) -> Error {
    let error = result.expect_err("it fails");
    assert_eq!(error.kind(), kind, "{error:?}");
    assert!(!shown(&error).contains(KEY), "{error:?}");
    error
}
