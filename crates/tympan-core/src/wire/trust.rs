//! Checks which addresses a request and its credentials may be sent to.

use url::{Host, Url};

use super::compatible::Provider;
use crate::error::{Error, Kind, Result};
use crate::secret::env_value::{EnvValue, ValueSource};
use crate::spec::Secret;

/// Parses the URL of an endpoint and rejects ambiguous ones.
///
/// Two parsers may disagree on the host of an ambiguous URL. One of them would then check a different host than the
/// other connects to.
///
/// # Errors
/// Returns an error if the text is not an HTTP or HTTPS URL with a host, or if it contains a user name, a password, a
/// fragment, a backslash, whitespace or a control character.
pub fn parse_endpoint(endpoint: &str) -> Result<Url> {
    let refused = |reason: &str| {
        Error::new(Kind::UntrustedEndpoint, reason).with_help("write a URL such as https://api.example.com/v1")
    };
    if endpoint.chars().any(|char| char == '\\' || char.is_whitespace() || char.is_control()) {
        return Err(refused("the URL contains a backslash, whitespace or a control character"));
    }
    let url = Url::parse(endpoint).map_err(|error| refused(&format!("cannot parse the URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("the URL does not start with https:// or http://"));
    }
    if !url.username().is_empty() || url.password().is_some() || endpoint.contains('@') {
        return Err(refused("the URL contains a user name or a password"));
    }
    if url.fragment().is_some() || url.host().is_none() {
        return Err(refused("the URL has a fragment, or no host"));
    }
    Ok(url)
}

/// The address that requests would be sent to, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The URL, before anything is appended to its path.
    pub url: Url,
    /// The source of the address.
    pub source: ValueSource,
    /// The environment variable that contains the address, if any.
    pub variable: Option<String>,
}

impl Address {
    /// Parses an address from this source.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid or ambiguous; see [`parse_endpoint`].
    pub fn of(url: &str, source: ValueSource) -> Result<Self> {
        Ok(Self { url: parse_endpoint(url)?, source, variable: None })
    }

    /// Returns an address from a prompt file. If the address begins with the value of a variable, its source is the
    /// source of that variable; otherwise it is the prompt file.
    pub fn of_prompt<'v>(url: Url, values: impl IntoIterator<Item = &'v EnvValue>) -> Self {
        let mut address = Self { url, source: ValueSource::Prompt, variable: None };
        for EnvValue { variable, source, value, .. } in values {
            let is_known = address.source != ValueSource::Prompt && *source != ValueSource::Host;
            if !is_known && parse_endpoint(value.expose()).is_ok_and(|named| is_below(&address.url, &named)) {
                (address.source, address.variable) = (source.clone(), Some(variable.clone()));
            }
        }
        address
    }
}

/// Returns whether `url` is equal to or below `root`: the same scheme, host and port, and a path that starts with the
/// path of `root`.
fn is_below(url: &Url, root: &Url) -> bool {
    let rest = url.path().strip_prefix(root.path().trim_end_matches('/'));
    url.origin() == root.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A value that a request carries, and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The name of the value in error messages, usually the name of a variable.
    pub what: String,
    /// The source of the value.
    pub source: ValueSource,
    /// The value.
    pub value: Secret,
}

impl From<&EnvValue> for Carried {
    fn from(found: &EnvValue) -> Self {
        let what = format!("`{}` from {}", found.variable, found.source);
        Self { what, source: found.source.clone(), value: found.value.clone() }
    }
}

/// Checks that everything a request carries may be sent to its address. All requests pass through this check.
///
/// A value may be sent to addresses that have the same source as the value, to addresses that the host named (including
/// those in `allowed`), and to the known addresses of the requested provider.
///
/// # Errors
/// Returns [`Kind::UntrustedEndpoint`] if a value would be sent to any other address, or if an entry of `allowed` is
/// not a valid endpoint.
pub fn check_destination(
    address: &Address,
    carried: &[Carried],
    provider: Option<&Provider>,
    allowed: &[String],
) -> Result<()> {
    let is_stray = |carried: &&Carried| carried.source != address.source && !carried.value.expose().is_empty();
    let mut strays = carried.iter().filter(is_stray);
    let Some(first) = strays.next() else { return Ok(()) };
    if address.source == ValueSource::Host || provider.is_some_and(|provider| provider.trusts(&address.url)) {
        return Ok(());
    }
    if is_allowed(&address.url, allowed)? {
        return Ok(());
    }
    // Prefer to report a value that is not just an address: it is more likely to be a secret.
    let stray = [first].into_iter().chain(strays).find(|stray| !is_address(&stray.value)).unwrap_or(first);
    let origin = address.url.origin().ascii_serialization();
    let shown = if is_shown(&origin, carried) { origin } else { "URL".to_owned() };
    let named = match &address.variable {
        Some(variable) => format!("`{variable}` from {}", address.source),
        None => address.source.to_string(),
    };
    let details = format_args!("{} would be sent to {shown}, which is set only by {named}", stray.what);
    Err(Error::new(Kind::UntrustedEndpoint, details).with_help(format!(
        "if {shown} may receive it, allow it with `--allow-endpoint {shown}` or RuntimeOptions::allow_endpoints, or \
            set the endpoint in the environment of the process; a prompt file or `.env` file alone cannot choose \
            where values from elsewhere are sent"
    )))
}

