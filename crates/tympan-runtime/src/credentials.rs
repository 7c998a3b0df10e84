//! Which connection a request takes, and which key goes along.

use tympan::spec::{Connection, ConnectionKind, Secret};
use tympan::wire::compatible::Provider;
use tympan::wire::{BaseUrlFrom, EncodeOptions, Target, endpoint_check, own_connection, secrets_of_url, target};
use tympan::{Error, Kind, Prompt, Result};

use crate::run::RunOptions;
use crate::runtime::Runtime;

/// What the host adds to what a prompt says about where its requests go.
pub(crate) struct Credentials {
    /// The connection that the host has registered under the name that the prompt gives.
    connection: Option<Connection>,
    /// The address, if the environment gives it.
    base_url: Option<String>,
    /// The key, if it comes from the environment.
    api_key: Option<Secret>,
}

impl Credentials {
    /// How the request is encoded with them.
    pub(crate) fn options<'a>(&'a self, run: &'a RunOptions, stream: bool) -> EncodeOptions<'a> {
        EncodeOptions {
            connection: self.connection.as_ref(),
            base_url: run.base_url.as_deref().or(self.base_url.as_deref()),
            api_key: run.api_key.as_ref().or(self.api_key.as_ref()),
            stream,
            ..options(run)
        }
    }

    /// All that must never be seen of a request to this address.
    pub(crate) fn secrets(&self, prompt: &Prompt, run: &RunOptions, url: &str) -> Vec<Secret> {
        let own = self.connection.as_ref().and_then(|connection| connection.api_key.as_ref());
        let keys = [own, self.api_key.as_ref(), run.api_key.as_ref()].into_iter().flatten().cloned();
        prompt.secrets().into_iter().chain(keys).chain(secrets_of_url(url)).collect()
    }
}

fn options(run: &RunOptions) -> EncodeOptions<'_> {
    EncodeOptions {
        provider: run.provider.as_deref(),
        model: run.model.as_deref(),
        api_type: run.api_type.as_deref(),
        functions: &run.functions,
        ..EncodeOptions::default()
    }
}

impl Runtime {
    /// Finds the connection and the key of a prompt. Where nothing is sent, in a replay, no key is needed.
    pub(crate) fn credentials(&self, prompt: &Prompt, run: &RunOptions, is_sent: bool) -> Result<Credentials> {
        let connection = self.referenced_connection(prompt, run)?;
        let mut found = Credentials { connection, base_url: None, api_key: None };
        let encode = EncodeOptions { base_url: run.base_url.as_deref(), ..found.options(run, false) };
        let target = target(prompt, &encode)?;
        let base_url = match target.base_url_from {
            BaseUrlFrom::Provider => self.address_of_environment(target.provider),
            _ => None,
        };
        let api_key = match needs_key(&target) && is_sent {
            true => self.ambient_key(&target, found.connection.is_some())?,
            false => None,
        };
        (found.base_url, found.api_key) = (base_url, api_key);
        Ok(found)
    }

    /// The connection behind a name; `None` if the prompt's own is none by name.
    fn referenced_connection(&self, prompt: &Prompt, run: &RunOptions) -> Result<Option<Connection>> {
        let own = own_connection(prompt, run.provider.as_deref());
        let Some(own) = own.filter(|own| own.kind == ConnectionKind::Reference) else { return Ok(None) };
        let name = own.name.as_deref().unwrap_or_default();
        let found = self.get_connection(name).ok_or_else(|| {
            Error::not_registered("connection", name).with_help("the host registers it with register_connection")
        })?;
        Ok(Some(Connection::clone(&found)))
    }

    /// The key that the environment has for a provider. An address that the host has given may have it: by an option,
    /// by a variable, or by a connection that it has registered.
    fn ambient_key(&self, target: &Target<'_>, is_registered: bool) -> Result<Option<Secret>> {
        let provider = target.provider;
        let key = provider.key_variables.iter().find_map(|variable| self.variable(variable));
        let Some(key) = key else {
            return if provider.is_local { Ok(None) } else { Err(missing_key(provider)) };
        };
        if target.base_url_from == BaseUrlFrom::Connection && !is_registered {
            endpoint_check(provider, target.base_url.unwrap_or_default(), true)?;
        }
        Ok(Some(Secret::new(key)))
    }

    fn address_of_environment(&self, provider: &Provider) -> Option<String> {
        self.variable(provider.base_url_variable?).map(|value| provider.base_url_of_variable(&value))
    }

    /// The value of a variable that the provider's own tools read too.
    fn variable(&self, name: &str) -> Option<String> {
        let load = &self.options().load;
        let set = match &load.env_vars {
            Some(variables) => variables.get(name).cloned(),
            None => std::env::var(name).ok(),
        };
        set.or_else(|| load.env_defaults.get(name).cloned()).filter(|value| !value.trim().is_empty())
    }
}

/// Whether the request lacks a key that it should have.
fn needs_key(target: &Target<'_>) -> bool {
    let is_anonymous = target.connection.is_some_and(|connection| connection.kind == ConnectionKind::Anonymous);
    target.api_key.is_none() && !is_anonymous
}

fn missing_key(provider: &Provider) -> Error {
    let variables = provider.key_variables.join(" or ");
    Error::new(Kind::MissingKey, format_args!("the provider `{}` needs one", provider.name)).with_help(format!(
        "set {variables}, or write `apiKey` in the connection; to try a prompt without a model, use the provider `echo`"
    ))
}
