//! The pipeline as free functions, which use a default runtime.

#[cfg(feature = "agent")]
use std::path::Path;
use std::sync::OnceLock;

#[cfg(feature = "providers")]
use serde::de::DeserializeOwned;
use tympan_core::prompt::inputs::IntoInputs;
use tympan_core::{Inputs, Message, Prompt, Rendered, Result};

use crate::host::runtime::Runtime;
#[cfg(feature = "providers")]
use crate::model::invoke::PromptSource;
#[cfg(feature = "providers")]
use crate::model::run::Run;
#[cfg(feature = "agent")]
use crate::turn::{TurnRun, TurnSettings};

/// Returns the runtime that the free functions use.
pub fn default_runtime() -> &'static Runtime {
    static DEFAULT: OnceLock<Runtime> = OnceLock::new();
    DEFAULT.get_or_init(Runtime::default)
}

/// Fills in defaults and checks that no required input is missing. See [`Runtime::validate_inputs`].
///
/// # Errors
/// Returns an error if a required input is missing and has no default.
pub fn validate_inputs<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Inputs> {
    default_runtime().validate_inputs(prompt, inputs)
}

/// Renders a prompt. See [`Runtime::render`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::render`].
pub fn render<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
    default_runtime().render(prompt, inputs)
}

/// Splits a rendered prompt into messages. See [`Runtime::parse`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::parse`].
pub fn parse(prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
    default_runtime().parse(prompt, rendered)
}

/// Renders a prompt and splits it into messages. See [`Runtime::prepare`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::prepare`].
pub fn prepare<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
    default_runtime().prepare(prompt, inputs)
}

/// Renders a prompt: the async variant of [`render`]. It waits only for a custom renderer.
///
/// # Errors
/// Returns an error for the same reasons as [`render`].
pub async fn render_async<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
    default_runtime().render_async(prompt, inputs).await
}

/// Splits a rendered prompt into messages: the async variant of [`parse`]. It completes immediately.
///
/// # Errors
/// Returns an error for the same reasons as [`parse`].
pub async fn parse_async(prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
    parse(prompt, rendered)
}

/// Renders a prompt and splits it into messages: the async variant of [`prepare`].
///
/// # Errors
/// Returns an error for the same reasons as [`prepare`].
pub async fn prepare_async<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
    default_runtime().prepare_async(prompt, inputs).await
}

/// Calls the model of a prompt with these messages. See [`Runtime::run`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::run`].
#[cfg(feature = "providers")]
pub fn run(prompt: &Prompt, messages: &[Message]) -> Result<Run> {
    default_runtime().run(prompt, messages)
}

/// Calls the model of a prompt: the async variant of [`run`].
///
/// # Errors
/// Returns an error for the same reasons as [`run`].
#[cfg(feature = "providers")]
pub async fn run_async(prompt: &Prompt, messages: &[Message]) -> Result<Run> {
    default_runtime().run_async(prompt, messages).await
}

/// Converts the body of a provider's response to a result. See [`Runtime::process`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::process`].
#[cfg(feature = "providers")]
pub fn process(prompt: &Prompt, body: &[u8]) -> Result<Run> {
    default_runtime().process(prompt, body)
}

/// Converts the body of a response: the async variant of [`process`]. It completes immediately.
///
/// # Errors
/// Returns an error for the same reasons as [`process`].
#[cfg(feature = "providers")]
pub async fn process_async(prompt: &Prompt, body: &[u8]) -> Result<Run> {
    process(prompt, body)
}

/// Loads a prompt if necessary, renders it, calls its model, and converts the response to a result. See
/// [`Runtime::invoke`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::invoke`].
#[cfg(feature = "providers")]
pub fn invoke<'a, 'i>(prompt: impl Into<PromptSource<'a>>, inputs: impl IntoInputs<'i>) -> Result<Run> {
    default_runtime().invoke(prompt, inputs)
}

