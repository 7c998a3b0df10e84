//! Access tokens for connections without a key, and the trait of credential providers, which issue them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::json;
use tympan_core::diagnostic::Diagnostic;
use tympan_core::secret::url::redacted_url;
use tympan_core::spec::{Connection, ConnectionKind, Secret, ToolKind};
use tympan_core::wire::{EncodeOptions, ModelSelection, find_provider};
use tympan_core::{Error, JsonMap, Kind, Prompt, Result};

use crate::host::runtime::Runtime;

/// The name under which a credential provider for all kinds of connections is registered.
pub(crate) const ANY_KIND: &str = "*";

/// How long before its expiry a token is no longer used, because a request takes time to arrive.
const MARGIN: Duration = Duration::from_secs(60);
/// How long a token is reused if its lifetime is unknown.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(60);
/// The maximum number of tokens to cache, and of issued tokens to remember.
const MAX_TOKENS: usize = 256;

/// Issues access tokens for connections that have no key, such as those of the kinds `foundry` and `oauth`.
///
/// A token goes only to an address that the host named. For `foundry`, the addresses of Azure's services count as named.
pub trait CredentialProvider: Send + Sync {
    /// Returns an access token.
    ///
    /// # Errors
    /// Returns an error if there is no token for this connection.
    fn token<'a>(&'a self, request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>>;
}

impl<T: CredentialProvider + ?Sized> CredentialProvider for Arc<T> {
    fn token<'a>(&'a self, request: &'a TokenRequest) -> BoxFuture<'a, Result<AccessToken>> {
        (**self).token(request)
    }
}

/// The connection that a token is needed for. Unless the host registered the connection, the author of the prompt wrote
/// all of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TokenRequest {
    /// The kind of the connection: `foundry`, `oauth`, …
    pub kind: String,
    /// The name of the model's provider, or of the tool.
    pub name: String,
    /// The address that the token will be sent to, without its query.
    pub endpoint: Option<String>,
    /// The connection as data, with the names of the Prompty specification. Credentials in it are redacted.
    pub connection: JsonMap,
}

impl TokenRequest {
    pub(crate) fn new(connection: &Connection, name: &str, endpoint: Option<&str>) -> Self {
        let data = connection.to_json_redacted();
        let endpoint = endpoint.map(|url| redacted_url(url).split('?').next().unwrap_or_default().to_owned());
        Self {
            kind: connection.kind.as_str().to_owned(),
            name: name.to_owned(),
            endpoint,
            connection: data.as_object().cloned().unwrap_or_default(),
        }
    }

    /// Converts the request to data, for hosts in other languages.
    pub fn to_json(&self) -> serde_json::Value {
        json!({ "kind": self.kind, "name": self.name, "endpoint": self.endpoint, "connection": self.connection })
    }
}

/// An access token.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken {
    /// The token.
    pub token: Secret,
    /// How long the token is valid from now on, if that is known. It is reused until shortly before.
    pub expires_in: Option<Duration>,
}

impl AccessToken {
    /// Creates a token whose lifetime is unknown.
    pub fn new(token: impl Into<String>) -> Self {
        Self { token: Secret::new(token), expires_in: None }
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessToken").field("token", &self.token).field("expires_in", &self.expires_in).finish()
    }
}

/// The tokens of a runtime: those that are still valid, and all that have been issued.
#[derive(Clone, Default)]
pub(crate) struct Tokens(Arc<Mutex<TokensState>>);

#[derive(Default)]
struct TokensState {
    /// The tokens that can be reused, by request.
    valid: HashMap<String, (Secret, Instant)>,
    /// The tokens that records must not contain.
    issued: Vec<Secret>,
    /// The number of tokens issued so far.
    count: usize,
}

