//! Errors of the engine as exceptions of Python.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};
use tympan::text::source::SourceFile;
use tympan::{Class, Error, Kind, Result};

use crate::message;
use crate::prompt::Finding;
use crate::threads::attach;
use crate::work::{self, Caller};

/// The exception that an error is: of the class that Python has for such errors, and a `TympanError` as well.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    build(py, error).unwrap_or_else(|failure| failure)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let place = error.line_column();
    let others = error.others().iter().map(|other| Finding::new(other, error.source_file()));
    // A picture that cannot be shown is no reason to hide what went wrong.
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
    /// What a callback raised while the engine works in this thread; nothing at all while it does not.
    static RAISED: RefCell<Option<Option<PyErr>>> = const { RefCell::new(None) };
}

/// Has the engine work without the interpreter's lock. A panic is an error, and goes no further; the exception of a
/// callback comes back as itself.
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
        || Error::new(Kind::Internal, "it panicked").with_help("this is a fault of Tympan: please report it");
    caught.unwrap_or_else(|_| Err(panicked())).map_err(|error| exception(py, &error))
}

/// Hands an exception to whoever waits for the work that a callback belongs to; if that is nobody, it comes back.
fn hand_over(error: PyErr) -> Option<PyErr> {
    let mut error = Some(error);
    RAISED.with_borrow_mut(|raised| {
        if let Some(raised) = raised {
            *raised = error.take();
        }
    });
    error.and_then(|error| Caller::current().raise(error))
}

/// What a callback came to that the engine waits for.
pub(crate) fn called<T>(kind: Kind, what: &str, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
    let called = attach(|py| call(py).map_err(|error| (raised(py, kind, what, &error), error)));
    called.unwrap_or_else(|| Err((Error::new(kind, "the interpreter is shutting down"), work::gone()))).map_err(
        |(error, exception)| {
            hand_over(exception);
            error
        },
    )
}

/// What an async callback came to. If its exception is handed over, the work is about to be stopped, and goes no further.
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

/// An error for whoever cannot get the exception itself.
fn raised(py: Python<'_>, kind: Kind, what: &str, error: &PyErr) -> Error {
    let name = error.get_type(py).name().map_or_else(|_| "an exception".to_owned(), |name| name.to_string());
    Error::new(kind, format_args!("{what} raised {name}")).permanent()
}

/// What is wrong with an argument.
pub(crate) fn invalid(py: Python<'_>, details: impl std::fmt::Display) -> PyErr {
    exception(py, &Error::new(Kind::InvalidInput, details))
}
