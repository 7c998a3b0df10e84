//! The driver of [`tympan_core::turn::Turn`], which performs its I/O.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tympan_core::turn::{Approval, Failure, InputEvent, Next, ToolResult, ToolRun, Turn, Verdict};
use tympan_core::wire::response::{Delta, Response};
use tympan_core::{Error, Kind, Message, Prompt, Result};

use crate::host::runtime::{Runtime, system_entropy};
use crate::model::provider::{ModelCall, Reply};
use crate::model::run::RunOptions;
use crate::net::io;
use crate::tool::{Invocation, OpenTools, ToolOutput};
use crate::trace::Span;
use crate::trace::event;
use crate::turn::persistence::Persistence;
use crate::turn::settings::{AgentEvent, TurnSettings};

/// The status of a tool that was not run again because it may already have run before the crash.
const UNKNOWN_OUTCOME: &str = "unknown_outcome";

/// A turn and everything needed to drive it.
pub(super) struct Drive<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) prompt: &'a Prompt,
    pub(super) settings: &'a TurnSettings,
    /// The options of model calls: those of the settings, plus the functions built from tools.
    pub(super) run: RunOptions,
    pub(super) tools: OpenTools,
    pub(super) span: &'a Span,
    pub(super) turn: Turn,
    pub(super) persistence: Persistence,
}

