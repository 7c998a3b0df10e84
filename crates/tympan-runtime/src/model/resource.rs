//! Requests to the other resources of a provider's API, such as files and batches.

use std::fmt;
use std::time::Duration;

use serde_json::Value as Json;
use tympan_core::wire::echo::ECHO;
use tympan_core::wire::{self, BaseUrlFrom, Protocol, Provider, WireRequest};
use tympan_core::{Error, Kind, Prompt, Redactor, Result};

use crate::host::runtime::Runtime;
use crate::model::credentials::{Credentials, Purpose};
use crate::model::run::RunOptions;
use crate::net::client::{ByteStream, FileBody, HttpOptions, Transfer, TransferError};
use crate::net::io;

/// The slowest transfer that is waited for, in bytes per second.
const SLOWEST: u64 = 64 << 10;

/// The API of a prompt's provider, with the connection and the key that a call of its model would use.
///
/// Addresses and keys are subject to the same rules as those of model calls, and are checked for each request.
pub struct ProviderApi<'a> {
    runtime: &'a Runtime,
    prompt: &'a Prompt,
    run: &'a RunOptions,
    provider: &'static Provider,
    protocol: Protocol,
    model: String,
    origin: String,
}

/// A request to a resource.
#[derive(Debug)]
pub struct ResourceRequest<'r> {
    /// The HTTP method: `GET` or `POST`.
    pub method: &'static str,
    /// The path below the root of the API, as in `/batches`.
    pub path: &'r str,
    /// The parameters of the query.
    pub query: &'r [(&'r str, &'r str)],
    /// The body.
    pub body: ResourceBody,
    /// Whether to send the request again even if the provider may have acted on it.
    pub is_repeatable: bool,
}

/// The body of a request to a resource.
#[derive(Debug)]
pub enum ResourceBody {
    /// No body.
    None,
    /// A JSON document.
    Json(Json),
    /// A file, which is read while it is sent.
    File(FileBody),
}

impl<'r> ResourceRequest<'r> {
    /// Creates a request without a body, which may be repeated.
    pub fn get(path: &'r str) -> Self {
        Self { method: "GET", path, query: &[], body: ResourceBody::None, is_repeatable: true }
    }

    /// Creates a request with a body. It is not repeated if the provider may have acted on it.
    pub fn post(path: &'r str, body: ResourceBody) -> Self {
        Self { method: "POST", path, query: &[], body, is_repeatable: false }
    }
}

impl<'a> ProviderApi<'a> {
    /// Determines the API that a call of the prompt's model would use, and checks that its key may be sent there.
    ///
    /// # Errors
    /// Returns an error if a call of the model would not be sent either, or if the runtime replays recorded calls.
    pub fn new(runtime: &'a Runtime, prompt: &'a Prompt, run: &'a RunOptions) -> Result<Self> {
        let name = run.select_model(prompt).provider;
        if name == ECHO || runtime.get_provider(name).is_some() {
            let message = format_args!("the provider `{name}` has no API");
            return Err(Error::new(Kind::InvalidRequest, message).with_help("name another one with `--provider`"));
        }
        if runtime.cassette().is_some() {
            let message = "requests other than model calls cannot be recorded or replayed";
            return Err(Error::new(Kind::InvalidRequest, message));
        }
        let credentials = runtime.credentials(prompt, run, Purpose::Send)?;
        let target = wire::target(prompt, &credentials.options(run, false))?;
        let base = target.base_url.map(wire::parse_endpoint).transpose()?;
        let origin = base.map(|base| base.origin().ascii_serialization()).unwrap_or_default();
        let (provider, protocol, model) = (target.provider, target.protocol, target.model.to_owned());
        Ok(Self { runtime, prompt, run, provider, protocol, model, origin })
    }

