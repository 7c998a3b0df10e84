//! The destination of a request: the provider, its protocol and the model.

use std::fmt;

use url::Url;

use super::compatible::{PROVIDERS, Paths, Provider, provider};
use super::model_selection::ModelSelection;
use super::trust::parse_endpoint;
use super::{EncodeOptions, Protocol};
use crate::diagnostic::{guess_name, short};
use crate::error::{Error, Kind, Result};
use crate::prompt::Prompt;
use crate::secret::url::redacted_url;
use crate::spec::{Connection, ConnectionKind, Secret};
use crate::wire::echo::ECHO;

/// The default version of Azure's API, for connections that do not specify one: the last stable version with
/// deployments in its paths.
pub const AZURE_API_VERSION: &str = "2024-10-21";

/// The destination of a request.
#[derive(Clone)]
pub struct Target<'a> {
    /// The provider.
    pub provider: &'static Provider,
    /// The protocol.
    pub protocol: Protocol,
    /// The provider's name for the model.
    pub model: &'a str,
    /// The base URL that paths are appended to; `None` if the provider has no default and none was configured.
    pub base_url: Option<&'a str>,
    /// Where the base URL comes from.
    pub base_url_from: BaseUrlFrom,
    /// The connection to use, if any.
    pub connection: Option<&'a Connection>,
    /// The API key from the options or the connection.
    pub api_key: Option<&'a Secret>,
    /// The access token from the options, which is sent instead of the key.
    pub token: Option<&'a Secret>,
}

impl fmt::Debug for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("provider", &self.provider.name)
            .field("protocol", &self.protocol)
            .field("model", &self.model)
            .field("base_url", &self.base_url.map(redacted_url))
            .field("base_url_from", &self.base_url_from)
            .field("has_key", &self.api_key.is_some())
            .finish_non_exhaustive()
    }
}

/// The source of a base URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseUrlFrom {
    /// The host's options.
    Options,
    /// The connection, either the prompt's or one that the host registered.
    Connection,
    /// The provider's default.
    Provider,
}

impl Target<'_> {
    /// Returns whether a request needs a key that neither the options nor the connection contain. Local servers do not
    /// need one.
    pub fn needs_key(&self) -> bool {
        let is_anonymous = self.connection.is_some_and(|connection| connection.kind == ConnectionKind::Anonymous);
        self.api_key.is_none() && self.token.is_none() && !self.provider.is_local && !is_anonymous
    }
}

/// Resolves the destination of a request. [`ModelSelection`] decides about the provider, the API type and the model. A
/// model name is enough for a prompt to run, because there is a default provider.
///
/// # Errors
/// Returns an error if no model is named, if the provider is unknown, or if the provider does not support the API type.
/// A missing key is not an error here, because the sender may look for one elsewhere.
pub fn target<'a>(prompt: &'a Prompt, options: &EncodeOptions<'a>) -> Result<Target<'a>> {
    let selection = ModelSelection::new(prompt, options);
    let provider = find_provider(selection.provider)?;
    let protocol = find_protocol(provider, selection.api_type)?;
    let model = selection.model.filter(|id| !id.trim().is_empty()).ok_or_else(|| {
        Error::new(Kind::InvalidRequest, "missing model").with_help("set `model.id` in the prompt file")
    })?;
    let connection = options.connection.or_else(|| own_connection(prompt, options.provider));
    let endpoint = connection.and_then(|connection| connection.endpoint.as_deref()).filter(|url| !url.is_empty());
    let (base_url, base_url_from) = match (options.base_url, endpoint) {
        (Some(url), _) => (Some(url), BaseUrlFrom::Options),
        (None, Some(url)) => (Some(url), BaseUrlFrom::Connection),
        (None, None) => (provider.base_url, BaseUrlFrom::Provider),
    };
    let own_key = connection.filter(|connection| connection.kind != ConnectionKind::Anonymous);
    let own_key = own_key.and_then(|connection| connection.api_key.as_ref());
    let api_key = options.api_key.or(own_key);
    Ok(Target { provider, protocol, model, base_url, base_url_from, connection, api_key, token: options.token })
}

/// Returns the connection that a prompt declares. It applies only to the prompt's own provider: if `provider` names a
/// different one, returns `None`, so that neither the address nor the key is used for it.
pub fn own_connection<'a>(prompt: &'a Prompt, provider: Option<&str>) -> Option<&'a Connection> {
    let model = prompt.spec().model.as_ref()?;
    let own = ModelSelection::new(prompt, &EncodeOptions::default()).provider;
    // A provider may have several names.
    let row = |name| find_provider(name).map_or(name, |row| row.name);
    let is_own = |name| row(name) == row(own);
    model.connection.as_ref().filter(|_| provider.is_none_or(is_own))
}

/// Returns the provider with this name or alias.
///
/// # Errors
/// Returns an error if the provider is unknown.
pub fn find_provider(name: &str) -> Result<&'static Provider> {
    provider(name).ok_or_else(|| {
        let names: Vec<_> = PROVIDERS.iter().map(|row| row.name).chain([ECHO]).collect();
        let shown = short(name);
        let help = match guess_name(name, names.iter().copied()) {
            Some(near) => format!("unknown provider `{shown}`, did you mean `{near}`?"),
            None => format!("unknown provider `{shown}`; known providers: {}", names.join(", ")),
        };
        Error::not_registered("executor", name).with_help(help)
    })
}

