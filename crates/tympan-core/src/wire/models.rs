//! Listing the models of a provider.

use serde::Deserialize;

use super::compatible::{Paths, Provider};
use super::headers::headers;
use super::target::{AZURE_API_VERSION, base, join, rooted};
use super::{Protocol, WireRequest};
use crate::error::{Error, Kind, Result};
use crate::spec::Secret;

/// A model, as its provider lists it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ModelInfo {
    /// The provider's ID for the model.
    pub id: String,
    /// The human-readable name.
    #[serde(default)]
    pub display_name: Option<String>,
    /// The creation time, in seconds since the Unix epoch, if the provider reports it.
    #[serde(default)]
    pub created: Option<i64>,
    /// The model's owner.
    #[serde(default)]
    pub owned_by: Option<String>,
}

/// Builds a request for the list of a provider's models. `base_url` replaces the provider's default.
///
/// # Errors
/// Returns an error if there is no base URL, or if the URL or the key is invalid.
pub fn list_models(
    provider: &'static Provider,
    base_url: Option<&str>,
    api_key: Option<&Secret>,
) -> Result<WireRequest> {
    let base = base(provider, base_url.or(provider.base_url))?;
    let url = match provider.paths {
        Paths::Deployments => {
            let mut url = join(&base, "/openai/models");
            url.query_pairs_mut().append_pair("api-version", AZURE_API_VERSION);
            url
        }
        _ => join(&rooted(provider, &base), "/models"),
    };
    Ok(WireRequest {
        protocol: provider.protocols[0],
        stream: false,
        method: "GET",
        url: url.into(),
        headers: headers(provider, api_key, false, false)?,
        body: String::new(),
    })
}

/// Decodes a list of models. All protocols known so far use the same format.
///
/// # Errors
/// Returns an error if the body is not a list of models.
pub fn decode_models(_protocol: Protocol, body: &str) -> Result<Vec<ModelInfo>> {
    #[derive(Deserialize)]
    struct List {
        data: Vec<ModelInfo>,
    }
    let list: List = serde_json::from_str(body).map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        Error::new(Kind::UnexpectedResponse, format_args!("expected a list of models under `data` at {place}"))
    })?;
    Ok(list.data)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::compatible::{PROVIDERS, provider};

    #[test]
    fn every_provider_can_be_asked() {
        for row in PROVIDERS {
            let own = row.base_url.is_none().then_some("https://mine.openai.azure.com");
            let request = list_models(row, own, Some(&Secret::new("k"))).expect("it can be asked");
            assert_eq!((request.method, request.body.as_str()), ("GET", ""));
            assert!(request.url.contains("/models"), "{}", request.url);
            assert!(request.headers.iter().any(|header| header.name == row.auth.header()), "{}", row.name);
        }
        let anthropic = provider("anthropic").expect("it is known");
        let request = list_models(anthropic, None, None).expect("it can be asked");
        assert_eq!(request.url, "https://api.anthropic.com/v1/models");
    }

    #[test]
    fn lists_are_read_in_either_style() {
        let openai = r#"{"object": "list", "data": [{"id": "a", "created": 5, "owned_by": "b"}]}"#;
        let anthropic = r#"{"data": [{"type": "model", "id": "c", "display_name": "C", "created_at": "2025-01-01"}]}"#;
        let first = |body| decode_models(Protocol::OpenAiChat, body).expect("it is a list").remove(0);
        assert_eq!((first(openai).created, first(openai).owned_by.as_deref()), (Some(5), Some("b")));
        assert_eq!(first(anthropic).display_name.as_deref(), Some("C"));
        let error = decode_models(Protocol::OpenAiChat, "<html>secret</html>").expect_err("it is a page");
        assert!(error.code() == "unexpected_response" && !error.message().contains("secret"));
    }
}
