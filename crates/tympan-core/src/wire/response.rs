//! What a model answered, whoever served it: the one shape that every protocol's answers become.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::json::JsonMap;

/// A model's answer, or all that a stream of it added up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Response {
    /// The provider's name for this answer.
    pub id: Option<String>,
    /// The model that really answered.
    pub model: Option<String>,
    /// What it answered.
    pub output: Output,
    /// Why it stopped.
    pub finish_reason: Option<FinishReason>,
    /// What it cost, in tokens.
    pub usage: Option<Usage>,
}

impl Response {
    /// The answer as the steps of a stream that comes all at once.
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

/// What a model answered with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// Words, or calls of tools.
    Answer(Answer),
    /// Vectors, in the order of the texts they stand for.
    Embeddings(Vec<Vec<f64>>),
    /// Pictures: each an address, or base64 data.
    Images(Vec<String>),
}

impl Default for Output {
    fn default() -> Self {
        Self::Answer(Answer::default())
    }
}

/// Words and calls of tools.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// What the model thought before it answered, where the provider shows that.
    pub thinking: String,
    /// Why the model will not answer.
    pub refusal: Option<String>,
    /// The tools it wants to have called, in order.
    pub tool_calls: Vec<ToolCall>,
    /// The provider's own blocks, where it wants them back unchanged in the next round.
    pub blocks: Option<Json>,
}

/// A tool that the model wants to have called.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's name for this call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as JSON, exactly as the model wrote them. Whether they parse is another question.
    pub arguments: String,
}

impl ToolCall {
    fn deltas(&self, index: usize) -> [Delta; 2] {
        let begin = Delta::ToolCall { index, id: self.id.clone(), name: self.name.clone() };
        [begin, Delta::ToolArguments { index, fragment: self.arguments.clone() }]
    }
}

/// Why a model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// It had said all, or came upon a stop sequence.
    Stop,
    /// It was not allowed to say more.
    Length,
    /// It wants tools to be called.
    ToolCalls,
    /// What it said was held back.
    ContentFilter,
    /// Something else, in the provider's words.
    Other(String),
}

impl FinishReason {
    /// The name that traces use.
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

/// Tokens that went in and came out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the request, those from a cache included.
    pub input_tokens: u64,
    /// Tokens of the answer, those of its thinking included.
    pub output_tokens: u64,
    /// Both.
    pub total_tokens: u64,
    /// Tokens of the request that came from the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input_tokens: u64,
    /// Tokens of the request that were written to the provider's cache.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    /// Tokens of the answer that were spent on thinking.
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

/// A step of a streamed answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More of what the model thinks.
    Thinking(String),
    /// The model begins to call a tool.
    ToolCall {
        /// Which of its calls: 0 for the first.
        index: usize,
        /// The provider's name for the call.
        id: String,
        /// The tool.
        name: String,
    },
    /// More of a call's arguments.
    ToolArguments {
        /// Which of its calls.
        index: usize,
        /// A part of the JSON, cut anywhere.
        fragment: String,
    },
    /// What the answer has cost so far.
    Usage(Usage),
}

impl Delta {
    fn is_empty(&self) -> bool {
        matches!(self, Self::Text(text) | Self::Thinking(text) if text.is_empty())
    }
}
