//! The wire protocols of model providers: encodes messages as requests and decodes bytes into responses. This module
//! does not do any HTTP.

pub mod arguments;
pub mod catalog;
pub mod compatible;
mod decode;
pub mod echo;
mod encode;
mod headers;
mod model_selection;
mod models;
mod resource;
pub mod response;
mod sse;
mod target;
mod trust;
mod unsupported;

use std::fmt;

use crate::error::Result;
use crate::secret::url::redacted_url;
use crate::spec::json_schema::is_open;
use crate::spec::schema::Property;
use crate::spec::{Connection, REDACTED, Secret};

pub use compatible::Provider;
pub use decode::{StreamDecoder, StreamLimits, decode, decode_error, decode_received, decode_usage};
pub(crate) use encode::written as encoded_schema;
pub use encode::{BodyEncoder, encode, inline_media, inline_segmented_media};
pub use model_selection::ModelSelection;
pub use models::{ModelInfo, decode_models, list_models};
pub use resource::resource_request;
pub use sse::{DEFAULT_MAX_EVENT_BYTES, Event, SseDecoder};
pub use target::{AZURE_API_VERSION, BaseUrlFrom, Target, find_provider, own_connection, target};
pub use trust::{Address, Carried, check_destination, is_allowed, is_loopback, parse_endpoint};
pub use unsupported::unsupported;

/// A wire protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Protocol {
    /// OpenAI's Chat Completions, and every API compatible with it.
    OpenAiChat,
    /// OpenAI's Responses API.
    OpenAiResponses,
    /// OpenAI's Embeddings API.
    OpenAiEmbeddings,
    /// OpenAI's Images API.
    OpenAiImages,
    /// Anthropic's Messages API.
    AnthropicMessages,
}

impl Protocol {
    /// Returns a short, stable name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai_chat",
            Self::OpenAiResponses => "openai_responses",
            Self::OpenAiEmbeddings => "openai_embeddings",
            Self::OpenAiImages => "openai_images",
            Self::AnthropicMessages => "anthropic_messages",
        }
    }
}

/// Returns the protocol that a provider uses for an API type: `chat`, `responses`, `embedding` or `image`. If
/// `api_type` is empty, returns the provider's first protocol.
///
/// # Errors
/// Returns an error if the provider is unknown or does not support the API type.
pub fn protocol(provider: &str, api_type: &str) -> Result<Protocol> {
    target::find_protocol(find_provider(provider)?, Some(api_type))
}

/// Options for encoding a request. Fields that are `None` fall back to the prompt.
#[derive(Clone, Default)]
pub struct EncodeOptions<'a> {
    /// The provider's name.
    pub provider: Option<&'a str>,
    /// The provider's name for the model.
    pub model: Option<&'a str>,
    /// The API type: `chat`, `responses`, `embedding` or `image`.
    pub api_type: Option<&'a str>,
    /// The base URL that the provider's paths are appended to.
    pub base_url: Option<&'a str>,
    /// A connection that replaces the prompt's own, such as one that the host registered by name.
    pub connection: Option<&'a Connection>,
    /// An API key that replaces the connection's.
    pub api_key: Option<&'a Secret>,
    /// An access token to send instead of a key, as `authorization: Bearer …`, whatever header the provider uses for
    /// keys.
    pub token: Option<&'a Secret>,
    /// Whether to request a streamed response.
    pub stream: bool,
    /// Functions that the model may call, in addition to those that the prompt declares.
    pub functions: &'a [Function],
}

impl fmt::Debug for EncodeOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncodeOptions")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("api_type", &self.api_type)
            .field("base_url", &self.base_url.map(redacted_url))
            .field("connection", &self.connection)
            .field("api_key", &self.api_key)
            .field("token", &self.token)
            .field("stream", &self.stream)
            .field("functions", &self.functions)
            .finish()
    }
}

/// A function that a model may call, as it is described to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The function's name.
    pub name: String,
    /// A description of what the function does.
    pub description: Option<String>,
    /// The JSON Schema of the arguments.
    pub parameters: serde_json::Value,
    /// Whether the provider should enforce the schema.
    pub strict: bool,
}

impl Function {
    /// Creates a function whose parameters are exactly these properties. If a JSON Schema declares them, the function
    /// has that schema.
    pub fn of_properties(name: impl Into<String>, description: Option<String>, properties: &[Property]) -> Self {
        let mut parameters = encode::schema_of(properties);
        if !parameters.as_object().is_some_and(is_open) {
            parameters["additionalProperties"] = false.into();
        }
        Self { name: name.into(), description, parameters, strict: false }
    }
}

/// An encoded request, ready for any HTTP client.
#[derive(Clone, PartialEq)]
pub struct WireRequest {
    /// The protocol to decode the response with.
    pub protocol: Protocol,
    /// Whether the request asks for a streamed response.
    pub stream: bool,
    /// The HTTP method: `POST`, or `GET` for requests without a body.
    pub method: &'static str,
    /// The URL.
    pub url: String,
    /// The headers, in order.
    pub headers: Vec<Header>,
    /// The JSON body; empty for a `GET` request.
    pub body: String,
}

impl fmt::Debug for WireRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WireRequest")
            .field("protocol", &self.protocol)
            .field("stream", &self.stream)
            .field("method", &self.method)
            .field("url", &redacted_url(&self.url))
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish()
    }
}

/// A request header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The header's name, in lowercase.
    pub name: String,
    /// The header's value.
    pub value: HeaderValue,
}

/// The value of a header. Credentials are never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// A value that is safe to print.
    Plain(String),
    /// A credential, meant only for the provider. Its prefix, such as `Bearer `, is not secret.
    Secret {
        /// The text before the credential.
        prefix: &'static str,
        /// The credential.
        secret: Secret,
    },
}

impl HeaderValue {
    /// Returns the value as it is sent, including any credential.
    pub fn expose(&self) -> String {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Secret { prefix, secret } => format!("{prefix}{}", secret.expose()),
        }
    }

    /// Returns the value with any credential redacted.
    pub fn redacted(&self) -> String {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Secret { prefix, .. } => format!("{prefix}{REDACTED}"),
        }
    }
}

impl fmt::Debug for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted())
    }
}
