//! Determines the connection and the key of a request, and whether the key may be sent to that address.

use std::sync::Arc;

use tympan_core::secret::env_value::{EnvPlace, ValueSource};
use tympan_core::secret::url::secrets_of_url;
use tympan_core::spec::{Connection, ConnectionKind, Secret};
use tympan_core::wire::compatible::{Provider, provider};
use tympan_core::wire::{
    Address, BaseUrlFrom, Carried, EncodeOptions, Target, check_destination, own_connection, parse_endpoint, target,
};
use tympan_core::{Error, Kind, Prompt, Result};

use crate::host::runtime::Runtime;
use crate::model::cassette::Cassette;
use crate::model::run::RunOptions;
use crate::model::token::{CredentialProvider, TokenRequest, UNAUTHORIZED, missing_provider};

/// What the host adds to the prompt's connection.
pub(crate) struct Credentials {
    /// The connection that the host registered under the name in the prompt.
    connection: Option<Connection>,
    /// The base URL, if it comes from a variable.
    base_url: Option<String>,
    /// The key, if it comes from a variable.
    api_key: Option<Secret>,
    /// The provider of the access token, if the connection needs one, and the request for it.
    token_request: Option<(Arc<dyn CredentialProvider>, TokenRequest)>,
    /// The access token.
    token: Option<Secret>,
}

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The request is sent.
    Send,
    /// The request is returned to the host, without a key from the environment.
    Show,
    /// The response is looked up in a cassette. The request is not sent and needs no key.
    Replay,
}

impl Purpose {
    /// Returns the purpose of requests with this cassette, or without one.
    pub(crate) fn of(cassette: Option<&Cassette>) -> Self {
        if matches!(cassette, Some(Cassette::Replay(_))) { Self::Replay } else { Self::Send }
    }
}

/// An environment variable that the provider's own tools also read.
struct Variable {
    name: &'static str,
    value: String,
    source: ValueSource,
}

impl Credentials {
    /// Returns the options for encoding a request with these credentials.
    pub(crate) fn options<'a>(&'a self, run: &'a RunOptions, stream: bool) -> EncodeOptions<'a> {
        EncodeOptions {
            connection: self.connection.as_ref(),
            base_url: run.base_url.as_deref().or(self.base_url.as_deref()),
            api_key: run.api_key.as_ref().or(self.api_key.as_ref()),
            token: self.token.as_ref(),
            stream,
            ..run.encode_options()
        }
    }

    /// Returns everything that must stay secret in a request to this URL.
    pub(crate) fn secrets(&self, prompt: &Prompt, run: &RunOptions, url: &str) -> Vec<Secret> {
        let own = self.connection.as_ref().and_then(|connection| connection.api_key.as_ref());
        let keys =
            [own, self.api_key.as_ref(), run.api_key.as_ref(), self.token.as_ref()].into_iter().flatten().cloned();
        prompt.secrets().into_iter().chain(keys).chain(secrets_of_url(url)).collect()
    }

    /// Asks for the access token that the connection needs, if any. The caller has checked where it will be sent.
    ///
    /// # Errors
    /// Returns an error if there is no token.
    pub(crate) async fn obtain_token(&mut self, runtime: &Runtime) -> Result<()> {
        if let Some((provider, request)) = self.token_request.take() {
            self.token = Some(runtime.access_token(&*provider, &request).await?);
        }
        Ok(())
    }

    /// Forgets a token that the service rejected, so that the next request asks for a new one.
    pub(crate) fn after<T>(&self, runtime: &Runtime, outcome: Result<T>) -> Result<T> {
        if let (Err(error), Some(token)) = (&outcome, &self.token)
            && error.status() == Some(UNAUTHORIZED)
        {
            runtime.tokens().reject(token);
        }
        outcome
    }
}

