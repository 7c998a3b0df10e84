//! From messages to a request: one file a protocol.

mod anthropic_messages;
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

pub use self::inline::inline_media;

use self::functions::functions;
use self::schema::ObjectSchema;
use super::headers::headers;
use super::target::{Target, target};
use super::{EncodeOptions, Protocol, WireRequest};
use crate::chat::message::Message;
use crate::error::{Error, Kind, Result};
use crate::prompt::Prompt;
use crate::spec::ModelOptions;
use crate::spec::schema::Property;

/// What all protocols make a body of.
struct Ask<'a> {
    target: Target<'a>,
    messages: &'a [Message],
    functions: Vec<functions::Function<'a>>,
    outputs: &'a [Property],
    options: &'a ModelOptions,
    stream: bool,
}

/// Makes the request that asks a model for the next message.
///
/// Options that the provider does not have are left out, as the specification says; [`unsupported`](super::unsupported)
/// names them. That there is no key is no error: the request then has no header for it.
///
/// # Errors
/// As [`target`](super::target()); the address or the key cannot be used; a rich input is not what its declaration says,
/// or is something that the protocol cannot carry.
pub fn encode(prompt: &Prompt, messages: &[Message], options: &EncodeOptions<'_>) -> Result<WireRequest> {
    let target = target(prompt, options)?;
    let (protocol, url) = (target.protocol, target.url()?);
    let has_stream = !matches!(protocol, Protocol::OpenAiEmbeddings | Protocol::OpenAiImages);
    let stream = options.stream && has_stream;
    let headers = headers(target.provider, target.api_key, true, stream)?;
    let spec = prompt.spec();
    let none = ModelOptions::default();
    let ask = Ask {
        target,
        messages,
        functions: functions(&spec.tools, options.functions),
        outputs: &spec.outputs,
        options: spec.model.as_ref().map_or(&none, |model| &model.options),
        stream,
    };
    let body = match protocol {
        Protocol::OpenAiChat => write(&openai_chat::Request::new(&ask)?),
        Protocol::OpenAiResponses => write(&openai_responses::Request::new(&ask)?),
        Protocol::OpenAiEmbeddings => write(&openai_embeddings::Request::new(&ask)?),
        Protocol::OpenAiImages => write(&openai_images::Request::new(&ask)?),
        Protocol::AnthropicMessages => write(&anthropic_messages::Request::new(&ask)?),
    }?;
    Ok(WireRequest { protocol, stream, method: "POST", url, headers, body })
}

fn write(request: &impl Serialize) -> Result<String> {
    serde_json::to_string(request).map_err(|error| Error::new(Kind::InvalidRequest, error))
}

/// Something in the messages that a protocol cannot carry.
fn cannot_carry(target: &Target<'_>, kind: &str) -> Error {
    let (provider, api) = (target.provider.name, target.protocol.as_str());
    Error::new(Kind::InvalidRequest, format_args!("the provider `{provider}` ({api}) takes no {kind}"))
        .with_help(format!("leave the {kind} out, or choose another provider or `apiType`"))
}

/// The JSON Schema of a map with these properties.
pub(super) fn schema_of(properties: &[Property]) -> Json {
    let schema = ObjectSchema { properties, bound: &[], strict: false };
    // It holds no maps whose keys are no text, so it can always be written.
    serde_json::to_value(schema).unwrap_or_default()
}
