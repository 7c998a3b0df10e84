//! Conversations composed of several prompts.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tympan::host::config::RenderSettings;
use tympan::{Inputs, RenderOptions};

use crate::errors::engine;
use crate::message::{Message, to_list};
use crate::prompt::{Prompt, render_settings};
use crate::rendered;
use crate::runtime::default_runtime;

/// A sequence of prompts, each with its own inputs.
#[pyclass(frozen, module = "tympan")]
#[derive(Default)]
pub(crate) struct Composition {
    parts: Mutex<Vec<Part>>,
}

#[derive(Clone)]
struct Part {
    prompt: Arc<tympan::Prompt>,
    inputs: Inputs,
    variant: Option<String>,
}

impl Composition {
    fn parts(&self) -> Vec<Part> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Runs `work` with the engine's composition of these parts and the options that apply to all of them.
fn with<T>(
    parts: &[Part],
    settings: &RenderSettings,
    work: impl FnOnce(&tympan::Composition<'_>, &RenderOptions<'_>) -> tympan::Result<T>,
) -> tympan::Result<T> {
    let mut composition = tympan::Composition::default();
    for part in parts {
        composition.push_variant(&part.prompt, part.variant.as_deref(), part.inputs.clone());
    }
    work(&composition, &settings.over(default_runtime().render_options()))
}

#[pymethods]
impl Composition {
    /// Creates an empty composition.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Appends a prompt.
    #[pyo3(signature = (prompt, inputs = None, *, variant = None))]
    fn push(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        inputs: Option<&Bound<'_, PyAny>>,
        variant: Option<String>,
    ) -> PyResult<()> {
        let prompt = prompt.get();
        let inputs = prompt.validated(py, inputs)?;
        prompt.warn_about(py, (&inputs).into(), default_runtime().options().kinds)?;
        let part = Part { prompt: prompt.inner(), inputs, variant };
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
        Ok(())
    }

    /// Renders every prompt.
    #[pyo3(signature = (*, guard = None))]
    fn render<'py>(&self, py: Python<'py>, guard: Option<&Bound<'py, PyAny>>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let (parts, settings) = (self.parts(), render_settings(py, None, guard, None, None, None, None, None, None)?);
        let all = engine(py, || with(&parts, &settings, |composition, options| composition.render(options)))?;
        all.into_iter().map(|rendered| rendered::to_python(py, rendered)).collect()
    }

    /// Renders every prompt and joins their messages.
    #[pyo3(signature = (*, guard = None))]
    fn messages(&self, py: Python<'_>, guard: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Message>> {
        let (parts, settings) = (self.parts(), render_settings(py, None, guard, None, None, None, None, None, None)?);
        engine(py, || with(&parts, &settings, |composition, options| composition.messages(options)).and_then(to_list))
    }

    fn __len__(&self) -> usize {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}
