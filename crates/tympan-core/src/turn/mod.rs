//! A turn: everything from the user's question to the model's final answer, including tool calls.
//!
//! [`Turn`] is a state machine without I/O. [`Turn::next`] returns what to do next, and the other methods report the
//! result back. The driver performs the I/O, and the turn makes all the decisions, so every decision can be tested
//! without a network, a clock or threads. Turns are deterministic: the same input events always lead to the same state.
//! A journal of these events ([`InputEvent`]) can therefore restore a turn after a crash.
//!
//! ```
//! use tympan::{Message, Prompt, Role, Response, turn::{Next, Turn, TurnOptions}};
//! use tympan::wire::response::{Answer, Output};
//!
//! let prompt = Prompt::from_spec(Default::default());
//! let messages = vec![Message::text(Role::User, "Hello!")];
//! let mut turn = Turn::new(&prompt, &Default::default(), messages, TurnOptions::default())?;
//! assert!(matches!(turn.next(), Next::Call));
//! let answer = Answer { text: "Good day.".into(), ..Answer::default() };
//! turn.responded(Response { output: Output::Answer(answer), ..Response::default() })?;
//! assert!(matches!(turn.next(), Next::Done(_)));
//! assert_eq!(turn.messages().len(), 2);
//! # Ok::<(), tympan::Error>(())
//! ```
//!
//! Each round runs these steps in order: cancellation and time limit, other limits, steering, context budget, input
//! guardrail, the model call with its retries, output guardrail. If the model calls tools, these follow: parsing of
//! arguments, the guardrail for each tool, bindings, the tools themselves, and the messages with their results.

mod context;
mod conversation;
mod event;
mod input_event;
mod options;
pub mod outcome;
mod result;
mod retry;
mod round;
mod schema;
mod tools;

use std::fmt;
use std::time::Duration;

use crate::chat::message::{Message, Role};
use crate::chat::rendered::Inputs;
use crate::error::{Error, Kind, Result};
use crate::prompt::Prompt;
use crate::wire::response::{Answer, Output, Response, Usage};

pub use context::{ContextBudget, CountTokens};
pub use event::TurnEvent;
pub use input_event::{Failure, InputEvent, Verdict};
pub use options::{Guardrails, Prices, TurnOptions};
pub use tools::{ToolResult, ToolRun, ToolStatus, TurnTool};

use context::{Context, Cut};
use conversation::{assistant_message, make_distinct};
use round::{Log, Round};
use tools::{Declared, shown};

/// The next step of a turn.
#[derive(Clone, Debug)]
pub enum Next {
    /// Summarize these messages, which no longer fit, and report the summary with [`Turn::summarized`].
    Summarize(Vec<Message>),
    /// Judge whether [`Turn::messages`] may be sent, and report the verdict with [`Turn::judged`].
    JudgeInput,
    /// Call the model with [`Turn::messages`], and report the result with [`Turn::responded`] or [`Turn::failed`].
    Call,
    /// Wait this long, then call [`Turn::waited`].
    Wait(Duration),
    /// Judge whether this answer may be used, and report the verdict with [`Turn::judged`].
    JudgeOutput(Message),
    /// Judge whether this tool may run, and report the verdict with [`Turn::judged`]. Bound arguments are not included.
    JudgeTool(ToolRun),
    /// Run these tools concurrently, and report each result with [`Turn::returned`]. Tools that have already returned
    /// are not included. Without [`TurnOptions::parallel_tool_calls`] there is only one.
    Run(Vec<ToolRun>),
    /// The turn is over. This is the final response.
    Done(Response),
    /// The turn has failed. The error contains the conversation.
    Failed(Error),
}

/// The current state of a turn.
enum Phase {
    /// A round is about to begin.
    Begin,
    Summarizing(Cut),
    JudgingInput,
    Calling,
    Waiting(Duration),
    JudgingOutput(Box<Response>),
    Tools(Box<Answer>, Round),
    Done(Box<Response>),
    Failed(Error),
}

impl Phase {
    const fn name(&self) -> &'static str {
        match self {
            Self::Begin => "the start of a round",
            Self::Summarizing(_) => "a summary",
            Self::JudgingInput => "a guardrail verdict on the input",
            Self::Calling => "a model response",
            Self::Waiting(_) => "the end of a wait",
            Self::JudgingOutput(_) => "a guardrail verdict on the response",
            Self::Tools(..) => "tool results",
            Self::Done(_) => "nothing (the turn is over)",
            Self::Failed(_) => "nothing (the turn has failed)",
        }
    }
}

/// A turn. See the [module documentation](self).
pub struct Turn {
    options: TurnOptions,
    declared: Declared,
    messages: Vec<Message>,
    context: Context,
    steering: Vec<String>,
    phase: Phase,
    /// The number of responses so far.
    rounds: u32,
    /// The number of times the current call has failed.
    failures: u32,
    usage: Usage,
    is_cancelled: bool,
    elapsed: Duration,
    events: Vec<TurnEvent>,
    /// Whether the model has called tools, so that the turn takes more than one response.
    is_loop: bool,
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut turn = f.debug_struct("Turn");
        turn.field("waits_for", &self.phase.name()).field("rounds", &self.rounds);
        turn.field("messages", &self.messages.len()).finish_non_exhaustive()
    }
}

