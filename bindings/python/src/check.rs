//! Checks of prompt files.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use tympan::lint::{CheckedFile, check_path};

use crate::errors::engine;
use crate::values::to_python;

/// Checks a prompt file as `tympan check` does, and returns the findings as the command prints them with `--json`.
#[pyfunction]
#[pyo3(signature = (path, *, settings = None))]
pub(crate) fn check_file(py: Python<'_>, path: PathBuf, settings: Option<PathBuf>) -> PyResult<Vec<Bound<'_, PyAny>>> {
    let checked = engine(py, || check_path(path, settings.as_deref()))?;
    findings(py, &checked)
}

/// Checks the text of a prompt file as `tympan check` does. `name` implies its format.
#[pyfunction]
#[pyo3(signature = (text, name = "<string>", base_dir = None, *, settings = None))]
pub(crate) fn check_str<'py>(
    py: Python<'py>,
    text: &str,
    name: &str,
    base_dir: Option<PathBuf>,
    settings: Option<PathBuf>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let base_dir = base_dir.as_deref().unwrap_or(Path::new("."));
    let checked = engine(py, || tympan::lint::check_str(text, name, base_dir, settings.as_deref()))?;
    findings(py, &checked)
}

fn findings<'py>(py: Python<'py>, checked: &CheckedFile) -> PyResult<Vec<Bound<'py, PyAny>>> {
    checked.findings.iter().map(|finding| to_python(py, &finding.to_json(&checked.source))).collect()
}
