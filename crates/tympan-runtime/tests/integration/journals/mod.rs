//! A turn of twenty steps with three tools, two of them concurrent, that can crash anywhere; and stores that watch
//! commits.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tympan_core::turn::{ContextBudget, TurnOptions};
use tympan_core::wire::response::{Answer, Output, Response, ToolCall, Usage};
use tympan_core::{Inputs, Message, Prompt, Role};
use tympan_runtime::tool::{Tool, ToolError};
use tympan_runtime::turn::journal::{JournalStore, JournalWriter, Stored};
use tympan_runtime::{
    Error, Invocation, Journal, Kind, ModelCall, Provider, Reply, Result, Runtime, ToolOutput, TurnRun, TurnSettings,
};

/// The number of steps before the model's final answer.
pub(crate) const STEPS: usize = 20;

const TOOLS: [&str; 3] = ["read", "write", "send"];

/// A model that depends only on the last tool result, so it needs no memory and works with a shortened conversation.
struct Stepping(Calls);

/// The number of messages of each call.
pub(crate) type Calls = Arc<Mutex<Vec<usize>>>;

impl Provider for Stepping {
    fn call<'a>(&'a self, call: ModelCall<'a>) -> BoxFuture<'a, Result<Reply>> {
        self.0.lock().expect("nobody panics").push(call.messages.len());
        let told = call.messages.iter().rev().filter(|message| message.role == Role::Tool);
        let step = told.map(Message::to_text).find_map(|text| next_step(&text)).unwrap_or(0);
        let mut answer = Answer::default();
        if step < STEPS {
            answer.tool_calls = (0..2).map(|call| tool_call(step, call)).collect();
        } else {
            answer.text = format!("All {STEPS} steps are done.");
        }
        let usage = Usage { input_tokens: 10, output_tokens: 1, total_tokens: 11, ..Usage::default() };
        let output = Output::Answer(answer);
        let response = Response { output, usage: Some(usage), model: Some("stepping".into()), ..Response::default() };
        Box::pin(std::future::ready(Ok(Reply::Whole(response))))
    }
}

/// Returns the step after the one in a tool result. A result with an unknown outcome contains none.
fn next_step(text: &str) -> Option<usize> {
    let step = text.strip_prefix("step ")?.split(' ').next()?;
    Some(step.parse::<usize>().expect("a number") + 1)
}

fn tool_call(step: usize, call: usize) -> ToolCall {
    let name = TOOLS[(step + call) % TOOLS.len()].to_owned();
    ToolCall { id: format!("call_{step}_{call}"), name, arguments: json!({ "step": step }).to_string() }
}

/// Returns the runtime for the model, and the record of its calls.
pub(crate) fn runtime() -> (Runtime, Calls) {
    let (runtime, calls) = (Runtime::default(), Calls::default());
    runtime.register_provider("stepping", Arc::new(Stepping(calls.clone())));
    (runtime, calls)
}

pub(crate) fn prompt() -> Prompt {
    let parameters = json!([{ "name": "step", "kind": "integer" }]);
    let tools = TOOLS.map(|name| json!({ "name": name, "kind": "function", "parameters": parameters }));
    let model = json!({ "provider": "stepping" });
    let inputs = json!([{ "name": "job", "kind": "string", "required": true }]);
    let front = json!({ "name": "steps", "model": model, "tools": tools, "inputs": inputs });
    let text = format!("---\n{front}\n---\nsystem:\nGo step by step.\n\nuser:\n{{{{ job }}}}\n");
    Runtime::default().load_str(&text, "steps.prompty", ".").expect("it loads")
}

pub(crate) fn inputs() -> Inputs {
    json!({ "job": "Do it." }).as_object().expect("a map").clone()
}

/// When a tool is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    BeforeEffect,
    AfterEffect,
}

type Interrupt = Arc<dyn Fn(&Invocation, Moment) + Send + Sync>;