impl Drive<'_> {
    /// Drives the turn to its end. Returns the final response and the turn.
    pub(super) async fn drive(mut self) -> Result<(Response, Turn)> {
        loop {
            self.look_up()?;
            let next = self.turn.next();
            self.report_events();
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
                Next::JudgeTool(run) => self.judge_tool(run).await?,
                Next::Approve(approval) => self.approve(*approval).await?,
                Next::Summarize(dropped) => self.summarize(dropped).await?,
                Next::Done(response) => {
                    self.persistence.commit().await?;
                    return Ok((response, self.turn));
                }
                Next::Failed(error) => {
                    self.persistence.commit().await?;
                    return Err(error);
                }
            }
        }
    }

    /// Feeds the turn an event that can be reproduced, so it may be lost in a crash.
    fn feed(&mut self, event: InputEvent) -> Result<()> {
        self.persistence.record(&event)?;
        self.turn.feed(event)
    }

    /// Feeds the turn an event that cannot be reproduced, or only at a cost. The event is persisted first.
    async fn feed_and_commit(&mut self, event: InputEvent) -> Result<()> {
        self.persistence.record(&event)?;
        self.persistence.commit().await?;
        self.turn.feed(event)
    }

    /// Feeds the turn events from outside: steering, the elapsed time and cancellation.
    fn look_up(&mut self) -> Result<()> {
        if self.turn.is_over() {
            return Ok(());
        }
        self.steer()?;
        let elapsed = self.persistence.elapsed();
        self.turn.tick(elapsed);
        if self.turn.is_over() {
            // Only the tick that ends the turn is journaled, because no other tick has an effect.
            return self.persistence.record(&InputEvent::Ticked { elapsed });
        }
        if self.settings.cancel.is_cancelled() { self.feed(InputEvent::Cancelled) } else { Ok(()) }
    }

    /// Feeds pending steering messages. This must precede a result, because the turn starts the next round as soon as
    /// it receives the result.
    fn steer(&mut self) -> Result<()> {
        self.settings.steering.drain().into_iter().try_for_each(|text| self.feed(InputEvent::Steered { text }))
    }

    /// Reports new events to the listener.
    fn report_events(&mut self) {
        for event in self.persistence.take_end().into_iter().chain(self.turn.take_events()) {
            self.emit(&AgentEvent::Turn(event));
        }
    }

    fn emit(&self, event: &AgentEvent) {
        if let Some(on_event) = &self.settings.on_event {
            // A panic in the listener must not end the turn.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| on_event(event)));
        }
    }

    fn judge(&mut self, verdict: impl FnOnce(&TurnSettings, &Turn) -> Option<Verdict>) -> Result<()> {
        let verdict = verdict(self.settings, &self.turn).unwrap_or(Verdict::Allow);
        self.feed(InputEvent::Judged { verdict })
    }

    /// Consults the guardrail, then the approver if approval is required.
    async fn judge_tool(&mut self, run: ToolRun) -> Result<()> {
        let judged = self.settings.judge_tool.as_ref().map_or(Verdict::Allow, |judge| judge(&run));
        let needs_approval = self.settings.approve_all || self.requires_approval(&run);
        // If the policy asks as well, nobody is asked twice.
        let needs_approval = needs_approval && !self.turn.will_ask(&run);
        let verdict = match (judged, needs_approval, &self.settings.approve) {
            (Verdict::Allow, true, Some(approve)) => {
                let asked = approve(self.explained(self.turn.approval(&run)));
                match self.unless_cancelled(asked).await {
                    Some(verdict) => verdict,
                    None => return Ok(()),
                }
            }
            (Verdict::Allow, true, None) => Verdict::Deny("approval is required, but no approver is configured".into()),
            (judged, ..) => judged,
        };
        self.feed(InputEvent::Judged { verdict })
    }

    /// Returns whether a tool itself requires approval.
    fn requires_approval(&self, run: &ToolRun) -> bool {
        self.tools.runs.get(&run.name).is_some_and(|tool| tool.needs_approval(run))
    }

    /// Adds what only the driver knows about a call.
    fn explained(&self, mut approval: Approval) -> Approval {
        approval.required_by_tool = self.requires_approval(&approval.run);
        approval
    }

    /// Asks the approver about a call that the policy does not allow otherwise.
    async fn approve(&mut self, approval: Approval) -> Result<()> {
        let verdict = match &self.settings.approve {
            Some(approve) => {
                let asked = approve(self.explained(approval));
                match self.unless_cancelled(asked).await {
                    Some(verdict) => verdict,
                    None => return Ok(()),
                }
            }
            None => Verdict::Deny("Nobody can approve it: no approver is configured".to_owned()),
        };
        self.feed(InputEvent::Approved { verdict })
    }

    /// Requests a summary of the dropped messages. If that fails, the turn creates one itself.
    async fn summarize(&mut self, dropped: Vec<Message>) -> Result<()> {
        let summary = match &self.settings.compact {
            Some(compact) => {
                let runtime = self.runtime.under(self.span);
                let said = compact.summary(&runtime, self.prompt, &self.settings.run, dropped);
                let Some(said) = self.unless_cancelled(said).await else { return Ok(()) };
                said.ok()
            }
            None => None,
        };
        self.feed_and_commit(InputEvent::Summarized { summary }).await
    }

    async fn wait(&mut self, wait: Duration) -> Result<()> {
        let waiting = io::spawn(async move {
            tokio::time::sleep(wait).await;
            Ok(())
        });
        match self.unless_cancelled(waiting).await {
            Some(waited) => waited.and_then(|()| self.feed(InputEvent::Waited)),
            None => Ok(()),
        }
    }

    /// Awaits a future. Returns `None` if the turn is cancelled first; the future is then dropped, which stops its
    /// work.
    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let cancelled = std::pin::pin!(self.settings.cancel.cancelled());
        match select(std::pin::pin!(work), cancelled).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(_) => None,
        }
    }

    async fn call(&mut self) -> Result<()> {
        self.persistence.commit().await?;
        let execute = self.span.child_client("execute");
        let called = self.unless_cancelled(self.answer(&execute)).await;
        let Some(answered) = called else { return Ok(()) };
        match event::record_error(&execute, answered) {
            Ok(response) => {
                event::record_response(&execute, &response);
                self.steer()?;
                self.feed_and_commit(InputEvent::Responded { response: Box::new(response) }).await
            }
            Err(error) => {
                // Pass the turn the original error, which has more details than its persisted form.
                let jitter = random_share();
                self.persistence.record(&InputEvent::Failed { failure: Failure::from(&error), jitter })?;
                self.turn.failed(error, jitter)
            }
        }
    }

    async fn answer(&self, execute: &Span) -> Result<Response> {
        let stream = self.settings.on_event.is_some();
        let call = ModelCall { prompt: self.prompt, messages: self.turn.messages(), options: &self.run, stream };
        let mut deltas = match self.runtime.call(execute, call).await? {
            Reply::Whole(response) => {
                response.deltas().into_iter().for_each(|delta| self.emit_delta(delta));
                return Ok(response);
            }
            Reply::Stream(deltas) => deltas,
        };
        // An answer that calls tools is not the final one, so its text must not appear as if it were.
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

    /// Runs tools concurrently and feeds each result as it arrives.
    async fn run_tools(&mut self, runs: Vec<ToolRun>) -> Result<()> {
        if let Some(lost) = runs.iter().find(|run| self.is_lost(run)) {
            let words = "the process crashed while the tool was running, so its outcome is unknown";
            let result = ToolResult::failed(&lost.name, UNKNOWN_OUTCOME, words);
            return self.feed_and_commit(InputEvent::Returned { index: lost.index, result }).await;
        }
        self.persistence.start(&runs)?;
        self.persistence.commit().await?;
        let mut running: FuturesUnordered<_> = runs.into_iter().map(|run| self.run_tool(run)).collect();
        loop {
            let Some(next) = self.unless_cancelled(running.next()).await else { return Ok(()) };
            let Some((index, result)) = next else { return Ok(()) };
            self.steer()?;
            self.feed_and_commit(InputEvent::Returned { index, result }).await?;
            self.report_events();
        }
    }

    /// Returns whether a tool may have run before a crash and must not run twice.
    fn is_lost(&self, run: &ToolRun) -> bool {
        let is_idempotent = || {
            let declared = self.tools.idempotent.contains(&run.name);
            declared || self.tools.runs.get(&run.name).is_some_and(|tool| tool.is_idempotent())
        };
        self.persistence.is_in_flight(run) && !is_idempotent()
    }

    /// Runs one tool in a separate task, which isolates panics.
    fn run_tool(&self, run: ToolRun) -> impl Future<Output = (usize, ToolResult)> + use<> {
        let (index, name) = (run.index, run.name.clone());
        let span = self.span.child("execute_tool");
        let bound = self.tools.bound.get(&run.name).map_or(&[][..], Vec::as_slice);
        event::record_tool_call(&span, &run, self.turn.effect(&run.name), bound);
        let tool = self.tools.runs.get(&run.name).cloned();
        let own_limit = tool.as_ref().and_then(|tool| tool.timeout());
        let limit = own_limit.unwrap_or(self.settings.tool_timeout);
        let allowed = self.runtime.budget().map_or(Ok(()), |budget| budget.run_tool());
        let invocation =
            Invocation { idempotency_key: self.persistence.key(&run), runtime: self.runtime.deeper(&span), run };
        let task = io::spawn(async move {
            if let Err(error) = allowed {
                return Ok(Err(error.into()));
            }
            let Some(tool) = tool else {
                return Ok(Err(format!("Tool not registered: {}", invocation.run.name).into()));
            };
            match tokio::time::timeout(limit, tool.call(invocation)).await {
                Ok(returned) => Ok(returned),
                Err(_) => Err(Error::new(Kind::ToolTimeout, format_args!("no result after {} s", limit.as_secs_f64()))),
            }
        });
        async move {
            let result = match task.await {
                Ok(Ok(ToolOutput { content, confidential, untrusted })) => {
                    ToolResult { confidential, untrusted, ..content.into() }
                }
                Ok(Err(error)) => {
                    let code = error.downcast_ref::<Error>().map_or("tool_failed", Error::code);
                    ToolResult::failed(&name, code, error)
                }
                Err(error) if error.kind() == Kind::ToolTimeout => {
                    ToolResult::failed(&name, error.code(), error.message())
                }
                Err(_) => ToolResult::failed(&name, "tool_panicked", "the function panicked"),
            };
            event::record_tool_result(&span, &result);
            (index, result)
        }
    }
}

/// Returns a random number from 0 to 1.
fn random_share() -> f64 {
    let bits = system_entropy().unwrap_or_default();
    f64::from(u32::try_from(bits >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}
