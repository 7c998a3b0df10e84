//! Model responses: the one representation that the responses of every protocol are decoded into.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::json::JsonMap;

/// A model's response, either complete or accumulated from a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Response {
    /// The provider's ID for the response.
    pub id: Option<String>,
    /// The model that actually answered.
    pub model: Option<String>,
    /// The content of the response.
    pub output: Output,
    /// Why the model stopped.
    pub finish_reason: Option<FinishReason>,
    /// The number of tokens used.
    pub usage: Option<Usage>,
}

impl Response {
    /// Returns the response as the deltas of a stream that arrives all at once.
    pub fn deltas(&self) -> Vec<Delta> {
        let mut deltas = Vec::new();
        if let Output::Answer(answer) = &self.output {
            let texts = [Delta::Thinking(answer.thinking.clone()), Delta::Text(answer.text.clone())];
            deltas.extend(texts.into_iter().filter(|delta| !delta.is_empty()));
            deltas.extend(answer.tool_calls.iter().enumerate().flat_map(|(index, call)| call.deltas(index)));
        }
        deltas.extend(self.usage.clone().map(Delta::Usage));
        deltas
    }
}

/// The content of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Output {
    /// Text or tool calls.
    Answer(Answer),
    /// Embedding vectors, in the order of their texts.
    Embeddings(Vec<Vec<f64>>),
    /// Images, each a URL or base64 data.
    Images(Vec<String>),
}

impl Default for Output {
    fn default() -> Self {
        Self::Answer(Answer::default())
    }
}

/// Text and tool calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// The model's reasoning before the answer, if the provider exposes it.
    pub thinking: String,
    /// The model's explanation for refusing to answer.
    pub refusal: Option<String>,
    /// The tool calls, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The provider's own content blocks, for providers that require them back unchanged in the next round.
    pub blocks: Option<Json>,
}

/// A tool call that the model requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's ID for the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, exactly as the model wrote them. They may not be valid JSON.
    pub arguments: String,
}

impl ToolCall {
    fn deltas(&self, index: usize) -> [Delta; 2] {
        let begin = Delta::ToolCall { index, id: self.id.clone(), name: self.name.clone() };
        [begin, Delta::ToolArguments { index, fragment: self.arguments.clone() }]
    }
}

/// The reason why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FinishReason {
    /// The answer is complete, or the model reached a stop sequence.
    Stop,
    /// The answer reached the token limit.
    Length,
    /// The model requests tool calls.
    ToolCalls,
    /// The provider's content filter withheld the answer.
    ContentFilter,
    /// Another reason, in the provider's words.
    Other(String),
}

impl FinishReason {
    /// Returns the name that traces use.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::ToolCalls => "tool_calls",
            Self::ContentFilter => "content_filter",
            Self::Other(name) => name,
        }
    }
}

/// Token usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens in the request, including cached ones.
    pub input_tokens: u64,
    /// Tokens in the response, including those spent on reasoning.
    pub output_tokens: u64,
    /// The total number of tokens.
    pub total_tokens: u64,
    /// Request tokens that were read from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Request tokens that were written to the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Response tokens that were spent on reasoning.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning_tokens: u64,
    /// The numbers under the provider's own names, for traces.
    #[serde(skip)]
    pub reported: JsonMap,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An increment of a streamed response.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of the model's reasoning.
    Thinking(String),
    /// The start of a tool call.
    ToolCall {
        /// The call's index in the response, starting at 0.
        index: usize,
        /// The provider's ID for the call.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a tool call's arguments.
    ToolArguments {
        /// The call's index in the response.
        index: usize,
        /// A fragment of the JSON, split at an arbitrary position.
        fragment: String,
    },
    /// The token usage so far.
    Usage(Usage),
}

impl Delta {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) | Self::Thinking(text) if text.is_empty())
    }
}
