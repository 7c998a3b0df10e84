//! Estimates of what judges cost.

use std::path::Path;

use tympan_core::spec::test_suite::Judge;
use tympan_core::wire::echo::ECHO;
use tympan_core::wire::response::Usage;
use tympan_runtime::model::estimate::count;
use tympan_runtime::model::tokens::Encoding;

use super::{Bench, CALIBRATION, JUDGE, Judges, Problem, path_in};
use crate::answer::{AnswerMode, Question};
use crate::estimate::Estimate;
use crate::matching::text_of;

impl Judges {
    /// Estimates the votes of a judge about an answer of this many tokens. The estimate includes the calibration the
    /// first time that this judge is estimated. Nothing is sent.
    ///
    /// # Errors
    /// Returns a message if the rubric or the calibration set cannot be used.
    pub async fn estimate(
        &self,
        judge: &Judge,
        directory: &Path,
        question: &Question<'_>,
        answer_tokens: u64,
    ) -> Result<Estimate, String> {
        let estimated = self.estimate_judge(judge, directory, question, answer_tokens).await;
        estimated.map_err(|problem| match problem {
            Problem::Wrong(message) | Problem::Missing(message) => message,
        })
    }

    async fn estimate_judge(
        &self,
        judge: &Judge,
        directory: &Path,
        question: &Question<'_>,
        answer_tokens: u64,
    ) -> Result<Estimate, Problem> {
        let runtime = question.runtime;
        let rubric = self.rubric(runtime, &path_in(directory, &judge.rubric)?).await?;
        let bench = Bench { judges: self, runtime, rubric: &rubric, judge, mode: AnswerMode::Replay };
        let options = bench.options();
        let selection = options.select_model(&rubric.prompt);
        if selection.provider == ECHO {
            return Ok(Estimate::default());
        }
        let model = selection.model.unwrap_or_default();
        let inputs = rubric.inputs("", Some(question.messages), &judge.inputs).map_err(Problem::Wrong)?;
        let messages = rubric.messages(runtime, &inputs).map_err(Problem::Wrong)?;
        let (usage, basis) = count(&rubric.prompt, model, &messages);
        // The rubric was rendered without an answer.
        let with_answer = |tokens: u64| {
            let (input_tokens, output_tokens) = (usage.input_tokens + tokens, usage.output_tokens);
            let usage =
                Usage { input_tokens, output_tokens, total_tokens: input_tokens + output_tokens, ..usage.clone() };
            let cost = self.price.as_ref().and_then(|price| price(model, &usage));
            Estimate::new(1, &usage, cost, basis)
        };
        let mut estimate = Estimate::default();
        (0..judge.votes.unwrap_or(1).max(1)).for_each(|_| estimate.add(&with_answer(answer_tokens)));
        if let Some(calibration) = &judge.calibration {
            let set = self.calibration_set(&path_in(directory, calibration)?).await?;
            let key = bench.calibration_key(&set, &question.cassettes.join(JUDGE).join(CALIBRATION));
            if super::locked(&self.estimated).insert(key) {
                let tokens = |text: &str| Encoding::of_model(model).count(text) as u64;
                set.items.iter().for_each(|known| estimate.add(&with_answer(tokens(&text_of(&known.answer)))));
            }
        }
        Ok(estimate)
    }
}
