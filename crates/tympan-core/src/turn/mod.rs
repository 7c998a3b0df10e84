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
mod fenced_json;
mod input_event;
mod options;
pub mod outcome;
mod phase;
mod report;
mod result;
mod retry;
mod round;
mod schema;
mod step;
mod tools;

use std::fmt;
use std::time::Duration;

use crate::chat::message::{Message, Role};
use crate::chat::rendered::Inputs;
use crate::error::{Error, Result};
use crate::prompt::Prompt;
use crate::wire::response::{Output, Response, Usage};

pub use context::{ContextBudget, CountTokens};
pub use event::TurnEvent;
pub use input_event::{Failure, InputEvent, Verdict};
pub use options::{Guardrails, Prices, TurnOptions};
pub use tools::{ToolResult, ToolRun, ToolStatus, TurnTool};

use context::Context;
use conversation::assistant_message;
use phase::Phase;
use tools::{BindingInputs, Declared};

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
        let spec = prompt.spec();
        let inputs = BindingInputs { declared: &spec.inputs, values: inputs };
        Ok(Self {
            declared: Declared::new(&spec.tools, &options.tools, inputs)?,
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
}

/// Converts a response to a message.
fn response_message(response: &Response) -> Message {
    match &response.output {
        Output::Answer(answer) => assistant_message(answer),
        _ => Message::text(Role::Assistant, ""),
    }
}
