//! Runs a prompt from its inputs to its result.

use std::fmt;
use std::path::Path;

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use tympan_core::prompt::inputs::IntoInputs;
use tympan_core::{Inputs, Prompt, Result};

use crate::host::runtime::Runtime;
use crate::model::run::{Run, RunOptions};
use crate::net::io;
use crate::trace::Span;
use crate::trace::event;

/// A check that a prompt must pass before it is used.
pub type PromptCheck = dyn Fn(&Prompt) -> BoxFuture<'static, Result<()>> + Send + Sync;

/// A prompt, or the path of a prompt file.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum PromptSource<'a> {
    /// A loaded prompt.
    Prompt(&'a Prompt),
    /// A prompt file.
    File(&'a Path),
    /// A prompt file, and a check that the prompt must pass before it is used.
    Checked(&'a Path, &'a PromptCheck),
}

impl fmt::Debug for PromptSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prompt(prompt) => f.debug_tuple("Prompt").field(prompt).finish(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Checked(path, _) => f.debug_tuple("Checked").field(path).finish_non_exhaustive(),
        }
    }
}

impl<'a> From<&'a Prompt> for PromptSource<'a> {
    fn from(prompt: &'a Prompt) -> Self {
        Self::Prompt(prompt)
    }
}

impl<'a> From<&'a Path> for PromptSource<'a> {
    fn from(path: &'a Path) -> Self {
        Self::File(path)
    }
}

impl<'a> From<&'a str> for PromptSource<'a> {
    fn from(path: &'a str) -> Self {
        Self::File(Path::new(path))
    }
}

impl Runtime {
    /// Loads a prompt if necessary, renders it, calls its model, and converts the response to a result.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::load`], [`Runtime::prepare`] or [`Runtime::run`] does.
    pub fn invoke<'a, 'i>(&self, prompt: impl Into<PromptSource<'a>>, inputs: impl IntoInputs<'i>) -> Result<Run> {
        let inputs = inputs.into_inputs()?.into_json();
        io::wait(self.invoke_async(prompt, &*inputs))
    }

    /// Runs a prompt: the async variant of [`Runtime::invoke`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::invoke`].
    pub async fn invoke_async<'a, 'i>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
    ) -> Result<Run> {
        self.invoke_with_async(prompt, inputs, &RunOptions::default()).await
    }

    /// Runs a prompt like [`Runtime::invoke`], with custom options for the model call.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::invoke`].
    pub fn invoke_with<'a, 'i>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
        options: &RunOptions,
    ) -> Result<Run> {
        let inputs = inputs.into_inputs()?.into_json();
        io::wait(self.invoke_with_async(prompt, &*inputs, options))
    }

    /// Runs a prompt with custom options: the async variant of [`Runtime::invoke_with`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::invoke`].
    pub async fn invoke_with_async<'a, 'i>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
        options: &RunOptions,
    ) -> Result<Run> {
        let inputs = &*inputs.into_inputs()?.into_json();
        let span = self.tracer().start("invoke");
        let run = self.invoke_as_stage(&span, prompt.into(), inputs, options).await;
        event::record_error(&span, run)
    }

    /// Returns the prompt, and loads it if necessary.
    pub(crate) async fn prompt<'a>(
        &self,
        span: &Span,
        source: PromptSource<'a>,
        loaded: &'a mut Option<Prompt>,
    ) -> Result<&'a Prompt> {
        match source {
            PromptSource::Prompt(prompt) => Ok(prompt),
            PromptSource::File(path) => Ok(loaded.insert(self.load_as(&span.child("load"), path).await?)),
            PromptSource::Checked(path, check) => {
                let prompt = self.load_as(&span.child("load"), path).await?;
                check(&prompt).await?;
                Ok(loaded.insert(prompt))
            }
        }
    }

    async fn invoke_as_stage(
        &self,
        span: &Span,
        prompt: PromptSource<'_>,
        inputs: &Inputs,
        options: &RunOptions,
    ) -> Result<Run> {
        let mut loaded = None;
        let prompt = self.prompt(span, prompt, &mut loaded).await?;
        let messages = self.prepare_as_async(&span.child("prepare"), prompt, inputs.into()).await?;
        let run = self.run_as(span, prompt, &messages, options).await;
        event::record_inputs(span, prompt, inputs.into());
        run
    }

    /// Runs a prompt and deserializes its result into a type.
    ///
    /// # Errors
    /// Returns an error if [`Runtime::invoke`] does, or if the result does not match the type.
    pub fn invoke_as<'a, 'i, T: DeserializeOwned>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
    ) -> Result<T> {
        self.invoke(prompt, inputs)?.cast()
    }

    /// Runs a prompt and deserializes its result into a type: the async variant of [`Runtime::invoke_as`].
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`Runtime::invoke_as`].
    pub async fn invoke_as_async<'a, 'i, T: DeserializeOwned>(
        &self,
        prompt: impl Into<PromptSource<'a>>,
        inputs: impl IntoInputs<'i>,
    ) -> Result<T> {
        self.invoke_async(prompt, inputs).await?.cast()
    }
}
