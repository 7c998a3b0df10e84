//! Estimates of tokens and cost, before anything is sent.
//!
//! If there is a cassette, its token counts are the estimate. Otherwise the tokens of the messages are counted, and the
//! answer is as long as the prompt's options allow; if they set no limit, [`ASSUMED_OUTPUT_TOKENS`] is assumed. A turn with
//! tools counts as one request then, because nobody knows how many the model will need. What providers add for tools and
//! schemas is not counted.

use tympan_core::spec::test_suite::AnswerSource;
use tympan_core::wire::response::Usage;
use tympan_runtime::RunOptions;
use tympan_runtime::model::estimate::count;

use crate::answer::{Answer, AnswerMode, AnswerOptions, Obtained, Price, Question, obtain};

pub use tympan_runtime::model::estimate::{ASSUMED_OUTPUT_TOKENS, Estimate, EstimateBasis};

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
        return Estimate::new(u64::from(answer.rounds), &usage, answer.cost, EstimateBasis::Recorded);
    }
    let (usage, basis) = count(question.prompt, selection.model.unwrap_or_default(), question.messages);
    let cost = price.zip(selection.model).and_then(|(price, model)| price(model, &usage));
    Estimate::new(1, &usage, cost, basis)
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
