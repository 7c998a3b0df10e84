//! Streamed answers.

use std::sync::Arc;

use pyo3::exceptions::{PyStopAsyncIteration, PyStopIteration};
use pyo3::prelude::*;
use serde_json::Value as Json;
use tokio::sync::Mutex;
use tympan::ResponseStream;
use tympan::host::data;
use tympan::{Error, Kind};

use crate::results::{Run, Usage};
use crate::work;

/// A streamed answer: an iterator and an async iterator over its deltas.
#[pyclass(frozen, module = "tympan")]
pub(crate) struct Stream(Arc<Mutex<Option<ResponseStream>>>);

impl From<ResponseStream> for Stream {
    fn from(stream: ResponseStream) -> Self {
        Self(Arc::new(Mutex::new(Some(stream))))
    }
}

impl Stream {
    fn next(&self, py: Python<'_>, is_async: bool, convert: Convert) -> PyResult<Py<PyAny>> {
        let next = |_| {
            let stream = self.0.clone();
            let next = async move {
                match stream.lock().await.as_mut() {
                    Some(stream) => stream.next_async().await.transpose(),
                    None => Ok(None),
                }
            };
            Ok(Box::pin(next) as _)
        };
        work::go(py, is_async, next, convert)
    }

    fn end(&self, py: Python<'_>, is_async: bool) -> PyResult<Py<PyAny>> {
        let finish = |_| {
            let stream = self.0.clone();
            let finish = async move {
                let stream = stream.lock().await.take();
                let over = || Error::new(Kind::InvalidRequest, "the stream is already finished or closed");
                stream.ok_or_else(over)?.finish_async().await
            };
            Ok(Box::pin(finish) as _)
        };
        work::go(py, is_async, finish, |py, run| Ok(Py::new(py, Run::from(run))?.into_any()))
    }
}

type Convert = fn(Python<'_>, Option<tympan::wire::response::Delta>) -> PyResult<Py<PyAny>>;

#[pymethods]
impl Stream {
    fn __iter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.next(py, false, |py, delta| match delta {
            Some(delta) => Delta::to_python(py, delta),
            None => Err(PyStopIteration::new_err(())),
        })
    }

    fn __aiter__(this: Py<Self>) -> Py<Self> {
        this
    }

    fn __anext__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.next(py, true, |py, delta| match delta {
            Some(delta) => Delta::to_python(py, delta),
            None => Err(PyStopAsyncIteration::new_err(())),
        })
    }

    /// Waits for the end of the answer and returns the result. Remaining deltas are skipped.
    fn finish(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.end(py, false)
    }

    /// The async variant of `finish`.
    fn finish_async(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.end(py, true)
    }

    /// Stops the model.
    fn close(&self, py: Python<'_>) {
        py.detach(|| drop(tympan::net::io::wait(self.0.lock()).take()));
    }

    fn __enter__(this: Py<Self>) -> Py<Self> {
        this
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, pyo3::types::PyTuple>) {
        self.close(py);
    }
}

/// A delta of a streamed answer.
#[pyclass(frozen, eq, module = "tympan")]
#[derive(PartialEq)]
pub(crate) struct Delta {
    step: tympan::wire::response::Delta,
    /// The delta as data, which most properties are read from.
    data: Json,
}

impl Delta {
    fn to_python(py: Python<'_>, step: tympan::wire::response::Delta) -> PyResult<Py<PyAny>> {
        let data = data::delta(&step);
        Ok(Py::new(py, Self { step, data })?.into_any())
    }

    pub(crate) fn inner(&self) -> tympan::wire::response::Delta {
        self.step.clone()
    }

    fn field(&self, name: &str) -> Option<&str> {
        self.data.get(name).and_then(Json::as_str)
    }
}

#[pymethods]
impl Delta {
    /// The kind of delta: `text`, `thinking`, `tool_call`, `tool_arguments` or `usage`.
    #[getter]
    fn kind(&self) -> &str {
        self.field("type").unwrap_or_default()
    }

    /// The next part of the text, the reasoning or the arguments. Empty for other kinds.
    #[getter]
    fn text(&self) -> &str {
        self.field("text").unwrap_or_default()
    }

    /// The index of the tool call, counted from 0.
    #[getter]
    fn index(&self) -> Option<u64> {
        self.data.get("index").and_then(Json::as_u64)
    }

    /// The provider's identifier of a new tool call.
    #[getter]
    fn id(&self) -> Option<&str> {
        self.field("id")
    }

    /// The name of the tool of a new tool call.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.field("name")
    }

    /// The token usage so far.
    #[getter]
    fn usage(&self) -> Option<Usage> {
        match &self.step {
            tympan::wire::response::Delta::Usage(usage) => Some(Usage::from(usage.clone())),
            _ => None,
        }
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let text = self.text().into_pyobject(py)?;
        Ok(format!("Delta(kind='{}', text={})", self.kind(), text.repr()?))
    }
}
