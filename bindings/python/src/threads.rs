//! Threads of Tympan's that run Python code.
//!
//! An interpreter that comes to its end kills threads that want to go on in it, and with a thread of Rust's that is the
//! end of the process. So it waits for those that are inside, and lets no others in.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::runtime::default_runtime;

/// How long the end of the interpreter waits for tools that are under way.
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

/// Runs Python code in this thread; `None` if the interpreter is coming to its end.
pub(crate) fn attach<R>(work: impl for<'py> FnOnce(Python<'py>) -> R) -> Option<R> {
    let _visit = Visit::begin()?;
    Python::try_attach(work)
}

/// As [`attach`], for what is dropped. The interpreter may be on its way with an exception, which must not get lost.
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

/// Called when the interpreter is about to end.
#[pyfunction]
fn close(py: Python<'_>) {
    py.detach(|| {
        // The runtime of the process is never dropped, and what it has to say would be lost.
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

/// Has the interpreter tell us of its end.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let close = wrap_pyfunction!(close, module)?;
    module.py().import("atexit")?.call_method1("register", (close,)).map(drop)
}
