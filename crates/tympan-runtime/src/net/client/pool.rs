//! Connection pools: trusted certificates and proxies.

use std::sync::Arc;

use reqwest::dns::Resolve;
use reqwest::{Client, ClientBuilder, Proxy};
use rustls::ClientConfig;
use url::{Host, Url};

use crate::net::client::options::{HttpOptions, ProxyPolicy};
use crate::net::client::tls;
use crate::{Error, Kind, Result};

/// The maximum number of bytes of an HTTP/2 response that may be in transit before they are read.
const STREAM_WINDOW: u32 = 256 << 10;

/// The connection pools of a client.
#[derive(Debug)]
pub(super) struct Pools {
    proxied: Client,
    /// Bypasses a proxy from the environment, which is meant for connections that leave this machine.
    local: Client,
}

impl Pools {
    pub(super) fn new(options: &HttpOptions) -> Result<Self> {
        let mut tls = tls::config(options.extra_roots.as_deref())?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let proxied = match &options.proxy {
            ProxyPolicy::FromEnvironment => builder(options, tls.clone()),
            ProxyPolicy::None => builder(options, tls.clone()).no_proxy(),
            ProxyPolicy::Url(address) => builder(options, tls.clone()).proxy(proxy(address)?),
        };
        let proxied = build(proxied)?;
        let local = match options.proxy {
            ProxyPolicy::FromEnvironment => build(builder(options, tls).no_proxy())?,
            ProxyPolicy::None | ProxyPolicy::Url(_) => proxied.clone(),
        };
        Ok(Self { proxied, local })
    }

    /// Returns the connection pool for a URL.
    pub(super) fn client(&self, url: &Url) -> &Client {
        let local = match url.host() {
            Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if local { &self.local } else { &self.proxied }
    }
}

/// Creates a connection pool for tools that call an address configured by the host.
///
/// # Errors
/// Returns an error if the options are invalid.
pub(crate) fn of_host(options: &HttpOptions, url: &Url) -> Result<Client> {
    Ok(Pools::new(options)?.client(url).clone())
}

/// Creates a connection pool for tools that call an address not configured by the host. Names are resolved by
/// `resolver`. Proxies from the environment are not used, because they would resolve names themselves. A proxy that the
/// host configures explicitly is used, and is then responsible for what can be reached.
///
/// # Errors
/// Returns an error if the options are invalid.
pub(crate) fn of_tools(options: &HttpOptions, resolver: Arc<dyn Resolve>) -> Result<Client> {
    let mut tls = tls::config(options.extra_roots.as_deref())?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let builder = builder(options, tls).dns_resolver(resolver);
    build(match &options.proxy {
        ProxyPolicy::Url(address) => builder.proxy(proxy(address)?),
        ProxyPolicy::FromEnvironment | ProxyPolicy::None => builder.no_proxy(),
    })
}

fn builder(options: &HttpOptions, tls: ClientConfig) -> ClientBuilder {
    Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(&options.user_agent)
        .connect_timeout(options.connect_timeout)
        // We handle redirects and retries ourselves.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http2_initial_stream_window_size(STREAM_WINDOW)
}

fn build(builder: ClientBuilder) -> Result<Client> {
    let invalid = |_| Error::new(Kind::InvalidRequest, "cannot create the HTTP client");
    builder.build().map_err(invalid).map_err(|error| error.with_help("check that the user agent is one line of ASCII"))
}

/// Creates a proxy. Its URL may contain a password, so it is not shown in errors.
fn proxy(address: &str) -> Result<Proxy> {
    let invalid = || {
        Error::new(Kind::InvalidRequest, "invalid proxy URL").with_help("write http://host:port or https://host:port")
    };
    let url = Url::parse(address).map_err(|_| invalid())?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(invalid());
    }
    Proxy::all(url).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::client::own;
    use crate::net::io;
    use crate::tool::ToolAddresses;

    #[test]
    fn names_are_looked_up_by_who_knows_what_tools_may_call() {
        let blocked = |addresses: ToolAddresses| {
            let looked_up = io::spawn(async move {
                let client = of_tools(&HttpOptions::default(), addresses.resolver())?;
                let failure = client.get("http://localhost:1/").send().await.err();
                let own = failure.as_ref().and_then(own);
                Ok(own.is_some_and(|error| error.kind() == Kind::BlockedDestination))
            });
            looked_up.wait().expect("there is a client")
        };
        assert!(blocked(ToolAddresses::default()));
        assert!(!blocked(ToolAddresses { allow_private: true, ..ToolAddresses::default() }));
    }
}
