//! Credentials in URLs.

use super::credential::is_credential;
use super::{REDACTED, Secret};

/// Returns a URL that is safe to show. Every query value is redacted because it may be a credential, except for
/// `api-version`.
pub fn redacted_url(url: &str) -> String {
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if name != "api-version" => format!("{name}={REDACTED}"),
        _ => pair.to_owned(),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// Query parameter names that indicate a credential in a URL but not elsewhere.
const KEYS_OF_ADDRESSES: [&str; 5] = ["key", "code", "sig", "signature", "token"];

/// Returns the credentials in the query of a URL, such as `?key=…`.
pub fn secrets_of_url(url: &str) -> Vec<Secret> {
    let without_fragment = url.split_once('#').map_or(url, |(before, _)| before);
    let Some((_, query)) = without_fragment.split_once('?') else { return Vec::new() };
    let is_secret = |name: &str| is_credential(name) || KEYS_OF_ADDRESSES.contains(&name.to_ascii_lowercase().as_str());
    let pairs = form_urlencoded::parse(query.as_bytes());
    pairs.filter(|(name, _)| is_secret(name)).map(|(_, value)| Secret::new(value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_credentials() {
        let shown = redacted_url("https://a.example/x?key=sk-1&api-version=2024-10-21");
        assert_eq!(shown, "https://a.example/x?key=[REDACTED]&api-version=2024-10-21");
        assert_eq!(redacted_url("https://a.example/x"), "https://a.example/x");
        let secrets = secrets_of_url("https://a.example/x?Key=a%20b&api-version=2024-10-21&apiKey=c&q=d");
        assert_eq!(secrets, [Secret::new("a b"), Secret::new("c")]);
    }
}
