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
pub mod flow;
mod input_event;
mod label;
mod options;
pub mod outcome;
mod phase;
mod report;
mod result;
mod retry;
mod round;
pub mod schema;
mod step;
mod tools;

use std::fmt;
use std::time::Duration;

use crate::chat::message::{Message, Role};
use crate::chat::rendered::Inputs;
use crate::error::{Error, Result};
use crate::prompt::Prompt;
use crate::spec::flow::Effect;
use crate::wire::Function;
use crate::wire::response::{Output, Response, Usage};

pub use context::{ContextBudget, CountTokens};
pub use event::TurnEvent;
pub use flow::FlowOptions;
pub use flow::approval::{Approval, ArgumentOrigin, Quote};
pub use flow::handle::{EXTRACT_VALUE, READ_VALUE};
pub use flow::policy::{Decision, Exception, PolicyMode, Reason, Ruling, ToolPolicy};
pub use input_event::{Failure, InputEvent, Verdict};
pub use label::{Label, LabeledRange, MessageLabel, PartLabel, Source, Sources, message_labels};
pub use options::{Guardrails, Prices, TurnOptions};
pub use tools::{ToolResult, ToolRun, ToolStatus, TurnTool};

use context::Context;
use conversation::assistant_message;
use flow::Flow;
use flow::handle::value_functions;
use phase::Phase;
use round::Log;
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
    /// If a person decides, [`Turn::approval`] returns what to show.
    JudgeTool(ToolRun),
    /// Ask whether this tool may run, because the policy does not allow it otherwise. Report the answer with
    /// [`Turn::approved`]. Without anyone to ask, the answer is no.
    Approve(Box<Approval>),
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
    flow: Flow,
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
    pub fn new(prompt: &Prompt, inputs: &Inputs, messages: Vec<Message>, mut options: TurnOptions) -> Result<Self> {
        let spec = prompt.spec();
        let flow = Flow::new(prompt, inputs, &messages, std::mem::take(&mut options.flow), &options.tools);
        let inputs = BindingInputs { declared: &spec.inputs, values: inputs };
        let mut declared = Declared::new(&spec.tools, &options.tools, inputs)?;
        if flow.hides() {
            value_functions().iter().try_for_each(|function| declared.add_function(function))?;
        }
        Ok(Self {
            declared,
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
            flow,
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
                None => match round.to_approve() {
                    Some(run) => Next::Approve(Box::new(self.approval(run))),
                    None => Next::Run(round.running()),
                },
            },
            Phase::Done(response) => Next::Done((**response).clone()),
            Phase::Failed(error) => Next::Failed(error.clone()),
        }
    }

    /// Returns the conversation so far. Every tool call in it has its result.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the labels of [`Turn::messages`], in the same order. It is empty if there are no tools.
    pub fn labels(&self) -> &[MessageLabel] {
        self.flow.labels()
    }

    /// Returns the label of everything that the model has read. What it writes next has this label.
    pub fn context(&self) -> &Label {
        self.flow.context()
    }

    /// Returns the effect of a tool, if the host, the prompt or its server declares one.
    pub fn effect(&self, tool: &str) -> Option<Effect> {
        self.flow.effect(tool)
    }

    /// Returns the functions that the turn itself provides, because it hides the results of some tools. The model should
    /// see them in addition to the tools of the prompt. [`Next::Run`] contains calls of the second one.
    pub fn value_functions(&self) -> Vec<Function> {
        if self.flow.hides() { value_functions().into() } else { Vec::new() }
    }

    /// Returns whether the policy will ask about this call once the guardrail has allowed it.
    pub fn will_ask(&self, run: &ToolRun) -> bool {
        matches!(&self.phase, Phase::Tools(_, round) if round.will_ask(run.index))
    }

    /// Starts to repeat input events from before there was a policy. Nothing is asked then, and no result is trusted.
    pub fn begin_legacy(&mut self) {
        self.flow.set_legacy(true);
    }

    /// Ends what [`Turn::begin_legacy`] started. The policy applies to all calls that have not started yet; the argument
    /// tells by the index of a call whether it has.
    pub fn end_legacy(&mut self, has_started: impl Fn(usize) -> bool) {
        self.flow.set_legacy(false);
        if let Phase::Tools(_, round) = &mut self.phase {
            let mut log = Log { events: &mut self.events, options: &self.options, flow: &mut self.flow };
            round.check_again(self.rounds, &self.declared, &mut log, has_started);
        }
    }

    /// Returns what a person needs to decide about a call of [`Next::JudgeTool`] or [`Next::Approve`]: where its arguments
    /// came from, what the model had read, and why the policy asks, if it does.
    pub fn approval(&self, run: &ToolRun) -> Approval {
        let reasons = match &self.phase {
            Phase::Tools(_, round) => round.reasons(run.index),
            _ => &[],
        };
        Approval {
            effect: self.flow.effect(&run.name),
            reasons: reasons.to_vec(),
            context: self.flow.context().clone(),
            arguments: self.flow.explain(&run.arguments, &self.messages),
            ..Approval::new(run.clone())
        }
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