/// Returns whether the host allows a URL, or one that it is below.
///
/// # Errors
/// Returns an error if an allowed endpoint is invalid.
pub fn is_allowed(url: &Url, allowed: &[String]) -> Result<bool> {
    for root in allowed {
        if is_below(url, &parse_endpoint(root)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether an origin is safe to show. It is not if it contains a value that is more than an address.
fn is_shown(origin: &str, carried: &[Carried]) -> bool {
    let is_in = |value: &Secret| {
        let value = value.expose().to_ascii_lowercase();
        !value.is_empty() && origin.contains(&value)
    };
    !carried.iter().any(|carried| is_in(&carried.value) && !is_address(&carried.value))
}

fn is_address(value: &Secret) -> bool {
    parse_endpoint(value.expose()).is_ok()
}

impl Provider {
    /// Returns whether a URL belongs to the provider: one of its hosts, over HTTPS on the default port. For a local
    /// provider, it is the provider's default port on a loopback address.
    pub fn trusts(&self, url: &Url) -> bool {
        let own = self.base_url.and_then(|own| Url::parse(own).ok());
        if let Some(own) = own.as_ref().filter(|_| self.is_local) {
            return is_loopback(url) && url.scheme() == own.scheme() && url.port() == own.port();
        }
        if url.scheme() != "https" || url.port().is_some() {
            return false;
        }
        let Some(Host::Domain(host)) = url.host() else { return false };
        let is_own = own.is_some_and(|own| own.scheme() == "https" && own.host_str() == Some(host));
        is_own || self.hosts.iter().any(|known| is_host(host, known))
    }
}

/// Returns whether a host matches an entry. An entry that starts with a dot matches the hosts directly below that
/// domain.
fn is_host(host: &str, known: &str) -> bool {
    match known.strip_prefix('.') {
        None => host == known,
        Some(_) => host.strip_suffix(known).is_some_and(|name| !name.is_empty() && !name.contains('.')),
    }
}

/// Returns whether a URL is on this machine: `localhost`, or an address of the loopback interface.
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(host)) => host == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::env_value::EnvPlace;
    use crate::wire::compatible::provider;

    fn key(source: ValueSource) -> Carried {
        Carried { what: "`KEY`".to_owned(), source, value: Secret::new("the-key") }
    }

    fn may_go(name: &str, endpoint: &str) -> bool {
        let address = Address::of(endpoint, ValueSource::Prompt);
        let check = |address| check_destination(&address, &[key(ValueSource::Host)], provider(name), &[]);
        address.and_then(check).is_ok()
    }

    #[test]
    fn a_key_of_the_environment_goes_to_its_provider() {
        let fine = [
            ("openai", "https://api.openai.com/v1"),
            ("openai", "https://API.openai.com:443/"),
            ("azure", "https://mine.openai.azure.com/"),
            ("foundry", "https://mine.services.ai.azure.com/api/projects/p"),
            ("together", "https://api.together.ai/v1"),
            ("ollama", "http://127.0.0.1:11434"),
            ("ollama", "http://[::1]:11434/v1"),
        ];
        for (name, endpoint) in fine {
            assert!(may_go(name, endpoint), "{name} {endpoint}");
        }
    }

    #[test]
    fn and_nowhere_else() {
        let refused = [
            ("openai", "https://api.openai.com\\@evil.example/"),
            ("openai", "https://evilopenai.azure.com/"),
            ("azure", "https://evilopenai.azure.com/"),
            ("azure", "https://openai.azure.com/"),
            ("azure", "https://a.b.openai.azure.com/"),
            ("azure", "https://mine.openai.azure.com.evil.example/"),
            ("openai", "https://api.openai.com:8443/"),
            ("openai", "http://api.openai.com/"),
            ("openai", "https://api.openai.com./"),
            ("openai", "https://[::1%25eth0]/"),
            ("openai", "http://localhost:8080/v1"),
            ("openai", "https://key@api.openai.com/"),
            ("openai", "https://api.openai.com /"),
            ("openai", "https://api.openai.com/\n"),
            ("openai", "https://api.openai.com/#x"),
            ("openai", "file:///etc/passwd"),
            ("openai", "api.openai.com"),
            ("ollama", "http://169.254.169.254/v1"),
            ("ollama", "http://localhost.evil.example/v1"),
            ("ollama", "http://localhost:8080/v1"),
            ("vllm", "https://localhost:8000/v1"),
        ];
        for (name, endpoint) in refused {
            assert!(!may_go(name, endpoint), "{name} {endpoint}");
        }
    }

    fn value(variable: &str, value: &str, source: &ValueSource) -> EnvValue {
        let (variable, source, value) = (variable.to_owned(), source.clone(), Secret::new(value));
        EnvValue { variable, source, place: EnvPlace::ModelConnection, value }
    }

    #[test]
    fn an_address_is_named_by_whoever_set_the_variable_that_it_begins_with() {
        let file = ValueSource::EnvFile(".env".into());
        let named = |endpoint: &str, values: &[EnvValue]| {
            Address::of_prompt(parse_endpoint(endpoint).expect("an address"), values).source
        };
        let host = [value("A", "https://a.example/x/", &ValueSource::Host), value("B", "secret", &ValueSource::Host)];
        for endpoint in ["https://a.example/x", "https://a.example/x/", "https://A.example:443/x/y?z=secret"] {
            assert_eq!(named(endpoint, &host), ValueSource::Host, "{endpoint}");
        }
        for endpoint in [
            "https://a.example/",
            "https://a.example/xy",
            "https://a.example/x/../y",
            "https://a.example.evil.example/x",
            "https://a.example:8443/x",
            "http://a.example/x",
            "https://secret/",
        ] {
            assert_eq!(named(endpoint, &host), ValueSource::Prompt, "{endpoint}");
        }
        let both = [value("C", "https://a.example", &file), host[0].clone()];
        assert_eq!(named("https://a.example/y", &both), file);
        assert_eq!(named("https://a.example/x", &both), ValueSource::Host);
    }

    #[test]
    fn values_go_to_addresses_of_their_own_source_and_of_the_host() {
        let sources = [ValueSource::Host, ValueSource::EnvFile(".env".into()), ValueSource::EnvFile("b/.env".into())];
        for from in sources.iter().chain([&ValueSource::Prompt]) {
            for to in sources.iter().chain([&ValueSource::Prompt]) {
                let address = Address::of("http://proxy.example:8080/v1", to.clone()).expect("an address");
                let is_fine = from == to || *to == ValueSource::Host;
                let carried = [key(from.clone())];
                let checked = check_destination(&address, &carried, provider("openai"), &[]);
                assert_eq!(checked.is_ok(), is_fine, "{from} {to}");
                let checked = check_destination(&address, &carried, None, &["http://proxy.example:8080".to_owned()]);
                assert!(checked.is_ok(), "{from} {to}");
            }
        }
    }

    #[test]
    fn an_error_names_the_variable_the_address_and_the_flag_and_no_value() {
        let found = [value("TOKEN", "Hidden", &ValueSource::Host)];
        let carried: Vec<_> = found.iter().map(Carried::from).collect();
        let error = |endpoint: &str| {
            let address = Address::of(endpoint, ValueSource::Prompt).expect("an address");
            let error = check_destination(&address, &carried, None, &[]).expect_err("it is refused");
            assert_eq!(error.code(), "untrusted_endpoint");
            format!("{} {}", error.message(), error.help().unwrap_or_default())
        };
        let text = error("https://evil.example/path?x=Hidden");
        for part in ["`TOKEN` from the environment", "https://evil.example", "--allow-endpoint https://evil.example"] {
            assert!(text.contains(part), "{text}");
        }
        for endpoint in ["https://evil.example/path?x=Hidden", "https://hidden.evil.example"] {
            assert!(!error(endpoint).to_ascii_lowercase().contains("hidden"), "{endpoint}");
        }
    }

    #[test]
    fn what_is_allowed_has_to_be_an_address() {
        let address = Address::of("https://a.example", ValueSource::Prompt).expect("an address");
        let check = |allowed: &str| check_destination(&address, &[key(ValueSource::Host)], None, &[allowed.to_owned()]);
        for allowed in ["a.example", "https://", "*", "https://x@a.example"] {
            assert!(check(allowed).is_err(), "{allowed}");
        }
        assert!(check("https://a.example/").is_ok());
    }
}
