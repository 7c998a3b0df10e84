//! The calls of one answer, from what the model wrote to the results.

use std::sync::Arc;

use super::conversation::tool_message;
use super::event::TurnEvent;
use super::fed::Verdict;
use super::options::TurnOptions;
use super::result::presented;
use super::tools::{Declared, ToolResult, ToolRun, shown};
use crate::chat::message::Message;
use crate::wire::response::ToolCall;

/// The calls of one answer.
pub(super) struct Round {
    calls: Vec<Call>,
}

/// A call, and how far it has come.
struct Call {
    call: ToolCall,
    state: State,
}

enum State {
    /// It may have to be judged. Nothing is bound yet: what is bound is nobody's to judge.
    Read(ToolRun),
    /// It may run.
    Ready(ToolRun),
    /// It was asked for.
    Running(ToolRun),
    /// The model can be told.
    Finished(ToolResult),
}

impl Round {
    /// Reads the arguments of all calls. Those that cannot be used are finished.
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

    /// The call that is to be judged next.
    pub(super) fn to_judge(&self) -> Option<&ToolRun> {
        self.calls.iter().find_map(|call| match &call.state {
            State::Read(run) => Some(run),
            _ => None,
        })
    }

    /// Goes on with the call that was to be judged. Returns whether there was one.
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

    /// Begins what can begin: everything, or the next one if nothing runs.
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

    /// What runs.
    pub(super) fn running(&self) -> Vec<ToolRun> {
        let runs = self.calls.iter().filter_map(|call| match &call.state {
            State::Running(run) => Some(run.clone()),
            _ => None,
        });
        runs.collect()
    }

    /// Whether a call with this index runs.
    pub(super) fn is_running(&self, index: usize) -> bool {
        self.calls.get(index).is_some_and(|call| matches!(call.state, State::Running(_)))
    }

    /// Takes the result of a call that runs.
    pub(super) fn finish(&mut self, index: usize, result: ToolResult, log: &mut Log<'_>) {
        if let Some(call) = self.calls.get_mut(index) {
            call.state = State::Finished(log.finished(&call.call, result));
        }
    }

    /// Whether every call has its result.
    pub(super) fn is_finished(&self) -> bool {
        self.calls.iter().all(|call| matches!(call.state, State::Finished(_)))
    }

    /// The results in the order of the calls, whichever came first.
    pub(super) fn into_messages(self) -> impl Iterator<Item = Message> {
        self.calls.into_iter().filter_map(|call| match call.state {
            State::Finished(result) => Some(tool_message(&call.call, result)),
            _ => None,
        })
    }
}

/// Where a round says what happens in it.
pub(super) struct Log<'t> {
    pub(super) events: &'t mut Vec<TurnEvent>,
    pub(super) options: &'t TurnOptions,
}

impl Log<'_> {
    fn started(&mut self, call: &ToolCall) {
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        self.events.push(TurnEvent::ToolCallStart { name, arguments });
    }

    /// A call that never runs is told of like any other.
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
