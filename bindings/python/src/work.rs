//! Work on Tympan's driver that a Python thread or an event loop waits for.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};
use tokio::sync::oneshot;
use tympan::net::io;
use tympan::{Error, Kind, Result};

use crate::errors::exception;
use crate::threads::{attach, attach_to_drop};

/// How often a waiting thread checks for an interrupt.
const LOOK_UP: Duration = Duration::from_millis(50);

/// The time limit for stopping cancelled work. It stops immediately unless the driver is overloaded.
const STOPPED: Duration = Duration::from_secs(5);

/// A job that must run where the work was started. Its exception ends the work.
pub(crate) type Job = Box<dyn FnOnce(Python<'_>) -> PyResult<()> + Send>;

tokio::task_local! {
    /// The caller of the work that a task does.
    static CALLER: Caller;
}

/// The caller of some work: a waiting thread or an event loop.
#[derive(Clone, Default)]
pub(crate) struct Caller {
    post: Option<Arc<dyn Fn(Job) + Send + Sync>>,
    event_loop: Option<Arc<Py<PyAny>>>,
    own_loop: Option<Arc<OwnLoop>>,
}

impl Caller {
    /// Returns a caller that drops everything posted to it.
    pub(crate) fn nobody() -> Self {
        Self::default()
    }

    /// Returns the caller of the current work, or an empty caller if it is unknown.
    pub(crate) fn current() -> Self {
        CALLER.try_with(Clone::clone).unwrap_or_default()
    }

    /// Adds an event loop for async callbacks, which is used if the caller has none.
    pub(crate) fn or_own(mut self, own_loop: &Arc<OwnLoop>) -> Self {
        self.own_loop = Some(own_loop.clone());
        self
    }

    /// Runs a job at the caller. Jobs run in the order in which they were posted, before the end of the work is
    /// visible.
    pub(crate) fn post(&self, job: impl FnOnce(Python<'_>) -> PyResult<()> + Send + 'static) {
        if let Some(post) = &self.post {
            post(Box::new(job));
        }
    }

    /// Runs a job at the caller and waits until it is done. If the job raises an exception, the work ends, and this never
    /// returns. Without a caller, the job is dropped.
    pub(crate) async fn perform(&self, job: impl FnOnce(Python<'_>) -> PyResult<()> + Send + 'static) {
        if self.post.is_none() {
            return;
        }
        let (sender, done) = oneshot::channel();
        self.post(move |py| {
            job(py)?;
            let _ = sender.send(());
            Ok(())
        });
        if done.await.is_err() {
            std::future::pending().await
        }
    }

    /// Ends the work with an exception. Returns the exception if nobody waits for the work.
    pub(crate) fn raise(&self, error: PyErr) -> Option<PyErr> {
        if self.post.is_none() {
            return Some(error);
        }
        self.post(move |_| Err(error));
        None
    }
}

/// An event loop for related callbacks whose caller has none. It is created on first use.
pub(crate) struct OwnLoop(PyOnceLock<Py<PyAny>>);

impl OwnLoop {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(PyOnceLock::new()))
    }

    fn run<'py>(&self, coroutine: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        let make = || py.import("tympan._aio")?.getattr("Loop")?.call0().map(Bound::unbind);
        self.0.get_or_try_init(py, make)?.bind(py).call_method1("run", (coroutine,))
    }
}

impl Drop for OwnLoop {
    fn drop(&mut self) {
        attach_to_drop(|py| drop(self.0.get(py).map(|own| own.call_method0(py, "close"))));
    }
}

/// Creates the work for a caller.
type Make<'a, T> = &'a mut dyn FnMut(Caller) -> PyResult<BoxFuture<'static, Result<T>>>;

