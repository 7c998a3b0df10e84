//! What calls of models come to.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::errors::engine;
use crate::message::{Message, to_list};
use crate::values::to_python;

/// What a call of a model came to.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct Run(tympan::Run);

impl From<tympan::Run> for Run {
    fn from(run: tympan::Run) -> Self {
        Self(run)
    }
}

#[pymethods]
impl Run {
    /// The result: a text, what the prompt's outputs declare, calls of tools, vectors or pictures.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.outcome.to_json())
    }

    /// What the result is: `text`, `structured`, `tool_calls`, `embedding`, `embeddings`, `image` or `images`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.outcome.kind()
    }

    /// What is wrong with a structured result, by the prompt's outputs.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.0.outcome.problems().to_vec()
    }

    /// What it cost, in tokens.
    #[getter]
    fn usage(&self) -> Option<Usage> {
        self.0.usage.clone().map(Usage)
    }

    /// The model that answered.
    #[getter]
    fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    /// The provider's name for the answer.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// Why the model stopped.
    #[getter]
    fn finish_reason(&self) -> Option<&str> {
        self.0.finish_reason.as_ref().map(|reason| reason.as_str())
    }

    /// The result as a value of a type: a Pydantic model, a dataclass, a `TypedDict`, an enumeration, …
    #[pyo3(signature = (r#type, /))]
    fn cast<'py>(&self, py: Python<'py>, r#type: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        static CAST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        CAST.import(py, "tympan._schema", "cast")?.call1((self.result(py)?, r#type))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Run(kind='{}', result={})", self.kind(), self.result(py)?.repr()?))
    }
}

/// What a turn came to.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct TurnRun(tympan::TurnRun);

impl From<tympan::TurnRun> for TurnRun {
    fn from(run: tympan::TurnRun) -> Self {
        Self(run)
    }
}

#[pymethods]
impl TurnRun {
    /// The last answer, with the tokens of that answer alone.
    #[getter]
    fn run(&self) -> Run {
        Run(self.0.run.clone())
    }

    /// The result of the last answer.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.run.outcome.to_json())
    }

    /// The tokens of all answers.
    #[getter]
    fn usage(&self) -> Usage {
        Usage(self.0.usage.clone())
    }

    /// How many answers the model gave.
    #[getter]
    fn rounds(&self) -> u32 {
        self.0.rounds
    }

    /// The conversation, with the last answer.
    #[getter]
    fn messages(&self, py: Python<'_>) -> PyResult<Vec<Message>> {
        engine(py, || to_list(self.0.messages.clone()))
    }

    /// How many records its journal had, if it was resumed.
    #[getter]
    fn resumed_records(&self) -> Option<usize> {
        self.0.resumed.map(|resumed| resumed.records)
    }

    /// As `Run.cast`.
    #[pyo3(signature = (r#type, /))]
    fn cast<'py>(&self, py: Python<'py>, r#type: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.run().cast(py, r#type)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("TurnRun(rounds={}, result={})", self.0.rounds, self.result(py)?.repr()?))
    }
}

/// Tokens that went in and came out.
#[pyclass(frozen, eq, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct Usage(tympan::wire::response::Usage);

impl From<tympan::wire::response::Usage> for Usage {
    fn from(usage: tympan::wire::response::Usage) -> Self {
        Self(usage)
    }
}

#[pymethods]
impl Usage {
    /// Tokens of the request, those from a cache included.
    #[getter]
    fn input_tokens(&self) -> u64 {
        self.0.input_tokens
    }

    /// Tokens of the answer, those of its thinking included.
    #[getter]
    fn output_tokens(&self) -> u64 {
        self.0.output_tokens
    }

    /// Both.
    #[getter]
    fn total_tokens(&self) -> u64 {
        self.0.total_tokens
    }

    /// Tokens of the request that came from the provider's cache.
    #[getter]
    fn cached_input_tokens(&self) -> u64 {
        self.0.cached_input_tokens
    }

    /// Tokens of the request that were written to the provider's cache.
    #[getter]
    fn cache_write_tokens(&self) -> u64 {
        self.0.cache_write_tokens
    }

    /// Tokens of the answer that were spent on thinking.
    #[getter]
    fn reasoning_tokens(&self) -> u64 {
        self.0.reasoning_tokens
    }

    /// The numbers as plain data, without those that are 0 and rarely anything else.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = to_python(py, &serde_json::json!(self.0))?;
        data.cast_into().map_err(PyErr::from)
    }

    fn __repr__(&self) -> String {
        format!("Usage(input_tokens={}, output_tokens={})", self.0.input_tokens, self.0.output_tokens)
    }
}
