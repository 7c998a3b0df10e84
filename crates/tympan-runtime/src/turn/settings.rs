//! How a turn goes, and what is told of it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tympan_core::turn::{ToolRun, TurnEvent, TurnOptions, Verdict};
use tympan_core::{Message, Prompt, Result};

use crate::model::run::RunOptions;
use crate::tool::Tool;
use crate::turn::cancel::{CancelToken, Steering};
use crate::turn::journal::Journal;

/// Who says in short what no longer fits.
#[derive(Clone)]
pub enum Compact {
    /// The model of the turn, by instructions that are built in.
    Model,
    /// Another prompt. Its input `conversation` gets what no longer fits, as JSON.
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

/// What happens while a turn goes on.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent {
    /// More text of an answer.
    Token(String),
    /// More of what the model thinks.
    Thinking(String),
    /// Everything else.
    Turn(TurnEvent),
}

type OnEvent = Arc<dyn Fn(&AgentEvent) + Send + Sync>;
type JudgeMessages = Arc<dyn Fn(&[Message]) -> Verdict + Send + Sync>;
type JudgeMessage = Arc<dyn Fn(&Message) -> Verdict + Send + Sync>;
type JudgeTool = Arc<dyn Fn(&ToolRun) -> Verdict + Send + Sync>;
/// Asks a person. What is bound is not among the arguments.
pub type Approve = Arc<dyn Fn(ToolRun) -> BoxFuture<'static, Verdict> + Send + Sync>;

/// How a turn goes.
#[derive(Clone)]
pub struct TurnSettings {
    /// Its bounds.
    pub turn: TurnOptions,
    /// How the model is called.
    pub run: RunOptions,
    /// What runs the tools that the prompt declares, by name. What is not here is looked for among the tools that are
    /// registered with the runtime.
    pub tools: HashMap<String, Arc<dyn Tool>>,
    /// How long a tool may take.
    pub tool_timeout: Duration,
    /// Is told what happens. It must not block.
    pub on_event: Option<OnEvent>,
    /// Stops the turn.
    pub cancel: CancelToken,
    /// Speaks into it.
    pub steering: Steering,
    /// Judges the messages before each call of the model.
    pub judge_input: Option<JudgeMessages>,
    /// Judges each answer before it is used.
    pub judge_output: Option<JudgeMessage>,
    /// Judges each call of a tool before it runs.
    pub judge_tool: Option<JudgeTool>,
    /// Who says in short what no longer fits ([`TurnOptions::context_budget`]); without it, or if that fails, the turn
    /// does it itself, by quoting.
    pub compact: Option<Compact>,
    /// Asks a person whether a tool may run, where its declaration wants that. Without it, such tools do not run.
    pub approve: Option<Approve>,
    /// Whether a person is asked about every tool, whatever its declaration says.
    pub approve_all: bool,
    /// Where the turn is kept, so that it can be resumed if it dies.
    pub journal: Option<Journal>,
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
