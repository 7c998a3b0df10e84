//! Requests for the other resources of a provider's API, such as files and batches.

use super::WireRequest;
use super::headers::headers;
use super::target::{Target, base, join, rooted};
use crate::error::{Error, Kind, Result};

/// Builds a request for a resource below the root of the API that a target belongs to. `path` begins with a slash, and
/// `query` has the parameters that follow it. A body is JSON.
///
/// # Errors
/// Returns an error if there is no base URL, if the URL, the key or the token is invalid, or if the path could leave
/// the root.
pub fn resource_request(
    target: &Target<'_>,
    method: &'static str,
    path: &str,
    query: &[(&str, &str)],
    body: Option<String>,
) -> Result<WireRequest> {
    let is_plain = |segment: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        !segment.is_empty() && segment.bytes().all(is_plain) && segment.bytes().any(|byte| byte != b'.')
    };
    if !path.strip_prefix('/').is_some_and(|path| path.split('/').all(is_plain)) {
        return Err(Error::new(Kind::InvalidRequest, "a path with unexpected characters")
            .with_help("identifiers of a provider have letters, digits, `-`, `_`, `.` and `:`"));
    }
    let base = base(target.provider, target.base_url)?;
    let mut url = join(&rooted(target.provider, &base), path);
    for (name, value) in query {
        url.query_pairs_mut().append_pair(name, value);
    }
    Ok(WireRequest {
        protocol: target.protocol,
        stream: false,
        method,
        url: url.into(),
        headers: headers(target.provider, target.api_key, target.token, body.is_some(), false)?,
        body: body.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Prompt;
    use crate::spec::Secret;
    use crate::wire::{EncodeOptions, target};

    #[test]
    fn resources_are_below_the_root_of_the_api() {
        let prompt = Prompt::from_spec(Default::default());
        let key = Secret::new("k");
        let url = |provider: &str, base_url: Option<&str>, path: &str| {
            let options = EncodeOptions {
                provider: Some(provider),
                model: Some("m"),
                base_url,
                api_key: Some(&key),
                ..EncodeOptions::default()
            };
            let target = target(&prompt, &options).expect("the target is known");
            resource_request(&target, "GET", path, &[("limit", "1&2")], None).map(|request| request.url)
        };
        let ok = |provider, base_url, path| url(provider, base_url, path).expect("a URL");
        assert_eq!(ok("openai", None, "/batches"), "https://api.openai.com/v1/batches?limit=1%262");
        assert_eq!(ok("openai", Some("http://localhost:1/x"), "/files"), "http://localhost:1/x/files?limit=1%262");
        let anthropic = "https://api.anthropic.com/v1/messages/batches/b_1?limit=1%262";
        assert_eq!(ok("anthropic", None, "/messages/batches/b_1"), anthropic);
        let azure = "https://me.openai.azure.com/openai/v1/files?limit=1%262";
        assert_eq!(ok("azure", Some("https://me.openai.azure.com"), "/files"), azure);
        for path in
            ["", "files", "/", "/files/", "/files/../x", "/files/..", "/a?b", "/a#b", "/a%2fb", "/a\\b", "/a\nb"]
        {
            assert_eq!(url("openai", None, path).expect_err(path).kind(), Kind::InvalidRequest, "{path}");
        }
    }
}
