//! The pipeline's functions, on one default runtime.

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

/// The runtime that the free functions use.
pub fn default_runtime() -> &'static Runtime {
    static DEFAULT: OnceLock<Runtime> = OnceLock::new();
    DEFAULT.get_or_init(Runtime::default)
}

/// Fills in defaults and checks that nothing required is missing.
///
/// # Errors
/// A required input is missing and has no default.
pub fn validate_inputs<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Inputs> {
    default_runtime().validate_inputs(prompt, inputs)
}

/// Renders a prompt. See [`Runtime::render`].
///
/// # Errors
/// As [`Runtime::render`].
pub fn render<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
    default_runtime().render(prompt, inputs)
}

/// Splits a rendered prompt into messages. See [`Runtime::parse`].
///
/// # Errors
/// As [`Runtime::parse`].
pub fn parse(prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
    default_runtime().parse(prompt, rendered)
}

/// Renders a prompt and splits it into messages. See [`Runtime::prepare`].
///
/// # Errors
/// As [`Runtime::prepare`].
pub fn prepare<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
    default_runtime().prepare(prompt, inputs)
}

/// The async variant of [`render`]. A render is bounded by its limits, so it only waits for a custom renderer.
///
/// # Errors
/// As [`render`].
pub async fn render_async<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Rendered> {
    default_runtime().render_async(prompt, inputs).await
}

/// The async twin of [`parse`].
///
/// # Errors
/// As [`parse`].
pub async fn parse_async(prompt: &Prompt, rendered: &Rendered) -> Result<Vec<Message>> {
    parse(prompt, rendered)
}

/// The async twin of [`prepare`].
///
/// # Errors
/// As [`prepare`].
pub async fn prepare_async<'i>(prompt: &Prompt, inputs: impl IntoInputs<'i>) -> Result<Vec<Message>> {
    default_runtime().prepare_async(prompt, inputs).await
}

/// Calls the model of a prompt with these messages. See [`Runtime::run`].
///
/// # Errors
/// As [`Runtime::run`].
#[cfg(feature = "providers")]
pub fn run(prompt: &Prompt, messages: &[Message]) -> Result<Run> {
    default_runtime().run(prompt, messages)
}

/// The async twin of [`run`].
///
/// # Errors
/// As [`run`].
#[cfg(feature = "providers")]
pub async fn run_async(prompt: &Prompt, messages: &[Message]) -> Result<Run> {
    default_runtime().run_async(prompt, messages).await
}

/// Makes a result of a provider's answer. See [`Runtime::process`].
///
/// # Errors
/// As [`Runtime::process`].
#[cfg(feature = "providers")]
pub fn process(prompt: &Prompt, body: &[u8]) -> Result<Run> {
    default_runtime().process(prompt, body)
}

/// The async twin of [`process`].
///
/// # Errors
/// As [`process`].
#[cfg(feature = "providers")]
pub async fn process_async(prompt: &Prompt, body: &[u8]) -> Result<Run> {
    process(prompt, body)
}

/// From a prompt and its inputs to a result. See [`Runtime::invoke`].
///
/// # Errors
/// As [`Runtime::invoke`].
#[cfg(feature = "providers")]
pub fn invoke<'a, 'i>(prompt: impl Into<PromptSource<'a>>, inputs: impl IntoInputs<'i>) -> Result<Run> {
    default_runtime().invoke(prompt, inputs)
}

/// The async twin of [`invoke`].
///
/// # Errors
/// As [`invoke`].
#[cfg(feature = "providers")]
pub async fn invoke_async<'a, 'i>(prompt: impl Into<PromptSource<'a>>, inputs: impl IntoInputs<'i>) -> Result<Run> {
    default_runtime().invoke_async(prompt, inputs).await
}

/// As [`invoke`], with the result as a value of a type. See [`Runtime::invoke_as`].
///
/// # Errors
/// As [`Runtime::invoke_as`].
#[cfg(feature = "providers")]
pub fn invoke_as<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
) -> Result<T> {
    default_runtime().invoke_as(prompt, inputs)
}

/// The async twin of [`invoke_as`].
///
/// # Errors
/// As [`invoke_as`].
#[cfg(feature = "providers")]
pub async fn invoke_as_async<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
) -> Result<T> {
    default_runtime().invoke_as_async(prompt, inputs).await
}

/// Goes through a turn, tools included. See [`Runtime::turn`].
///
/// # Errors
/// As [`Runtime::turn`].
#[cfg(feature = "agent")]
pub fn turn<'a, 'i>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    default_runtime().turn(prompt, inputs, settings)
}

/// The async twin of [`turn`].
///
/// # Errors
/// As [`turn`].
#[cfg(feature = "agent")]
pub async fn turn_async<'a, 'i>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    default_runtime().turn_async(prompt, inputs, settings).await
}

/// As [`turn`], with the result as a value of a type. See [`Runtime::turn_as`].
///
/// # Errors
/// As [`Runtime::turn_as`].
#[cfg(feature = "agent")]
pub fn turn_as<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    default_runtime().turn_as(prompt, inputs, settings)
}

/// The async twin of [`turn_as`].
///
/// # Errors
/// As [`turn_as`].
#[cfg(feature = "agent")]
pub async fn turn_as_async<'a, 'i, T: DeserializeOwned>(
    prompt: impl Into<PromptSource<'a>>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    default_runtime().turn_as_async(prompt, inputs, settings).await
}

/// Goes on with a turn that has died, from its journal. See [`Runtime::resume`].
///
/// # Errors
/// As [`Runtime::resume`].
#[cfg(feature = "agent")]
pub fn resume<'a>(prompt: impl Into<PromptSource<'a>>, settings: &TurnSettings) -> Result<TurnRun> {
    default_runtime().resume(prompt, settings)
}

/// The async twin of [`resume`].
///
/// # Errors
/// As [`resume`].
#[cfg(feature = "agent")]
pub async fn resume_async<'a>(prompt: impl Into<PromptSource<'a>>, settings: &TurnSettings) -> Result<TurnRun> {
    default_runtime().resume_async(prompt, settings).await
}

/// Loads a prompt file, and goes through a turn with it.
///
/// # Errors
/// As [`Runtime::load`] and [`Runtime::turn`].
#[cfg(feature = "agent")]
pub fn invoke_agent<'i>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    turn(path.as_ref(), inputs, settings)
}

/// The async twin of [`invoke_agent`].
///
/// # Errors
/// As [`invoke_agent`].
#[cfg(feature = "agent")]
pub async fn invoke_agent_async<'i>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<TurnRun> {
    turn_async(path.as_ref(), inputs, settings).await
}

/// As [`invoke_agent`], with the result as a value of a type.
///
/// # Errors
/// As [`invoke_agent`]; or the result is something else.
#[cfg(feature = "agent")]
pub fn invoke_agent_as<'i, T: DeserializeOwned>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    turn_as(path.as_ref(), inputs, settings)
}

/// The async twin of [`invoke_agent_as`].
///
/// # Errors
/// As [`invoke_agent_as`].
#[cfg(feature = "agent")]
pub async fn invoke_agent_as_async<'i, T: DeserializeOwned>(
    path: impl AsRef<Path>,
    inputs: impl IntoInputs<'i>,
    settings: &TurnSettings,
) -> Result<T> {
    turn_as_async(path.as_ref(), inputs, settings).await
}
