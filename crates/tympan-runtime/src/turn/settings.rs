//! The settings of a turn, and the events that it reports.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tympan_core::turn::{Approval, ToolRun, TurnEvent, TurnOptions, Verdict};
use tympan_core::{Message, Prompt, Result};

use crate::model::run::RunOptions;
use crate::tool::Tool;
use crate::turn::cancel::{CancelToken, Steering};
use crate::turn::journal::Journal;

/// A summarizer for the messages that no longer fit.
#[derive(Clone)]
#[non_exhaustive]
pub enum Compact {
    /// The turn's model, with built-in instructions.
    Model,
    /// A separate prompt. Its input `conversation` receives the messages as JSON.
    Prompt(Arc<Prompt>),
    /// A function.
    With(Arc<dyn Fn(Vec<Message>) -> BoxFuture<'static, Result<String>> + Send + Sync>),
}

impl fmt::Debug for Compact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "Model",
            Self::Prompt(_) => "Prompt",
            Self::With(_) => "With",
        })
    }
}

/// An event that a running turn reports.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// More text of an answer.
    Token(String),
    /// More of the model's reasoning.
    Thinking(String),
    /// Any other event.
    Turn(TurnEvent),
}

type OnEvent = Arc<dyn Fn(&AgentEvent) + Send + Sync>;
type JudgeMessages = Arc<dyn Fn(&[Message]) -> Verdict + Send + Sync>;
type JudgeMessage = Arc<dyn Fn(&Message) -> Verdict + Send + Sync>;
type JudgeTool = Arc<dyn Fn(&ToolRun) -> Verdict + Send + Sync>;
/// An approver: decides whether a tool may run, usually by asking a person.
pub type Approve = Arc<dyn Fn(Approval) -> BoxFuture<'static, Verdict> + Send + Sync>;

/// The settings of a turn.
#[derive(Clone)]
pub struct TurnSettings {
    /// The limits and other options of the turn.
    pub turn: TurnOptions,
    /// The options of model calls.
    pub run: RunOptions,
    /// The implementations of the tools that the prompt declares, by name. Tools that are missing here are looked up
    /// among those registered with the runtime.
    pub tools: HashMap<String, Arc<dyn Tool>>,
    /// The time limit of a tool.
    pub tool_timeout: Duration,
    /// A callback for events. It must not block.
    pub on_event: Option<OnEvent>,
    /// Cancels the turn.
    pub cancel: CancelToken,
    /// Adds user messages to the running turn.
    pub steering: Steering,
    /// A guardrail that judges the messages before each model call.
    pub judge_input: Option<JudgeMessages>,
    /// A guardrail that judges each answer before it is used.
    pub judge_output: Option<JudgeMessage>,
    /// A guardrail that judges each tool call before it runs.
    pub judge_tool: Option<JudgeTool>,
    /// The summarizer for messages that no longer fit ([`TurnOptions::context_budget`]). Without one, or if it fails,
    /// the turn quotes the messages in a summary of its own.
    pub compact: Option<Compact>,
    /// The approver for calls that need approval, because the declaration of the tool or the policy requires it. Without
    /// one, such tools do not run.
    pub approve: Option<Approve>,
    /// Whether every tool call requires approval, whatever its declaration says.
    pub approve_all: bool,
    /// The journal that persists the turn, so that it can be resumed after a crash.
    pub journal: Option<Journal>,
    /// The number of the turn within its conversation, for traces.
    pub turn_number: Option<u32>,
}

impl Default for TurnSettings {
    fn default() -> Self {
        Self {
            turn: TurnOptions::default(),
            run: RunOptions::default(),
            tools: HashMap::new(),
            tool_timeout: Duration::from_secs(120),
            on_event: None,
            cancel: CancelToken::default(),
            steering: Steering::default(),
            judge_input: None,
            judge_output: None,
            judge_tool: None,
            compact: None,
            approve: None,
            approve_all: false,
            journal: None,
            turn_number: None,
        }
    }
}

impl fmt::Debug for TurnSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TurnSettings")
            .field("turn", &self.turn)
            .field("run", &self.run)
            .field("tools", &self.tools.keys().collect::<Vec<_>>())
            .field("tool_timeout", &self.tool_timeout)
            .finish_non_exhaustive()
    }
}