/// Returns the provider's protocol for an `apiType`.
pub(super) fn find_protocol(provider: &Provider, api: Option<&str>) -> Result<Protocol> {
    let mut protocols = provider.protocols.iter().copied();
    let found = match api {
        None | Some("") => protocols.next(),
        Some(name) => protocols.find(|protocol| protocol.api_types().contains(&name)),
    };
    found.ok_or_else(|| {
        let has: Vec<_> = provider.protocols.iter().map(|protocol| protocol.api_type()).collect();
        Error::new(Kind::UnsupportedApi, api.unwrap_or_default()).with_help(format!(
            "provider `{}` supports {}",
            provider.name,
            has.join(", ")
        ))
    })
}

impl Provider {
    /// Returns the base URL from the value of the provider's environment variable. For a local server the value may be
    /// just a host, because `OLLAMA_HOST` is also the address that the server itself listens on.
    pub fn base_url_of_variable(&self, value: &str) -> String {
        if !self.is_local || value.contains("://") {
            return value.to_owned();
        }
        let own = self.base_url.and_then(|own| Url::parse(own).ok());
        let Some(mut url) = Url::parse(&format!("http://{value}")).ok() else { return value.to_owned() };
        // `Url` drops the default port of HTTP, so check for an explicit `:80` in the value.
        if url.port().is_none() && !value.ends_with(":80") {
            let _ = url.set_port(own.as_ref().and_then(Url::port));
        }
        if url.host_str() == Some("0.0.0.0") {
            let _ = url.set_host(Some("127.0.0.1"));
        }
        url.into()
    }
}

impl Protocol {
    /// Returns the protocol's `apiType` in prompts.
    pub const fn api_type(self) -> &'static str {
        self.api_types()[0]
    }

    /// Returns all accepted values of `apiType`, the usual one first.
    const fn api_types(self) -> &'static [&'static str] {
        match self {
            Self::OpenAiChat => &["chat"],
            Self::AnthropicMessages => &["chat", "messages"],
            Self::OpenAiResponses => &["responses", "response"],
            Self::OpenAiEmbeddings => &["embedding", "embeddings"],
            Self::OpenAiImages => &["image", "images"],
        }
    }

    /// Returns the path of the endpoint below the root of the provider's API, as in `/chat/completions`.
    pub const fn endpoint(self) -> &'static str {
        match self {
            Self::OpenAiChat => "/chat/completions",
            Self::OpenAiResponses => "/responses",
            Self::OpenAiEmbeddings => "/embeddings",
            Self::OpenAiImages => "/images/generations",
            Self::AnthropicMessages => "/messages",
        }
    }
}

impl Target<'_> {
    /// Returns the URL of the request.
    ///
    /// # Errors
    /// Returns an error if there is no base URL, or if it is invalid.
    pub fn url(&self) -> Result<String> {
        let base = base(self.provider, self.base_url)?;
        let version = self.connection.and_then(|connection| connection.extra.get("apiVersion")?.as_str());
        // Azure serves the Responses API only below `/openai/v1`.
        let is_classic = self.protocol != Protocol::OpenAiResponses && !ends_in(&base, V1);
        if self.provider.paths == Paths::Deployments && is_classic {
            let version = version.unwrap_or(AZURE_API_VERSION);
            let mut url = join(&base, "/openai/deployments");
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.push(self.model);
            }
            let mut url = join(&url, self.protocol.endpoint());
            url.query_pairs_mut().append_pair("api-version", version);
            return Ok(url.into());
        }
        Ok(join(&rooted(self.provider, &base), self.protocol.endpoint()).into())
    }
}

const V1: &str = "/openai/v1";

/// Parses the base URL that paths are appended to.
pub(super) fn base(provider: &Provider, base_url: Option<&str>) -> Result<Url> {
    let base_url = base_url.ok_or_else(|| {
        let name = provider.name;
        let variable = provider.base_url_variable.unwrap_or("the connection");
        Error::new(Kind::InvalidRequest, format_args!("provider `{name}` needs an endpoint"))
            .with_help(format!("set `model.connection.endpoint` or {variable}"))
    })?;
    parse_endpoint(base_url)
}

/// Adds the root path of the provider's API to a base URL, if it is missing.
pub(super) fn rooted(provider: &Provider, base: &Url) -> Url {
    match provider.paths {
        Paths::Default(path) if matches!(base.path(), "" | "/") => join(base, path),
        Paths::Default(_) => base.clone(),
        Paths::Under(path) if ends_in(base, path) => base.clone(),
        Paths::Under(path) => join(base, path),
        Paths::Deployments if ends_in(base, V1) => base.clone(),
        Paths::Deployments => join(base, V1),
    }
}

fn ends_in(url: &Url, path: &str) -> bool {
    url.path().trim_end_matches('/').ends_with(path)
}

/// Appends a path to a URL, preserving its query.
pub(super) fn join(url: &Url, path: &str) -> Url {
    let mut joined = url.clone();
    joined.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_need_only_name_a_host() {
        let of = |name: &str, value: &str| provider(name).expect("it is known").base_url_of_variable(value);
        assert_eq!(of("ollama", "0.0.0.0"), "http://127.0.0.1:11434/");
        assert_eq!(of("ollama", "box.local:1234"), "http://box.local:1234/");
        assert_eq!(of("ollama", "[::1]"), "http://[::1]:11434/");
        assert_eq!(of("ollama", "https://box.local/x"), "https://box.local/x");
        assert_eq!(of("openai", "https://proxy.example.com/v1"), "https://proxy.example.com/v1");
    }
}
