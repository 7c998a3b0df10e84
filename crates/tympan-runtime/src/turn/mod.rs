//! Turns: everything from the user's question to the model's final answer, including tool calls.

pub(crate) mod cancel;
mod drive;
mod extraction;
pub mod journal;
mod persistence;
mod settings;
mod summary;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::json;
use tympan_core::prompt::inputs::IntoInputs;
use tympan_core::spec::flow::ToolFlow;
use tympan_core::turn::{EXTRACT_VALUE, Guardrails, Label, MessageLabel, Turn, TurnOptions, TurnTool};
use tympan_core::wire::response::Usage;
use tympan_core::{Error, Inputs, Kind, Message, Prompt, Result};

use crate::host::runtime::Runtime;
use crate::model::invoke::PromptSource;
use crate::model::run::Run;
use crate::net::io;
use crate::trace::Span;
use crate::trace::event;
use crate::turn::journal::Fingerprint;

pub use persistence::Resumed;
pub use settings::{AgentEvent, Approve, Compact, TurnSettings};

use crate::model::budget::Budget;
use drive::Drive;
use extraction::Extractor;
use persistence::{OpenJournal, Persistence};

/// The result of a turn.
#[derive(Clone, Debug)]
pub struct TurnRun {
    /// The final response, with the token usage of that response alone.
    pub run: Run,
    /// The token usage of all responses.
    pub usage: Usage,
    /// The number of model responses.
    pub rounds: u32,
    /// The conversation, including the final answer.
    pub messages: Vec<Message>,
    /// The labels of the messages, in the same order: where each part came from. It is empty if there are no tools. To
    /// continue the conversation in another turn, pass them as [`FlowOptions::labels`].
    ///
    /// [`FlowOptions::labels`]: tympan_core::turn::FlowOptions::labels
    pub labels: Vec<MessageLabel>,
    /// The label of everything that the model had read, and so of its answer.
    pub label: Label,
    /// What the journal contained, if the turn was [resumed](Runtime::resume).
    pub resumed: Option<Resumed>,
}

