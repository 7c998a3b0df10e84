//! Errors of the engine as exceptions of Python.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use tympan::{Class, Error, Kind, Result};

use crate::message::Message;
use crate::prompt::Finding;

/// The exception that an error is: of the class that Python has for such errors, and a `TympanError` as well.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failure| failure)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let place = error.line_column();
    let others = error.others().iter().map(|other| Finding::new(other, error.source_file()));
    let conversation = error.conversation().iter().cloned().map(Message::from);
    let details = PyDict::new(py);
    details.set_item("code", error.code())?;
    details.set_item("line", place.map(|place| place.line))?;
    details.set_item("column", place.map(|place| place.column))?;
    details.set_item("help", error.help())?;
    details.set_item("others", others.collect::<Vec<_>>())?;
    details.set_item("partial_text", error.partial_text())?;
    details.set_item("conversation", conversation.collect::<Vec<_>>())?;
    let exception = class(py, error.class())?.call((error.to_string(),), Some(&details))?;
    Ok(PyErr::from_value(exception))
}

fn class(py: Python<'_>, class: Class) -> PyResult<&Bound<'_, PyType>> {
    static FILE_NOT_FOUND: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static VALUE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static CONNECTION: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static RUNTIME: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    static INVOKER: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let (cell, name) = match class {
        Class::FileNotFound => (&FILE_NOT_FOUND, "TympanFileNotFoundError"),
        Class::Value => (&VALUE, "TympanValueError"),
        Class::Connection => (&CONNECTION, "TympanConnectionError"),
        Class::Runtime => (&RUNTIME, "TympanRuntimeError"),
        Class::Invoker => (&INVOKER, "InvokerError"),
    };
    cell.import(py, "tympan._errors", name)
}

/// Has the engine work without the interpreter's lock. A panic is an error, and goes no further.
pub(crate) fn engine<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let caught = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    let panicked =
        || Error::new(Kind::Internal, "it panicked").with_help("this is a fault of Tympan: please report it");
    caught.unwrap_or_else(|_| Err(panicked())).map_err(|error| exception(py, &error))
}

/// What is wrong with an argument.
pub(crate) fn invalid(py: Python<'_>, details: impl std::fmt::Display) -> PyErr {
    exception(py, &Error::new(Kind::InvalidInput, details))
}
