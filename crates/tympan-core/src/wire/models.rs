//! Listing the models of a provider.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::compatible::{Paths, Provider};
use super::headers::headers;
use super::target::{AZURE_API_VERSION, base, join, rooted};
use super::{Protocol, WireRequest};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::spec::Secret;

/// A model, as its provider lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ModelInfo {
    /// The provider's ID for the model.
    pub id: String,
    /// The human-readable name.
    pub display_name: Option<String>,
    /// The creation time, in seconds since the Unix epoch, if the provider reports it.
    pub created: Option<i64>,
    /// The model's owner.
    pub owned_by: Option<String>,
    /// The number of tokens that the model can process at once, if the provider reports it.
    pub context_window: Option<u64>,
    /// The kinds of content that the model accepts, such as `text` and `image`, if the provider reports them.
    pub input_modalities: Option<Vec<String>>,
    /// The kinds of content that the model produces, if the provider reports them.
    pub output_modalities: Option<Vec<String>>,
}

impl ModelInfo {
    /// Creates the description of a model of which only the ID is known.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), ..Self::default() }
    }
}

/// Builds a request for the list of a provider's models. `base_url` replaces the provider's default, and `token` is
/// sent instead of the key.
///
/// # Errors
/// Returns an error if there is no base URL, or if the URL, the key or the token is invalid.
pub fn list_models(
    provider: &'static Provider,
    base_url: Option<&str>,
    api_key: Option<&Secret>,
    token: Option<&Secret>,
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
        headers: headers(provider, api_key, token, false, false)?,
        body: String::new(),
    })
}

/// Decodes a list of models. The protocols known so far use the same format, except that some servers send the list
/// itself instead of a map with the key `data`.
///
/// # Errors
/// Returns an error if the body is not a list of models.
pub fn decode_models(_protocol: Protocol, body: &str) -> Result<Vec<ModelInfo>> {
    #[derive(Deserialize)]
    struct Page {
        data: Vec<Listed>,
    }
    let is_bare = body.trim_start().starts_with('[');
    let listed =
        if is_bare { serde_json::from_str(body) } else { serde_json::from_str(body).map(|page: Page| page.data) };
    let listed = listed.map_err(|error| {
        let place = format!("line {} column {}", error.line(), error.column());
        Error::new(Kind::UnexpectedResponse, format_args!("expected a list of models under `data` at {place}"))
    })?;
    Ok(listed.into_iter().map(Listed::into_model).collect())
}

/// An entry of a list. Every provider has its own names for what it reports beyond OpenAI's fields. Of these fields, a
/// value of an unexpected type is ignored: it must not make the whole list unusable.
#[derive(Deserialize)]
struct Listed {
    id: String,
    #[serde(default)]
    display_name: Option<String>,
    #[serde(default)]
    created: Option<i64>,
    #[serde(default)]
    owned_by: Option<String>,
    #[serde(flatten)]
    more: JsonMap,
}

/// The names of the context window: a key, or a path of keys.
const CONTEXT_WINDOWS: [&[&str]; 8] = [
    &["context_window"],
    &["context_length"],
    &["max_context_length"],
    &["max_model_len"],
    &["max_input_tokens"],
    &["meta", "n_ctx"],
    &["meta", "n_ctx_train"],
    &["top_provider", "context_length"],
];

/// The capabilities that some providers list instead of modalities, and the input that each stands for.
const INPUT_CAPABILITIES: [(&str, &str); 5] = [
    ("vision", "image"),
    ("image_input", "image"),
    ("audio", "audio"),
    ("audio_input", "audio"),
    ("pdf_input", "file"),
];

impl Listed {
    fn into_model(self) -> ModelInfo {
        let context_window =
            CONTEXT_WINDOWS.iter().find_map(|path| self.at(path)?.as_u64().filter(|tokens| *tokens > 0));
        ModelInfo {
            context_window,
            input_modalities: self.modalities("input_modalities").or_else(|| self.input_capabilities()),
            output_modalities: self.modalities("output_modalities"),
            id: self.id,
            display_name: self.display_name,
            created: self.created,
            owned_by: self.owned_by,
        }
    }

