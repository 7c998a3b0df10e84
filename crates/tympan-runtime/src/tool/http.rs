//! The HTTP client of tools.

use reqwest::{Client, Request};

use crate::Result;
use crate::net::client::{Answer, HttpOptions, of_tools, send_once};
use crate::net::io::PerProcess;
use crate::tool::ToolAddresses;

/// A client that goes only where tools may go. Its connections are those of tools alone.
pub(crate) struct ToolClient {
    options: HttpOptions,
    addresses: ToolAddresses,
    /// A child process must not use the connections of its parent.
    client: PerProcess<Result<Client>>,
}

impl ToolClient {
    pub(crate) fn new(options: HttpOptions, addresses: ToolAddresses) -> Self {
        Self { options, addresses, client: PerProcess::new() }
    }

    /// The client itself. Addresses that are written as numbers are not looked up: [`ToolAddresses::check`] them.
    ///
    /// # Errors
    /// The options cannot be used.
    pub(crate) fn client(&self) -> Result<&Client> {
        let make = || of_tools(&self.options, self.addresses.resolver());
        self.client.get(make).as_ref().map_err(Clone::clone)
    }

    /// Sends a request once, and reads an answer of so many bytes at most.
    ///
    /// # Errors
    /// The address is blocked, or there is no answer within the bounds.
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

    /// Addresses are checked before names are looked up; this is what happens after that.
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
