//! Encodes messages as requests, with one file per protocol.

mod anthropic_messages;
mod bodies;
mod body;
mod cache;
mod functions;
mod inline;
mod media;
mod openai_chat;
mod openai_embeddings;
mod openai_images;
mod openai_responses;
pub(super) mod options;
mod parts;
mod schema;
mod tool_calls;

use serde::Serialize;
use serde_json::Value as Json;

pub use self::bodies::BodyEncoder;
pub use self::inline::{inline_media, inline_segmented_media};

pub(crate) use self::schema::written;

use self::functions::functions;
use self::schema::ObjectSchema;
use super::headers::headers;
use super::target::{Target, own_connection, target};
use super::{EncodeOptions, Protocol, WireRequest};
use crate::chat::message::Message;
use crate::error::{Error, Kind, Result};
use crate::prompt::Prompt;
use crate::spec::ModelOptions;
use crate::spec::schema::Property;
use crate::spec::strict_schema::{Budget, Dialect};

/// The values that every protocol builds a body from.
#[derive(Clone)]
struct Ask<'a> {
    target: Target<'a>,
    messages: &'a [Message],
    functions: &'a [functions::Function<'a>],
    outputs: &'a [Property],
    options: &'a ModelOptions,
    stream: bool,
}

/// Encodes a request for a model's next message.
///
/// Options that the provider does not support are omitted, as the specification requires;
/// [`unsupported`](super::unsupported) lists them. A missing key is not an error: the request then has no
/// authentication header.
///
/// # Errors
/// Returns an error if a value of the request was left unresolved when the prompt was loaded, if
/// [`target`](super::target()) cannot resolve the destination, if the URL or the key is invalid, if
/// a rich input does not match its declaration, or if the protocol cannot carry it.
pub fn encode(prompt: &Prompt, messages: &[Message], options: &EncodeOptions<'_>) -> Result<WireRequest> {
    prompt.check_request_env(options.connection.is_none() && own_connection(prompt, options.provider).is_some())?;
    let target = target(prompt, options)?;
    let (protocol, url) = (target.protocol, target.url()?);
    let has_stream = !matches!(protocol, Protocol::OpenAiEmbeddings | Protocol::OpenAiImages);
    let stream = options.stream && has_stream;
    let headers = headers(target.provider, target.api_key, target.token, true, stream)?;
    let spec = prompt.spec();
    let none = ModelOptions::default();
    let dialect = dialect(&target);
    let functions = functions(&spec.tools, options.functions, dialect, budget(&spec.outputs, dialect));
    let ask = Ask {
        target,
        messages,
        functions: &functions,
        outputs: &spec.outputs,
        options: spec.model.as_ref().map_or(&none, |model| &model.options),
        stream,
    };
    let body = write_body(&ask, ToText)?;
    Ok(WireRequest { protocol, stream, method: "POST", url, headers, body })
}

/// Where the JSON of a body goes.
trait Sink {
    type Written;
    fn write(self, request: &impl Serialize) -> serde_json::Result<Self::Written>;
}

/// Returns the JSON as a string.
struct ToText;

impl Sink for ToText {
    type Written = String;
    fn write(self, request: &impl Serialize) -> serde_json::Result<String> {
        serde_json::to_string(request)
    }
}

/// Appends the JSON.
impl Sink for &mut Vec<u8> {
    type Written = ();
    fn write(self, request: &impl Serialize) -> serde_json::Result<()> {
        serde_json::to_writer(self, request)
    }
}

/// Writes the body of a request.
fn write_body<S: Sink>(ask: &Ask<'_>, sink: S) -> Result<S::Written> {
    let written = match ask.target.protocol {
        Protocol::OpenAiChat => sink.write(&openai_chat::Request::new(ask)?),
        Protocol::OpenAiResponses => sink.write(&openai_responses::Request::new(ask)?),
        Protocol::OpenAiEmbeddings => sink.write(&openai_embeddings::Request::new(ask)?),
        Protocol::OpenAiImages => sink.write(&openai_images::Request::new(ask)?),
        Protocol::AnthropicMessages => sink.write(&anthropic_messages::Request::new(ask)?),
    };
    written.map_err(|error| Error::new(Kind::InvalidRequest, error))
}

/// Returns the rules for schemas that the provider enforces.
fn dialect(target: &Target<'_>) -> Dialect {
    match target.protocol {
        Protocol::AnthropicMessages => Dialect::Anthropic,
        _ => Dialect::of(Some(target.provider.name)),
    }
}

/// Returns what the schema of the response leaves for those of the functions.
fn budget(outputs: &[Property], dialect: Dialect) -> Budget {
    let mut budget = Budget::new(dialect);
    if dialect == Dialect::Anthropic && !outputs.is_empty() {
        let response = schema::ResponseSchema::new(outputs, dialect);
        if !response.is_unusable {
            budget.take_response(response.size());
        }
    }
    budget
}

/// Returns an error for message content that a protocol cannot carry.
fn cannot_carry(target: &Target<'_>, kind: &str) -> Error {
    let (provider, api) = (target.provider.name, target.protocol.as_str());
    Error::new(Kind::InvalidRequest, format_args!("unsupported content for provider `{provider}` ({api}): {kind}"))
        .with_help(format!("remove the {kind}, or choose another provider or `apiType`"))
}

/// Returns the JSON Schema of a map with these properties.
pub(super) fn schema_of(properties: &[Property]) -> Json {
    if let Some(schema) = written(properties, &[]) {
        return schema;
    }
    let schema = ObjectSchema { properties, bound: &[], strict: false };
    // All map keys are strings, so serialization cannot fail.
    serde_json::to_value(schema).unwrap_or_default()
}
