//! Runtimes: what a host decides for all prompts, and all that can be done with a prompt.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use tympan_runtime::{RunOptions, config};

use crate::errors::{engine, exception};
use crate::hooks::settings;
use crate::message::{self, Message, to_list};
use crate::prompt::{Prompt, Source};
use crate::rendered;
use crate::results::{Run, TurnRun};
use crate::stream::Stream;
use crate::tool::Function;
use crate::values::{self, from_python, map_to_python};
use crate::work::{self, Caller};

/// Options and registries. The class `Runtime` of the package adds to it what waits.
#[pyclass(frozen, subclass, module = "tympan._native")]
pub(crate) struct Runtime(tympan_runtime::Runtime);

fn run_options(options: &Bound<'_, PyDict>) -> PyResult<RunOptions> {
    config::run_options(from_python(options.as_any())?).map_err(|error| exception(options.py(), &error))
}

#[pymethods]
impl Runtime {
    /// A runtime with these options.
    #[new]
    #[pyo3(signature = (**options))]
    fn new(py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = options.map(|options| from_python(options.as_any())).transpose()?.unwrap_or_default();
        let options = engine(py, || config::runtime_options(options))?;
        Ok(Self(tympan_runtime::Runtime::new(options)))
    }

    /// Loads a prompt file: `.prompty`, a definition (`.yaml`, `.yml`, `.json`, `.toml`) or a directive (`.md`).
    #[pyo3(signature = (path, /))]
    fn load(&self, py: Python<'_>, path: PathBuf) -> PyResult<Prompt> {
        engine(py, || self.0.load(path)).map(Into::into)
    }

    /// Loads a prompt from the text of a prompt file.
    #[pyo3(signature = (text, name = "<string>.prompty", base_dir = PathBuf::from(".")))]
    fn load_str(&self, py: Python<'_>, text: &str, name: &str, base_dir: PathBuf) -> PyResult<Prompt> {
        engine(py, || self.0.load_str(text, name, base_dir)).map(Into::into)
    }

