//! The protocols that models are served by: requests out of messages, answers out of bytes. No HTTP is spoken here.

pub mod arguments;
pub mod compatible;
mod decode;
pub mod echo;
mod encode;
mod headers;
mod models;
pub mod response;
mod sse;
mod target;
mod trust;
mod unsupported;

use std::fmt;

use crate::error::Result;
use crate::secret::url::redacted_url;
use crate::spec::schema::Property;
use crate::spec::{Connection, REDACTED, Secret};

pub use compatible::Provider;
pub use decode::{StreamDecoder, StreamLimits, decode, decode_error, decode_received};
pub use encode::{encode, inline_media};
pub use models::{ModelInfo, decode_models, list_models};
pub use sse::{DEFAULT_MAX_EVENT_BYTES, Event, SseDecoder};
pub use target::{AZURE_API_VERSION, BaseUrlFrom, Target, find_provider, own_connection, target};
pub use trust::{Address, Carried, check_destination, is_allowed, parse_endpoint};
pub use unsupported::unsupported;

/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// OpenAI's Chat Completions, and all that is compatible with them.
    OpenAiChat,
    /// OpenAI's Responses.
    OpenAiResponses,
    /// OpenAI's Embeddings.
    OpenAiEmbeddings,
    /// OpenAI's Images.
    OpenAiImages,
    /// Anthropic's Messages.
    AnthropicMessages,
}

impl Protocol {
    /// A short stable name.
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

/// The protocol that a provider's interface of this name speaks: `chat`, `responses`, `embedding` or `image`. Without
/// a name it is the first that the provider has.
///
/// # Errors
/// The provider has no such interface.
pub fn protocol(provider: &str, api_type: &str) -> Result<Protocol> {
    target::find_protocol(find_provider(provider)?, Some(api_type))
}

/// What a request needs to know besides the prompt and the messages. What is `None` is the prompt's to say.
#[derive(Clone, Default)]
pub struct EncodeOptions<'a> {
    /// The provider.
    pub provider: Option<&'a str>,
    /// The model's name at the provider.
    pub model: Option<&'a str>,
    /// The interface: `chat`, `responses`, `embedding`, `image`.
    pub api_type: Option<&'a str>,
    /// The address that the provider's paths are added to.
    pub base_url: Option<&'a str>,
    /// The connection in place of the prompt's own, for one that the host has registered under a name.
    pub connection: Option<&'a Connection>,
    /// The key in place of the connection's.
    pub api_key: Option<&'a Secret>,
    /// Whether the answer should come as a stream.
    pub stream: bool,
    /// Functions that the model may call besides those that the prompt declares.
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
            .field("stream", &self.stream)
            .field("functions", &self.functions)
            .finish()
    }
}

/// A function that a model may call, as the model gets to know it.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// The JSON Schema of its arguments.
    pub parameters: serde_json::Value,
    /// Whether the provider should hold the model to the schema.
    pub strict: bool,
}

impl Function {
    /// A function that takes what these properties declare, and nothing else.
    pub fn of_properties(name: impl Into<String>, description: Option<String>, properties: &[Property]) -> Self {
        let mut parameters = encode::schema_of(properties);
        parameters["additionalProperties"] = false.into();
        Self { name: name.into(), description, parameters, strict: false }
    }
}

/// A request, ready for any HTTP client.
#[derive(Clone, PartialEq)]
pub struct WireRequest {
    /// How the answer is to be read.
    pub protocol: Protocol,
    /// Whether the answer should come as a stream.
    pub stream: bool,
    /// `POST`, or `GET` for a list of models.
    pub method: &'static str,
    /// The address.
    pub url: String,
    /// The headers, in order.
    pub headers: Vec<Header>,
    /// The body: JSON.
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

/// A header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: HeaderValue,
}

/// The value of a header. One that is a credential is never printed.
#[derive(Clone, PartialEq, Eq)]
pub enum HeaderValue {
    /// Anybody may see it.
    Plain(String),
    /// Only the provider may see it. What stands before it, such as `Bearer `, is no secret.
    Secret {
        /// What stands before the credential.
        prefix: &'static str,
        /// The credential.
        secret: Secret,
    },
}

impl HeaderValue {
    /// The value as it is sent.
    pub fn expose(&self) -> String {
        match self {
            Self::Plain(value) => value.clone(),
            Self::Secret { prefix, secret } => format!("{prefix}{}", secret.expose()),
        }
    }

    /// The value as it may be shown.
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