impl Runtime {
    /// Runs a turn: renders a prompt, then calls its model and the tools that the model requests until the model
    /// answers.
    ///
    /// # Errors
    /// Returns an error if nothing runs a declared tool (checked before the model is called), if the turn exceeds a
    /// limit, is cancelled or is denied by a guardrail, or if the model call fails. The conversation so far is in
    /// [`Error::conversation`].
    pub fn turn<'a, 'i>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let inputs = inputs.into_inputs()?.into_json();
        io::wait(self.turn_async(prompt, &*inputs, settings))
    }

    /// Runs a turn: the async variant of [`Runtime::turn`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::turn`].
    pub async fn turn_async<'a, 'i>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let inputs = &*inputs.into_inputs()?.into_json();
        let span = self.tracer().start("turn");
        let mut loaded = None;
        let prompt = event::record_error(&span, self.prompt(&span, prompt.into(), &mut loaded).await)?;
        let begin = Begin { prompt, inputs, messages: None, settings, journal: None };
        event::record_error(&span, self.turn_as_stage(&span, begin).await)
    }

    /// Runs a turn and deserializes its result into a type.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::turn`] does, or if the result does not match the type.
    pub fn turn_as<'a, 'i, T: DeserializeOwned>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
        settings: &TurnSettings,
    ) -> Result<T> {
        let inputs = inputs.into_inputs()?.into_json();
        io::wait(self.turn_as_async(prompt, &*inputs, settings))
    }

    /// Runs a turn and deserializes its result into a type: the async variant of [`Runtime::turn_as`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::turn_as`].
    pub async fn turn_as_async<'a, 'i, T: DeserializeOwned>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
        settings: &TurnSettings,
    ) -> Result<T> {
        self.turn_async(prompt, inputs, settings).await?.run.cast()
    }

    /// Runs a turn with messages that are already prepared.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::turn`].
    pub async fn turn_messages_async<'a, 'i>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
        messages: Vec<Message>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let inputs = &*inputs.into_inputs()?.into_json();
        let span = self.tracer().start("turn");
        let mut loaded = None;
        let prompt = event::record_error(&span, self.prompt(&span, prompt.into(), &mut loaded).await)?;
        let begin = Begin { prompt, inputs, messages: Some(messages), settings, journal: None };
        event::record_error(&span, self.turn_as_stage(&span, begin).await)
    }

    /// Resumes a turn after a crash, from the journal in the settings. The journal includes the inputs. Everything else
    /// that the turn started with must be provided again: the prompt, the tools and the credentials.
    ///
    /// Results that were journaled are not requested again. A tool that was running is run again with the same
    /// idempotency key if it is [idempotent](crate::Tool::is_idempotent). Otherwise, the model is informed that its
    /// outcome is unknown (`unknown_outcome`). A turn that was already over returns the same result as before, without
    /// any calls.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::turn`] does, if the journal cannot be read ([`Kind::InvalidJournal`]), if another
    /// process is running the turn ([`Kind::JournalBusy`]), if the journal belongs to a different prompt
    /// ([`Kind::JournalMismatch`]), or if it names an address that is no longer configured or allowed
    /// ([`Kind::UntrustedEndpoint`]).
    pub fn resume<'a>(&self, prompt: impl Into<PromptSource<'a>>, settings: &TurnSettings) -> Result<TurnRun> {
        io::wait(self.resume_async(prompt, settings))
    }

    /// Resumes a turn after a crash: the async variant of [`Runtime::resume`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::resume`].
    pub async fn resume_async<'a>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let span = self.tracer().start("turn");
        let mut loaded = None;
        let prompt = event::record_error(&span, self.prompt(&span, prompt.into(), &mut loaded).await)?;
        event::record_error(&span, self.resume_as(&span, prompt, None, settings).await)
    }

    /// Resumes a turn that started with messages that were already prepared. They must be the same messages.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::resume`].
    pub async fn resume_messages_async<'a>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        messages: Vec<Message>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let span = self.tracer().start("turn");
        let mut loaded = None;
        let prompt = event::record_error(&span, self.prompt(&span, prompt.into(), &mut loaded).await)?;
        event::record_error(&span, self.resume_as(&span, prompt, Some(messages), settings).await)
    }

    async fn resume_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        messages: Option<Vec<Message>>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let journal = settings.journal.as_ref().ok_or_else(|| {
            Error::new(Kind::InvalidJournal, "no journal to resume")
                .with_help("set TurnSettings::journal to the journal of the turn")
        })?;
        let mut journal = OpenJournal::open(journal).await?;
        self.check_journal_address(&mut journal.header, prompt, &settings.run)?;
        let inputs = journal.header.inputs.clone();
        let begin = Begin { prompt, inputs: &inputs, messages, settings, journal: Some(journal) };
        self.turn_as_stage(span, begin).await
    }

    async fn turn_as_stage(&self, span: &Span, begin: Begin<'_>) -> Result<TurnRun> {
        let Begin { prompt, inputs, messages, settings, journal } = begin;
        let budget = Budget::begin(&settings.turn, self.budget().cloned())?;
        // Everything that happens in the turn counts toward its budget.
        let runtime = &self.within(budget.clone()).in_turn();
        runtime.joins_turn(prompt);
        span.turn(prompt.spec().name.as_deref());
        if let Some(number) = settings.turn_number {
            span.emit("turn", || number.into());
        }
        event::record_inputs(span, prompt, inputs.into());
        let mut options = settings.turn.clone();
        let messages = match messages {
            Some(messages) => {
                check_labels(&options, messages.len())?;
                messages
            }
            None if options.flow.labels.is_some() => {
                return Err(Error::new(Kind::InvalidInput, "labels: found no messages that they belong to")
                    .with_help("pass the messages as well; the labels of a prompt's own messages are known"));
            }
            None => {
                let stage = span.child("prepare");
                let has_tools = !prompt.spec().tools.is_empty() || !options.tools.is_empty();
                let (mut messages, labels) =
                    runtime.prepare_labeled_async(&stage, prompt, inputs.into(), has_tools).await?;
                // A guard on the results of tools needs its advisory as well, unless the prompt's guard has brought it.
                let is_explained = runtime.options().guard.as_ref().is_some_and(|guard| {
                    let is_sent = || messages.iter().any(|message| message.to_text() == guard.advisory());
                    guard.info().role.is_none() || is_sent()
                });
                if let Some(guard) = settings.turn.guard.as_ref().filter(|_| !is_explained) {
                    guard.info().insert_into(&mut messages);
                }
                let guard = runtime.options().guard.as_ref().or(settings.turn.guard.as_ref());
                if let (Some(journal), Some(guard)) = (&journal, guard) {
                    journal.header.fingerprint.restore_messages(&mut messages, guard.advisory());
                }
                options.flow.labels = labels.and_then(|labels| labels.of(&messages));
                messages
            }
        };
        let given = inputs;
        let inputs = prompt.validate_inputs(inputs)?;
        let mut tools = runtime.open_tools(span, prompt, &inputs, settings).await?;
        options.guardrails = Guardrails {
            input: settings.judge_input.is_some(),
            output: settings.judge_output.is_some(),
            // Whether a call needs approval is known only when the tool is called.
            tool: true,
        };
        options.compaction |= settings.compact.is_some();
        options.tools.append(&mut tools.turn_tools);
        options.flow.policy.get_or_insert_with(|| self.options().tool_policy.clone());
        for (name, tool) in &tools.runs {
            let flow = options.flow.tools.get(name).cloned().unwrap_or_default().over(&tool.flow());
            let flow = ToolFlow { trusted: flow.trusted.or(tool.flow().trusted), ..flow };
            options.flow.tools.insert(name.clone(), flow);
        }
        let mut run =
            journal.as_ref().map_or_else(|| settings.run.clone(), |journal| journal.header.run(&settings.run));
        run.functions.extend(options.tools.iter().map(TurnTool::shown));
        let fingerprint = settings.journal.as_ref().map(|_| Fingerprint::new(prompt, &messages, &options));
        let mut turn = Turn::new(prompt, &inputs, messages, options)?;
        let value_functions = turn.value_functions();
        if !value_functions.is_empty() {
            tools.runs.insert(EXTRACT_VALUE.to_owned(), Arc::new(Extractor::new(prompt, &run)));
            tools.idempotent.insert(EXTRACT_VALUE.to_owned());
            run.functions.extend(value_functions);
        }
        let resumed = journal.as_ref().map(|journal| journal.resumed);
        let redactor = match &settings.journal {
            Some(_) => persistence::redactor(self, prompt, &run),
            None => persistence::no_redactor(self),
        };
        let persistence = match (fingerprint, journal) {
            (Some(fingerprint), Some(journal)) => Persistence::restore(&mut turn, journal, &fingerprint, redactor)?,
            (fingerprint, _) => Persistence::begin(&mut turn, prompt, given, fingerprint, settings, redactor).await?,
        };
        if resumed.is_some() {
            budget.resume(turn.iterations(), turn.usage());
        }
        let driver = Drive { runtime, prompt, settings, run, tools, span, turn, persistence };
        let (response, turn) = driver.drive().await?;
        let (usage, rounds) = (turn.usage().clone(), turn.iterations());
        let run = Run::new(span, &prompt.spec().outputs, response)?;
        let (labels, label) = (turn.labels().to_vec(), turn.context().clone());
        span.emit("label", || json!(label));
        Ok(TurnRun { run, usage, rounds, messages: turn.into_messages(), labels, label, resumed })
    }
}

/// Checks that there are labels for every message. Otherwise, a message could get the label of another one.
fn check_labels(options: &TurnOptions, messages: usize) -> Result<()> {
    match &options.flow.labels {
        Some(labels) if labels.len() != messages => {
            let found = labels.len();
            let details = format_args!("labels: expected those of {messages} messages, found those of {found}");
            Err(Error::new(Kind::InvalidInput, details))
        }
        _ => Ok(()),
    }
}

/// The values that a turn starts with.
struct Begin<'a> {
    prompt: &'a Prompt,
    inputs: &'a Inputs,
    /// The messages, if they are already prepared.
    messages: Option<Vec<Message>>,
    settings: &'a TurnSettings,
    /// The journal of the turn to resume.
    journal: Option<OpenJournal>,
}
