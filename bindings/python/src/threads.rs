//! Tympan's threads that run Python code.
//!
//! An interpreter that shuts down kills threads that try to run Python code, which aborts the process if it is a Rust
//! thread. So the shutdown waits for the threads that are inside the interpreter, and no more threads may enter.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::runtime::default_runtime;

/// How long the shutdown of the interpreter waits for running tools.
const PATIENCE: Duration = Duration::from_secs(2);

static INSIDE: Mutex<Inside> = Mutex::new(Inside { count: 0, is_closed: false });
static LEFT: Condvar = Condvar::new();

struct Inside {
    count: usize,
    is_closed: bool,
}

fn inside() -> MutexGuard<'static, Inside> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs Python code in this thread. Returns `None` if the interpreter is shutting down.
pub(crate) fn attach<R>(work: impl for<'py> FnOnce(Python<'py>) -> R) -> Option<R> {
    let _visit = Visit::begin()?;
    Python::try_attach(work)
}

/// Runs Python code when a value is dropped. Preserves a pending exception of the interpreter.
pub(crate) fn attach_to_drop(work: impl for<'py> FnOnce(Python<'py>)) {
    attach(|py| {
        let on_its_way = PyErr::take(py);
        work(py);
        if let Some(error) = on_its_way {
            error.restore(py);
        }
    });
}

struct Visit;

impl Visit {
    fn begin() -> Option<Self> {
        let mut inside = inside();
        if inside.is_closed {
            return None;
        }
        inside.count += 1;
        Some(Self)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        inside().count -= 1;
        LEFT.notify_all();
    }
}

/// Called when the interpreter shuts down.
#[pyfunction]
fn close(py: Python<'_>) {
    py.detach(|| {
        // The default runtime is never dropped, so flush its traces here.
        default_runtime().tracer().flush(PATIENCE);
        let until = Instant::now() + PATIENCE;
        let mut inside = inside();
        inside.is_closed = true;
        while inside.count > 0 {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return };
            (inside, _) = LEFT.wait_timeout(inside, left).unwrap_or_else(PoisonError::into_inner);
        }
    });
}

/// Registers the shutdown handler with the interpreter.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let close = wrap_pyfunction!(close, module)?;
    module.py().import("atexit")?.call_method1("register", (close,)).map(drop)
}