impl Tokens {
    fn state(&self) -> MutexGuard<'_, TokensState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn valid(&self, key: &str) -> Option<Secret> {
        let mut state = self.state();
        let now = Instant::now();
        state.valid.retain(|_, (_, end)| *end > now);
        state.valid.get(key).map(|(token, _)| token.clone())
    }

    fn add(&self, key: String, AccessToken { token, expires_in }: &AccessToken) {
        let mut state = self.state();
        if !state.issued.contains(token) {
            if state.issued.len() >= MAX_TOKENS {
                state.issued.remove(0);
            }
            state.issued.push(token.clone());
            state.count += 1;
        }
        let lifetime = expires_in.map_or(UNKNOWN_LIFETIME, |lifetime| lifetime.saturating_sub(MARGIN));
        let end = Instant::now().checked_add(lifetime);
        if let Some(end) = end.filter(|_| !lifetime.is_zero() && state.valid.len() < MAX_TOKENS) {
            state.valid.insert(key, (token.clone(), end));
        }
    }

    /// Returns a token that is still valid, or asks the provider for one.
    async fn get(&self, provider: &dyn CredentialProvider, request: &TokenRequest) -> Result<Secret> {
        let key = request.to_json().to_string();
        if let Some(token) = self.valid(&key) {
            return Ok(token);
        }
        let issued = provider.token(request).await.map_err(|error| match error.kind() {
            // What the host cancelled did not fail.
            Kind::CredentialFailed | Kind::Cancelled => error,
            _ => Error::new(Kind::CredentialFailed, format_args!("{}: {}", request.kind, error.message()))
                .with_cause(error),
        })?;
        if issued.token.expose().trim().is_empty() {
            return Err(Error::new(Kind::CredentialFailed, format_args!("{}: the token is empty", request.kind)));
        }
        self.add(key, &issued);
        Ok(issued.token)
    }

    /// Forgets the cached copies of a token, because a service rejected it.
    pub(crate) fn reject(&self, token: &Secret) {
        self.state().valid.retain(|_, (valid, _)| valid != token);
    }

    /// Forgets all cached tokens, because they may come from a provider that was replaced.
    pub(crate) fn clear(&self) {
        self.state().valid.clear();
    }

    /// Returns the tokens issued after the first `seen`, as far as they are remembered, and the new number.
    pub(crate) fn issued_since(&self, seen: usize) -> (Vec<Secret>, usize) {
        let state = self.state();
        let new = state.count.saturating_sub(seen).min(state.issued.len());
        (state.issued[state.issued.len() - new..].to_vec(), state.count)
    }
}

/// The source of the tokens of a tool's connection. A long turn outlives a token, so each request asks for the current one.
#[derive(Clone)]
pub(crate) struct TokenSource {
    provider: Arc<dyn CredentialProvider>,
    request: TokenRequest,
    tokens: Tokens,
}

impl TokenSource {
    pub(crate) fn new(runtime: &Runtime, provider: Arc<dyn CredentialProvider>, request: TokenRequest) -> Self {
        Self { provider, request, tokens: runtime.tokens().clone() }
    }

    /// Returns a token that is still valid, or asks the provider for one.
    ///
    /// # Errors
    /// Returns an error if the provider does, or if it returns an empty token.
    pub(crate) async fn token(&self) -> Result<Secret> {
        self.tokens.get(&*self.provider, &self.request).await
    }

    /// Forgets a token if the service rejected it, so that the next request asks for a new one.
    pub(crate) fn after(&self, token: &Secret, status: u16) {
        if status == UNAUTHORIZED {
            self.tokens.reject(token);
        }
    }

    /// Returns the tokens issued so far, which no response may repeat.
    pub(crate) fn issued(&self) -> Vec<Secret> {
        self.tokens.issued_since(0).0
    }

    /// Returns an identifier of the connection that the tokens are for. It does not change with the token.
    pub(crate) fn id(&self) -> String {
        self.request.to_json().to_string()
    }
}

impl fmt::Debug for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenSource").field("request", &self.request).finish_non_exhaustive()
    }
}

/// The status of a response to a request whose token is not valid.
pub(crate) const UNAUTHORIZED: u16 = 401;

