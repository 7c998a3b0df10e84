//! Test files of prompts, and their cases.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use tympan::eval::{CaseResult, CollectOptions, CollectedFile};
use tympan::{Error, Kind};

use crate::errors::{engine, exception};
use crate::runtime::default_runtime;
use crate::values::to_python;
use crate::work;

/// The cases of a test file, or of a prompt file that contains tests. `tympan.testing` is the public part of it.
#[pyclass(frozen, module = "tympan._native")]
pub(crate) struct TestFile {
    inner: Arc<CollectedFile>,
}

#[pymethods]
impl TestFile {
    /// pytest collects classes with such a name, unless they say that they contain no tests.
    #[classattr]
    fn __test__() -> bool {
        false
    }

    /// Reads a file and lists its cases. Returns `None` if it is a prompt file without tests.
    #[staticmethod]
    #[pyo3(signature = (path, /, *, live = false, record = false, accept = false, allow_programs = false))]
    fn load(
        py: Python<'_>,
        path: PathBuf,
        live: bool,
        record: bool,
        accept: bool,
        allow_programs: bool,
    ) -> PyResult<Option<Self>> {
        let mut options = CollectOptions::default();
        (options.live, options.record, options.accept) = (live, record, accept);
        options.allow_programs = allow_programs;
        let loaded = engine(py, || CollectedFile::load(path, default_runtime(), options))?;
        Ok(loaded.map(|inner| Self { inner: Arc::new(inner) }))
    }

    /// Returns the cases in order, each with its `name`, `line` and `id`, and with the reason in `skip` if it is skipped.
    fn cases<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let cases = self.inner.cases();
        cases.iter().map(|case| to_python(py, &data(py, serde_json::to_value(case))?)).collect()
    }

    /// Runs the case with this index and returns its result as `tympan test` writes it with `--output-format
    /// json-lines`.
    #[pyo3(signature = (index, /))]
    fn run(&self, py: Python<'_>, index: usize) -> PyResult<Py<PyAny>> {
        let run = |_| {
            let file = self.inner.clone();
            // Rendering and programs block. The thread that waits can be interrupted.
            let running = async move {
                let done = tokio::task::spawn_blocking(move || file.run(index)).await;
                done.unwrap_or_else(|_| Err(Error::new(Kind::Internal, "the engine panicked")))
            };
            Ok(Box::pin(running) as _)
        };
        work::go(py, false, run, |py, result: CaseResult| {
            to_python(py, &data(py, serde_json::to_value(&result))?).map(Bound::unbind)
        })
    }
}

fn data(py: Python<'_>, written: serde_json::Result<serde_json::Value>) -> PyResult<serde_json::Value> {
    written.map_err(|error| exception(py, &Error::new(Kind::Internal, error)))
}
