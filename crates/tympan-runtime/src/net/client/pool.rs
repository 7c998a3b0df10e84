//! Connections: which certificates are trusted, which proxy is used.

use std::sync::Arc;

use reqwest::dns::Resolve;
use reqwest::{Client, ClientBuilder, Proxy};
use rustls::ClientConfig;
use url::{Host, Url};

use crate::net::client::options::{HttpOptions, ProxyPolicy};
use crate::net::client::tls;
use crate::{Error, Kind, Result};

/// How much of an answer over HTTP/2 may be on its way before somebody reads it.
const STREAM_WINDOW: u32 = 256 << 10;

/// The connections of a client.
#[derive(Debug)]
pub(super) struct Pools {
    proxied: Client,
    /// Where the environment names the proxy, it means the way out of this machine.
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

    /// The connections to use for an address.
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

/// Connections for tools that call an address which is the host's word.
///
/// # Errors
/// The options cannot be used.
pub(crate) fn of_host(options: &HttpOptions, url: &Url) -> Result<Client> {
    Ok(Pools::new(options)?.client(url).clone())
}

/// Connections for tools that call an address which is not the host's word. Names are looked up by `resolver`, so there
/// is no proxy that would look them up: but for one that the host names, who then says what may be reached.
///
/// # Errors
/// The options cannot be used.
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
        // What is followed and what is tried again is decided here, not there.
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http2_initial_stream_window_size(STREAM_WINDOW)
}

fn build(builder: ClientBuilder) -> Result<Client> {
    let invalid = |_| Error::new(Kind::InvalidRequest, "the HTTP client cannot be set up");
    builder.build().map_err(invalid).map_err(|error| error.with_help("the user agent must be one line of ASCII"))
}

/// The address may hold a password, so it is not shown.
fn proxy(address: &str) -> Result<Proxy> {
    let invalid = || {
        Error::new(Kind::InvalidRequest, "the address of the proxy cannot be used")
            .with_help("expected http://host:port or https://host:port")
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
