//! Where a request goes: which provider, which of its interfaces, which model.

use std::fmt;

use url::Url;

use super::compatible::{DEFAULT_PROVIDER, PROVIDERS, Paths, Provider, provider};
use super::trust::parse_endpoint;
use super::{EncodeOptions, Protocol};
use crate::diagnostic::guess_name;
use crate::error::{Error, Kind, Result};
use crate::prompt::Prompt;
use crate::secret::url::redacted_url;
use crate::spec::{Connection, ConnectionKind, Model, Secret};
use crate::wire::echo::ECHO;

/// The version of Azure's API that requests ask for if the connection names none: the last one with deployments in its
/// paths that is not a preview.
pub const AZURE_API_VERSION: &str = "2024-10-21";

/// Where a request goes.
#[derive(Clone)]
pub struct Target<'a> {
    /// The provider.
    pub provider: &'static Provider,
    /// The interface.
    pub protocol: Protocol,
    /// The model's name at the provider.
    pub model: &'a str,
    /// The address that paths are added to; `None` if the provider has none of its own and nobody has given one.
    pub base_url: Option<&'a str>,
    /// Who has given the address.
    pub base_url_from: BaseUrlFrom,
    /// The connection that is used, if there is one.
    pub connection: Option<&'a Connection>,
    /// The key that was given, or that stands in the connection.
    pub api_key: Option<&'a Secret>,
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

/// Who has given an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseUrlFrom {
    /// The host.
    Options,
    /// The connection: the prompt's, or one that the host has registered.
    Connection,
    /// Nobody; it is the provider's usual one.
    Provider,
}

/// Finds out where a request goes.
///
/// A prompt that names no provider gets `openai`, the reference of the Prompty specification: a name of a model is
/// enough for a prompt to work.
///
/// # Errors
/// No model is named; the provider is not known; or it does not have the interface that the prompt asks for. That there
/// is no key is none: whoever sends the request knows where else to look for one.
pub fn target<'a>(prompt: &'a Prompt, options: &EncodeOptions<'a>) -> Result<Target<'a>> {
    let model = prompt.spec().model.as_ref();
    let provider = find_provider(named_provider(model, options))?;
    let protocol = find_protocol(provider, named_api(model, options))?;
    let id = options.model.or_else(|| model?.id.as_deref()).filter(|id| !id.trim().is_empty());
    let id = id.ok_or_else(|| {
        Error::new(Kind::InvalidRequest, "no model is named").with_help("give `model.id` in the prompt file")
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
    Ok(Target { provider, protocol, model: id, base_url, base_url_from, connection, api_key })
}

/// The connection that a prompt declares. It leads to the prompt's provider: for another one, which a caller may name,
/// it has neither the address nor the key.
pub fn own_connection<'a>(prompt: &'a Prompt, provider: Option<&str>) -> Option<&'a Connection> {
    let model = prompt.spec().model.as_ref()?;
    let own = named_provider(Some(model), &EncodeOptions::default());
    // One provider may have several names.
    let row = |name| find_provider(name).map_or(name, |row| row.name);
    let is_own = |name| row(name) == row(own);
    model.connection.as_ref().filter(|_| provider.is_none_or(is_own))
}

pub(super) fn named_provider<'a>(model: Option<&'a Model>, options: &EncodeOptions<'a>) -> &'a str {
    options.provider.or_else(|| model?.provider.as_deref()).unwrap_or(DEFAULT_PROVIDER)
}

pub(super) fn named_api<'a>(model: Option<&'a Model>, options: &EncodeOptions<'a>) -> Option<&'a str> {
    options.api_type.or_else(|| model?.api_type.as_deref())
}

/// The row of a provider.
///
/// # Errors
/// It is not known.
pub fn find_provider(name: &str) -> Result<&'static Provider> {
    provider(name).ok_or_else(|| {
        let names: Vec<_> = PROVIDERS.iter().map(|row| row.name).chain([ECHO]).collect();
        let help = match guess_name(name, names.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the providers are {}", names.join(", ")),
        };
        Error::not_registered("executor", name).with_help(help)
    })
}

/// The interface of a provider that an `apiType` names.
pub(super) fn find_protocol(provider: &Provider, api: Option<&str>) -> Result<Protocol> {
    let mut protocols = provider.protocols.iter().copied();
    let found = match api {
        None | Some("") => protocols.next(),
        Some(name) => protocols.find(|protocol| protocol.api_types().contains(&name)),
    };
    found.ok_or_else(|| {
        let has: Vec<_> = provider.protocols.iter().map(|protocol| protocol.api_type()).collect();
        Error::new(Kind::UnsupportedApi, api.unwrap_or_default()).with_help(format!(
            "the provider `{}` has {}",
            provider.name,
            has.join(", ")
        ))
    })
}

impl Provider {
    /// The address that the provider's environment variable gives. For a server on the same machine it need be no more
    /// than a host: `OLLAMA_HOST` is also what the server itself listens on.
    pub fn base_url_of_variable(&self, value: &str) -> String {
        if !self.is_local || value.contains("://") {
            return value.to_owned();
        }
        let own = self.base_url.and_then(|own| Url::parse(own).ok());
        let Some(mut url) = Url::parse(&format!("http://{value}")).ok() else { return value.to_owned() };
        // The usual port of HTTP is not kept in an address.
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
    /// What prompts call it, as their `apiType`.
    pub const fn api_type(self) -> &'static str {
        self.api_types()[0]
    }

    /// What prompts may call it, its usual name first.
    const fn api_types(self) -> &'static [&'static str] {
        match self {
            Self::OpenAiChat => &["chat"],
            Self::AnthropicMessages => &["chat", "messages"],
            Self::OpenAiResponses => &["responses", "response"],
            Self::OpenAiEmbeddings => &["embedding", "embeddings"],
            Self::OpenAiImages => &["image", "images"],
        }
    }

    /// Where it is, below a provider's address.
    const fn path(self) -> &'static str {
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
    /// The address of the request.
    ///
    /// # Errors
    /// There is no address, or it is one that requests do not go to.
    pub fn url(&self) -> Result<String> {
        let base = base(self.provider, self.base_url)?;
        let version = self.connection.and_then(|connection| connection.extra.get("apiVersion")?.as_str());
        // Azure has Responses below a path of their own only.
        let is_classic = self.protocol != Protocol::OpenAiResponses && !ends_in(&base, V1);
        if self.provider.paths == Paths::Deployments && is_classic {
            let version = version.unwrap_or(AZURE_API_VERSION);
            let mut url = join(&base, "/openai/deployments");
            if let Ok(mut segments) = url.path_segments_mut() {
                segments.push(self.model);
            }
            let mut url = join(&url, self.protocol.path());
            url.query_pairs_mut().append_pair("api-version", version);
            return Ok(url.into());
        }
        Ok(join(&rooted(self.provider, &base), self.protocol.path()).into())
    }
}

const V1: &str = "/openai/v1";

/// The address that paths are added to.
pub(super) fn base(provider: &Provider, base_url: Option<&str>) -> Result<Url> {
    let base_url = base_url.ok_or_else(|| {
        let name = provider.name;
        let variable = provider.base_url_variable.unwrap_or("the connection");
        Error::new(Kind::InvalidRequest, format_args!("the provider `{name}` needs an address"))
            .with_help(format!("give `model.connection.endpoint`, or set {variable}"))
    })?;
    parse_endpoint(base_url)
}

/// The address of a provider's newest interface, with the path that belongs to it.
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

/// Adds a path to an address; what the address asks for besides its path stays.
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
