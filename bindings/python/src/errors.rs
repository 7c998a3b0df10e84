//! Conversion of the engine's errors to Python exceptions.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use tympan::text::source::SourceFile;
use tympan::{Class, Error, Kind, Result};

use crate::message;
use crate::prompt::Finding;
use crate::threads::attach;
use crate::work::{self, Caller};

/// Converts an error to an exception that is both a `TympanError` and the matching built-in class.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failure| failure)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let place = error.line_column();
    let others = error.others().iter().map(|other| Finding::new(other, error.source_file()));
    // If media cannot be converted, leave the conversation out instead of hiding the actual error.
    let conversation = message::to_list(error.conversation().to_vec()).unwrap_or_default();
    let details = PyDict::new(py);
    details.set_item("code", error.code())?;
    details.set_item("file", error.source_file().map(SourceFile::name))?;
    details.set_item("line", place.map(|place| place.line))?;
    details.set_item("column", place.map(|place| place.column))?;
    details.set_item("help", error.help())?;
    details.set_item("others", others.collect::<Vec<_>>())?;
    details.set_item("partial_text", error.partial_text())?;
    details.set_item("conversation", conversation)?;
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

thread_local! {
    /// The exception of a callback while the engine runs in this thread. `None` while it does not.
    static RAISED: RefCell<Option<Option<PyErr>>> = const { RefCell::new(None) };
}

/// Runs the engine without the interpreter's lock. A panic becomes an error, and the exception of a callback is raised
/// unchanged.
pub(crate) fn engine<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    let (caught, raised) = py.detach(|| {
        let outer = RAISED.replace(Some(None));
        let caught = catch_unwind(AssertUnwindSafe(work));
        (caught, RAISED.replace(outer).flatten())
    });
    if let (Ok(Err(_)), Some(raised)) = (&caught, raised) {
        return Err(raised);
    }
    let panicked =
        || Error::new(Kind::Internal, "the engine panicked").with_help("this is a bug in Tympan; please report it");
    caught.unwrap_or_else(|_| Err(panicked())).map_err(|error| exception(py, &error))
}

/// Passes an exception to the caller that waits for a callback's work. Returns the exception if nobody waits.
fn hand_over(error: PyErr) -> Option<PyErr> {
    let mut error = Some(error);
    RAISED.with_borrow_mut(|raised| {
        if let Some(raised) = raised {
            *raised = error.take();
        }
    });
    error.and_then(|error| Caller::current().raise(error))
}

/// Calls a synchronous callback of the engine and converts its exception to an error.
pub(crate) fn called<T>(kind: Kind, what: &str, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    let called = attach(|py| call(py).map_err(|error| (raised(py, kind, what, &error), error)));
    called.unwrap_or_else(|| Err((Error::new(kind, "the interpreter is shutting down"), work::gone()))).map_err(
        |(error, exception)| {
            hand_over(exception);
            error
        },
    )
}

/// Calls a function of a template and converts its exception to text. What is not an ordinary exception, such as an
/// interrupt, is raised unchanged.
pub(crate) fn in_template<T>(call: impl FnOnce(Python<'_>) -> PyResult<T>) -> std::result::Result<T, String> {
    let called = attach(|py| {
        call(py).map_err(|error| {
            let name = error.get_type(py).name().map_or_else(|_| "exception".to_owned(), |name| name.to_string());
            let text = match error.value(py).str() {
                Ok(text) if text.len().is_ok_and(|len| len > 0) => format!("{name}: {text}"),
                _ => name,
            };
            if !error.is_instance_of::<PyException>(py) {
                hand_over(error);
            }
            text
        })
    });
    called.unwrap_or_else(|| Err("the interpreter is shutting down".to_owned()))
}

/// Converts the outcome of an async callback. If its exception was passed to the caller, the work is about to be
/// cancelled, so this never completes.
pub(crate) async fn settled<T>(kind: Kind, what: &str, outcome: PyResult<T>) -> Result<T> {
    let exception = match outcome {
        Ok(value) => return Ok(value),
        Err(exception) => exception,
    };
    match hand_over(exception) {
        None => std::future::pending().await,
        Some(exception) => {
            let error = attach(|py| raised(py, kind, what, &exception));
            Err(error.unwrap_or_else(|| Error::new(kind, "the interpreter is shutting down")))
        }
    }
}

/// Creates an error for those who cannot receive the exception itself.
fn raised(py: Python<'_>, kind: Kind, what: &str, error: &PyErr) -> Error {
    let name = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    Error::new(kind, format_args!("{what} raised {name}")).permanent()
}

/// Creates the exception for an invalid argument.
pub(crate) fn invalid(py: Python<'_>, details: impl std::fmt::Display) -> PyErr {
    exception(py, &Error::new(Kind::InvalidInput, details))
}
