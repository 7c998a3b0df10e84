//! The tool calls of one answer, from parsing to their results.

use std::sync::Arc;

use super::conversation::tool_message;
use super::event::TurnEvent;
use super::flow::handle::{EXTRACT_VALUE, READ_VALUE};
use super::flow::policy::{Decision, Reason, Ruling};
use super::flow::{Extraction, Flow, asks};
use super::input_event::Verdict;
use super::label::Label;
use super::options::TurnOptions;
use super::result::presented;
use super::tools::{Declared, ToolResult, ToolRun, shown};
use crate::chat::message::Message;
use crate::json::JsonMap;
use crate::wire::response::ToolCall;

/// The status code of a call that the policy did not allow.
const DENIED: &str = "policy";

/// The tool calls of one answer.
pub(super) struct Round {
    calls: Vec<Call>,
}

/// A tool call and its state.
struct Call {
    call: ToolCall,
    state: State,
    /// The label of the call.
    label: Label,
    /// The arguments with the contents of handles, if there are any.
    resolved: Option<JsonMap>,
    /// What the policy says about the call.
    ruling: Ruling,
    /// The extraction that the call performs, if it does.
    extraction: Option<Extraction>,
}

enum State {
    /// Parsed, and possibly waiting for a verdict. Bindings are not applied yet, because guardrails must not see bound
    /// values.
    Read(ToolRun),
    /// Waiting for an approval, because the policy asks for one.
    Asked(ToolRun),
    /// Ready to run.
    Ready(ToolRun),
    /// Running: the driver was asked to run it.
    Running(ToolRun),
    /// Returned, and waiting for earlier calls, because results that are hidden are hidden in the order of the calls.
    Returned(ToolResult),
    /// Finished.
    Finished(Finished),
}

/// The end of a call.
struct Finished {
    /// The result for the model.
    result: ToolResult,
    label: Label,
    /// Whether the result is the output of the tool, and not the turn's own words.
    is_output: bool,
}

impl Round {
    /// Parses the arguments of all calls, and applies the policy. Calls that cannot run finish immediately.
    pub(super) fn new(number: u32, calls: Vec<ToolCall>, declared: &Declared, log: &mut Log<'_>) -> Self {
        let calls = calls.into_iter().enumerate();
        Self { calls: calls.map(|(index, call)| Call::new(number, index, call, declared, log)).collect() }
    }

    /// Reads all calls again that have not started.
    pub(super) fn check_again(
        &mut self,
        number: u32,
        declared: &Declared,
        log: &mut Log<'_>,
        has_started: impl Fn(usize) -> bool,
    ) {
        for (index, call) in self.calls.iter_mut().enumerate() {
            let is_finished = matches!(call.state, State::Finished(_));
            if !is_finished && !has_started(index) {
                *call = Call::new(number, index, call.call.clone(), declared, log);
            }
        }
    }

    /// Returns the next call that needs a verdict.
    pub(super) fn to_judge(&self) -> Option<&ToolRun> {
        self.calls.iter().find_map(|call| match &call.state {
            State::Read(run) => Some(run),
            _ => None,
        })
    }

    /// Returns the next call that needs an approval.
    pub(super) fn to_approve(&self) -> Option<&ToolRun> {
        self.calls.iter().find_map(|call| match &call.state {
            State::Asked(run) => Some(run),
            _ => None,
        })
    }

    /// Returns what speaks against a call.
    pub(super) fn reasons(&self, index: usize) -> &[Reason] {
        self.calls.get(index).map_or(&[], |call| &call.ruling.reasons)
    }

    /// Returns whether the policy will ask about a call.
    pub(super) fn will_ask(&self, index: usize) -> bool {
        self.calls.get(index).is_some_and(|call| asks(&call.ruling))
    }

    /// Applies a verdict to the next call that needs one. Returns whether there was one.
    pub(super) fn judge(&mut self, verdict: Verdict, declared: &Declared, log: &mut Log<'_>) -> bool {
        let Some(call) = self.calls.iter_mut().find(|call| matches!(call.state, State::Read(_))) else { return false };
        let State::Read(run) = &call.state else { return false };
        let run = run.clone();
        match verdict {
            Verdict::Allow if asks(&call.ruling) => {
                let (name, ruling) = (call.call.name.clone(), call.ruling.clone());
                log.events.push(TurnEvent::Policy { name, ruling });
                call.state = State::Asked(run);
            }
            Verdict::Allow => call.accept(run, declared, log),
            Verdict::Deny(reason) => {
                call.refuse(ToolResult::error("guardrail", format!("Tool denied by guardrail: {reason}")), log);
            }
        }
        true
    }