    /// Fills in defaults and checks that nothing required is missing.
    #[pyo3(signature = (prompt, inputs = None))]
    fn validate_inputs<'py>(
        &self,
        py: Python<'py>,
        prompt: &Bound<'py, Prompt>,
        inputs: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (prompt, inputs) = (prompt.get().inner(), values::inputs(inputs)?);
        map_to_python(py, &engine(py, || self.0.validate_inputs(&prompt, &inputs))?)
    }

    /// Makes text of the template.
    #[pyo3(signature = (prompt, inputs = None, *, variant = None))]
    fn render<'py>(
        &self,
        py: Python<'py>,
        prompt: &Bound<'py, Prompt>,
        inputs: Option<&Bound<'py, PyAny>>,
        variant: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (prompt, inputs) = (prompt.get().inner(), values::inputs(inputs)?);
        let rendered = engine(py, || {
            let options = tympan::RenderOptions { variant, ..self.0.render_options() };
            self.0.render_with(&prompt, &inputs, &options)
        })?;
        rendered::to_python(py, rendered)
    }

    /// Makes messages of what `render` returned.
    #[pyo3(signature = (prompt, rendered))]
    fn parse(&self, py: Python<'_>, prompt: &Bound<'_, Prompt>, rendered: &Bound<'_, PyAny>) -> PyResult<Vec<Message>> {
        let (prompt, rendered) = (prompt.get().inner(), rendered::from_python(rendered)?);
        engine(py, || self.0.parse(&prompt, &rendered)).map(to_list)
    }

    /// `render` and `parse`.
    #[pyo3(signature = (prompt, inputs = None))]
    fn prepare(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        inputs: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Message>> {
        let (prompt, inputs) = (prompt.get().inner(), values::inputs(inputs)?);
        engine(py, || self.0.prepare(&prompt, &inputs)).map(to_list)
    }

    /// Registers what runs the tool of this name, for all prompts that declare it.
    #[pyo3(signature = (name, function))]
    fn register_tool(&self, name: &str, function: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.register_tool(name, Arc::new(Function::new(function, Caller::nobody())?));
        Ok(())
    }

    /// Forgets all tools.
    fn clear_tools(&self) {
        self.0.clear_tools();
    }

    fn _load(&self, py: Python<'_>, path: PathBuf) -> PyResult<Py<PyAny>> {
        let load = |_| {
            let (runtime, path) = (self.0.clone(), path.clone());
            Ok(Box::pin(async move { runtime.load_async(path).await }) as _)
        };
        work::go(py, true, load, |py, prompt| Ok(Py::new(py, Prompt::from(prompt))?.into_any()))
    }

    fn _run(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        messages: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let run = |_| {
            let (runtime, prompt) = (self.0.clone(), prompt.get().inner());
            let (messages, options) = (message::from_list(messages)?, run_options(options)?);
            Ok(Box::pin(async move { runtime.run_with_async(&prompt, &messages, &options).await }) as _)
        };
        work::go(py, is_async, run, run_to_python)
    }

    fn _stream(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        messages: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let stream = |_| {
            let (runtime, prompt) = (self.0.clone(), prompt.get().inner());
            let (messages, options) = (message::from_list(messages)?, run_options(options)?);
            Ok(Box::pin(async move { runtime.stream_async(&prompt, &messages, &options).await }) as _)
        };
        work::go(py, is_async, stream, |py, stream| Ok(Py::new(py, Stream::from(stream))?.into_any()))
    }

    fn _process(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, Prompt>,
        body: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Run> {
        let (prompt, options) = (prompt.get().inner(), run_options(options)?);
        let body = if let Ok(bytes) = body.cast::<PyBytes>() {
            bytes.as_bytes().to_vec()
        } else if let Ok(text) = body.cast::<PyString>() {
            text.to_cow()?.into_owned().into_bytes()
        } else {
            from_python(body)?.to_string().into_bytes()
        };
        engine(py, || self.0.process_with(&prompt, &body, &options)).map(Into::into)
    }

    fn _invoke(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        inputs: Option<&Bound<'_, PyAny>>,
        options: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let invoke = |_| {
            let (runtime, prompt) = (self.0.clone(), Source::new(prompt)?);
            let (inputs, options) = (values::inputs(inputs)?, run_options(options)?);
            Ok(Box::pin(async move { runtime.invoke_with_async(prompt.get(), &inputs, &options).await }) as _)
        };
        work::go(py, is_async, invoke, run_to_python)
    }

    fn _turn(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        inputs: Option<&Bound<'_, PyAny>>,
        options: &Bound<'_, PyDict>,
        hooks: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let turn = |caller: Caller| {
            let (runtime, prompt) = (self.0.clone(), Source::new(prompt)?);
            let (inputs, settings) = (values::inputs(inputs)?, settings(options, hooks, &caller)?);
            Ok(Box::pin(async move { runtime.turn_async(prompt.get(), &inputs, &settings).await }) as _)
        };
        work::go(py, is_async, turn, turn_to_python)
    }

    fn _resume(
        &self,
        py: Python<'_>,
        prompt: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        hooks: &Bound<'_, PyDict>,
        is_async: bool,
    ) -> PyResult<Py<PyAny>> {
        let resume = |caller: Caller| {
            let (runtime, prompt) = (self.0.clone(), Source::new(prompt)?);
            let settings = settings(options, hooks, &caller)?;
            Ok(Box::pin(async move { runtime.resume_async(prompt.get(), &settings).await }) as _)
        };
        work::go(py, is_async, resume, turn_to_python)
    }
}

fn run_to_python(py: Python<'_>, run: tympan_runtime::Run) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, Run::from(run))?.into_any())
}

fn turn_to_python(py: Python<'_>, run: tympan_runtime::TurnRun) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, TurnRun::from(run))?.into_any())
}