impl Turn {
    /// Creates a turn that starts with these messages. `inputs` are the validated inputs of the prompt; bindings refer
    /// to them.
    ///
    /// # Errors
    /// Returns an error if two tools have the same name.
    pub fn new(prompt: &Prompt, inputs: &Inputs, messages: Vec<Message>, options: TurnOptions) -> Result<Self> {
        Ok(Self {
            declared: Declared::new(&prompt.spec().tools, &options.tools, inputs)?,
            context: Context::new(options.context_budget.clone()),
            options,
            messages,
            steering: Vec::new(),
            phase: Phase::Begin,
            rounds: 0,
            failures: 0,
            usage: Usage::default(),
            is_cancelled: false,
            elapsed: Duration::ZERO,
            events: Vec::new(),
            is_loop: false,
        })
    }

    /// Returns what to do next. The result stays the same until the turn receives another input event.
    #[expect(
        clippy::should_implement_trait,
        reason = "not an iterator: the result stays the same until the turn receives an input event"
    )]
    pub fn next(&mut self) -> Next {
        self.settle();
        match &self.phase {
            Phase::Summarizing(cut) => Next::Summarize(cut.messages(&self.messages)),
            Phase::JudgingInput => Next::JudgeInput,
            // `settle` always moves on from the beginning of a round.
            Phase::Begin | Phase::Calling => Next::Call,
            Phase::Waiting(wait) => Next::Wait(*wait),
            Phase::JudgingOutput(response) => Next::JudgeOutput(response_message(response)),
            Phase::Tools(_, round) => match round.to_judge() {
                Some(run) => Next::JudgeTool(run.clone()),
                None => Next::Run(round.running()),
            },
            Phase::Done(response) => Next::Done((**response).clone()),
            Phase::Failed(error) => Next::Failed(error.clone()),
        }
    }

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
                let mut log = Log { events: &mut self.events, options: &self.options };
                round.judge(verdict, &self.declared, &mut log);
            }
            _ => return Err(self.not_asked("a guardrail verdict")),
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
        let removed = self.context.apply(cut, &mut self.messages, summary.as_deref(), self.options.guard.as_ref());
        self.events.push(match summary {
            Some(_) => TurnEvent::CompactionComplete { removed, remaining: self.messages.len() },
            None => TurnEvent::CompactionFailed { message: "the summarizer returned no summary".to_owned() },
        });
        self.messages_updated();
        self.phase = Phase::JudgingInput;
        self.settle();
        Ok(())
    }

    /// Reports the result of a tool that [`Next::Run`] requested. Results may arrive in any order.
    ///
    /// # Errors
    /// Returns an error if no tool with this index is running.
    pub fn returned(&mut self, index: usize, result: ToolResult) -> Result<()> {
        self.settle();
        match &mut self.phase {
            Phase::Tools(_, round) if round.is_running(index) => {
                let mut log = Log { events: &mut self.events, options: &self.options };
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

    /// Returns the conversation so far. Every tool call in it has its result.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Converts the turn into its conversation.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// Returns the number of responses so far.
    pub fn iterations(&self) -> u32 {
        self.rounds
    }

    /// Returns the token usage of all responses so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Returns the events since the last call, and clears them.
    pub fn take_events(&mut self) -> Vec<TurnEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the steering messages that no round has used. They can be added to the next turn.
    pub fn unused_steering(&self) -> &[String] {
        &self.steering
    }

    /// Returns whether the turn is over.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done(_) | Phase::Failed(_))
    }

    /// Advances until the turn needs input. The check at the top is the only place where a turn is stopped early.
    fn settle(&mut self) {
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
                let mut log = Log { events: &mut self.events, options: &self.options };
                if !guardrails.tool {
                    while round.judge(Verdict::Allow, &self.declared, &mut log) {}
                }
                if round.to_judge().is_some() {
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
        self.messages.extend(steering.into_iter().map(|text| Message::text(Role::User, text)));
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
                self.context.apply(&cut, &mut self.messages, None, self.options.guard.as_ref());
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
    fn accept(&mut self) {
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
        let mut log = Log { events: &mut self.events, options: &self.options };
        let round = Round::new(self.rounds, answer.tool_calls.clone(), &self.declared, &mut log);
        self.phase = Phase::Tools(Box::new(answer), round);
    }

    /// Adds the calls and their results to the conversation together, so that neither is ever present without the
    /// other.
    fn end_round(&mut self) {
        if let Phase::Tools(answer, round) = std::mem::replace(&mut self.phase, Phase::Begin) {
            self.messages.push(assistant_message(&answer));
            self.messages.extend(round.into_messages());
            self.messages_updated();
        }
    }

    fn finish(&mut self, response: Box<Response>) {
        let mut text = String::new();
        if let Output::Answer(answer) = &response.output {
            self.messages.push(assistant_message(answer));
            text.clone_from(&answer.text);
        }
        self.events.push(TurnEvent::Done { response: text, count: self.messages.len() });
        self.phase = Phase::Done(response);
    }

    fn deny(&mut self, what: &str, reason: &str) {
        self.events.push(TurnEvent::Error { message: format!("{what} guardrail denied: {reason}") });
        self.fail(Error::new(Kind::Guardrail, reason));
    }

    fn fail(&mut self, error: Error) {
        self.phase = Phase::Failed(error.with_conversation(self.messages.clone()));
    }

    fn messages_updated(&mut self) {
        self.events.push(TurnEvent::MessagesUpdated { count: self.messages.len() });
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

/// Converts a response to a message.
fn response_message(response: &Response) -> Message {
    match &response.output {
        Output::Answer(answer) => assistant_message(answer),
        _ => Message::text(Role::Assistant, ""),
    }
}
