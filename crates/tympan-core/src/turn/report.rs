//! The methods that report input events to a turn: the results of the steps that it requested, cancellation, steering
//! and time.

use std::time::Duration;

use super::Turn;
use super::event::TurnEvent;
use super::input_event::Verdict;
use super::phase::Phase;
use super::retry;
use super::round::Log;
use super::tools::ToolResult;
use crate::error::{Error, Kind, Result};
use crate::wire::response::Response;

impl Turn {
    /// Reports the model's response.
    ///
    /// # Errors
    /// Returns an error if the turn is not waiting for a response; the turn is then unchanged. The same applies to the
    /// methods below.
    pub fn responded(&mut self, response: Response) -> Result<()> {
        self.settle();
        let Phase::Calling = self.phase else { return Err(self.not_asked("a model response")) };
        self.rounds += 1;
        self.failures = 0;
        if let Some(usage) = &response.usage {
            add(&mut self.usage.input_tokens, usage.input_tokens);
            add(&mut self.usage.output_tokens, usage.output_tokens);
            let both = usage.input_tokens.saturating_add(usage.output_tokens);
            add(&mut self.usage.total_tokens, usage.total_tokens.max(both));
        }
        self.phase = Phase::JudgingOutput(Box::new(response));
        self.settle();
        Ok(())
    }

    /// Reports that the model call failed. `jitter` is a random number from 0 to 1 for the wait before the next
    /// attempt.
    ///
    /// # Errors
    /// Returns an error if the turn is not waiting for a response.
    pub fn failed(&mut self, error: Error, jitter: f64) -> Result<()> {
        self.settle();
        let Phase::Calling = self.phase else { return Err(self.not_asked("a model error")) };
        self.failures += 1;
        let max = self.options.max_llm_retries.max(1);
        // Without retries, report the error itself instead of a number of attempts.
        if max == 1 || !retry::is_transient(&error) {
            self.fail(error);
        } else if self.failures >= max {
            let last = format_args!("{} retries: {}", self.failures, error.message()).to_string();
            let mut failed = Error::new(Kind::LlmCallFailed, last);
            if let Some(help) = error.help() {
                failed = failed.with_help(help);
            }
            self.fail(match error.partial_text() {
                Some(text) => failed.with_partial_text(text),
                None => failed,
            });
        } else {
            let message = format!("LLM call failed, retrying (attempt {}/{max})...", self.failures + 1);
            self.events.push(TurnEvent::Status { message });
            self.phase = Phase::Waiting(retry::backoff(self.failures, jitter));
        }
        Ok(())
    }

    /// Reports that the wait is over.
    ///
    /// # Errors
    /// Returns an error if the turn is not waiting for a delay.
    pub fn waited(&mut self) -> Result<()> {
        self.settle();
        let Phase::Waiting(_) = self.phase else { return Err(self.not_asked("the end of a wait")) };
        self.phase = Phase::Calling;
        Ok(())
    }

    /// Reports a guardrail's verdict.
    ///
    /// # Errors
    /// Returns an error if the turn is not waiting for a verdict.
    pub fn judged(&mut self, verdict: Verdict) -> Result<()> {
        self.settle();
        match (&mut self.phase, verdict) {
            (Phase::JudgingInput, Verdict::Allow) => self.phase = Phase::Calling,
            (Phase::JudgingInput, Verdict::Deny(reason)) => self.deny("Input", &reason),
            (Phase::JudgingOutput(_), Verdict::Allow) => self.accept(),
            (Phase::JudgingOutput(_), Verdict::Deny(reason)) => self.deny("Output", &reason),
            (Phase::Tools(_, round), verdict) if round.to_judge().is_some() => {
                let mut log = Log { events: &mut self.events, options: &self.options, flow: &mut self.flow };
                round.judge(verdict, &self.declared, &mut log);
            }
            _ => return Err(self.not_asked("a guardrail verdict")),
        }
        self.settle();
        Ok(())
    }

    /// Reports the answer to a question of the policy.
    ///
    /// # Errors
    /// Returns an error if the turn is not waiting for an approval.
    pub fn approved(&mut self, verdict: Verdict) -> Result<()> {
        self.settle();
        match &mut self.phase {
            Phase::Tools(_, round) if round.to_judge().is_none() && round.to_approve().is_some() => {
                let mut log = Log { events: &mut self.events, options: &self.options, flow: &mut self.flow };
                round.approve(verdict, &self.declared, &mut log);
            }
            _ => return Err(self.not_asked("an approval")),
        }
        self.settle();
        Ok(())
    }

    /// Reports the summary of the messages that no longer fit. If it is `None` or blank, the turn creates one itself.
    ///
    /// # Errors
    /// Returns an error if the turn is not waiting for a summary.
    pub fn summarized(&mut self, summary: Option<String>) -> Result<()> {
        self.settle();
        let Phase::Summarizing(cut) = &self.phase else { return Err(self.not_asked("a summary")) };
        let summary = summary.filter(|summary| !summary.trim().is_empty());
        let guard = self.options.guard.as_ref();
        let removed = self.context.apply(cut, &mut self.messages, summary.as_deref(), guard);
        self.flow.summarize(cut.dropped(), cut.summary_index(), &self.messages);
        self.events.push(match summary {
            Some(_) => TurnEvent::CompactionComplete { removed, remaining: self.messages.len() },
            None => TurnEvent::CompactionFailed { message: "the summarizer returned no summary".to_owned() },
        });
        self.messages_updated();
        self.phase = Phase::JudgingInput;
        self.settle();
        Ok(())
    }

    /// Reports the result of a tool that [`Next::Run`](super::Next::Run) requested. Results may arrive in any order.
    ///
    /// # Errors
    /// Returns an error if no tool with this index is running.
    pub fn returned(&mut self, index: usize, result: ToolResult) -> Result<()> {
        self.settle();
        match &mut self.phase {
            Phase::Tools(_, round) if round.is_running(index) => {
                let mut log = Log { events: &mut self.events, options: &self.options, flow: &mut self.flow };
                round.finish(index, result, &mut log);
            }
            _ => return Err(self.not_asked("a tool result")),
        }
        self.settle();
        Ok(())
    }

    /// Cancels the turn in any state. A turn that is already over does not change.
    pub fn cancel(&mut self) {
        self.is_cancelled = true;
        self.settle();
    }

    /// Adds a user message. The model receives it in the next round, if there is one. To be included, it must be added
    /// before the event that starts that round.
    ///
    /// # Errors
    /// Returns an error if the turn is over.
    pub fn steer(&mut self, text: impl Into<String>) -> Result<()> {
        if self.is_over() {
            return Err(self.not_asked("a steering message"));
        }
        self.steering.push(text.into());
        Ok(())
    }

    /// Reports the time since the turn began.
    pub fn tick(&mut self, elapsed: Duration) {
        self.elapsed = self.elapsed.max(elapsed);
        self.settle();
    }

    fn not_asked(&self, what: &str) -> Error {
        Error::new(Kind::NotAsked, format_args!("expected {}, received {what}", self.phase.name()))
            .with_help("report only the outcome of the step that `next` returned")
    }
}

/// Adds without overflow, because a provider can report any number.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