/// Converts an outcome for Python.
type Convert<T> = fn(Python<'_>, T) -> PyResult<Py<PyAny>>;

/// Starts the work, and either waits for it or returns an asyncio future.
pub(crate) fn go<T: Send + 'static>(
    py: Python<'_>,
    is_async: bool,
    mut make: impl FnMut(Caller) -> PyResult<BoxFuture<'static, Result<T>>>,
    convert: Convert<T>,
) -> PyResult<Py<PyAny>> {
    match is_async {
        true => begin(py, &mut make, convert),
        false => wait(py, &mut make).and_then(|outcome| convert(py, outcome)),
    }
}

enum Posted<T> {
    Job(Job),
    Done(Result<T>),
}

fn wait<T: Send + 'static>(py: Python<'_>, make: Make<'_, T>) -> PyResult<T> {
    let (sender, receiver) = mpsc::channel();
    let jobs = sender.clone();
    let post = move |job| drop(jobs.send(Posted::Job(job)));
    let caller = Caller { post: Some(Arc::new(post)), ..Caller::default() };
    let work = CALLER.scope(caller.clone(), make(caller)?);
    let (going, gone) = mpsc::channel::<()>();
    let work = io::spawn(async move {
        // Dropped after the work.
        let _going = going;
        work.await
    });
    let task = io::spawn(async move {
        let _ = sender.send(Posted::Done(work.await));
        Ok(())
    });
    let outcome = listen(py, receiver);
    // Release everything that the work holds, such as a journal, before the caller continues.
    drop(task);
    py.detach(move || gone.recv_timeout(STOPPED)).ok();
    outcome
}

/// Runs posted jobs until the work is done or one of them raises an exception.
fn listen<T: Send + 'static>(py: Python<'_>, mut receiver: mpsc::Receiver<Posted<T>>) -> PyResult<T> {
    loop {
        let next;
        (receiver, next) = py.detach(move || {
            let next = receiver.recv_timeout(LOOK_UP);
            (receiver, next)
        });
        match next {
            Ok(Posted::Done(outcome)) => return outcome.map_err(|error| exception(py, &error)),
            Ok(Posted::Job(job)) => job(py)?,
            Err(mpsc::RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return Err(exception(py, &Error::new(Kind::Internal, "the operation was abandoned")));
            }
        }
    }
}

fn begin<T: Send + 'static>(py: Python<'_>, make: Make<'_, T>, convert: Convert<T>) -> PyResult<Py<PyAny>> {
    let event_loop = asyncio(py)?.call_method0("get_running_loop")?;
    let future = event_loop.call_method0("create_future")?;
    let (to_loop, to_future) = (Arc::new(event_loop.unbind()), Arc::new(future.clone().unbind()));
    let post: Arc<dyn Fn(Job) + Send + Sync> = {
        let (event_loop, future) = (to_loop.clone(), to_future.clone());
        Arc::new(move |job| {
            attach(|py| {
                let job = LoopJob { job: Mutex::new(Some(job)), future: future.clone_ref(py) };
                // If the loop is closed, nobody waits for the job.
                let _ = event_loop.call_method1(py, "call_soon_threadsafe", (job,));
            });
        })
    };
    let caller = Caller { post: Some(post.clone()), event_loop: Some(to_loop), own_loop: None };
    let work = CALLER.scope(caller.clone(), make(caller)?);
    let task = io::spawn(async move {
        let outcome = io::spawn(work).await;
        post(Box::new(move |py| {
            let outcome = outcome.map_err(|error| exception(py, &error)).and_then(|outcome| convert(py, outcome))?;
            to_future.call_method1(py, "set_result", (outcome,)).map(drop)
        }));
        Ok(())
    });
    future.call_method1("add_done_callback", (Stop { task: Mutex::new(Some(task)) },))?;
    Ok(future.unbind())
}

/// A job for the thread of an event loop. It is skipped if nobody waits for the work anymore.
#[pyclass(frozen)]
struct LoopJob {
    job: Mutex<Option<Job>>,
    future: Py<PyAny>,
}