/// A tool whose effect is a line in a file with the key of the call.
#[derive(Clone)]
pub(crate) struct Effect {
    pub(crate) file: PathBuf,
    /// Whether it may run again. If so, it checks whether it has already run, as idempotent tools do.
    pub(crate) idempotent: bool,
    pub(crate) interrupt: Option<Interrupt>,
}

impl Effect {
    pub(crate) fn new(directory: &Path, idempotent: bool) -> Self {
        Self { file: directory.join("effects"), idempotent, interrupt: None }
    }

    fn interrupt(&self, invocation: &Invocation, moment: Moment) {
        if let Some(interrupt) = &self.interrupt {
            interrupt(invocation, moment);
        }
    }

    fn perform(&self, invocation: &Invocation) -> Result<ToolOutput, ToolError> {
        self.interrupt(invocation, Moment::BeforeEffect);
        let key = &invocation.idempotency_key;
        let is_done = self.idempotent && effects(&self.file).contains(key);
        if !is_done {
            let mut file = OpenOptions::new().create(true).append(true).open(&self.file)?;
            file.write_all(format!("{key}\n").as_bytes())?;
        }
        self.interrupt(invocation, Moment::AfterEffect);
        Ok(format!("step {} by {}", invocation.run.arguments["step"], invocation.run.name).into())
    }
}

impl Tool for Effect {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let tool = self.clone();
        Box::pin(async move { tool.perform(&invocation) })
    }

    fn is_idempotent(&self) -> bool {
        self.idempotent
    }
}

/// Returns the keys of all effects, in order.
pub(crate) fn effects(file: &Path) -> Vec<String> {
    fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

pub(crate) fn settings(effect: &Effect, journal: Journal, compaction: bool) -> TurnSettings {
    let tool: Arc<dyn Tool> = Arc::new(effect.clone());
    let turn = TurnOptions {
        max_iterations: 100,
        parallel_tool_calls: true,
        context_budget: compaction.then_some(ContextBudget::Chars(700)),
        compaction,
        ..TurnOptions::default()
    };
    let tools = TOOLS.map(|name| (name.to_owned(), tool.clone())).into_iter().collect();
    TurnSettings { turn, tools, journal: Some(journal), ..TurnSettings::default() }
}

/// Returns everything about a turn that is visible to a user, except for its random ID.
pub(crate) fn state(turn: &TurnRun) -> Value {
    json!([turn.run.outcome.to_json(), turn.usage, turn.rounds, turn.messages])
}

type Watch = Arc<dyn Fn(&[Vec<u8>]) + Send + Sync>;

/// A journal in memory.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) records: Arc<Mutex<Vec<Vec<u8>>>>,
    /// Called at each commit.
    pub(crate) watch: Option<Watch>,
}

impl Memory {
    pub(crate) fn holding(records: &[Vec<u8>]) -> Self {
        Self { records: Arc::new(Mutex::new(records.to_vec())), watch: None }
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::in_store(Arc::new(self.clone()))
    }

    pub(crate) fn all(&self) -> Vec<Vec<u8>> {
        self.records.lock().expect("nobody panics").clone()
    }

    /// Returns the records as JSON.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.all().iter().map(|record| serde_json::from_slice(record).expect("it is JSON")).collect()
    }
}

impl JournalStore for Memory {
    fn create(&self, first: &[u8]) -> Result<Box<dyn JournalWriter>> {
        let mut records = self.records.lock().expect("nobody panics");
        if !records.is_empty() {
            return Err(Error::new(Kind::InvalidJournal, "it is there already"));
        }
        records.push(first.to_vec());
        Ok(Box::new(self.clone()))
    }

    fn open(&self) -> Result<(Stored, Box<dyn JournalWriter>)> {
        Ok((self.read()?, Box::new(self.clone())))
    }

    fn read(&self) -> Result<Stored> {
        Ok(Stored { records: self.all(), torn_bytes: 0 })
    }
}

impl JournalWriter for Memory {
    fn commit(&mut self, records: &[Vec<u8>]) -> Result<()> {
        self.records.lock().expect("nobody panics").extend(records.iter().cloned());
        if let Some(watch) = &self.watch {
            watch(records);
        }
        Ok(())
    }
}