impl Runtime {
    /// Returns the credential provider for a connection: `None` if the connection has its own key, or if the host
    /// registered none for its kind.
    pub(crate) fn credential_provider_of(&self, connection: &Connection) -> Option<Arc<dyn CredentialProvider>> {
        let has_key = connection.api_key.is_some() && connection.kind != ConnectionKind::Anonymous;
        match connection.kind {
            ConnectionKind::Key | ConnectionKind::Reference => None,
            _ if has_key => None,
            // Without authentication, unless the host says otherwise for exactly this kind.
            ConnectionKind::Anonymous => self.get_credential_provider(connection.kind.as_str()),
            _ => {
                let own = self.get_credential_provider(connection.kind.as_str());
                own.or_else(|| self.get_credential_provider(ANY_KIND))
            }
        }
    }

    /// Returns a token that is still valid, or asks the provider for one.
    ///
    /// # Errors
    /// Returns an error if the provider does, or if it returns an empty token.
    pub(crate) async fn access_token(
        &self,
        provider: &dyn CredentialProvider,
        request: &TokenRequest,
    ) -> Result<Secret> {
        self.tokens().get(provider, request).await
    }

    /// Returns a warning for each connection of a prompt that needs an access token, if the host has registered no
    /// credential provider for its kind and there is no key in the environment either.
    pub fn check_credentials(&self, prompt: &Prompt) -> Vec<Diagnostic> {
        let model = prompt.spec().model.as_ref().and_then(|model| model.connection.as_ref());
        let has_variable = || {
            let name = ModelSelection::new(prompt, &EncodeOptions::default()).provider;
            let variables = find_provider(name).map(|provider| provider.key_variables).unwrap_or_default();
            variables.iter().any(|name| self.options().load.variable(name).is_some())
        };
        let model = model.filter(|_| !has_variable()).map(|connection| ("`model.connection`".to_owned(), connection));
        let tools = prompt.spec().tools.iter().filter_map(|tool| match &tool.kind {
            ToolKind::OpenApi { connection: Some(connection), .. }
            | ToolKind::Mcp { connection: Some(connection), .. } => {
                Some((format!("the connection of tool `{}`", tool.name), connection))
            }
            _ => None,
        });
        let is_bare = |connection: &Connection| {
            let is_keyless = matches!(connection.kind, ConnectionKind::Foundry | ConnectionKind::OAuth);
            is_keyless && connection.api_key.is_none() && self.credential_provider_of(connection).is_none()
        };
        let bare = model.into_iter().chain(tools).filter(|(_, connection)| is_bare(connection));
        let warning = |(place, connection): (String, &Connection)| {
            let kind = connection.kind.as_str();
            let message =
                format!("{place} needs an access token, and no credential provider for `{kind}` is configured");
            Diagnostic::warning("no_credentials", None, message).with_help(missing_provider(kind))
        };
        bare.map(warning).collect()
    }
}

/// Returns the help for a connection that needs a credential provider.
pub(crate) fn missing_provider(kind: &str) -> String {
    format!(
        "pass `--credential-command COMMAND`, set `[credentials.{kind}]` in the user's configuration file, or call \
            register_credential_provider"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_reused_until_shortly_before_they_expire() {
        let tokens = Tokens::default();
        let token = |text: &str, seconds: u64| AccessToken {
            token: Secret::new(text),
            expires_in: Some(Duration::from_secs(seconds)),
        };
        tokens.add("long".into(), &token("a", 3600));
        tokens.add("short".into(), &token("b", 59));
        tokens.add("unknown".into(), &AccessToken::new("c"));
        tokens.add("endless".into(), &token("d", u64::MAX));
        assert_eq!(tokens.valid("long"), Some(Secret::new("a")));
        assert_eq!(tokens.valid("short"), None);
        assert_eq!(tokens.valid("unknown"), Some(Secret::new("c")));
        tokens.reject(&Secret::new("a"));
        assert_eq!(tokens.valid("long"), None);
        let (issued, seen) = tokens.issued_since(1);
        assert_eq!((issued, seen), (["b", "c", "d"].map(Secret::new).to_vec(), 4));
        tokens.add("long".into(), &token("a", 3600));
        assert_eq!(tokens.issued_since(seen), (Vec::new(), 4));
    }
}
