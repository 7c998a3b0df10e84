//! How a client is set up.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tympan_core::spec::REDACTED;

/// How a client waits before it tries again. Tests put their own here and wait for nothing.
pub type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// How a client waits, tries again, connects, and what it accepts.
#[derive(Clone)]
pub struct HttpOptions {
    /// For a connection: name, TCP, TLS.
    pub connect_timeout: Duration,
    /// From sending the request to the first byte of the answer's body, with the connection if there was none yet.
    pub first_byte_timeout: Duration,
    /// Between two pieces of an answer.
    pub idle_timeout: Duration,
    /// For everything together: every attempt, the waits between them, and the whole answer.
    pub total_timeout: Duration,
    /// How often a request is sent again, at most.
    pub max_retries: u32,
    /// The longest wait that a provider may ask for. If it asks for more, there is an error instead of a wait.
    pub max_retry_wait: Duration,
    /// The first wait is between zero and this, if the provider asks for none. Each further one may be twice as long.
    pub backoff_base: Duration,
    /// The bytes of an answer, after decompression.
    pub max_response_bytes: u64,
    /// The bytes that are read of the body of an error.
    pub max_error_bytes: usize,
    /// Which proxy requests go through.
    pub proxy: ProxyPolicy,
    /// What the client calls itself.
    pub user_agent: String,
    /// Certificates in PEM that are trusted besides the built-in ones, for a company's own authority.
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

/// Which proxy requests go through.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum ProxyPolicy {
    /// The one that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say. Requests to this machine go through
    /// none.
    #[default]
    FromEnvironment,
    /// None, whatever the environment says.
    None,
    /// This one, for every request.
    Url(String),
}

impl fmt::Debug for ProxyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FromEnvironment => f.write_str("FromEnvironment"),
            Self::None => f.write_str("None"),
            Self::Url(address) => {
                // The address may hold a password.
                let origin = url::Url::parse(address).map(|url| url.origin().ascii_serialization());
                f.debug_tuple("Url").field(&origin.unwrap_or_else(|_| REDACTED.to_owned())).finish()
            }
        }
    }
}
