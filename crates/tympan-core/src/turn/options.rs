//! How a turn is to go.

use std::time::Duration;

use super::context::ContextBudget;
use super::tools::TurnTool;
use crate::chat::guard::Guard;
use crate::wire::response::Usage;

/// The bounds of a turn, what is asked on the way, and how it goes about its tools.
#[derive(Clone, Debug)]
pub struct TurnOptions {
    /// The most answers of the model.
    pub max_iterations: u32,
    /// How often one call of the model is tried, the first time included.
    pub max_llm_retries: u32,
    /// The most calls of models that whoever drives the turn may make for it: retries, summaries, and the calls of turns
    /// that its tools start. `None` means ten for each of [`TurnOptions::max_iterations`].
    pub max_model_calls: Option<u32>,
    /// The most tokens, in and out, of all calls together, with those of turns that its tools start. A turn that has used
    /// them up makes no further call.
    pub max_tokens: Option<u64>,
    /// The most that all calls together may cost, by [`TurnOptions::prices`].
    pub max_cost: Option<f64>,
    /// What tokens cost.
    pub prices: Prices,
    /// The most time, by what [`Turn::tick`](super::Turn::tick) says.
    pub max_time: Option<Duration>,
    /// The most tools that the model may call at once.
    pub max_tool_calls: usize,
    /// The most bytes of a tool's result that the model gets to see.
    pub max_result_bytes: usize,
    /// Whether tools that the model calls at once run at once.
    pub parallel_tool_calls: bool,
    /// How much of the conversation the model gets.
    pub context_budget: Option<ContextBudget>,
    /// Whether a summary of what no longer fits is asked for. Without it, the turn makes one itself.
    pub compaction: bool,
    /// Which verdicts are asked for.
    pub guardrails: Guardrails,
    /// Puts `<untrusted>` and `</untrusted>` around all results of tools, and around summaries of what no longer fits.
    /// Its advisory is the host's to send.
    pub guard: Option<Guard>,
    /// Tools besides the functions that the prompt declares: what the host made of its other tools.
    pub tools: Vec<TurnTool>,
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
        }
    }
}

/// What a million tokens cost, in whatever money the host counts in.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Prices {
    /// Those that go in.
    pub input: f64,
    /// Those that come out.
    pub output: f64,
}

impl Prices {
    /// What these tokens cost.
    #[expect(clippy::cast_precision_loss, reason = "no turn has 2^52 tokens")]
    pub fn cost(&self, usage: &Usage) -> f64 {
        (usage.input_tokens as f64 * self.input + usage.output_tokens as f64 * self.output) / 1e6
    }
}

/// Which verdicts are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guardrails {
    /// On the messages, before they are sent.
    pub input: bool,
    /// On an answer, before it is used.
    pub output: bool,
    /// On a tool, before it runs.
    pub tool: bool,
}
