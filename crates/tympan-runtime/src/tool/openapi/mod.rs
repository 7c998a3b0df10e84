//! Tools of the kind `openapi`: the operations of a service that an OpenAPI document describes.
//!
//! The operations of a document become functions ([`Service`]), and their calls become HTTP requests. The document
//! determines the host. A model's arguments cannot change the host or leave the operation's path, and the connection's
//! key is sent only to that host.

mod call;
mod document;
mod operation;
mod request;
mod schema;
mod security;
mod serialize;
mod server;
mod service;
mod upload;

use std::path::Path;
use std::sync::Arc;

use reqwest::{Method, Request};
use serde_json::Value as Json;
use tympan_core::secret::url::secrets_of_url;
use tympan_core::spec::{Connection, ConnectionKind, Secret, ToolKind};
use tympan_core::{Error, JsonMap, Kind, Redactor, Result};
use url::Url;

pub use request::ServiceRequest;
pub use service::{LeftOut, Service, ServiceOptions};

use call::{Call, Caller};
use document::{MAX_BYTES, unusable};
use operation::Operation;
use upload::Uploads;

use crate::load::read_beside;
use crate::model::credentials::check_token_destination;
use crate::model::token::{CredentialProvider, TokenRequest, TokenSource};
use crate::net::client::shown;
use crate::net::io;
use crate::net::reach::ToolReach;
use crate::tool::{OpenTool, Opening};

/// A message that explains why something is not possible.
type Reason = String;

/// Parses the text of an OpenAPI document in JSON or YAML. `name` identifies the document in errors.
///
/// # Errors
/// Returns an error if the text is neither JSON nor YAML, or exceeds a limit.
pub fn read(name: &str, text: &str) -> Result<Json> {
    document::read(name, text)
}

/// Converts a tool's operations to functions.
pub(super) async fn open(opening: Opening<'_>) -> Result<Vec<OpenTool>> {
    let ToolKind::OpenApi { connection, specification } = &opening.tool.kind else { return Ok(Vec::new()) };
    let mut connection = Trusted::new(opening, connection.as_ref())?;
    let found = Found::new(opening, specification.as_ref()).await?;
    let service = Service::new(&found.document, &options(opening, &connection, &found)?)?;
    opening.runtime.options().tool_addresses.check(service.base().as_str())?;
    server::check(service.base())?;
    for LeftOut { operation, reason } in service.left_out() {
        tracing::debug!(tool = opening.tool.name, operation, reason, "skipping an operation");
    }
    let base = service.base().clone();
    let operations = service.into_operations();
    connection.obtain_token(opening, &base, &operations).await?;
    connection.check(opening, &found, &base, &operations)?;
    let reach = connection.reach(opening, &base);
    reach.as_ref().map_or(Ok(()), |reach| reach.check(opening.runtime))?;
    let redactor = Arc::new(connection.redactor(opening, &operations));
    let client = opening.runtime.tool_client();
    let uploads = Arc::new(Uploads::new(opening.prompt, opening.inputs, &opening.runtime.options().load));
    let is_idempotent = opening.tool.extra.get("idempotent") == Some(&Json::Bool(true));
    let made = operations.into_iter().map(|operation| {
        let (key, token, reach) = (connection.key.clone(), connection.token.clone(), reach.clone());
        let (client, redactor, uploads) = (client.clone(), redactor.clone(), uploads.clone());
        let function = operation.function.clone();
        let call = Call { operation, key, token, reach, client, redactor, uploads, is_idempotent };
        let tool = OpenTool::new(function, Arc::new(Caller(Arc::new(call))));
        // The author wrote, or has seen, a document that is part of the prompt.
        OpenTool { untrusted_description: found.address.is_some(), ..tool }
    });
    Ok(made.collect())
}

fn options(opening: Opening<'_>, connection: &Trusted, found: &Found) -> Result<ServiceOptions> {
    let extra = &opening.tool.extra;
    let wrong = |key: &str, expected: &str| {
        Error::new(Kind::ToolMismatch, format_args!("tool `{}`: expected `{key}` to be {expected}", opening.tool.name))
    };
    let operations = match extra.get("operations") {
        None | Some(Json::Null) => None,
        Some(listed) => {
            let names = listed.as_array().and_then(|names| names.iter().map(Json::as_str).collect::<Option<Vec<_>>>());
            let names = names.ok_or_else(|| wrong("operations", "a list of names"))?;
            Some(names.into_iter().map(str::to_owned).collect())
        }
    };
    let prefix = match extra.get("prefix") {
        None | Some(Json::Null) => String::new(),
        Some(prefix) => prefix.as_str().ok_or_else(|| wrong("prefix", "a string"))?.to_owned(),
    };
    let Found { name, address, .. } = found;
    let endpoint = connection.endpoint.clone();
    let variables = connection.variables.clone();
    Ok(ServiceOptions { name: name.clone(), endpoint, variables, address: address.clone(), operations, prefix })
}

