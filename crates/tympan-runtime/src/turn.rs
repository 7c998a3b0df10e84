//! Turns: one question of the user's up to the model's last answer, calls of tools included.

mod compact;
mod drive;
mod settings;

use serde::de::DeserializeOwned;
use tympan::response::Usage;
use tympan::turn::{Guardrails, Turn, TurnTool};
use tympan::{Inputs, Message, Prompt, Result};

use crate::invoke::PromptSource;
use crate::io;
use crate::run::Run;
use crate::runtime::Runtime;
use crate::told;
use crate::trace::Span;

pub use settings::{AgentEvent, Approve, Compact, TurnSettings};

use drive::Drive;

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
            // Whether a person has to be asked is known when a tool is called.
            tool: true,
        };
        options.compaction |= settings.compact.is_some();
        let opened = self.open_tools(span, prompt, &inputs, settings).await?;
        options.tools.extend(opened.turn_tools);
        let mut run = settings.run.clone();
        run.functions.extend(options.tools.iter().map(TurnTool::shown));
        let turn = Turn::new(prompt, &inputs, messages, options)?;
        let driver = Drive::new(self, prompt, settings, run, opened.runs, span, turn)?;
        let (response, turn) = driver.drive().await?;
        let (usage, rounds) = (turn.usage().clone(), turn.iterations());
        let run = Run::new(span, &prompt.spec().outputs, response)?;
        Ok(TurnRun { run, usage, rounds, messages: turn.into_messages() })
    }
}
