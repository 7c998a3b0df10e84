//! The options of a turn.

use std::time::Duration;

use super::context::ContextBudget;
use super::flow::FlowOptions;
use super::tools::TurnTool;
use crate::chat::guard::Guard;
use crate::wire::response::Usage;

/// The limits, guardrails and tools of a turn.
#[derive(Clone, Debug)]
pub struct TurnOptions {
    /// The maximum number of model responses.
    pub max_iterations: u32,
    /// The maximum number of attempts for each model call, including the first.
    pub max_llm_retries: u32,
    /// The maximum number of model calls that the driver may make for the turn, including retries, summaries, and calls
    /// of turns that its tools start. `None` means [`TurnOptions::max_iterations`] times ten, or times one more than
    /// [`TurnOptions::max_llm_retries`] if that is larger.
    pub max_model_calls: Option<u32>,
    /// The maximum number of input and output tokens of all calls, including those of turns that its tools start. Once
    /// it is reached, the turn makes no more calls.
    pub max_tokens: Option<u64>,
    /// The maximum cost of all calls, according to [`TurnOptions::prices`].
    pub max_cost: Option<f64>,
    /// The prices of tokens.
    pub prices: Prices,
    /// The maximum time, as reported with [`Turn::tick`](super::Turn::tick).
    pub max_time: Option<Duration>,
    /// The maximum number of tool calls in one response.
    pub max_tool_calls: usize,
    /// The maximum size of a tool's result, in bytes. The model does not see the rest.
    pub max_result_bytes: usize,
    /// Whether the tool calls of one response run concurrently.
    pub parallel_tool_calls: bool,
    /// The size of the conversation that the model may see.
    pub context_budget: Option<ContextBudget>,
    /// Whether to request a summary of messages that no longer fit. Otherwise, the turn creates one itself.
    pub compaction: bool,
    /// Which guardrails to consult.
    pub guardrails: Guardrails,
    /// The guard that wraps all tool results, and summaries of dropped messages, in `<untrusted>…</untrusted>`. The
    /// host is responsible for sending the guard's advisory.
    pub guard: Option<Guard>,
    /// Tools besides the functions that the prompt declares. The host builds them from its other tools.
    pub tools: Vec<TurnTool>,
    /// The policy for tool calls, and what it knows about the tools and the messages.
    pub flow: FlowOptions,
}

impl Default for TurnOptions {
    fn default() -> Self {
        Self {
            max_iterations: 10,
            max_llm_retries: 3,
            max_model_calls: None,
            max_tokens: None,
            max_cost: None,
            prices: Prices::default(),
            max_time: None,
            max_tool_calls: 256,
            max_result_bytes: 256 * 1024,
            parallel_tool_calls: false,
            context_budget: None,
            compaction: false,
            guardrails: Guardrails::default(),
            guard: None,
            tools: Vec::new(),
            flow: FlowOptions::default(),
        }
    }
}

/// Prices per million tokens, in any currency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// The price of input tokens.
    pub input: f64,
    /// The price of output tokens.
    pub output: f64,
}

impl Prices {
    /// Returns the cost of these tokens.
    #[expect(clippy::cast_precision_loss, reason = "no turn has 2^52 tokens")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        (usage.input_tokens as f64 * self.input + usage.output_tokens as f64 * self.output) / 1e6
    }
}

/// Which guardrails to consult.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guardrails {
    /// The guardrail on messages, before they are sent.
    pub input: bool,
    /// The guardrail on answers, before they are used.
    pub output: bool,
    /// The guardrail on tool calls, before they run.
    pub tool: bool,
}