#[pymethods]
impl LoopJob {
    fn __call__(&self, py: Python<'_>) -> PyResult<()> {
        let job = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
        let future = self.future.bind(py);
        if future.call_method0("done")?.is_truthy()? {
            return Ok(());
        }
        match job.map(|job| job(py)) {
            Some(Err(error)) => future.call_method1("set_exception", (error,)).map(drop),
            _ => Ok(()),
        }
    }
}

/// Stops the work when its future is done, which includes cancellation.
#[pyclass(frozen)]
struct Stop {
    task: Mutex<Option<io::Task<()>>>,
}

#[pymethods]
impl Stop {
    fn __call__(&self, _future: &Bound<'_, PyAny>) {
        drop(self.task.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// The arguments of a call, built while holding the interpreter's lock.
pub(crate) type Arguments = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<CallArguments<'py>> + Send>;

/// Positional and keyword arguments.
pub(crate) type CallArguments<'py> = (Bound<'py, PyTuple>, Option<Bound<'py, PyDict>>);

/// Calls a Python function from the driver. The function may block or be async.
pub(crate) async fn call(function: Py<PyAny>, arguments: Arguments, caller: Caller) -> PyResult<Py<PyAny>> {
    let begun = tokio::task::spawn_blocking(move || {
        attach(|py| {
            let (positional, named) = arguments(py)?;
            let returned = function.bind(py).call(positional, named.as_ref())?;
            finish_or_await(&returned, &caller)
        })
    });
    match begun.await.ok().flatten().ok_or_else(gone)?? {
        Returned::Value(value) => Ok(value),
        Returned::Later { outcome, _guard } => outcome.await.map_err(|_| gone())?,
    }
}

/// Returns the exception for an interpreter that is shutting down.
pub(crate) fn gone() -> PyErr {
    PyRuntimeError::new_err("the interpreter is shutting down")
}

enum Returned {
    Value(Py<PyAny>),
    Later { outcome: oneshot::Receiver<PyResult<Py<PyAny>>>, _guard: CancelOnDrop },
}

/// Returns the result of a call. A coroutine runs on the caller's event loop, or on a separate one if there is none.
fn finish_or_await(returned: &Bound<'_, PyAny>, caller: &Caller) -> PyResult<Returned> {
    let py = returned.py();
    if !returned.hasattr("__await__")? {
        return Ok(Returned::Value(returned.clone().unbind()));
    }
    static AWAITED: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let coroutine = AWAITED.import(py, "tympan._aio", "awaited")?.call1((returned,))?;
    let Some(event_loop) = &caller.event_loop else {
        let value = match &caller.own_loop {
            Some(own_loop) => own_loop.run(coroutine),
            None => asyncio(py)?.call_method1("run", (coroutine,)),
        };
        return value.map(|value| Returned::Value(value.unbind()));
    };
    let running = asyncio(py)?.call_method1("run_coroutine_threadsafe", (coroutine, event_loop.bind(py)))?;
    let (sender, outcome) = oneshot::channel();
    running.call_method1("add_done_callback", (Report { sender: Mutex::new(Some(sender)) },))?;
    Ok(Returned::Later { outcome, _guard: CancelOnDrop(running.unbind()) })
}

/// Forwards the outcome of a coroutine.
#[pyclass(frozen)]
struct Report {
    sender: Mutex<Option<oneshot::Sender<PyResult<Py<PyAny>>>>>,
}

#[pymethods]
impl Report {
    fn __call__(&self, future: &Bound<'_, PyAny>) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            let _ = sender.send(future.call_method0("result").map(Bound::unbind));
        }
    }
}

/// Cancels a coroutine that nobody waits for anymore.
struct CancelOnDrop(Py<PyAny>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        attach_to_drop(|py| drop(self.0.call_method0(py, "cancel")));
    }
}

fn asyncio(py: Python<'_>) -> PyResult<Bound<'_, PyModule>> {
    py.import("asyncio")
}
