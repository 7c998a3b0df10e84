//! Prompts by name, from memory and from a folder.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::errors::engine;
use crate::prompt::Prompt;
use crate::validator::Validator;

/// Prompts by name: those in memory, and those in the files of a folder. A folder may contain prompts in every format,
/// in subfolders too. A prompt's name is the one that it declares, or else the name of its file without the extension.
/// Each call looks for files that are new, changed or gone, and loads only those.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct PromptLoader {
    inner: tympan::PromptLoader,
    /// The prompts in memory, with their validators.
    own: Mutex<HashMap<String, Py<Prompt>>>,
}

impl From<tympan::PromptLoader> for PromptLoader {
    fn from(inner: tympan::PromptLoader) -> Self {
        Self { inner, own: Mutex::default() }
    }
}

#[pymethods]
impl PromptLoader {
    /// Creates a loader for prompts in memory.
    #[staticmethod]
    #[pyo3(signature = (prompts = None, /))]
    fn memory(py: Python<'_>, prompts: Option<HashMap<String, Py<Prompt>>>) -> Self {
        let loader = Self::from(tympan::PromptLoader::memory());
        for (name, prompt) in prompts.into_iter().flatten() {
            loader.insert(py, name, prompt);
        }
        loader
    }

    /// Creates a loader for the prompts in a folder.
    #[staticmethod]
    #[pyo3(signature = (path, /))]
    fn folder(path: PathBuf) -> Self {
        tympan::PromptLoader::folder(path).into()
    }

    /// Adds a prompt, replacing any existing one of the same name. It takes precedence over the files of a folder.
    #[pyo3(signature = (name, prompt, /))]
    fn insert(&self, py: Python<'_>, name: String, prompt: Py<Prompt>) {
        self.inner.insert(name.as_str(), prompt.bind(py).get().inner());
        self.own.lock().unwrap_or_else(PoisonError::into_inner).insert(name, prompt);
    }

    /// Returns the prompt with this name. The validator is for prompts from files; those in memory have their own.
    #[pyo3(signature = (name, /, *, validator = None))]
    fn load(&self, py: Python<'_>, name: &str, validator: Option<Bound<'_, PyAny>>) -> PyResult<Py<Prompt>> {
        if let Some(prompt) = self.own.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(prompt.clone_ref(py));
        }
        let prompt = engine(py, || self.inner.load(name))?;
        Py::new(py, Prompt::shared(py, prompt, Validator::new(validator))?)
    }

    /// Returns the names of all prompts, sorted. Files that cannot be loaded are left out.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        engine(py, || self.inner.names())
    }

    /// Returns the names of a prompt's variants: `default`, then the others in order.
    #[pyo3(signature = (name, /))]
    fn variants(&self, py: Python<'_>, name: &str) -> PyResult<Vec<String>> {
        engine(py, || self.inner.variants(name))
    }

    /// Renders a variant of the prompt with this name.
    #[pyo3(signature = (
        name, inputs = None, /, *, variant = None, guard = None, policy = None, strict = None, lenient = None,
        kinds = None, strict_inputs = None, seed = None
    ))]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
    fn render<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        inputs: Option<&Bound<'py, PyAny>>,
        variant: Option<&str>,
        guard: Option<&Bound<'py, PyAny>>,
        policy: Option<&Bound<'py, PyAny>>,
        strict: Option<bool>,
        lenient: Option<bool>,
        kinds: Option<&str>,
        strict_inputs: Option<bool>,
        seed: Option<u64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let prompt = self.load(py, name, None)?;
        prompt.bind(py).get().render(py, inputs, variant, guard, policy, strict, lenient, kinds, strict_inputs, seed)
    }
}
