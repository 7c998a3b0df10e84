//! Results of model calls and turns.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use tympan::host::data;

use crate::errors::engine;
use crate::message::{Message, to_list};
use crate::values::to_python;

/// The result of a model call.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct Run(tympan::Run);

impl From<tympan::Run> for Run {
    fn from(run: tympan::Run) -> Self {
        Self(run)
    }
}

#[pymethods]
impl Run {
    /// The result: text, data as declared by the prompt's outputs, tool calls, embeddings or images.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.outcome.to_json())
    }

    /// The kind of result: `text`, `structured`, `tool_calls`, `embedding`, `embeddings`, `image` or `images`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.outcome.kind()
    }

    /// The mismatches between a structured result and the prompt's outputs.
    #[getter]
    fn problems(&self) -> Vec<String> {
        self.0.outcome.problems().to_vec()
    }

    /// The token usage.
    #[getter]
    fn usage(&self) -> Option<Usage> {
        self.0.usage.clone().map(Usage)
    }

    /// The model that answered.
    #[getter]
    fn model(&self) -> Option<&str> {
        self.0.model.as_deref()
    }

    /// The provider's identifier of the answer.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.0.id.as_deref()
    }

    /// The reason that the model stopped.
    #[getter]
    fn finish_reason(&self) -> Option<&str> {
        self.0.finish_reason.as_ref().map(|reason| reason.as_str())
    }

    /// Converts the result to a type: a Pydantic model, a dataclass, a `TypedDict`, an enum, …
    #[pyo3(signature = (r#type, /))]
    fn cast<'py>(&self, py: Python<'py>, r#type: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        static CAST: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        CAST.import(py, "tympan._schema", "cast")?.call1((self.result(py)?, r#type))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Run(kind='{}', result={})", self.kind(), self.result(py)?.repr()?))
    }
}

/// The result of a turn.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct TurnRun(tympan::TurnRun);

impl From<tympan::TurnRun> for TurnRun {
    fn from(run: tympan::TurnRun) -> Self {
        Self(run)
    }
}

#[pymethods]
impl TurnRun {
    /// The last model call, with the token usage of that call alone.
    #[getter]
    fn run(&self) -> Run {
        Run(self.0.run.clone())
    }

    /// The result of the last model call.
    #[getter]
    fn result<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.0.run.outcome.to_json())
    }

    /// The token usage of all model calls.
    #[getter]
    fn usage(&self) -> Usage {
        Usage(self.0.usage.clone())
    }

    /// The number of model calls.
    #[getter]
    fn rounds(&self) -> u32 {
        self.0.rounds
    }

    /// The conversation, including the last answer.
    #[getter]
    fn messages(&self, py: Python<'_>) -> PyResult<Vec<Message>> {
        engine(py, || to_list(self.0.messages.clone()))
    }

    /// The labels of the messages, in the same order: a list for each message, with the label of each part. Empty if the
    /// prompt has no tools. To continue the conversation in another turn, pass the messages and their labels to it.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &data::message_labels(&self.0.labels))
    }

    /// The label of everything that the model had read, and so of its answer.
    #[getter]
    fn label<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &data::label(&self.0.label))
    }

    /// The number of records in the journal, if the turn was resumed.
    #[getter]
    fn resumed_records(&self) -> Option<usize> {
        self.0.resumed.map(|resumed| resumed.records)
    }

    /// Converts the result to a type: a Pydantic model, a dataclass, a `TypedDict`, an enum, …
    #[pyo3(signature = (r#type, /))]
    fn cast<'py>(&self, py: Python<'py>, r#type: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.run().cast(py, r#type)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("TurnRun(rounds={}, result={})", self.0.rounds, self.result(py)?.repr()?))
    }
}

/// The token usage of a model call or a turn.
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
    /// The tokens of the request, including cached ones.
    #[getter]
    fn input_tokens(&self) -> u64 {
        self.0.input_tokens
    }

    /// The tokens of the answer, including reasoning.
    #[getter]
    fn output_tokens(&self) -> u64 {
        self.0.output_tokens
    }

    /// The tokens of the request and the answer.
    #[getter]
    fn total_tokens(&self) -> u64 {
        self.0.total_tokens
    }

    /// The tokens of the request that were read from the provider's cache.
    #[getter]
    fn cached_input_tokens(&self) -> u64 {
        self.0.cached_input_tokens
    }

    /// The tokens of the request that were written to the provider's cache.
    #[getter]
    fn cache_write_tokens(&self) -> u64 {
        self.0.cache_write_tokens
    }

    /// The tokens of the answer that were used for reasoning.
    #[getter]
    fn reasoning_tokens(&self) -> u64 {
        self.0.reasoning_tokens
    }

    /// Returns the counts as plain data. Counts that are usually 0 are left out if they are 0.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let data = to_python(py, &serde_json::json!(self.0))?;
        data.cast_into().map_err(PyErr::from)
    }

    fn __repr__(&self) -> String {
        format!("Usage(input_tokens={}, output_tokens={})", self.0.input_tokens, self.0.output_tokens)
    }
}

/// A model, as its provider lists it.
#[pyclass(frozen, eq, get_all, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct ModelInfo {
    /// The provider's ID for the model.
    id: String,
    /// The human-readable name.
    display_name: Option<String>,
    /// The creation time, in seconds since the Unix epoch, if the provider reports it.
    created: Option<i64>,
    /// The model's owner.
    owned_by: Option<String>,
    /// The number of tokens that the model can process at once, if the provider reports it.
    context_window: Option<u64>,
    /// The kinds of content that the model accepts, such as `text` and `image`, if the provider reports them.
    input_modalities: Option<Vec<String>>,
    /// The kinds of content that the model produces, if the provider reports them.
    output_modalities: Option<Vec<String>>,
}

impl From<tympan::wire::ModelInfo> for ModelInfo {
    fn from(model: tympan::wire::ModelInfo) -> Self {
        Self {
            id: model.id,
            display_name: model.display_name,
            created: model.created,
            owned_by: model.owned_by,
            context_window: model.context_window,
            input_modalities: model.input_modalities,
            output_modalities: model.output_modalities,
        }
    }
}

#[pymethods]
impl ModelInfo {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let id = self.id.as_str().into_pyobject(py)?;
        Ok(format!("ModelInfo(id={})", id.repr()?))
    }
}
