//! Turns: one question of the user's up to the model's last answer, calls of tools included.

pub(crate) mod cancel;
mod drive;
pub mod journal;
mod saved;
mod settings;
mod summary;

use serde::de::DeserializeOwned;
use tympan_core::turn::{Guardrails, Turn, TurnTool};
use tympan_core::wire::response::Usage;
use tympan_core::{Error, Inputs, Kind, Message, Prompt, Redactor, Result};

use crate::host::runtime::Runtime;
use crate::model::invoke::PromptSource;
use crate::model::run::Run;
use crate::net::io;
use crate::trace::Span;
use crate::trace::event;
use crate::turn::journal::Fits;

pub use saved::Resumed;
pub use settings::{AgentEvent, Approve, Compact, TurnSettings};

use crate::model::budget::Budget;
use drive::Drive;
use saved::{Kept, Opened};

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
    /// What was in its journal, if it was [resumed](Runtime::resume).
    pub resumed: Option<Resumed>,
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
        let mut loaded = None;
        let prompt = event::failed(&span, self.prompt(&span, prompt.into(), &mut loaded).await)?;
        let begin = Begin { prompt, inputs, messages: None, settings, opened: None };
        event::failed(&span, self.turn_as_stage(&span, begin).await)
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
        io::wait(self.turn_as_async(prompt, inputs, settings))
    }

    /// The async twin of [`Runtime::turn_as`].
    ///
    /// # Errors
    /// As [`Runtime::turn_as`].
    pub async fn turn_as_async<'a, T: DeserializeOwned>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: &Inputs,
        settings: &TurnSettings,
    ) -> Result<T> {
        self.turn_async(prompt, inputs, settings).await?.run.cast()
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
        let begin = Begin { prompt, inputs, messages: Some(messages), settings, opened: None };
        event::failed(&span, self.turn_as_stage(&span, begin).await)
    }

    /// Goes on with a turn that has died, from its journal in the settings. The inputs are in the journal too; whatever
    /// else the turn began with has to be given again: the prompt, the tools, credentials.
    ///
    /// Nothing that came back is asked for again. A tool that had begun is run again with the same key if it
    /// [may be](crate::Tool::is_idempotent), and else the model is told that nobody knows (`unknown_outcome`). A turn that
    /// was over comes to the same as before, and nobody is called.
    ///
    /// # Errors
    /// As [`Runtime::turn`]; the journal cannot be read ([`Kind::InvalidJournal`]), somebody else goes through the turn
    /// ([`Kind::JournalBusy`]), the journal tells of another prompt ([`Kind::JournalMismatch`]), or it names an address
    /// that nobody has named or allowed now ([`Kind::UntrustedEndpoint`]).
    pub fn resume<'a>(&self, prompt: impl Into<PromptSource<'a>>, settings: &TurnSettings) -> Result<TurnRun> {
        io::wait(self.resume_async(prompt, settings))
    }

    /// The async twin of [`Runtime::resume`].
    ///
    /// # Errors
    /// As [`Runtime::resume`].
    pub async fn resume_async<'a>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let span = self.tracer().start("turn");
        let mut loaded = None;
        let prompt = event::failed(&span, self.prompt(&span, prompt.into(), &mut loaded).await)?;
        event::failed(&span, self.resume_as(&span, prompt, None, settings).await)
    }

    /// As [`Runtime::resume`], for a turn that began with messages that had been prepared already: the same ones.
    ///
    /// # Errors
    /// As [`Runtime::resume`].
    pub async fn resume_messages_async(
        &self,
        prompt: &Prompt,
        messages: Vec<Message>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let span = self.tracer().start("turn");
        event::failed(&span, self.resume_as(&span, prompt, Some(messages), settings).await)
    }

    async fn resume_as(
        &self,
        span: &Span,
        prompt: &Prompt,
        messages: Option<Vec<Message>>,
        settings: &TurnSettings,
    ) -> Result<TurnRun> {
        let journal = settings.journal.as_ref().ok_or_else(|| {
            Error::new(Kind::InvalidJournal, "there is none")
                .with_help("set TurnSettings::journal to the one to resume")
        })?;
        let mut opened = Opened::open(journal).await?;
        self.check_journal_address(&mut opened.header, prompt, &settings.run)?;
        let inputs = opened.header.inputs.clone();
        let begin = Begin { prompt, inputs: &inputs, messages, settings, opened: Some(opened) };
        self.turn_as_stage(span, begin).await
    }

    async fn turn_as_stage(&self, span: &Span, begin: Begin<'_>) -> Result<TurnRun> {
        let Begin { prompt, inputs, messages, settings, opened } = begin;
        let budget = Budget::begin(&settings.turn, self.budget().cloned())?;
        // Whatever happens in the turn is a part of it.
        let runtime = &self.within(budget.clone()).in_turn();
        runtime.joins_turn(prompt);
        span.turn(prompt.spec().name.as_deref());
        event::inputs(span, prompt, inputs.into());
        let messages = match messages {
            Some(messages) => messages,
            None => runtime.prepare_as(&span.child("prepare"), prompt, inputs.into())?,
        };
        let given = inputs;
        let inputs = prompt.validate_inputs(inputs)?;
        let mut tools = runtime.open_tools(span, prompt, &inputs, settings).await?;
        let mut options = settings.turn.clone();
        options.guardrails = Guardrails {
            input: settings.judge_input.is_some(),
            output: settings.judge_output.is_some(),
            // Whether a person has to be asked is known when a tool is called.
            tool: true,
        };
        options.compaction |= settings.compact.is_some();
        options.tools.append(&mut tools.turn_tools);
        let mut run = opened.as_ref().map_or_else(|| settings.run.clone(), |opened| opened.header.run(&settings.run));
        run.functions.extend(options.tools.iter().map(TurnTool::shown));
        let fits = settings.journal.as_ref().map(|_| Fits::new(prompt, &messages, &options));
        let mut turn = Turn::new(prompt, &inputs, messages, options)?;
        let resumed = opened.as_ref().map(|opened| opened.resumed);
        let redactor =
            settings.journal.as_ref().map_or_else(Redactor::default, |_| saved::redactor(self, prompt, &run));
        let kept = match (fits, opened) {
            (Some(fits), Some(opened)) => Kept::take_up(&mut turn, opened, &fits, redactor)?,
            (fits, _) => Kept::begin(&mut turn, prompt, given, fits, settings, redactor).await?,
        };
        if resumed.is_some() {
            budget.resume(turn.iterations(), turn.usage());
        }
        let driver = Drive { runtime, prompt, settings, run, tools, span, turn, kept };
        let (response, turn) = driver.drive().await?;
        let (usage, rounds) = (turn.usage().clone(), turn.iterations());
        let run = Run::new(span, &prompt.spec().outputs, response)?;
        Ok(TurnRun { run, usage, rounds, messages: turn.into_messages(), resumed })
    }
}

/// What a turn begins with.
struct Begin<'a> {
    prompt: &'a Prompt,
    inputs: &'a Inputs,
    /// The messages, if they have been prepared already.
    messages: Option<Vec<Message>>,
    settings: &'a TurnSettings,
    /// The journal of a turn that has begun before.
    opened: Option<Opened>,
}
