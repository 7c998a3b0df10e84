//! Turns: the loop around [`tympan::turn::Turn`] that makes the calls.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use serde::de::DeserializeOwned;
use serde_json::json;
use tympan::response::{Delta, Response, Usage};
use tympan::spec::ToolKind;
use tympan::turn::{Guardrails, Next, ToolResult, ToolRun, Turn, TurnEvent, TurnOptions, Verdict};
use tympan::{Error, Inputs, Kind, Message, Prompt, Result};

use crate::cancel::{CancelToken, Steering};
use crate::invoke::PromptSource;
use crate::io;
use crate::provider::{ModelCall, Reply};
use crate::run::{Run, RunOptions};
use crate::runtime::{Runtime, system_entropy};
use crate::told;
use crate::tool::Tool;
use crate::trace::Span;

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

/// What a turn came to.
#[derive(Clone, Debug)]
pub struct TurnRun {
    /// The last answer, with the tokens of that answer alone.
    pub run: Run,
    /// The tokens of all answers.
    pub usage: Usage,
    /// How many answers the model gave.
    pub rounds: u32,
    /// The conversation, with the last answer.
    pub messages: Vec<Message>,
}

impl Runtime {
    /// Goes through a turn: renders a prompt, and calls its model and the tools it asks for until it answers.
    ///
    /// # Errors
    /// A declared tool has nothing that runs it, which is known before the model is called; the turn goes past a bound,
    /// is cancelled or denied; or the model cannot be called. The conversation is in [`Error::conversation`].
    pub fn turn<'a>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: &Inputs,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        io::wait(self.turn_async(prompt, inputs, settings))
    }

    /// The async twin of [`Runtime::turn`].
    ///
    /// # Errors
    /// As [`Runtime::turn`].
    pub async fn turn_async<'a>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: &Inputs,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let span = self.tracer().start("turn");
        let loaded;
        let prompt = match prompt.into() {
            PromptSource::Prompt(prompt) => prompt,
            PromptSource::File(path) => {
                loaded = told::failed(&span, self.load_as(&span.child("load"), path).await)?;
                &loaded
            }
        };
        span.turn(prompt.spec().name.as_deref());
        told::inputs(&span, prompt, inputs);
        let messages = told::failed(&span, self.prepare_as(&span.child("prepare"), prompt, inputs))?;
        let turn = self.turn_messages_as(&span, prompt, inputs, messages, settings).await;
        told::failed(&span, turn)
    }

    /// As [`Runtime::turn`], with the result as a value of a type.
    ///
    /// # Errors
    /// As [`Runtime::turn`]; or the result is something else.
    pub fn turn_as<'a, T: DeserializeOwned>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: &Inputs,
        settings: &TurnSettings,
    ) -> Result<T> {
        self.turn(prompt, inputs, settings)?.run.cast()
    }

    /// As [`Runtime::turn`], for messages that have been prepared already.
    ///
    /// # Errors
    /// As [`Runtime::turn`].
    pub async fn turn_messages_async(
        &self,
        prompt: &Prompt,
        inputs: &Inputs,
        messages: Vec<Message>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let span = self.tracer().start("turn");
        span.turn(prompt.spec().name.as_deref());
        told::inputs(&span, prompt, inputs);
        let turn = self.turn_messages_as(&span, prompt, inputs, messages, settings).await;
        told::failed(&span, turn)
    }

    async fn turn_messages_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        inputs: &Inputs,
        messages: Vec<Message>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let inputs = prompt.validate_inputs(inputs)?;
        let mut options = settings.turn.clone();
        options.guardrails = Guardrails {
            input: settings.judge_input.is_some(),
            output: settings.judge_output.is_some(),
            tool: settings.judge_tool.is_some(),
        };
        let tools = self.tools_of(prompt, settings)?;
        let turn = Turn::new(prompt, &inputs, messages, options)?;
        let mut driver = Drive { runtime: self, prompt, settings, tools, span, turn, started: Instant::now() };
        let response = driver.drive().await?;
        let Drive { turn, .. } = driver;
        let (usage, rounds) = (turn.usage().clone(), turn.iterations());
        let run = Run::new(span, &prompt.spec().outputs, response)?;
        Ok(TurnRun { run, usage, rounds, messages: turn.into_messages() })
    }

    /// What runs each tool that the prompt declares.
    fn tools_of(&self, prompt: &Prompt, settings: &TurnSettings) -> Result<HashMap<String, Arc<dyn Tool>>> {
        let declared = prompt.spec().tools.iter().map(|tool| {
            let found = settings.tools.get(&tool.name).cloned().or_else(|| self.get_tool(&tool.name));
            let missing = || match &tool.kind {
                ToolKind::Function { .. } => Error::new(Kind::ToolNotRegistered, &tool.name)
                    .with_help("register what runs it with register_tool, or give it in TurnSettings::tools"),
                other => {
                    let key = format!("{} (the tool `{}`)", other.as_str(), tool.name);
                    Error::not_registered("tool handler", &key)
                }
            };
            Ok((tool.name.clone(), found.ok_or_else(missing)?))
        });
        declared.collect()
    }
}

