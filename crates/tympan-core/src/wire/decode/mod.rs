//! Decodes responses from bytes, either complete or streamed.

mod accumulator;
mod anthropic_messages;
mod content;
mod failure;
mod openai_chat;
mod openai_embeddings;
mod openai_images;
mod openai_responses;
mod surrogates;
mod tool_calls;
mod usage;

use std::ops::ControlFlow;

use super::Protocol;
use super::sse::{DEFAULT_MAX_EVENT_BYTES, Event, SseDecoder};
use crate::error::{Error, Kind, Result};
use crate::json::JsonMap;
use crate::wire::response::{Delta, Response, Usage};
use accumulator::ResponseAccumulator;
use surrogates::SurrogateJoiner;

pub use failure::decode_error;

/// Decodes a complete response.
///
/// ```
/// use tympan::wire::{self, Protocol};
/// use tympan::wire::response::Output;
///
/// let body = br#"{"choices": [{"message": {"content": "Hello!"}, "finish_reason": "stop"}]}"#;
/// let response = wire::decode(Protocol::OpenAiChat, body)?;
/// let Output::Answer(answer) = response.output else { unreachable!() };
/// assert_eq!(answer.text, "Hello!");
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the body reports an error or does not have the protocol's format.
pub fn decode(protocol: Protocol, body: &[u8]) -> Result<Response> {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    match protocol {
        Protocol::OpenAiChat => openai_chat::decode(body),
        Protocol::OpenAiResponses => openai_responses::decode(body),
        Protocol::OpenAiEmbeddings => openai_embeddings::decode(body),
        Protocol::OpenAiImages => openai_images::decode(body),
        Protocol::AnthropicMessages => anthropic_messages::decode(body),
    }
}

/// Converts the token usage in the body of a response, which is under the protocol's own names.
///
/// ```
/// use tympan::wire::{self, Protocol};
///
/// let reported = serde_json::json!({ "input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5 });
/// let usage = wire::decode_usage(Protocol::AnthropicMessages, reported.as_object().cloned().unwrap_or_default());
/// assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (7, 4, 5));
/// ```
pub fn decode_usage(protocol: Protocol, reported: JsonMap) -> Usage {
    match protocol {
        Protocol::AnthropicMessages => usage::anthropic(reported),
        Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::OpenAiEmbeddings | Protocol::OpenAiImages => {
            usage::openai(reported)
        }
    }
}

/// Decodes a response body, either complete or a stream of events.
///
/// # Errors
/// Returns an error if [`decode`] or [`StreamDecoder`] rejects the body.
pub fn decode_received(protocol: Protocol, body: &[u8]) -> Result<Response> {
    if !is_stream(body) {
        return decode(protocol, body);
    }
    let mut decoder = StreamDecoder::new(protocol);
    decoder.push(body, &mut Vec::new())?;
    decoder.finish()
}

/// Returns whether the body is a stream of events rather than one JSON document.
fn is_stream(body: &[u8]) -> bool {
    let body = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body).trim_ascii_start();
    ["data:", "event:", "id:", "retry:", ":"].iter().any(|field| body.starts_with(field.as_bytes()))
}

/// Limits for decoding a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// The maximum size of one event, in bytes.
    pub max_event_bytes: usize,
    /// The maximum size of the whole stream, in bytes.
    pub max_total_bytes: usize,
    /// The maximum number of tool calls in one response.
    pub max_tool_calls: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self { max_event_bytes: DEFAULT_MAX_EVENT_BYTES, max_total_bytes: 64 << 20, max_tool_calls: 256 }
    }
}

/// Decodes a streamed response. The same bytes always produce the same deltas and the same response, however they are
/// split into chunks.
///
/// ```
/// use tympan::wire::{Protocol, StreamDecoder};
/// use tympan::wire::response::Delta;
///
/// let mut decoder = StreamDecoder::new(Protocol::OpenAiChat);
/// let mut deltas = Vec::new();
/// decoder.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hel", &mut deltas)?;
/// decoder.push(b"lo!\"}}]}\n\ndata: [DONE]\n\n", &mut deltas)?;
/// assert_eq!(deltas, [Delta::Text("Hello!".into())]);
/// assert!(decoder.is_done());
/// let response = decoder.finish()?;
/// # Ok::<(), tympan::Error>(())
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    sse: SseDecoder,
    accumulator: ResponseAccumulator,
    state: State,
    surrogates: SurrogateJoiner,
    /// The number of bytes that may still arrive.
    remaining: usize,
    limits: StreamLimits,
}

/// The state specific to one protocol.
#[derive(Debug)]
enum State {
    Chat,
    Responses(openai_responses::Stream),
    Anthropic(anthropic_messages::Stream),
    /// A protocol without streaming.
    None(Protocol),
}

impl StreamDecoder {
    /// Creates a decoder with the default limits.
    pub fn new(protocol: Protocol) -> Self {
        Self::with_limits(protocol, StreamLimits::default())
    }

