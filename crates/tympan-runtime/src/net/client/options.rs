//! The options of the HTTP client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tympan_core::spec::REDACTED;

/// A function that waits before a retry. Tests can replace it to avoid waiting.
pub type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// The options of the HTTP client: timeouts, retries, connections and limits.
#[derive(Clone)]
pub struct HttpOptions {
    /// The time limit for establishing a connection: DNS, TCP and TLS.
    pub connect_timeout: Duration,
    /// The time limit from sending the request to the first byte of the response's body, including the connection if it
    /// is new.
    pub first_byte_timeout: Duration,
    /// The time limit between two chunks of a response.
    pub idle_timeout: Duration,
    /// The time limit for everything: all attempts, the waits between them, and the whole response.
    pub total_timeout: Duration,
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The maximum wait that a provider may request. If it requests more, the request fails instead.
    pub max_retry_wait: Duration,
    /// The upper bound of the first wait, which is random, if the provider does not request one. It doubles with each
    /// retry, up to eight seconds (or this value, if it is larger).
    pub backoff_base: Duration,
    /// The maximum size of a response after decompression, in bytes.
    pub max_response_bytes: u64,
    /// The maximum number of bytes to read from the body of an error response.
    pub max_error_bytes: usize,
    /// The proxy to use.
    pub proxy: ProxyPolicy,
    /// The value of the `user-agent` header.
    pub user_agent: String,
    /// Trusted certificates in PEM format, in addition to the built-in ones, such as those of a corporate CA.
    pub extra_roots: Option<String>,
    /// How to wait before a retry.
    #[doc(hidden)]
    pub sleep: Sleep,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(30),
            total_timeout: Duration::from_secs(600),
            max_retries: 2,
            max_retry_wait: Duration::from_secs(60),
            backoff_base: Duration::from_millis(500),
            max_response_bytes: 64 << 20,
            max_error_bytes: 64 << 10,
            proxy: ProxyPolicy::default(),
            user_agent: concat!("tympan/", env!("CARGO_PKG_VERSION")).to_owned(),
            extra_roots: None,
            sleep: Arc::new(|wait| Box::pin(tokio::time::sleep(wait))),
        }
    }
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpOptions")
            .field("connect_timeout", &self.connect_timeout)
            .field("first_byte_timeout", &self.first_byte_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("max_retries", &self.max_retries)
            .field("max_retry_wait", &self.max_retry_wait)
            .field("backoff_base", &self.backoff_base)
            .field("max_response_bytes", &self.max_response_bytes)
            .field("max_error_bytes", &self.max_error_bytes)
            .field("proxy", &self.proxy)
            .field("user_agent", &self.user_agent)
            .field("extra_roots", &self.extra_roots.is_some())
            .finish_non_exhaustive()
    }
}

/// The proxy to use for requests.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyPolicy {
    /// The proxy configured by `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`. Requests to this machine use
    /// none.
    #[default]
    FromEnvironment,
    /// No proxy, whatever the environment says.
    None,
    /// This proxy, for every request.
    Url(String),
}

impl fmt::Debug for ProxyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromEnvironment => f.write_str("FromEnvironment"),
            Self::None => f.write_str("None"),
            Self::Url(address) => {
                // The URL may contain a password.
                let origin = url::Url::parse(address).map(|url| url.origin().ascii_serialization());
                f.debug_tuple("Url").field(&origin.unwrap_or_else(|_| REDACTED.to_owned())).finish()
            }
        }
    }
}