/// A turn and what it takes to drive it.
struct Drive<'a> {
    runtime: &'a Runtime,
    prompt: &'a Prompt,
    settings: &'a TurnSettings,
    tools: HashMap<String, Arc<dyn Tool>>,
    span: &'a Span,
    turn: Turn,
    started: Instant,
}

impl Drive<'_> {
    async fn drive(&mut self) -> Result<Response> {
        loop {
            self.steer()?;
            self.turn.tick(self.started.elapsed());
            if self.settings.cancel.is_cancelled() {
                self.turn.cancel();
            }
            let next = self.turn.next();
            self.tell();
            match next {
                Next::Call => self.call().await?,
                Next::Run(runs) => self.run_tools(runs).await?,
                Next::Wait(wait) => self.wait(wait).await?,
                Next::JudgeInput => {
                    self.judge(|settings, turn| Some(settings.judge_input.as_ref()?(turn.messages())))?
                }
                Next::JudgeOutput(message) => {
                    self.judge(|settings, _| Some(settings.judge_output.as_ref()?(&message)))?;
                }
                Next::JudgeTool(run) => self.judge(|settings, _| Some(settings.judge_tool.as_ref()?(&run)))?,
                Next::Summarize(_) => self.turn.summarized(None)?,
                Next::Done(response) => return Ok(response),
                Next::Failed(error) => return Err(error),
            }
        }
    }

    /// Hands over what was said meanwhile. A result begins the next round as soon as the turn has it, so this comes first.
    fn steer(&mut self) -> Result<()> {
        self.settings.steering.drain().into_iter().try_for_each(|text| self.turn.steer(text))
    }

    /// Hands on what has happened.
    fn tell(&mut self) {
        for event in self.turn.take_events() {
            self.emit(&AgentEvent::Turn(event));
        }
    }

    fn emit(&self, event: &AgentEvent) {
        if let Some(on_event) = &self.settings.on_event {
            // Whoever listens must not be able to end the turn.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_event(event)));
        }
    }

    fn judge(&mut self, verdict: impl FnOnce(&TurnSettings, &Turn) -> Option<Verdict>) -> Result<()> {
        let verdict = verdict(self.settings, &self.turn).unwrap_or(Verdict::Allow);
        self.turn.judged(verdict)
    }

    async fn wait(&mut self, wait: Duration) -> Result<()> {
        let waiting = io::spawn(async move {
            tokio::time::sleep(wait).await;
            Ok(())
        });
        match self.unless_cancelled(waiting).await {
            Some(waited) => waited.and_then(|()| self.turn.waited()),
            None => Ok(()),
        }
    }

    /// What a future comes to; `None` if the turn is cancelled first. The future is then dropped, and its work stops.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let cancelled = std::pin::pin!(self.settings.cancel.cancelled());
        match select(std::pin::pin!(work), cancelled).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    async fn call(&mut self) -> Result<()> {
        let execute = self.span.child_client("execute");
        let called = self.unless_cancelled(self.answer(&execute)).await;
        let Some(answered) = called else { return Ok(()) };
        match told::failed(&execute, answered) {
            Ok(response) => {
                told::answered(&execute, &response);
                self.steer()?;
                self.turn.responded(response)
            }
            Err(error) => self.turn.failed(error, random_share()),
        }
    }

    async fn answer(&self, execute: &Span) -> Result<Response> {
        let stream = self.settings.on_event.is_some();
        let call =
            ModelCall { prompt: self.prompt, messages: self.turn.messages(), options: &self.settings.run, stream };
        let mut deltas = match self.runtime.call(execute, call).await? {
            Reply::Whole(response) => {
                response.deltas().into_iter().for_each(|delta| self.emit_delta(delta));
                return Ok(response);
            }
            Reply::Stream(deltas) => deltas,
        };
        // An answer that calls tools is not the last one, and nobody sees its text as if it were.
        let mut calls_tools = false;
        while let Some(delta) = deltas.next().await {
            let delta = delta?;
            calls_tools |= matches!(delta, Delta::ToolCall { .. });
            if !calls_tools {
                self.emit_delta(delta);
            }
        }
        deltas.finish()
    }

    fn emit_delta(&self, delta: Delta) {
        match delta {
            Delta::Text(text) => self.emit(&AgentEvent::Token(text)),
            Delta::Thinking(text) => self.emit(&AgentEvent::Thinking(text)),
            _ => {}
        }
    }

    /// Runs tools at once, and hands back each result as it comes.
    async fn run_tools(&mut self, runs: Vec<ToolRun>) -> Result<()> {
        let mut running: FuturesUnordered<_> = runs.into_iter().map(|run| self.run_tool(run)).collect();
        loop {
            let Some(next) = self.unless_cancelled(running.next()).await else { return Ok(()) };
            let Some((index, result)) = next else { return Ok(()) };
            self.steer()?;
            self.turn.returned(index, result)?;
            self.tell();
        }
    }

    /// Runs one tool on the driver: what it does there, a panic included, stays there.
    fn run_tool(&self, run: ToolRun) -> impl Future<Output = (usize, ToolResult)> + use<> {
        let (index, name) = (run.index, run.name.clone());
        let span = self.span.child("execute_tool");
        span.tool(&run.name, Some(&run.id));
        span.inputs(|| json!({ "name": run.name, "arguments": run.arguments.keys().collect::<Vec<_>>() }));
        let tool = self.tools.get(&run.name).cloned();
        let own_limit = tool.as_ref().and_then(|tool| tool.timeout());
        let limit = own_limit.unwrap_or(self.settings.tool_timeout);
        let task = io::spawn(async move {
            let Some(tool) = tool else { return Ok(Err(format!("Tool not registered: {}", run.name).into())) };
            match tokio::time::timeout(limit, tool.call(run)).await {
                Ok(returned) => Ok(returned),
                Err(_) => Err(Error::new(Kind::ToolTimeout, format_args!("within {} s", limit.as_secs_f64()))),
            }
        });
        async move {
            let result = match task.await {
                Ok(Ok(output)) => ToolResult { parts: output.0, status: Default::default() },
                Ok(Err(error)) => ToolResult::failed(&name, "tool_failed", error),
                Err(error) if error.kind() == Kind::ToolTimeout => {
                    ToolResult::failed(&name, error.code(), error.message())
                }
                Err(_) => ToolResult::failed(&name, "tool_panicked", "it panicked"),
            };
            span.result(|| json!({ "status": result.status }));
            (index, result)
        }
    }
}

/// A number from 0 to 1.
fn random_share() -> f64 {
    let bits = system_entropy().unwrap_or_default();
    f64::from(u32::try_from(bits >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
