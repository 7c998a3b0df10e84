//! A turn: one question of the user's up to the model's last answer, calls of tools included.
//!
//! [`Turn`] is a machine without I/O. [`Turn::next`] says what to do, and one of the other methods tells it what came
//! of that. Whoever drives it makes the calls; everything that is decided is decided here, so that every decision can
//! be tested without a network, a clock or a thread. Told the same, a turn comes to the same: a journal of what it was
//! told ([`Fed`]) brings back a turn that died.
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
//! A round goes in this order: cancellation and time, bounds, steering, what fits, the guardrail on the input, the call
//! with its retries, the guardrail on the output; and if the model calls tools: arguments, the guardrail on each tool,
//! bindings, the tools themselves, the messages that tell of them.

mod context;
mod conversation;
mod event;
mod fed;
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
pub use fed::{Failure, Fed, Verdict};
pub use options::{Guardrails, Prices, TurnOptions};
pub use tools::{ToolResult, ToolRun, ToolStatus, TurnTool};

use context::{Context, Cut};
use conversation::{assistant_message, make_distinct};
use round::{Log, Round};
use tools::{Declared, shown};

/// What to do next.
#[derive(Clone, Debug)]
pub enum Next {
    /// Make a summary of these messages, which no longer fit, and tell with [`Turn::summarized`].
    Summarize(Vec<Message>),
    /// Judge whether [`Turn::messages`] may be sent, and tell with [`Turn::judged`].
    JudgeInput,
    /// Call the model with [`Turn::messages`], and tell with [`Turn::responded`] or [`Turn::failed`].
    Call,
    /// Wait this long, and tell with [`Turn::waited`].
    Wait(Duration),
    /// Judge whether this answer may be used, and tell with [`Turn::judged`].
    JudgeOutput(Message),
    /// Judge whether this tool may run, and tell with [`Turn::judged`]. What is bound is not among the arguments.
    JudgeTool(ToolRun),
    /// Run these tools, all at once, and tell of each with [`Turn::returned`]. Those that have returned are no longer
    /// among them. Without [`TurnOptions::parallel_tool_calls`] it is one.
    Run(Vec<ToolRun>),
    /// It is over: this is the last answer.
    Done(Response),
    /// It is over: this is why. The conversation is in the error.
    Failed(Error),
}

/// Where a turn stands.
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
            Self::Begin => "the beginning of a round",
            Self::Summarizing(_) => "a summary",
            Self::JudgingInput => "a verdict on the input",
            Self::Calling => "an answer of the model",
            Self::Waiting(_) => "the end of a wait",
            Self::JudgingOutput(_) => "a verdict on the answer",
            Self::Tools(..) => "tools",
            Self::Done(_) => "nothing: it is over",
            Self::Failed(_) => "nothing: it has failed",
        }
    }
}

/// A turn. See the [module](self).
pub struct Turn {
    options: TurnOptions,
    declared: Declared,
    messages: Vec<Message>,
    context: Context,
    steering: Vec<String>,
    phase: Phase,
    /// Answers of the model so far.
    rounds: u32,
    /// How often the present call has failed.
    failures: u32,
    usage: Usage,
    is_cancelled: bool,
    elapsed: Duration,
    events: Vec<TurnEvent>,
    /// Whether it is known by now that this is more than one answer.
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
    /// A turn that begins with these messages. The inputs are those of the prompt, validated, for what is bound.
    ///
    /// # Errors
    /// Two tools have the same name.
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

    /// What to do next. The answer stays the same until the turn is told what came of it.
    #[expect(clippy::should_implement_trait, reason = "it is no iterator: it says the same until it is told something")]
    pub fn next(&mut self) -> Next {
        self.settle();
        match &self.phase {
            Phase::Summarizing(cut) => Next::Summarize(cut.messages(&self.messages)),
            Phase::JudgingInput => Next::JudgeInput,
            // Nothing stays at the beginning of a round.
            Phase::Begin | Phase::Calling => Next::Call,
            Phase::Waiting(wait) => Next::Wait(*wait),
            Phase::JudgingOutput(response) => Next::JudgeOutput(said(response)),
            Phase::Tools(_, round) => match round.to_judge() {
                Some(run) => Next::JudgeTool(run.clone()),
                None => Next::Run(round.running()),
            },
            Phase::Done(response) => Next::Done((**response).clone()),
            Phase::Failed(error) => Next::Failed(error.clone()),
        }
    }

    /// The model answered.
    ///
    /// # Errors
    /// It was not asked for, as in all that follow: then nothing changes.
    pub fn responded(&mut self, response: Response) -> Result<()> {
        self.settle();
        let Phase::Calling = self.phase else { return Err(self.not_asked("an answer")) };
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

    /// The model could not be called. The jitter is a random number from 0 to 1, for the wait before the next try.
    ///
    /// # Errors
    /// It was not asked for.
    pub fn failed(&mut self, error: Error, jitter: f64) -> Result<()> {
        self.settle();
        let Phase::Calling = self.phase else { return Err(self.not_asked("a failure of the model")) };
        self.failures += 1;
        let max = self.options.max_llm_retries.max(1);
        // Where nothing is tried again, there is nothing to say about it.
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

    /// The wait is over.
    ///
    /// # Errors
    /// It was not asked for.
    pub fn waited(&mut self) -> Result<()> {
        self.settle();
        let Phase::Waiting(_) = self.phase else { return Err(self.not_asked("the end of a wait")) };
        self.phase = Phase::Calling;
        Ok(())
    }

    /// Somebody has judged.
    ///
    /// # Errors
    /// It was not asked for.
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
            _ => return Err(self.not_asked("a verdict")),
        }
        self.settle();
        Ok(())
    }