/// Runs a prompt: the async variant of [`invoke`].
///
/// # Errors
/// Returns an error for the same reasons as [`invoke`].
#[cfg(feature = "providers")]
pub async fn invoke_async<'a, 'i>(prompt: impl Into<PromptSource<'a>>, inputs: impl IntoInputs<'i>) -> Result<Run> {
    default_runtime().invoke_async(prompt, inputs).await
}

/// Runs a prompt and deserializes its result into a type. See [`Runtime::invoke_as`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::invoke_as`].
#[cfg(feature = "providers")]
pub fn invoke_as<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
) -> Result<T> {
    default_runtime().invoke_as(prompt, inputs)
}

/// Runs a prompt and deserializes its result into a type: the async variant of [`invoke_as`].
///
/// # Errors
/// Returns an error for the same reasons as [`invoke_as`].
#[cfg(feature = "providers")]
pub async fn invoke_as_async<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
) -> Result<T> {
    default_runtime().invoke_as_async(prompt, inputs).await
}

/// Runs a turn: calls the model of a prompt and the tools that the model requests until the model answers. See
/// [`Runtime::turn`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::turn`].
#[cfg(feature = "agent")]
pub fn turn<'a, 'i>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    default_runtime().turn(prompt, inputs, settings)
}

/// Runs a turn: the async variant of [`turn`].
///
/// # Errors
/// Returns an error for the same reasons as [`turn`].
#[cfg(feature = "agent")]
pub async fn turn_async<'a, 'i>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    default_runtime().turn_async(prompt, inputs, settings).await
}

/// Runs a turn and deserializes its result into a type. See [`Runtime::turn_as`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::turn_as`].
#[cfg(feature = "agent")]
pub fn turn_as<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    default_runtime().turn_as(prompt, inputs, settings)
}

/// Runs a turn and deserializes its result into a type: the async variant of [`turn_as`].
///
/// # Errors
/// Returns an error for the same reasons as [`turn_as`].
#[cfg(feature = "agent")]
pub async fn turn_as_async<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    default_runtime().turn_as_async(prompt, inputs, settings).await
}

/// Resumes a turn from its journal after a crash. See [`Runtime::resume`].
///
/// # Errors
/// Returns an error for the same reasons as [`Runtime::resume`].
#[cfg(feature = "agent")]
pub fn resume<'a>(prompt: impl Into<PromptSource<'a>>, settings: &TurnSettings) -> Result<TurnRun> {
    default_runtime().resume(prompt, settings)
}

/// Resumes a turn from its journal: the async variant of [`resume`].
///
/// # Errors
/// Returns an error for the same reasons as [`resume`].
#[cfg(feature = "agent")]
pub async fn resume_async<'a>(prompt: impl Into<PromptSource<'a>>, settings: &TurnSettings) -> Result<TurnRun> {
    default_runtime().resume_async(prompt, settings).await
}

/// Loads a prompt file and runs a turn with it.
///
/// # Errors
/// Returns an error if [`Runtime::load`] or [`Runtime::turn`] does.
#[cfg(feature = "agent")]
pub fn invoke_agent<'i>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    turn(path.as_ref(), inputs, settings)
}

/// Loads a prompt file and runs a turn with it: the async variant of [`invoke_agent`].
///
/// # Errors
/// Returns an error for the same reasons as [`invoke_agent`].
#[cfg(feature = "agent")]
pub async fn invoke_agent_async<'i>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    turn_async(path.as_ref(), inputs, settings).await
}

/// Loads a prompt file, runs a turn with it, and deserializes its result into a type.
///
/// # Errors
/// Returns an error if [`invoke_agent`] does, or if the result does not match the type.
#[cfg(feature = "agent")]
pub fn invoke_agent_as<'i, T: DeserializeOwned>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    turn_as(path.as_ref(), inputs, settings)
}

/// Runs a turn with a prompt file and deserializes its result into a type: the async variant of [`invoke_agent_as`].
///
/// # Errors
/// Returns an error for the same reasons as [`invoke_agent_as`].
#[cfg(feature = "agent")]
pub async fn invoke_agent_as_async<'i, T: DeserializeOwned>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    turn_as_async(path.as_ref(), inputs, settings).await
}