/// A document and its source.
struct Found {
    name: String,
    document: Json,
    /// The URL that the document was fetched from, if any.
    address: Option<Url>,
}

impl Found {
    async fn new(opening: Opening<'_>, specification: Option<&Json>) -> Result<Self> {
        let tool = &opening.tool.name;
        match specification {
            Some(Json::String(address)) if address.starts_with("http://") || address.starts_with("https://") => {
                Self::fetch(opening, address).await
            }
            Some(Json::String(path)) => {
                let directory = opening.prompt.directory().unwrap_or(Path::new("."));
                let text = read_beside(directory, path, &opening.runtime.options().load)?;
                Ok(Self { name: path.clone(), document: read(path, &text)?, address: None })
            }
            Some(document @ Json::Object(_)) => {
                Ok(Self { name: format!("the document of `{tool}`"), document: document.clone(), address: None })
            }
            _ => Err(unusable(&format!("tool `{tool}`"), "missing `specification`")
                .with_help("write the path or URL of an OpenAPI document, or the document itself")),
        }
    }

    async fn fetch(opening: Opening<'_>, address: &str) -> Result<Self> {
        let url = opening.runtime.options().tool_addresses.check(address)?;
        server::check(&without_query(&url))?;
        ToolReach::of_document(opening.prompt, opening.tool, &url).check(opening.runtime)?;
        let name = without_query(&url).to_string();
        let client = opening.runtime.tool_client();
        let request = Request::new(Method::GET, url.clone());
        let answer = io::spawn(async move { client.send(request, MAX_BYTES).await }).await;
        let answer = answer.map_err(|error| match error.kind() {
            Kind::BlockedDestination => error,
            _ => unusable(&name, error.message()),
        })?;
        if !answer.status.is_success() {
            return Err(unusable(&name, format_args!("status {}", answer.status.as_u16())));
        }
        let text = String::from_utf8(answer.body).map_err(|_| unusable(&name, "not valid UTF-8"))?;
        Ok(Self { document: read(&name, &text)?, name, address: Some(url) })
    }
}

/// Removes the query, which is not part of the location and may contain a credential.
fn without_query(url: &Url) -> Url {
    let mut url = url.clone();
    url.set_query(None);
    url
}

/// A connection, and how its key may be used.
struct Trusted {
    endpoint: Option<Url>,
    key: Option<Secret>,
    /// Whether the host registered the connection. If so, the prompt knows only its name.
    is_registered: bool,
    /// Whether the connection is anonymous, so no key is sent.
    is_anonymous: bool,
    /// The values of the document's server variables.
    variables: JsonMap,
    /// The connection, if it has no key and the host registered a credential provider for its kind.
    keyless: Option<(Connection, Arc<dyn CredentialProvider>)>,
    /// Where the key comes from, if it is an access token.
    token: Option<TokenSource>,
}

impl Trusted {
    fn new(opening: Opening<'_>, declared: Option<&Connection>) -> Result<Self> {
        let registered = match declared.filter(|connection| connection.kind == ConnectionKind::Reference) {
            Some(reference) => {
                let name = reference.name.as_deref().unwrap_or_default();
                Some(opening.runtime.get_connection(name).ok_or_else(|| {
                    Error::not_registered("connection", name).with_help("register it with register_connection")
                })?)
            }
            None => None,
        };
        let is_registered = registered.is_some();
        let connection = registered.as_deref().or(declared);
        let endpoint = connection.and_then(|connection| connection.endpoint.as_deref());
        let endpoint = endpoint.map(|endpoint| opening.runtime.options().tool_addresses.check(endpoint)).transpose()?;
        endpoint.as_ref().map(server::check).transpose()?;
        let is_anonymous = connection.is_some_and(|connection| connection.kind == ConnectionKind::Anonymous);
        let key = connection.and_then(|connection| connection.api_key.clone());
        let key = key.filter(|key| !is_anonymous && !key.expose().trim().is_empty());
        let variables = match connection.and_then(|connection| connection.extra.get("variables")) {
            None | Some(Json::Null) => JsonMap::new(),
            Some(Json::Object(variables)) => variables.clone(),
            Some(_) => {
                let tool = &opening.tool.name;
                let details = format_args!("tool `{tool}`: expected `connection.variables` to be a map");
                return Err(Error::new(Kind::ToolMismatch, details));
            }
        };
        let keyless = connection
            .filter(|_| key.is_none())
            .and_then(|connection| Some((connection.clone(), opening.runtime.credential_provider_of(connection)?)));
        Ok(Self { endpoint, key, is_registered, is_anonymous, variables, keyless, token: None })
    }

