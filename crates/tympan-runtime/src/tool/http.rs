//! The HTTP client of tools.

use reqwest::{Client, Request};

use crate::Result;
use crate::net::client::{Answer, HttpOptions, of_tools, send_once};
use crate::net::io::PerProcess;
use crate::tool::ToolAddresses;

/// An HTTP client that only sends requests to addresses that tools may call. Its connections are not shared with model
/// calls.
pub(crate) struct ToolClient {
    options: HttpOptions,
    addresses: ToolAddresses,
    /// The underlying client. A child process must not use the connections of its parent.
    client: PerProcess<Result<Client>>,
}

impl ToolClient {
    pub(crate) fn new(options: HttpOptions, addresses: ToolAddresses) -> Self {
        Self { options, addresses, client: PerProcess::new() }
    }

    /// Returns the underlying client. It does not resolve IP addresses, so pass URLs to [`ToolAddresses::check`] first.
    ///
    /// # Errors
    /// Returns an error if the options are invalid.
    pub(crate) fn client(&self) -> Result<&Client> {
        let make = || of_tools(&self.options, self.addresses.resolver());
        self.client.get(make).as_ref().map_err(Clone::clone)
    }

    /// Sends a request once, and reads a response of at most `max_bytes` bytes.
    ///
    /// # Errors
    /// Returns an error if the address is blocked, or if no response arrives within the limits.
    pub(crate) async fn send(&self, request: Request, max_bytes: u64) -> Result<Answer> {
        self.addresses.check(request.url().as_str())?;
        let max_response_bytes = self.options.max_response_bytes.min(max_bytes);
        send_once(self.client()?, request, &HttpOptions { max_response_bytes, ..self.options.clone() }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::net::io;

    fn get(address: &str) -> Request {
        Request::new(reqwest::Method::GET, address.parse().expect("an address"))
    }

    /// The check before resolution is tested elsewhere; this tests what happens during resolution.
    #[test]
    fn names_of_private_addresses_are_blocked_when_they_are_looked_up() {
        let sent = io::spawn(async {
            let client = ToolClient::new(HttpOptions::default(), ToolAddresses::default());
            send_once(client.client()?, get("http://localhost:9/"), &client.options).await.map(|_| ())
        });
        assert_eq!(sent.wait().expect_err("it is private").kind(), Kind::BlockedDestination);
    }

    #[test]
    fn private_addresses_are_blocked_before_anything_is_sent() {
        let sent = io::spawn(async {
            let client = ToolClient::new(HttpOptions::default(), ToolAddresses::default());
            client.send(get("http://127.0.0.1:9/"), 1).await.map(|_| ())
        });
        assert_eq!(sent.wait().expect_err("it is private").kind(), Kind::BlockedDestination);
    }
}
