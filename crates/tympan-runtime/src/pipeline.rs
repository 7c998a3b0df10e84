//! The pipeline's functions, on one default runtime.

use std::sync::OnceLock;

use tympan::{Inputs, Message, Prompt, Rendered, Result};

use crate::runtime::Runtime;

/// The runtime that the free functions use.
pub fn default_runtime() -> &'static Runtime {
    static DEFAULT: OnceLock<Runtime> = OnceLock::new();
    DEFAULT.get_or_init(Runtime::default)
}

/// Fills in defaults and checks that nothing required is missing.
///
/// # Errors
/// A required input is missing and has no default.
pub fn validate_inputs(prompt: &Prompt, inputs: &Inputs) -> Result<Inputs> {
    default_runtime().validate_inputs(prompt, inputs)
}

/// Renders a prompt. See [`Runtime::render`].
///
/// # Errors
/// As [`Runtime::render`].
pub fn render(prompt: &Prompt, inputs: &Inputs) -> Result<Rendered> {
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
pub fn prepare(prompt: &Prompt, inputs: &Inputs) -> Result<Vec<Message>> {
    default_runtime().prepare(prompt, inputs)
}

/// The async twin of [`render`]. A render is bounded by its limits, so it never waits.
///
/// # Errors
/// As [`render`].
pub async fn render_async(prompt: &Prompt, inputs: &Inputs) -> Result<Rendered> {
    render(prompt, inputs)
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
pub async fn prepare_async(prompt: &Prompt, inputs: &Inputs) -> Result<Vec<Message>> {
    prepare(prompt, inputs)
}
