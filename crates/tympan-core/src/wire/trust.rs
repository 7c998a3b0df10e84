//! Which addresses a request, and a key, may go to.

use url::{Host, Url};

use super::compatible::Provider;
use crate::error::{Error, Kind, Result};
use crate::spec::{REDACTED, Secret, is_credential};

/// Reads the address of a provider, and refuses what does not say plainly where it leads.
///
/// Two readers of such an address need not agree on its host, and what one of them has checked, the other connects to.
///
/// # Errors
/// It is no address, not one of HTTP, holds a user name, a fragment, a backslash, white space or a control character.
pub fn parse_endpoint(endpoint: &str) -> Result<Url> {
    let refused = |reason: &str| {
        Error::new(Kind::UntrustedEndpoint, reason).with_help("write an address such as https://api.example.com/v1")
    };
    if endpoint.chars().any(|char| char == '\\' || char.is_whitespace() || char.is_control()) {
        return Err(refused("the address holds a backslash, white space or a control character"));
    }
    let url = Url::parse(endpoint).map_err(|error| refused(&format!("the address cannot be read: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused("the address begins with neither https:// nor http://"));
    }
    if !url.username().is_empty() || url.password().is_some() || endpoint.contains('@') {
        return Err(refused("the address holds a user name or a password"));
    }
    if url.fragment().is_some() || url.host().is_none() {
        return Err(refused("the address has a fragment, or no host"));
    }
    Ok(url)
}

/// Checks the address that a request would go to.
///
/// A key that stands in the connection goes where the connection says: whoever wrote the one wrote the other. A key of
/// the environment belongs to the host, and a prompt must not send it elsewhere: `is_ambient_key` says that it is one.
///
/// # Errors
/// As [`parse_endpoint`]; or a key of the environment would go to an address that is not the provider's own.
pub fn endpoint_check(provider: &Provider, endpoint: &str, is_ambient_key: bool) -> Result<Url> {
    let url = parse_endpoint(endpoint)?;
    if !is_ambient_key || provider.trusts(&url) {
        return Ok(url);
    }
    let host = url.host_str().unwrap_or_default();
    let details = format_args!("the key of the environment is for `{}`, and `{host}` is not it", provider.name);
    Err(Error::new(Kind::UntrustedEndpoint, details)
        .with_help("put a key for this address into the connection, or name the address in the host's options"))
}

/// An address as it may be shown: what it asks for besides its path may be a credential, but for the version of the
/// interface.
pub fn redacted_url(url: &str) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if name != "api-version" => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// Names of credentials in addresses that are none elsewhere.
const KEYS_OF_ADDRESSES: [&str; 5] = ["key", "code", "sig", "signature", "token"];

/// The credentials that stand in an address: `?key=…`.
pub fn secrets_of_url(url: &str) -> Vec<Secret> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    let is_secret = |name: &str| is_credential(name) || KEYS_OF_ADDRESSES.contains(&name.to_ascii_lowercase().as_str());
    url.query_pairs().filter(|(name, _)| is_secret(name)).map(|(_, value)| Secret::new(value)).collect()
}

impl Provider {
    /// Whether a key of the environment may go to an address: one of the provider's own hosts over HTTPS on the usual
    /// port; for a provider on the same machine, that machine.
    pub fn trusts(&self, url: &Url) -> bool {
        if self.is_local && is_loopback(url) {
            return true;
        }
        if url.scheme() != "https" || url.port().is_some() {
            return false;
        }
        let Some(Host::Domain(host)) = url.host() else { return false };
        let own = self.base_url.and_then(|own| Url::parse(own).ok());
        let is_own = own.is_some_and(|own| own.scheme() == "https" && own.host_str() == Some(host));
        is_own || self.hosts.iter().any(|known| is_host(host, known))
    }
}

/// Whether a host is the one that is known, or one below it if that begins with a dot.
fn is_host(host: &str, known: &str) -> bool {
    match known.strip_prefix('.') {
        None => host == known,
        Some(_) => host.strip_suffix(known).is_some_and(|name| !name.is_empty() && !name.contains('.')),
    }
}

fn is_loopback(url: &Url) -> bool {
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
    use crate::wire::compatible::provider;

    fn may_go(name: &str, endpoint: &str) -> bool {
        endpoint_check(provider(name).expect("it is known"), endpoint, true).is_ok()
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
        ];
        for (name, endpoint) in refused {
            assert!(!may_go(name, endpoint), "{name} {endpoint}");
        }
    }

    #[test]
    fn addresses_are_shown_without_credentials() {
        let shown = redacted_url("https://a.example/x?key=sk-1&api-version=2024-10-21");
        assert_eq!(shown, "https://a.example/x?key=[REDACTED]&api-version=2024-10-21");
        assert_eq!(redacted_url("https://a.example/x"), "https://a.example/x");
        let secrets = secrets_of_url("https://a.example/x?Key=a%20b&api-version=2024-10-21&apiKey=c&q=d");
        assert_eq!(secrets, [Secret::new("a b"), Secret::new("c")]);
    }

    #[test]
    fn a_key_of_the_connection_goes_where_the_connection_says() {
        let row = provider("openai").expect("it is known");
        assert!(endpoint_check(row, "http://proxy.example:8080/v1", false).is_ok());
        let error = endpoint_check(row, "http://a:b@proxy.example/v1", false).expect_err("it holds a password");
        assert_eq!(error.code(), "untrusted_endpoint");
    }
}
