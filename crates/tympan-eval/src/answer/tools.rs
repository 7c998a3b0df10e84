//! Turns with tools that return fixed results.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value as Json;
use tympan_core::diagnostic::guess_name;
use tympan_core::spec::flow::ToolFlow;
use tympan_core::turn::{Approval, EXTRACT_VALUE, READ_VALUE, ToolRun, TurnOptions, Verdict};
use tympan_core::{Error, JsonMap, Kind, Message, Prompt, Result, Role};
use tympan_runtime::tool::ToolError;
use tympan_runtime::{Approve, BoxFuture, Invocation, RunOptions, Runtime, Tool, ToolOutput, TurnSettings};

use super::{Answer, AnsweredCall, Question, convert};

/// Runs a turn with the tools of a case.
///
/// # Errors
/// Returns an error if a tool has neither a fixed result nor an implementation, or if the turn fails.
pub(super) async fn turn(question: &Question<'_>, runtime: &Runtime, options: &RunOptions) -> Result<Answer> {
    let log = Log::default();
    let tools = implementations(question, runtime, &log)?;
    let mut turn = TurnOptions {
        guard: question.guard.cloned(),
        // The HTTP client already retries where it makes sense, and a cassette never changes its mind.
        max_llm_retries: 1,
        ..TurnOptions::default()
    };
    turn.flow.labels = question.labels.map(<[_]>::to_vec);
    let approve = approver(question.settings.tools.as_ref(), &log);
    let settings =
        TurnSettings { turn, run: options.clone(), tools, approve: Some(approve), ..TurnSettings::default() };
    let messages = question.messages.to_vec();
    let turn = runtime.turn_messages_async(question.prompt, question.inputs, messages, &settings).await?;
    let new = turn.messages.get(question.messages.len()..).unwrap_or_default();
    Ok(Answer {
        tool_calls: log.calls(new),
        rounds: turn.rounds,
        usage: Some(turn.usage),
        ..convert::whole(question.prompt, &turn.run)
    })
}

/// Returns the implementation of every tool that the prompt declares: the fixed result of the case, or that of the host.
fn implementations(question: &Question<'_>, runtime: &Runtime, log: &Log) -> Result<HashMap<String, Arc<dyn Tool>>> {
    let none = JsonMap::new();
    let fixed = question.settings.tools.as_ref().unwrap_or(&none);
    check_names(question.prompt, fixed)?;
    let implementation = |name: &String| -> Result<Arc<dyn Tool>> {
        if let Some(result) = fixed.get(name) {
            return Ok(Arc::new(Fixed { output: result.clone(), log: log.clone() }));
        }
        let own = runtime.get_tool(name).ok_or_else(|| {
            let details = format_args!("`{name}` has neither a fixed result nor an implementation");
            Error::new(Kind::ToolNotRegistered, details)
                .with_help(format!("add the result to the case: `tools: {{{name}: …}}`"))
        })?;
        Ok(Arc::new(Logged { tool: own, log: log.clone() }))
    };
    let declared = question.prompt.spec().tools.iter();
    declared.map(|tool| implementation(&tool.name).map(|found| (tool.name.clone(), found))).collect()
}

/// Checks that the prompt declares the tools that have a fixed result.
fn check_names(prompt: &Prompt, fixed: &JsonMap) -> Result<()> {
    let declared = || prompt.spec().tools.iter().map(|tool| tool.name.as_str());
    let Some(unknown) = fixed.keys().find(|name| !declared().any(|tool| tool == *name)) else { return Ok(()) };
    let error = Error::new(Kind::InvalidTests, format_args!("`tools`: the prompt declares no tool `{unknown}`"));
    Err(match guess_name(unknown, declared()) {
        Some(near) => error.with_help(format!("did you mean `{near}`?")),
        None => error,
    })
}

/// Approves calls of tools that have a fixed result, because they run nothing.
fn approver(fixed: Option<&JsonMap>, log: &Log) -> Approve {
    let fixed: Vec<String> = fixed.into_iter().flat_map(JsonMap::keys).cloned().collect();
    let log = log.clone();
    Arc::new(move |approval: Approval| {
        let is_fixed = fixed.contains(&approval.run.name);
        if !approval.reasons.is_empty() {
            log.asked(&approval.run, approval.reason());
        }
        let verdict = match is_fixed {
            true => Verdict::Allow,
            false => Verdict::Deny("Nobody can approve it in a test: the tool has no fixed result".to_owned()),
        };
        Box::pin(std::future::ready(verdict))
    })
}

/// What happened to the calls of a turn.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<HashMap<(u32, usize), Event>>>);

/// What happened to a call.
#[derive(Default)]
struct Event {
    has_run: bool,
    asked: Option<String>,
}

impl Log {
    fn update(&self, run: &ToolRun, change: impl FnOnce(&mut Event)) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        change(events.entry((run.round, run.index)).or_default());
    }

    fn ran(&self, run: &ToolRun) {
        self.update(run, |event| event.has_run = true);
    }

    fn asked(&self, run: &ToolRun, reason: String) {
        self.update(run, |event| event.asked = Some(reason));
    }

    /// Returns the calls in the messages that a turn added. Each call has its result in the messages after it.
    fn calls(&self, messages: &[Message]) -> Vec<AnsweredCall> {
        let events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut calls, mut round) = (Vec::new(), 0);
        let mut messages = messages.iter().peekable();
        while let Some(message) = messages.next() {
            if message.role != Role::Assistant {
                continue;
            }
            round += 1;
            for (index, call) in written_calls(message).enumerate() {
                let result = messages.next_if(|message| message.role == Role::Tool).map(Message::to_text);
                let event = events.get(&(round, index));
                let mut call = AnsweredCall { round, ..call };
                // The turn itself answers questions about values that it hides.
                let has_run =
                    event.is_some_and(|event| event.has_run) || [READ_VALUE, EXTRACT_VALUE].contains(&&*call.name);
                call.asked = event.and_then(|event| event.asked.clone());
                call.refused = result.filter(|_| !has_run);
                calls.push(call);
            }
        }
        calls
    }
}

/// Returns the calls that a message of the model contains.
fn written_calls(message: &Message) -> impl Iterator<Item = AnsweredCall> {
    let calls = message.metadata.as_ref().and_then(|metadata| metadata.get("tool_calls")).and_then(Json::as_array);
    calls.into_iter().flatten().map(|call| {
        let text = |key: &str| call.pointer(key).and_then(Json::as_str).unwrap_or_default();
        convert::called(text("/function/name"), text("/function/arguments"), 0)
    })
}

/// A tool that returns a fixed result.
struct Fixed {
    output: Json,
    log: Log,
}

impl Tool for Fixed {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.log.ran(&invocation.run);
        Box::pin(std::future::ready(Ok(self.output.clone().into())))
    }
}

/// A tool of the host.
struct Logged {
    tool: Arc<dyn Tool>,
    log: Log,
}

impl Tool for Logged {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        self.log.ran(&invocation.run);
        self.tool.call(invocation)
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn parameters(&self) -> Option<&Json> {
        self.tool.parameters()
    }

    fn needs_approval(&self, run: &ToolRun) -> bool {
        self.tool.needs_approval(run)
    }

    fn is_idempotent(&self) -> bool {
        self.tool.is_idempotent()
    }

    fn flow(&self) -> ToolFlow {
        self.tool.flow()
    }
}
