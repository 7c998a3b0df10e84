//! Clients for the server, which do not wait, and what is looked at in their errors.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tympan_core::spec::Secret;
use tympan_core::wire::{Header, HeaderValue, Protocol, WireRequest};
use tympan_runtime::net::client::{ByteStream, HttpClient, HttpOptions, ProxyPolicy};
use tympan_runtime::{Error, Kind, Result};

/// A key that nobody but the server may see.
pub(crate) const KEY: &str = "sk-live-CANARY";

/// A request with the key.
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

/// Options of a client that does not wait, but says for how long it would have.
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

/// A client as it is by default, but for the waits.
pub(crate) fn client() -> HttpClient {
    client_with(|_| ())
}

pub(crate) fn client_with(change: impl FnOnce(&mut HttpOptions)) -> HttpClient {
    let mut options = options(&Waits::default());
    change(&mut options);
    HttpClient::new(options).expect("the options are good")
}

/// All bytes of a stream, and how it ended.
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

/// Everything that somebody could read of an error.
pub(crate) fn shown(error: &Error) -> String {
    let mut shown = format!("{error} {error:?} {}", error.help().unwrap_or_default());
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        shown.push_str(&format!(" {inner} {inner:?}"));
        source = inner.source();
    }
    shown
}

/// The error of something that must fail in this way, and never show the key.
#[track_caller]
pub(crate) fn fails<T: std::fmt::Debug>(result: Result<T>, kind: Kind) -> Error {
    let error = result.expect_err("it fails");
    assert_eq!(error.kind(), kind, "{error:?}");
    assert!(!shown(&error).contains(KEY), "{error:?}");
    error
}
