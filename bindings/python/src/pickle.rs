//! Prompts for other processes, such as the workers of a cluster.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::prompt::Prompt;

/// Returns the function that restores a prompt, and its arguments. The text of the prompt's file is among them, and the
/// hash that the restored prompt must have. Values from the environment are not.
pub(crate) fn reduce<'py>(py: Python<'py>, prompt: &Prompt) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    static DESCRIBE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static RESTORE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let inner = prompt.inner();
    let (source, hash) = (inner.source(), inner.definition_hash());
    let validator = prompt.validator_of().to_python(py);
    let describe = DESCRIBE.import(py, "tympan._portable", "describe")?;
    let arguments = describe.call1((source.text(), source.name(), hash, validator))?;
    Ok((RESTORE.import(py, "tympan._portable", "restore")?.clone(), arguments))
}
