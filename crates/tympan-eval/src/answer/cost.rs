//! The cost of an answer.

use super::{Answer, Price};

/// Returns the cost of an answer, if the price of its model is known.
pub(super) fn of_answer(
    answer: &Answer,
    (provider, model): (&str, Option<&str>),
    price: Option<&Price>,
) -> Option<f64> {
    let (price, usage, model) = (price?, answer.usage.as_ref()?, model?);
    // Some tables name the provider as well.
    price(model, usage).or_else(|| price(&format!("{provider}/{model}"), usage))
}