    fn at(&self, path: &[&str]) -> Option<&Json> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.more.get(*first)?, |value, key| value.get(key))
    }

    fn modalities(&self, key: &str) -> Option<Vec<String>> {
        let listed = self.at(&[key]).or_else(|| self.at(&["architecture", key]))?.as_array()?;
        let names: Vec<_> = listed.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        (!names.is_empty()).then_some(names)
    }

    /// Returns the inputs that a map of capabilities names. Each is a boolean, or a map with the key `supported`.
    fn input_capabilities(&self) -> Option<Vec<String>> {
        let capabilities = self.at(&["capabilities"])?.as_object()?;
        let flag = |name: &str| {
            let value = capabilities.get(name)?;
            value.as_bool().or_else(|| value.get("supported")?.as_bool())
        };
        let known = INPUT_CAPABILITIES.iter().filter_map(|(name, input)| Some((*input, flag(name)?)));
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return None;
        }
        let more = known.into_iter().filter(|(_, is_supported)| *is_supported).map(|(input, _)| input.to_owned());
        Some(["text".to_owned()].into_iter().chain(more).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::compatible::{PROVIDERS, provider};

    #[test]
    fn every_provider_can_be_asked() {
        for row in PROVIDERS {
            let own = row.base_url.is_none().then_some("https://mine.openai.azure.com");
            let request = list_models(row, own, Some(&Secret::new("k")), None).expect("it can be asked");
            assert_eq!((request.method, request.body.as_str()), ("GET", ""));
            assert!(request.url.contains("/models"), "{}", request.url);
            assert!(request.headers.iter().any(|header| header.name == row.auth.header()), "{}", row.name);
        }
        let anthropic = provider("anthropic").expect("it is known");
        let request = list_models(anthropic, None, None, None).expect("it can be asked");
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

    #[test]
    fn a_token_replaces_the_key() {
        let azure = provider("azure").expect("it is known");
        let (key, token) = (Secret::new("the-key"), Secret::new("the-token"));
        let request = list_models(azure, Some("https://mine.openai.azure.com"), Some(&key), Some(&token));
        let headers = request.expect("it can be asked").headers;
        let secret = headers.iter().find(|header| header.name == "authorization").expect("it has a token");
        assert!(
            matches!(&secret.value, crate::wire::HeaderValue::Secret { prefix: "Bearer ", secret } if *secret == token)
        );
        assert!(headers.iter().all(|header| header.name != "api-key"));
    }

    #[test]
    fn context_windows_and_modalities_have_many_names() {
        let first = |entry: &str| {
            let body = format!(r#"{{"data": [{{"id": "a", {entry}}}]}}"#);
            decode_models(Protocol::OpenAiChat, &body).expect("it is a list").remove(0)
        };
        for entry in [
            r#""context_window": 8192"#,
            r#""context_length": 8192"#,
            r#""max_context_length": 8192"#,
            r#""max_model_len": 8192"#,
            r#""max_input_tokens": 8192"#,
            r#""meta": {"n_ctx_train": 8192}"#,
            r#""context_length": null, "top_provider": {"context_length": 8192}"#,
        ] {
            assert_eq!(first(entry).context_window, Some(8192), "{entry}");
        }
        for entry in [r#""context_window": "large""#, r#""context_window": 0"#, r#""meta": 7"#, r#""owned_by": null"#] {
            assert_eq!(first(entry), ModelInfo::new("a"), "{entry}");
        }
        let router = first(
            r#""architecture": {"input_modalities": ["text", "image"], "output_modalities": ["text"], "modality": "x"}"#,
        );
        assert_eq!(router.input_modalities.as_deref(), Some(["text", "image"].map(String::from).as_slice()));
        assert_eq!(router.output_modalities.as_deref(), Some(["text"].map(String::from).as_slice()));
        for entry in [
            r#""capabilities": {"completion_chat": true, "vision": true}"#,
            r#""capabilities": {"image_input": {"supported": true}, "pdf_input": {"supported": false}}"#,
        ] {
            assert_eq!(first(entry).input_modalities, router.input_modalities, "{entry}");
        }
        assert_eq!(first(r#""capabilities": {"completion_chat": true}"#).input_modalities, None);
        let bare = decode_models(Protocol::OpenAiChat, r#" [{"id": "a", "context_length": 5}]"#).expect("it is a list");
        assert_eq!(bare[0].context_window, Some(5));
    }
}