impl Runtime {
    /// Determines the connection and the key of a prompt, and checks that everything in its request may be sent to its
    /// address.
    pub(crate) fn credentials(&self, prompt: &Prompt, run: &RunOptions, purpose: Purpose) -> Result<Credentials> {
        prompt.check_request_env(own_connection(prompt, run.provider.as_deref()).is_some())?;
        let connection = self.referenced_connection(prompt, run)?;
        let mut found = Credentials { connection, base_url: None, api_key: None, token_request: None, token: None };
        let target = target(prompt, &found.options(run, false))?;
        let provider = target.connection.filter(|_| target.api_key.is_none());
        let provider = provider.and_then(|connection| self.credential_provider_of(connection));
        let base_url = match target.base_url_from {
            BaseUrlFrom::Provider => self.address_variable(target.provider),
            BaseUrlFrom::Options | BaseUrlFrom::Connection => None,
        };
        let key = match purpose {
            _ if provider.is_some() => None,
            Purpose::Send if needs_key(&target) => {
                self.key_variable(target.provider).map_err(|error| keyless_help(error, target.connection))?
            }
            // The key is not included, but the sender is likely to add it.
            Purpose::Show if needs_key(&target) => self.key_variable(target.provider).unwrap_or_default(),
            _ => None,
        };
        if purpose != Purpose::Replay
            && let Some(address) = address(prompt, &target, found.connection.is_some(), base_url.as_ref())?
        {
            let mut carried = carried_key(prompt, run, &target, found.connection.is_some(), key.as_ref());
            carried.extend(carried_values(prompt, run));
            self.check_model_request(&address, carried, target.provider)?;
        }
        let mut token_request = None;
        if let (Some(provider), Some(connection)) = (provider, target.connection)
            && purpose != Purpose::Replay
        {
            self.check_token(prompt, run, &target, found.connection.is_some(), base_url.as_ref())?;
            let endpoint = base_url.as_ref().map(|variable| variable.value.as_str()).or(target.base_url);
            let request = TokenRequest::new(connection, target.provider.name, endpoint);
            token_request = (purpose == Purpose::Send).then_some((provider, request));
        }
        let (base_url, key) = (base_url.map(|variable| variable.value), key.map(|variable| variable.value));
        found.token_request = token_request;
        (found.base_url, found.api_key) = (base_url, key.filter(|_| purpose == Purpose::Send).map(Secret::new));
        Ok(found)
    }

    /// Checks whether an access token may be sent to the address of a request, before there is one.
    ///
    /// The prompt names the provider, which is therefore no reason to trust the provider's address, as it is for a key
    /// from the variable of that provider: a token for one service must not go to another.
    fn check_token(
        &self,
        prompt: &Prompt,
        run: &RunOptions,
        target: &Target<'_>,
        is_registered: bool,
        base_url: Option<&Variable>,
    ) -> Result<()> {
        let is_of_host = run.provider.is_some();
        let address = match (address(prompt, target, is_registered, base_url)?, target.base_url) {
            (Some(address), _) => address,
            (None, Some(default)) if is_of_host => Address::of(default, ValueSource::Host)?,
            (None, Some(default)) => Address::of(default, ValueSource::Prompt)?,
            // Without an address, the request fails anyway.
            (None, None) => return Ok(()),
        };
        let kind = target.connection.map(|connection| &connection.kind);
        check_token_destination(&address, kind, &self.options().allow_endpoints)
    }

    /// The connection behind a name; `None` if the prompt's own is none by name.
    fn referenced_connection(&self, prompt: &Prompt, run: &RunOptions) -> Result<Option<Connection>> {
        let own = own_connection(prompt, run.provider.as_deref());
        let Some(own) = own.filter(|own| own.kind == ConnectionKind::Reference) else { return Ok(None) };
        let name = own.name.as_deref().unwrap_or_default();
        let found = self.get_connection(name).ok_or_else(|| {
            Error::not_registered("connection", name).with_help("register it with register_connection")
        })?;
        Ok(Some(Connection::clone(&found)))
    }

    /// Returns the provider's key from an environment variable.
    fn key_variable(&self, provider: &Provider) -> Result<Option<Variable>> {
        match provider.key_variables.iter().find_map(|name| self.variable(name)) {
            None if !provider.is_local => Err(missing_key(provider)),
            key => Ok(key),
        }
    }

    fn address_variable(&self, provider: &Provider) -> Option<Variable> {
        let found = self.variable(provider.base_url_variable?)?;
        Some(Variable { value: provider.base_url_of_variable(&found.value), ..found })
    }

    fn variable(&self, name: &'static str) -> Option<Variable> {
        let (value, source) = self.options().load.variable(name).filter(|(value, _)| !value.trim().is_empty())?;
        Some(Variable { name, value, source })
    }
}