    /// Asks for the access token of a connection without a key, if an operation can carry one. The address is checked
    /// first.
    async fn obtain_token(&mut self, opening: Opening<'_>, base: &Url, operations: &[Operation]) -> Result<()> {
        let is_needed = operations.iter().any(|operation| operation.security.place.is_some());
        let Some((connection, provider)) = self.keyless.take().filter(|_| is_needed) else { return Ok(()) };
        if let Some(reach) = self.reach(opening, base) {
            let allowed = &opening.runtime.options().allow_endpoints;
            check_token_destination(reach.address(), Some(&connection.kind), allowed)?;
        }
        let request = TokenRequest::new(&connection, &opening.tool.name, Some(base.as_str()));
        let span = opening.runtime.tracer().start("credential");
        let source = TokenSource::new(opening.runtime, provider, request);
        let token = source.token().await?;
        span.hide([&token]);
        (self.key, self.token) = (Some(token), Some(source));
        Ok(())
    }

    /// Returns what requests to this address carry, unless the host itself configured the address.
    fn reach(&self, opening: Opening<'_>, base: &Url) -> Option<ToolReach> {
        let is_of_host = self.is_registered && self.endpoint.is_some();
        (!is_of_host).then(|| ToolReach::new(opening.prompt, opening.tool, base, self.key.as_ref()))
    }

    /// Checks whether the key may be sent to the document's address, and whether a required key is missing.
    fn check(&self, opening: Opening<'_>, found: &Found, base: &Url, operations: &[Operation]) -> Result<()> {
        let tool = &opening.tool.name;
        if self.key.is_none() {
            let needy = operations.iter().find(|operation| !operation.security.is_optional && !self.is_anonymous);
            return needy.map_or(Ok(()), |operation| Err(missing_key(tool, operation)));
        }
        // If there is an endpoint, the base URL has the same origin.
        let is_vouched = self.endpoint.is_some();
        let is_own = found.address.as_ref().is_none_or(|address| address.origin() == base.origin());
        if !is_vouched && (self.is_registered || !is_own) {
            let host = shown(base.host_str().unwrap_or_default());
            let details = format_args!("only the document says that the key for `{tool}` may be sent to `{host}`");
            return Err(Error::new(Kind::UntrustedEndpoint, details)
                .with_help("set `endpoint` of the connection to the URL that the key is for"));
        }
        let schemes = found.document.pointer("/components/securitySchemes").and_then(Json::as_object);
        if schemes.is_none_or(JsonMap::is_empty) {
            let details = format_args!("`{tool}` has a key, but its document does not define how to send it");
            return Err(Error::new(Kind::ToolMismatch, details)
                .with_help("add `security` and `securitySchemes` to the document, or remove the key"));
        }
        Ok(())
    }

    /// Creates a redactor for everything that must not appear in responses: the key, and other secrets of the prompt.
    fn redactor(&self, opening: Opening<'_>, operations: &[Operation]) -> Redactor {
        // Do not redact values that merely look like credentials: they may be what the service was called for.
        let mut redactor = Redactor::new(false);
        redactor.register_all(&opening.prompt.secrets());
        if let Some(key) = &self.key {
            redactor.register(key.expose());
            let places = operations.iter().filter_map(|operation| operation.security.place.as_ref());
            places.for_each(|place| redactor.register_all(&place.secrets(key)));
        }
        redactor.register_all(&secrets_of_url(self.endpoint.as_ref().map_or("", Url::as_str)));
        redactor
    }
}

fn missing_key(tool: &str, operation: &Operation) -> Error {
    let name = &operation.function.name;
    Error::new(Kind::MissingKey, format_args!("`{name}` of tool `{tool}` needs one")).with_help(
        "set `apiKey` in the tool's `connection`, or choose `operations` that need no key; `kind: anonymous` calls \
            without a key",
    )
}