    /// A summary was made of what no longer fits. Without one, the turn makes its own.
    ///
    /// # Errors
    /// It was not asked for.
    pub fn summarized(&mut self, summary: Option<String>) -> Result<()> {
        self.settle();
        let Phase::Summarizing(cut) = &self.phase else { return Err(self.not_asked("a summary")) };
        let summary = summary.filter(|summary| !summary.trim().is_empty());
        let removed = self.context.apply(cut, &mut self.messages, summary.as_deref(), self.options.guard.as_ref());
        self.events.push(match summary {
            Some(_) => TurnEvent::CompactionComplete { removed, remaining: self.messages.len() },
            None => TurnEvent::CompactionFailed { message: "no summary was made".to_owned() },
        });
        self.messages_updated();
        self.phase = Phase::JudgingInput;
        self.settle();
        Ok(())
    }

    /// A tool that [`Next::Run`] asked for came to an end. Results may come in any order.
    ///
    /// # Errors
    /// No such tool runs.
    pub fn returned(&mut self, index: usize, result: ToolResult) -> Result<()> {
        self.settle();
        match &mut self.phase {
            Phase::Tools(_, round) if round.is_running(index) => {
                let mut log = Log { events: &mut self.events, options: &self.options };
                round.finish(index, result, &mut log);
            }
            _ => return Err(self.not_asked("the result of a tool")),
        }
        self.settle();
        Ok(())
    }

    /// Stops the turn, wherever it stands. A turn that is over stays as it is.
    pub fn cancel(&mut self) {
        self.is_cancelled = true;
        self.settle();
    }

    /// Says something as the user. The model gets it in the next round, if there is one; so hand it over before the
    /// answer that begins that round.
    ///
    /// # Errors
    /// The turn is over.
    pub fn steer(&mut self, text: impl Into<String>) -> Result<()> {
        if self.is_over() {
            return Err(self.not_asked("a message"));
        }
        self.steering.push(text.into());
        Ok(())
    }

    /// Says how much time has passed since the turn began.
    pub fn tick(&mut self, elapsed: Duration) {
        self.elapsed = self.elapsed.max(elapsed);
        self.settle();
    }

    /// The conversation so far. Every call of a tool in it has its result.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The conversation, without the rest.
    pub fn into_messages(self) -> Vec<Message> {
        self.messages
    }

    /// How often the model has answered.
    pub fn iterations(&self) -> u32 {
        self.rounds
    }

    /// The tokens of all answers so far.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// What has happened since somebody last asked.
    pub fn take_events(&mut self) -> Vec<TurnEvent> {
        std::mem::take(&mut self.events)
    }

    /// What was steered and no round has come for: something for the next turn.
    pub fn unused_steering(&self) -> &[String] {
        &self.steering
    }

    /// Whether nothing more will happen.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done(_) | Phase::Failed(_))
    }

    /// Goes on to where something is asked for. The first lines are the one place where it is stopped.
    fn settle(&mut self) {
        if self.is_over() {
            return;
        }
        if self.is_cancelled {
            self.events.push(TurnEvent::Cancelled);
            return self.fail(Error::new(Kind::Cancelled, "somebody stopped the turn"));
        }
        if let Some(max) = self.options.max_time.filter(|max| self.elapsed >= *max) {
            return self.fail(Error::new(Kind::TurnLimit, format_args!("{} seconds", max.as_secs_f64())));
        }
        while self.step() {}
    }

    /// Takes one step that needs nobody. Returns whether there was one.
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

    /// The bound that has been reached. An answer that goes past one is still used: it has been paid for.
    fn used_up(&self) -> Option<String> {
        let TurnOptions { max_tokens, max_cost, prices, .. } = &self.options;
        let tokens = max_tokens.filter(|max| self.usage.total_tokens >= *max).map(|max| format!("{max} tokens"));
        let is_spent = |max: &f64| self.rounds > 0 && prices.cost(&self.usage) >= *max;
        tokens.or_else(|| max_cost.filter(is_spent).map(|max| format!("a cost of {max}")))
    }

    /// Uses the answer that may be used.
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
            let error = Error::new(Kind::TooManyToolCalls, format_args!("{count} at once, where {max} are allowed"));
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

    /// The calls and their results become part of the conversation together: none is ever there without the other.
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
        Error::new(Kind::NotAsked, format_args!("it was told {what}, and waits for {}", self.phase.name()))
            .with_help("tell a turn what came of what its `next` says, and nothing else")
    }
}

/// Adds what a provider says, which can be any number.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The message that an answer is.
fn said(response: &Response) -> Message {
    match &response.output {
        Output::Answer(answer) => assistant_message(answer),
        _ => Message::text(Role::Assistant, ""),
    }
}