/// Returns the address of a request and its source; `None` for the provider's default.
///
/// # Errors
/// Returns an error if the address is invalid.
fn address(
    prompt: &Prompt,
    target: &Target<'_>,
    is_registered: bool,
    variable: Option<&Variable>,
) -> Result<Option<Address>> {
    let address = match (target.base_url_from, variable) {
        (BaseUrlFrom::Provider, None) => return Ok(None),
        (BaseUrlFrom::Provider, Some(Variable { name, value, source })) => {
            Address { variable: Some((*name).to_owned()), ..Address::of(value, source.clone())? }
        }
        (BaseUrlFrom::Connection, _) if !is_registered => {
            let values = prompt.env_values().iter().filter(|found| found.place.is_of_model());
            Address::of_prompt(parse_endpoint(target.base_url.unwrap_or_default())?, values)
        }
        _ => Address::of(target.base_url.unwrap_or_default(), ValueSource::Host)?,
    };
    Ok(Some(address))
}

/// Returns the key that a request carries, and its source.
fn carried_key(
    prompt: &Prompt,
    run: &RunOptions,
    target: &Target<'_>,
    is_registered: bool,
    ambient: Option<&Variable>,
) -> Vec<Carried> {
    if let Some(Variable { name, value, source }) = ambient {
        let (what, source) = (format!("`{name}` from {source}"), source.clone());
        return vec![Carried { what, source, value: Secret::new(value) }];
    }
    let Some(key) = target.api_key else { return Vec::new() };
    let is_of_host = run.api_key.is_some() || is_registered;
    // A key from the environment is already among the prompt's environment values.
    let is_in_key = |value: &Secret| !value.expose().is_empty() && key.expose().contains(value.expose());
    if !is_of_host && prompt.env_values().iter().any(|found| is_in_key(&found.value)) {
        return Vec::new();
    }
    let source = if is_of_host { ValueSource::Host } else { ValueSource::Prompt };
    vec![Carried { what: format!("the key for `{}`", target.provider.name), source, value: key.clone() }]
}

/// Returns the environment values that a request to the prompt's model carries, which are all but those for tools
/// alone.
fn carried_values<'a>(prompt: &'a Prompt, run: &RunOptions) -> impl Iterator<Item = Carried> + 'a {
    let has_connection = own_connection(prompt, run.provider.as_deref()).is_some();
    let is_carried = move |place| match place {
        EnvPlace::ModelConnection => has_connection,
        EnvPlace::ToolConnection(_) => false,
        _ => true,
    };
    prompt.env_values().iter().filter(move |found| is_carried(found.place)).map(Carried::from)
}

/// Returns whether the request lacks a key that it should have.
fn needs_key(target: &Target<'_>) -> bool {
    let is_anonymous = target.connection.is_some_and(|connection| connection.kind == ConnectionKind::Anonymous);
    target.api_key.is_none() && !is_anonymous
}

fn missing_key(provider: &Provider) -> Error {
    let variables = provider.key_variables.join(" or ");
    Error::new(Kind::MissingKey, format_args!("provider `{}` needs one", provider.name)).with_help(format!(
        "set {variables}, or set `apiKey` in the connection; to try a prompt without a model, use the provider `echo`"
    ))
}

/// Adds to the error for a missing key how to get a token, if the connection is of a kind that has no key.
fn keyless_help(error: Error, connection: Option<&Connection>) -> Error {
    match connection.map(|connection| &connection.kind) {
        Some(kind @ (ConnectionKind::Foundry | ConnectionKind::OAuth)) => {
            let help = format!("{}; or {}", error.help().unwrap_or_default(), missing_provider(kind.as_str()));
            error.with_help(help)
        }
        _ => error,
    }
}

/// Checks whether an access token for a connection of this kind may be sent to an address. Tokens come from the host.
///
/// # Errors
/// Returns an error unless the host named the address, or the token is for Microsoft Foundry and the address is one of
/// Azure's.
pub(crate) fn check_token_destination(
    address: &Address,
    kind: Option<&ConnectionKind>,
    allowed: &[String],
) -> Result<()> {
    let provider = kind.filter(|kind| **kind == ConnectionKind::Foundry).and_then(|_| provider(AZURE));
    let what = format!("the access token for `{}`", kind.map_or("", ConnectionKind::as_str));
    // The token does not exist yet. No address contains this text.
    let carried = Carried { what, source: ValueSource::Host, value: Secret::new("\0") };
    check_destination(address, &[carried], provider, allowed)
}

/// The provider whose hosts are those of Microsoft's services for models.
const AZURE: &str = "azure";
