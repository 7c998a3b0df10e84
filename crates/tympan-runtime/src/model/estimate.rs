//! Estimates of tokens and cost, before anything is sent.
//!
//! The tokens of the messages are counted, and the answer is as long as the prompt's options allow; if they set no
//! limit, [`ASSUMED_OUTPUT_TOKENS`] is assumed. What providers add for tools and schemas is not counted.

use serde::Serialize;
use tympan_core::wire::response::Usage;
use tympan_core::{Message, Prompt};

use crate::model::spending::max_output_tokens;
use crate::model::tokens::Encoding;

/// The length of an answer that is assumed if the prompt sets no limit, in tokens.
pub const ASSUMED_OUTPUT_TOKENS: u64 = 1_000;

/// What an estimate is based on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EstimateBasis {
    /// Nothing is sent: the answer is fixed or echoed.
    #[default]
    NoModel,
    /// The token counts of a recorded answer.
    Recorded,
    /// The messages, and the limit that the prompt sets for the answer.
    Limit,
    /// The messages, and an assumption about the answer.
    Assumed,
}

/// An estimate of model calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Estimate {
    /// The number of model calls.
    pub requests: u64,
    /// The tokens of the requests.
    pub input_tokens: u64,
    /// The tokens of the answers.
    pub output_tokens: u64,
    /// The cost in US dollars, without the calls whose price is not known.
    pub cost: f64,
    /// The number of model calls whose price is not known.
    pub unpriced: u64,
    /// What the estimate is based on; for a sum, the weakest basis.
    pub basis: EstimateBasis,
}

impl Estimate {
    /// Creates the estimate of requests that use these tokens together.
    pub fn new(requests: u64, usage: &Usage, cost: Option<f64>, basis: EstimateBasis) -> Self {
        Self {
            requests,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost: cost.unwrap_or_default(),
            unpriced: if cost.is_some() { 0 } else { requests },
            basis,
        }
    }

    /// Adds another estimate.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
        self.basis = self.basis.max(other.basis);
    }
}

/// Counts the tokens of messages, and assumes the length of the answer.
pub fn count(prompt: &Prompt, model: &str, messages: &[Message]) -> (Usage, EstimateBasis) {
    let encoding = Encoding::of_model(model);
    let input_tokens = messages.iter().map(|message| encoding.count_message(message) as u64).sum();
    let (output_tokens, basis) = answer_tokens(prompt);
    let total_tokens = input_tokens + output_tokens;
    (Usage { input_tokens, output_tokens, total_tokens, ..Usage::default() }, basis)
}

/// Returns the length of an answer: the limit that the prompt sets, or else an assumption.
pub fn answer_tokens(prompt: &Prompt) -> (u64, EstimateBasis) {
    match max_output_tokens(prompt) {
        Some(limit) => (limit, EstimateBasis::Limit),
        None => (ASSUMED_OUTPUT_TOKENS, EstimateBasis::Assumed),
    }
}