    /// Applies the answer to the next call that needs an approval.
    pub(super) fn approve(&mut self, verdict: Verdict, declared: &Declared, log: &mut Log<'_>) {
        let Some(call) = self.calls.iter_mut().find(|call| matches!(call.state, State::Asked(_))) else { return };
        let State::Asked(run) = &call.state else { return };
        let run = run.clone();
        match verdict {
            Verdict::Allow => call.accept(run, declared, log),
            Verdict::Deny(reason) => {
                let denial = denial(&call.ruling);
                call.refuse(ToolResult::error(DENIED, format!("{denial}. {reason}")), log);
            }
        }
    }

    /// Starts all calls that are ready; or, without `parallel`, the next one if none is running.
    pub(super) fn start(&mut self, parallel: bool, log: &mut Log<'_>) {
        let mut is_free = parallel || !self.calls.iter().any(|call| matches!(call.state, State::Running(_)));
        for call in &mut self.calls {
            if let (State::Ready(run), true) = (&call.state, is_free) {
                call.state = State::Running(run.clone());
                log.started(&call.call, &call.label);
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
    ///
    /// What a model learns about hidden results, such as the names of handles, must not depend on which call returned
    /// first: whoever wrote the content might decide about it.
    pub(super) fn finish(&mut self, index: usize, result: ToolResult, log: &mut Log<'_>) {
        let Some(call) = self.calls.get_mut(index) else { return };
        if !call.hides(log) {
            return call.returned(result, log);
        }
        call.state = State::Returned(result);
        for call in &mut self.calls {
            if !call.hides(log) {
                continue;
            }
            match &mut call.state {
                State::Finished(_) => {}
                State::Returned(result) => {
                    let result = std::mem::replace(result, ToolResult::text(""));
                    call.returned(result, log);
                }
                _ => return,
            }
        }
    }

    /// Returns whether every call has its result.
    pub(super) fn is_finished(&self) -> bool {
        self.calls.iter().all(|call| matches!(call.state, State::Finished(_)))
    }

    /// Returns the results as messages with their labels, in the order of the calls rather than of completion.
    /// The last value is whether a message is the output of a tool.
    pub(super) fn into_messages(self) -> impl Iterator<Item = (Message, Label, bool)> {
        self.calls.into_iter().filter_map(|call| match call.state {
            State::Finished(Finished { result, label, is_output }) => {
                Some((tool_message(&call.call, result), label, is_output))
            }
            _ => None,
        })
    }
}

impl Call {
    fn new(round: u32, index: usize, call: ToolCall, declared: &Declared, log: &mut Log<'_>) -> Self {
        let label = log.flow.context().clone();
        let unread = Finished { result: ToolResult::text(""), label: Label::default(), is_output: false };
        let state = State::Finished(unread);
        let mut new = Self { call, state, label, resolved: None, ruling: Ruling::default(), extraction: None };
        let arguments = match declared.parse(&new.call) {
            Ok((arguments, repair)) => {
                if let Some(repair) = repair {
                    let message = format!("Arguments of '{}': {}", shown(&new.call.name), repair.as_str());
                    log.events.push(TurnEvent::Status { message });
                }
                arguments
            }
            Err(result) => {
                new.refuse(result, log);
                return new;
            }
        };
        if !log.flow.has_handles(&arguments) || new.is_about_values(log) {
            let problems = declared.problems(&new.call.name, &arguments);
            if !problems.is_empty() {
                let details = format!("the arguments do not match the parameters: {}", problems.join("; "));
                new.refuse(ToolResult::failed(&new.call.name, "invalid_arguments", details), log);
                return new;
            }
        }
        let (id, name) = (new.call.id.clone(), new.call.name.clone());
        let run = ToolRun { index, round, id, name, arguments: Arc::new(arguments), label: new.label.clone() };
        match new.call.name.as_str() {
            READ_VALUE if log.flow.hides() => {
                let (result, label) = log.flow.read_value(&run.arguments);
                log.started(&new.call, &new.label);
                new.end(result, label, false, log);
            }
            EXTRACT_VALUE if log.flow.hides() => match log.flow.start_extraction(&run.arguments) {
                Ok((extraction, arguments)) => {
                    new.extraction = Some(extraction);
                    new.state = State::Ready(ToolRun { arguments: Arc::new(arguments), ..run });
                }
                Err(result) => new.refuse(result, log),
            },
            _ => new.check(run, declared, log),
        }
        new
    }

    /// Returns whether the call is about hidden values. It names handles instead of passing what they contain.
    fn is_about_values(&self, log: &Log<'_>) -> bool {
        log.flow.hides() && matches!(self.call.name.as_str(), READ_VALUE | EXTRACT_VALUE)
    }

    /// Returns whether the model sees something else instead of the result.
    fn hides(&self, log: &Log<'_>) -> bool {
        self.extraction.is_some() || log.flow.may_hide(&self.call.name)
    }

    /// Ends a call whose result is known.
    fn returned(&mut self, result: ToolResult, log: &mut Log<'_>) {
        let (result, label, is_output) = match &self.extraction {
            Some(extraction) => {
                let (result, label) = log.flow.extracted(extraction, &result);
                (result, label, false)
            }
            None => log.flow.returned(&self.call, &self.label, result),
        };
        self.end(result, label, is_output, log);
    }

    /// Applies the policy.
    fn check(&mut self, run: ToolRun, declared: &Declared, log: &mut Log<'_>) {
        let matches = |given: &JsonMap| declared.problems(&run.name, given).is_empty();
        match log.flow.check(&run.name, &run.arguments, matches) {
            Ok(checked) => {
                self.resolved = checked.resolved;
                self.ruling = checked.ruling;
                self.label = checked.label.clone();
                self.state = State::Read(ToolRun { label: checked.label, ..run });
                if self.ruling.decision == Decision::Deny {
                    let (name, ruling) = (self.call.name.clone(), self.ruling.clone());
                    log.events.push(TurnEvent::Policy { name, ruling });
                    self.refuse(ToolResult::error(DENIED, denial(&self.ruling)), log);
                }
            }
            Err(result) => {
                log.started(&self.call, &self.label);
                let label = log.flow.mismatch_label(&run.arguments);
                self.end(result, label, false, log);
            }
        }
    }

    /// Lets the call run: puts in the contents of handles and the bound parameters.
    fn accept(&mut self, run: ToolRun, declared: &Declared, log: &mut Log<'_>) {
        let run = match self.resolved.take() {
            Some(resolved) => ToolRun { arguments: Arc::new(resolved), ..run },
            None => run,
        };
        match declared.bind(run) {
            Ok(run) => self.state = State::Ready(run),
            Err(result) => self.refuse(result, log),
        }
    }

    /// Ends a call that never runs, with the same events as any other. What the turn itself writes is trusted.
    fn refuse(&mut self, result: ToolResult, log: &mut Log<'_>) {
        log.started(&self.call, &self.label);
        self.end(result, Label::author(), false, log);
    }

    fn end(&mut self, result: ToolResult, label: Label, is_output: bool, log: &mut Log<'_>) {
        let (result, is_complete) = log.finished(&self.call, result, &label);
        // Where a result was cut off, what looks like a value may be a part of one.
        self.state = State::Finished(Finished { result, label, is_output: is_output && is_complete });
    }
}

/// Tells the model why a call did not run. Reasons contain no text from inputs and tools.
fn denial(ruling: &Ruling) -> String {
    let reasons: Vec<_> = ruling.reasons.iter().map(ToString::to_string).collect();
    format!("Tool denied by policy: {}", reasons.join("; "))
}

/// Records the events of a round.
pub(super) struct Log<'t> {
    pub(super) events: &'t mut Vec<TurnEvent>,
    pub(super) options: &'t TurnOptions,
    pub(super) flow: &'t mut Flow,
}

impl Log<'_> {
    fn started(&mut self, call: &ToolCall, label: &Label) {
        let (name, arguments, label) = (call.name.clone(), call.arguments.clone(), label.clone());
        self.events.push(TurnEvent::ToolCallStart { name, arguments, label });
    }

    fn finished(&mut self, call: &ToolCall, result: ToolResult, label: &Label) -> (ToolResult, bool) {
        let (result, is_complete) = presented(result, self.options);
        if result.is_error() {
            let message = result.parts.iter().filter_map(|part| part.as_text()).collect();
            self.events.push(TurnEvent::Error { message });
        }
        let (name, label) = (call.name.clone(), label.clone());
        self.events.push(TurnEvent::ToolResult { name, result: result.clone(), label });
        (result, is_complete)
    }
}
