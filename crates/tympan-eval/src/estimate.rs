//! Estimates of tokens and cost, before anything is sent.
//!
//! If there is a cassette, its token counts are the estimate. Otherwise the tokens of the messages are counted, and the
//! answer is as long as the prompt's options allow; if they set no limit, [`ASSUMED_OUTPUT_TOKENS`] is assumed. A turn with
//! tools counts as one request then, because nobody knows how many the model will need. What providers add for tools and
//! schemas is not counted.

use serde::Serialize;
use tympan_core::spec::test_suite::AnswerSource;
use tympan_core::wire::response::Usage;
use tympan_core::{Message, Prompt};
use tympan_runtime::RunOptions;
use tympan_runtime::model::tokens::Encoding;

use crate::answer::{Answer, AnswerMode, AnswerOptions, Obtained, Price, Question, obtain};

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

/// An estimate for one repetition of a case, or for a sum of them.
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
    /// Adds another estimate.
    pub fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
        self.basis = self.basis.max(other.basis);
    }

    /// Creates the estimate of requests that use these tokens together.
    pub(crate) fn of(requests: u64, usage: &Usage, cost: Option<f64>, basis: EstimateBasis) -> Self {
        Self {
            requests,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost: cost.unwrap_or_default(),
            unpriced: if cost.is_some() { 0 } else { requests },
            basis,
        }
    }
}

/// Estimates one repetition of a case. Nothing is sent, and no tool runs.
pub async fn estimate(question: &Question<'_>, price: Option<&Price>) -> Estimate {
    let is_model = matches!(question.settings.answer, None | Some(AnswerSource::Cassette));
    let (provider, model) = (question.settings.provider.clone(), question.settings.model.clone());
    let options = RunOptions { provider, model, ..RunOptions::default() };
    let selection = options.select_model(question.prompt);
    if !is_model || selection.provider == tympan_core::wire::echo::ECHO {
        return Estimate::default();
    }
    if let Some((answer, usage)) = recorded(question, price).await {
        return Estimate::of(u64::from(answer.rounds), &usage, answer.cost, EstimateBasis::Recorded);
    }
    let (usage, basis) = counted(question.prompt, selection.model.unwrap_or_default(), question.messages);
    let cost = price.zip(selection.model).and_then(|(price, model)| price(model, &usage));
    Estimate::of(1, &usage, cost, basis)
}

/// Returns the recorded answer with its token counts.
async fn recorded(question: &Question<'_>, price: Option<&Price>) -> Option<(Answer, Usage)> {
    let fixed = question.settings.tools.as_ref();
    let is_fixed = |name: &str| fixed.is_some_and(|fixed| fixed.contains_key(name));
    // A tool of the host would run.
    if !question.prompt.spec().tools.iter().all(|tool| is_fixed(&tool.name)) {
        return None;
    }
    let options = AnswerOptions::new(AnswerMode::Replay, price.cloned());
    match obtain(question, &options).await {
        Obtained::Answered(answer) => answer.usage.clone().map(|usage| (answer, usage)),
        Obtained::Missing(_) | Obtained::Failed(_) => None,
    }
}

/// Counts the tokens of messages, and assumes the length of the answer.
pub(crate) fn counted(prompt: &Prompt, model: &str, messages: &[Message]) -> (Usage, EstimateBasis) {
    let encoding = Encoding::of_model(model);
    let input_tokens = messages.iter().map(|message| encoding.count_message(message) as u64).sum();
    let limit = prompt.spec().model.as_ref().and_then(|model| model.options.max_output_tokens);
    let (output_tokens, basis) = match limit.and_then(|limit| u64::try_from(limit).ok()) {
        Some(limit) => (limit, EstimateBasis::Limit),
        None => (ASSUMED_OUTPUT_TOKENS, EstimateBasis::Assumed),
    };
    let total_tokens = input_tokens + output_tokens;
    (Usage { input_tokens, output_tokens, total_tokens, ..Usage::default() }, basis)
}