    /// Creates a decoder with custom limits.
    pub fn with_limits(protocol: Protocol, limits: StreamLimits) -> Self {
        Self {
            sse: SseDecoder::new(limits.max_event_bytes),
            accumulator: ResponseAccumulator::new(limits.max_tool_calls),
            state: match protocol {
                Protocol::OpenAiChat => State::Chat,
                Protocol::OpenAiResponses => State::Responses(Default::default()),
                Protocol::AnthropicMessages => State::Anthropic(Default::default()),
                Protocol::OpenAiEmbeddings | Protocol::OpenAiImages => State::None(protocol),
            },
            surrogates: SurrogateJoiner::default(),
            remaining: limits.max_total_bytes,
            limits,
        }
    }

    /// Pushes more bytes and appends the resulting deltas to `deltas`. Bytes after the end of the response are ignored.
    ///
    /// # Errors
    /// Returns an error if the stream is malformed, exceeds a limit or reports an error, or if the model refuses to
    /// answer. The error contains the text received so far. The decoder cannot be used after an error.
    pub fn push(&mut self, bytes: &[u8], deltas: &mut Vec<Delta>) -> Result<()> {
        if self.is_done() {
            return Ok(());
        }
        let allowed = &bytes[..bytes.len().min(self.remaining)];
        self.remaining -= allowed.len();
        let Self { sse, accumulator, state, surrogates, .. } = self;
        let pushed = sse.push_until(allowed, |event| {
            mend_event(surrogates, event, |event| read_event(state, accumulator, event, deltas))?;
            Ok(if accumulator.is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        });
        let pushed = pushed.and_then(|_| match allowed.len() == bytes.len() || self.is_done() {
            true => Ok(()),
            false => Err(self.too_large()),
        });
        pushed.map_err(|error| error.with_partial_text(self.partial_text()))
    }

    fn too_large(&self) -> Error {
        let max = self.limits.max_total_bytes;
        Error::new(Kind::ResponseTooLarge, format_args!("the stream is longer than {max} bytes"))
    }

    /// Returns whether the response is complete.
    pub fn is_done(&self) -> bool {
        self.accumulator.is_done
    }

    /// Returns the text received so far.
    pub fn partial_text(&self) -> &str {
        &self.accumulator.text
    }

    /// Ends the stream and returns the whole response. A final event without its blank line is included if it is
    /// complete.
    ///
    /// # Errors
    /// Returns an error if the response is incomplete or invalid. The error contains the text received so far.
    pub fn finish(self) -> Result<Response> {
        let Self { sse, mut accumulator, mut state, mut surrogates, .. } = self;
        // The last event may lack its blank line. If it does not parse either, the stream was cut off in the middle of
        // it.
        let mut deltas = Vec::new();
        let last = match accumulator.is_done {
            true => Ok(()),
            false => sse.finish(|event| {
                mend_event(&mut surrogates, event, |event| read_event(&mut state, &mut accumulator, event, &mut deltas))
            }),
        };
        let is_complete = match &state {
            // Some compatible servers do not send `[DONE]`.
            State::Chat => accumulator.is_done || accumulator.finish_reason.is_some(),
            State::None(protocol) => return Err(no_streams(*protocol)),
            _ => accumulator.is_done,
        };
        let partial_text = accumulator.text.clone();
        let response = match last {
            Err(error) if error.kind() != Kind::StreamParse => Err(error),
            _ if !is_complete => Err(Error::new(Kind::Truncated, "the response is incomplete")
                .with_help("try again; the error contains the text received so far")),
            _ => match state {
                State::Responses(stream) => stream.finish(accumulator),
                State::Anthropic(stream) => stream.finish(accumulator),
                State::Chat | State::None(_) => accumulator.finish(None),
            },
        };
        response.map_err(|error| error.with_partial_text(partial_text))
    }
}

/// Reads an event. If it does not parse, repairs split surrogate pairs in its data and reads it again. This is safe
/// because an event that does not parse changes nothing.
fn mend_event(
    surrogates: &mut SurrogateJoiner,
    event: Event<'_>,
    mut read: impl FnMut(Event<'_>) -> Result<()>,
) -> Result<()> {
    match read(event) {
        Err(error) if error.kind() == Kind::StreamParse => match surrogates.mend(event.data) {
            Some(data) => read(Event { data: &data, ..event }),
            None => Err(error),
        },
        other => other,
    }
}

fn read_event(
    state: &mut State,
    accumulator: &mut ResponseAccumulator,
    event: Event<'_>,
    deltas: &mut Vec<Delta>,
) -> Result<()> {
    match state {
        State::Chat => openai_chat::read_event(accumulator, event, deltas),
        State::Responses(stream) => stream.read_event(accumulator, event, deltas),
        State::Anthropic(stream) => stream.read_event(accumulator, event, deltas),
        State::None(protocol) => Err(no_streams(*protocol)),
    }
}

fn no_streams(protocol: Protocol) -> Error {
    Error::new(Kind::UnsupportedApi, format_args!("{} does not support streaming", protocol.as_str()))
        .with_help("request the response without streaming")
}
