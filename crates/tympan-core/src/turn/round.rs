//! The tool calls of one answer, from parsing to their results.

use std::sync::Arc;

use super::conversation::tool_message;
use super::event::TurnEvent;
use super::input_event::Verdict;
use super::options::TurnOptions;
use super::result::presented;
use super::tools::{Declared, ToolResult, ToolRun, shown};
use crate::chat::message::Message;
use crate::wire::response::ToolCall;

/// The tool calls of one answer.
pub(super) struct Round {
    calls: Vec<Call>,
}

/// A tool call and its state.
struct Call {
    call: ToolCall,
    state: State,
}

enum State {
    /// Parsed, and possibly waiting for a verdict. Bindings are not applied yet, because guardrails must not see bound
    /// values.
    Read(ToolRun),
    /// Ready to run.
    Ready(ToolRun),
    /// Running: the driver was asked to run it.
    Running(ToolRun),
    /// Finished, with the result for the model.
    Finished(ToolResult),
}

impl Round {
    /// Parses the arguments of all calls. Calls with invalid arguments finish immediately.
    pub(super) fn new(number: u32, calls: Vec<ToolCall>, declared: &Declared, log: &mut Log<'_>) -> Self {
        let read = |(index, call): (usize, ToolCall)| {
            let state = match declared.read(&call) {
                Ok((arguments, repair)) => {
                    if let Some(repair) = repair {
                        let message = format!("Arguments of '{}': {}", shown(&call.name), repair.as_str());
                        log.events.push(TurnEvent::Status { message });
                    }
                    let (id, name, arguments) = (call.id.clone(), call.name.clone(), Arc::new(arguments));
                    State::Read(ToolRun { index, round: number, id, name, arguments })
                }
                Err(result) => State::Finished(log.refused(&call, result)),
            };
            Call { call, state }
        };
        Self { calls: calls.into_iter().enumerate().map(read).collect() }
    }

    /// Returns the next call that needs a verdict.
    pub(super) fn to_judge(&self) -> Option<&ToolRun> {
        self.calls.iter().find_map(|call| match &call.state {
            State::Read(run) => Some(run),
            _ => None,
        })
    }

    /// Applies a verdict to the next call that needs one. Returns whether there was one.
    pub(super) fn judge(&mut self, verdict: Verdict, declared: &Declared, log: &mut Log<'_>) -> bool {
        let Some(call) = self.calls.iter_mut().find(|call| matches!(call.state, State::Read(_))) else { return false };
        let State::Read(run) = &call.state else { return false };
        let outcome = match verdict {
            Verdict::Allow => declared.bind(run.clone()),
            Verdict::Deny(reason) => Err(ToolResult::error("guardrail", format!("Tool denied by guardrail: {reason}"))),
        };
        call.state = match outcome {
            Ok(run) => State::Ready(run),
            Err(result) => State::Finished(log.refused(&call.call, result)),
        };
        true
    }

    /// Starts all calls that are ready; or, without `parallel`, the next one if none is running.
    pub(super) fn start(&mut self, parallel: bool, log: &mut Log<'_>) {
        let mut is_free = parallel || !self.calls.iter().any(|call| matches!(call.state, State::Running(_)));
        for call in &mut self.calls {
            if let (State::Ready(run), true) = (&call.state, is_free) {
                call.state = State::Running(run.clone());
                log.started(&call.call);
                is_free = parallel;
            }
        }
    }

    /// Returns the calls that are running.
    pub(super) fn running(&self) -> Vec<ToolRun> {
        let runs = self.calls.iter().filter_map(|call| match &call.state {
            State::Running(run) => Some(run.clone()),
            _ => None,
        });
        runs.collect()
    }

    /// Returns whether the call with this index is running.
    pub(super) fn is_running(&self, index: usize) -> bool {
        self.calls.get(index).is_some_and(|call| matches!(call.state, State::Running(_)))
    }

    /// Records the result of a running call.
    pub(super) fn finish(&mut self, index: usize, result: ToolResult, log: &mut Log<'_>) {
        if let Some(call) = self.calls.get_mut(index) {
            call.state = State::Finished(log.finished(&call.call, result));
        }
    }

    /// Returns whether every call has its result.
    pub(super) fn is_finished(&self) -> bool {
        self.calls.iter().all(|call| matches!(call.state, State::Finished(_)))
    }

    /// Returns the results as messages, in the order of the calls rather than of completion.
    pub(super) fn into_messages(self) -> impl Iterator<Item = Message> {
        self.calls.into_iter().filter_map(|call| match call.state {
            State::Finished(result) => Some(tool_message(&call.call, result)),
            _ => None,
        })
    }
}

/// Records the events of a round.
pub(super) struct Log<'t> {
    pub(super) events: &'t mut Vec<TurnEvent>,
    pub(super) options: &'t TurnOptions,
}

impl Log<'_> {
    fn started(&mut self, call: &ToolCall) {
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        self.events.push(TurnEvent::ToolCallStart { name, arguments });
    }

    /// Records a call that never runs, with the same events as any other.
    fn refused(&mut self, call: &ToolCall, result: ToolResult) -> ToolResult {
        self.started(call);
        self.finished(call, result)
    }

    fn finished(&mut self, call: &ToolCall, result: ToolResult) -> ToolResult {
        let result = presented(result, self.options);
        if result.is_error() {
            let message = result.parts.iter().filter_map(|part| part.as_text()).collect();
            self.events.push(TurnEvent::Error { message });
        }
        self.events.push(TurnEvent::ToolResult { name: call.name.clone(), result: result.clone() });
        result
    }
}
