//! The steps that a turn takes on its own, between two input events.

use super::Turn;
use super::conversation::{assistant_message, make_distinct};
use super::event::TurnEvent;
use super::input_event::Verdict;
use super::options::TurnOptions;
use super::phase::Phase;
use super::round::{Log, Round};
use super::tools::shown;
use crate::chat::message::{Message, Role};
use crate::error::{Error, Kind};
use crate::wire::response::{Answer, Output, Response};

impl Turn {
    /// Advances until the turn needs input. The check at the top is the only place where a turn is stopped early.
    pub(super) fn settle(&mut self) {
        if self.is_over() {
            return;
        }
        if self.is_cancelled {
            self.events.push(TurnEvent::Cancelled);
            return self.fail(Error::new(Kind::Cancelled, "the turn was stopped"));
        }
        if let Some(max) = self.options.max_time.filter(|max| self.elapsed >= *max) {
            return self.fail(Error::new(Kind::TurnLimit, format_args!("{} seconds", max.as_secs_f64())));
        }
        while self.step() {}
    }

    /// Takes one step that needs no input. Returns whether there was one.
    fn step(&mut self) -> bool {
        let guardrails = self.options.guardrails;
        match &mut self.phase {
            Phase::Begin => self.begin(),
            Phase::JudgingInput if !guardrails.input => self.phase = Phase::Calling,
            Phase::JudgingOutput(_) if !guardrails.output => self.accept(),
            Phase::Tools(_, round) => {
                let mut log = Log { events: &mut self.events, options: &self.options, flow: &mut self.flow };
                if !guardrails.tool {
                    while round.judge(Verdict::Allow, &self.declared, &mut log) {}
                }
                if round.to_judge().is_some() || round.to_approve().is_some() {
                    return false;
                }
                round.start(self.options.parallel_tool_calls, &mut log);
                if !round.is_finished() {
                    return false;
                }
                self.end_round();
            }
            _ => return false,
        }
        true
    }

    fn begin(&mut self) {
        if self.rounds >= self.options.max_iterations {
            return self.fail(Error::new(Kind::MaxIterations, self.options.max_iterations));
        }
        if let Some(bound) = self.used_up() {
            return self.fail(Error::new(Kind::TurnLimit, bound));
        }
        let steering = std::mem::take(&mut self.steering);
        let count = steering.len();
        for text in steering {
            let message = Message::text(Role::User, text);
            self.flow.push_user(&message);
            self.messages.push(message);
        }
        if count > 0 {
            self.messages_updated();
            self.events.push(TurnEvent::Status { message: format!("Injected {count} steering message(s)") });
        }
        self.phase = match self.context.cut(&self.messages) {
            Some(cut) if self.options.compaction => {
                self.events.push(TurnEvent::CompactionStart);
                Phase::Summarizing(cut)
            }
            Some(cut) => {
                let guard = self.options.guard.as_ref();
                self.context.apply(&cut, &mut self.messages, None, guard);
                self.flow.summarize(cut.dropped(), cut.summary_index(), &self.messages);
                self.messages_updated();
                Phase::JudgingInput
            }
            None => Phase::JudgingInput,
        };
    }

    /// Returns the limit that has been reached. A response that exceeds a limit is still used, because it has been paid
    /// for.
    fn used_up(&self) -> Option<String> {
        let TurnOptions { max_tokens, max_cost, prices, .. } = &self.options;
        let tokens = max_tokens.filter(|max| self.usage.total_tokens >= *max).map(|max| format!("{max} tokens"));
        let is_spent = |max: &f64| self.rounds > 0 && prices.cost(&self.usage) >= *max;
        tokens.or_else(|| max_cost.filter(is_spent).map(|max| format!("a cost of {max}")))
    }

    /// Uses the response that passed the output guardrail.
    pub(super) fn accept(&mut self) {
        let response = match std::mem::replace(&mut self.phase, Phase::Begin) {
            Phase::JudgingOutput(response) => response,
            other => {
                self.phase = other;
                return;
            }
        };
        match response.output {
            Output::Answer(answer) if !answer.tool_calls.is_empty() => self.call_tools(answer),
            Output::Answer(Answer { refusal: Some(refusal), ref text, .. }) if text.is_empty() => {
                self.fail(Error::new(Kind::Refused, shown(&refusal)));
            }
            _ => self.finish(response),
        }
    }

    fn call_tools(&mut self, mut answer: Answer) {
        let (count, max) = (answer.tool_calls.len(), self.options.max_tool_calls);
        if count > max {
            let error = Error::new(
                Kind::TooManyToolCalls,
                format_args!(
                    "{count} in one response, at most {max} \
                allowed"
                ),
            );
            return self.fail(error);
        }
        if let Some(unknown) = answer.tool_calls.iter().find(|call| !self.declared.has(&call.name)) {
            return self.fail(Error::new(Kind::ToolNotRegistered, shown(&unknown.name)));
        }
        if !std::mem::replace(&mut self.is_loop, true) {
            self.events.push(TurnEvent::Status { message: "Starting agent loop".to_owned() });
        }
        if answer.blocks.is_none() {
            make_distinct(&mut answer.tool_calls, self.rounds);
        }
        let mut log = Log { events: &mut self.events, options: &self.options, flow: &mut self.flow };
        let round = Round::new(self.rounds, answer.tool_calls.clone(), &self.declared, &mut log);
        self.phase = Phase::Tools(Box::new(answer), round);
    }

    /// Adds the calls and their results to the conversation together, so that neither is ever present without the
    /// other.
    fn end_round(&mut self) {
        if let Phase::Tools(answer, round) = std::mem::replace(&mut self.phase, Phase::Begin) {
            let message = assistant_message(&answer);
            self.flow.push_answer(&message);
            self.messages.push(message);
            for (message, label, is_output) in round.into_messages() {
                self.flow.push_result(&message, label, is_output);
                self.messages.push(message);
            }
            self.messages_updated();
        }
    }

    fn finish(&mut self, response: Box<Response>) {
        let mut text = String::new();
        if let Output::Answer(answer) = &response.output {
            let message = assistant_message(answer);
            self.flow.push_answer(&message);
            self.messages.push(message);
            text.clone_from(&answer.text);
        }
        self.events.push(TurnEvent::Done { response: text, count: self.messages.len() });
        self.phase = Phase::Done(response);
    }

    pub(super) fn deny(&mut self, what: &str, reason: &str) {
        self.events.push(TurnEvent::Error { message: format!("{what} guardrail denied: {reason}") });
        self.fail(Error::new(Kind::Guardrail, reason));
    }

    pub(super) fn fail(&mut self, error: Error) {
        self.phase = Phase::Failed(error.with_conversation(self.messages.clone()));
    }

    pub(super) fn messages_updated(&mut self) {
        self.events.push(TurnEvent::MessagesUpdated { count: self.messages.len() });
    }
}