    /// Returns the provider.
    pub fn provider(&self) -> &'static Provider {
        self.provider
    }

    /// Returns the protocol of the model's requests.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Returns the name of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the scheme, the host and the port of the API.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the HTTP options of the runtime.
    pub fn http_options(&self) -> &HttpOptions {
        &self.runtime.options().http
    }

    /// Sends a request, and returns the JSON of the response without the secrets of the connection.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached, or if it responds with an error or with anything but JSON.
    /// The error says whether the provider may have acted on the request.
    pub fn send(&self, request: ResourceRequest<'_>) -> Result<Json, TransferError> {
        let is_repeatable = request.is_repeatable;
        let (wire, file, redactor, credentials) = self.prepare(request)?;
        let options = self.options_for(file.as_ref().map_or(0, FileBody::len), None);
        let transfer = Transfer { request: wire, file, is_repeatable, options };
        let client = self.runtime.client()?;
        let sent = match client.transfer(transfer).wait()? {
            Ok(body) => Ok(body),
            Err(failure) => {
                let known = credentials.after::<()>(self.runtime, Err(failure.error));
                let error = known.err().unwrap_or_else(|| Error::new(Kind::Internal, "an error is missing"));
                Err(TransferError { error: error.without_secrets(&redactor), ..failure })
            }
        };
        let body = sent?;
        let json = serde_json::from_slice(&body).map_err(|_| TransferError {
            error: Error::new(Kind::UnexpectedResponse, "expected a JSON document").with_help("check the base URL"),
            is_outcome_unknown: true,
        })?;
        Ok(redactor.known_json(json))
    }

    /// Requests a file of at most `most_bytes` with a JSON document per line. It is read as it arrives.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached, or if it responds with an error or a web page.
    pub fn download(&self, path: &str, most_bytes: u64) -> Result<ByteStream> {
        let (request, _, redactor, credentials) =
            self.prepare(ResourceRequest::get(path)).map_err(|failure| failure.error)?;
        let options = self.options_for(0, Some(most_bytes));
        let transfer = Transfer { request, file: None, is_repeatable: true, options };
        let opened = self.runtime.client()?.download(transfer).wait();
        credentials.after(self.runtime, opened).map_err(|error| error.without_secrets(&redactor))
    }

    /// Returns the HTTP options, with times that allow for the transfer of this many bytes. A response begins when the
    /// request was sent, so only the size of the request delays its first byte.
    fn options_for(&self, sent_bytes: u64, most_received_bytes: Option<u64>) -> HttpOptions {
        let mut options = self.http_options().clone();
        let time = |bytes: u64| Duration::from_secs(bytes / SLOWEST);
        options.first_byte_timeout = options.first_byte_timeout.saturating_add(time(sent_bytes));
        let all_bytes = sent_bytes.saturating_add(most_received_bytes.unwrap_or_default());
        options.total_timeout = options.total_timeout.saturating_add(time(all_bytes));
        options.max_response_bytes = most_received_bytes.unwrap_or(options.max_response_bytes);
        options
    }

    /// Encodes a request with the current credentials: an access token may have expired since the last one.
    fn prepare(
        &self,
        request: ResourceRequest<'_>,
    ) -> Result<(WireRequest, Option<FileBody>, Redactor, Credentials), TransferError> {
        let ResourceRequest { method, path, query, body, .. } = request;
        let mut credentials = self.runtime.credentials(self.prompt, self.run, Purpose::Send)?;
        io::wait(credentials.obtain_token(self.runtime))?;
        let target = wire::target(self.prompt, &credentials.options(self.run, false))?;
        let (json, file) = match body {
            ResourceBody::None => (None, None),
            ResourceBody::Json(json) => (Some(json.to_string()), None),
            ResourceBody::File(file) => (None, Some(file)),
        };
        let mut wire = wire::resource_request(&target, method, path, query, json)?;
        if let Some(file) = &file {
            let value = wire::HeaderValue::Plain(file.content_type().to_owned());
            wire.headers.insert(0, wire::Header { name: "content-type".to_owned(), value });
        }
        let mut redactor = Redactor::default();
        redactor.register_all(&credentials.secrets(self.prompt, self.run, &wire.url));
        Ok((wire, file, redactor, credentials))
    }
}

impl Runtime {
    /// Returns whether a call of the prompt's model would go to an address of the provider itself, and not to one that
    /// is only compatible with it, such as a proxy or a server of your own. No key is needed to find out.
    ///
    /// # Errors
    /// Returns an error if the provider is unknown, or if the address may not receive the request.
    pub fn calls_provider_itself(&self, prompt: &Prompt, run: &RunOptions) -> Result<bool> {
        let name = run.select_model(prompt).provider;
        if name == ECHO || self.get_provider(name).is_some() {
            return Ok(false);
        }
        let credentials = self.credentials(prompt, run, Purpose::Show)?;
        let target = wire::target(prompt, &credentials.options(run, false))?;
        match (target.base_url_from, target.base_url) {
            (BaseUrlFrom::Provider, _) => Ok(true),
            (_, Some(url)) => Ok(target.provider.trusts(&wire::parse_endpoint(url)?)),
            (_, None) => Ok(false),
        }
    }
}

impl fmt::Debug for ProviderApi<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderApi")
            .field("provider", &self.provider.name)
            .field("protocol", &self.protocol)
            .field("model", &self.model)
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}
