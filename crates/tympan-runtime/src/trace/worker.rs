//! The thread of a backend, which isolates runs from backends that are slow, fail or panic.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tympan_core::{Error, Kind, Result};

use crate::trace::record::{SpanRecord, SpanStart, Trace};

/// The error of a backend. Errors are counted, and the last one is available from
/// [`Tracer::status`](super::Tracer::status).
pub type BackendError = Box<dyn std::error::Error + Send + Sync>;

/// A trace backend, which runs on a thread of its own. All methods are optional.
pub trait Backend: Send {
    /// Returns whether to call [`Backend::started`].
    fn wants_starts(&self) -> bool {
        false
    }

    /// Handles the start of a span.
    ///
    /// # Errors
    /// Returns an error if the backend cannot process the event. The run is not affected.
    fn started(&mut self, _span: &SpanStart) -> Result<(), BackendError> {
        Ok(())
    }

    /// Handles the end of a span.
    ///
    /// # Errors
    /// Returns an error if the backend cannot process the event. The run is not affected.
    fn ended(&mut self, _span: &SpanRecord) -> Result<(), BackendError> {
        Ok(())
    }

    /// Handles a trace whose root has ended.
    ///
    /// # Errors
    /// Returns an error if the backend cannot process the trace. The run is not affected.
    fn trace(&mut self, _trace: &Trace) -> Result<(), BackendError> {
        Ok(())
    }

    /// Sends out what was collected. This is called when the queue is empty.
    ///
    /// # Errors
    /// Returns an error if the backend cannot send it out. The run is not affected.
    fn flush(&mut self) -> Result<(), BackendError> {
        Ok(())
    }
}

/// The status of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// The name that the backend was added under.
    pub name: String,
    /// The number of events that were dropped because the backend was too slow.
    pub dropped: u64,
    /// The number of times that the backend failed or panicked.
    pub failed: u64,
    /// The message of the last error.
    pub last_error: Option<String>,
}

/// An event for a backend.
#[derive(Clone)]
pub(super) enum Event {
    Started(Arc<SpanStart>),
    Ended(Arc<SpanRecord>),
    Trace(Arc<Trace>),
}

/// The queue between runs and the thread of a backend.
pub(super) struct Worker {
    pub(super) name: String,
    wants_starts: bool,
    capacity: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    is_closed: bool,
    /// Whether the thread is processing an event.
    is_busy: bool,
    dropped: u64,
    failed: u64,
    last_error: Option<String>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The maximum number of characters of an error to keep.
const MAX_ERROR_CHARS: usize = 200;

impl Worker {
    /// Starts the thread of a backend.
    pub(super) fn start(name: String, backend: Box<dyn Backend>, capacity: usize) -> Result<Arc<Self>> {
        let worker = Arc::new(Self {
            name,
            wants_starts: backend.wants_starts(),
            capacity,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let shared = worker.clone();
        let spawned = std::thread::Builder::new().name("tympan-trace".into()).spawn(move || shared.work(backend));
        spawned.map_err(|error| {
            Error::new(
                Kind::InvalidTrace,
                format_args!(
                    "cannot start a thread for a trace \
            backend: {error}"
                ),
            )
        })?;
        Ok(worker)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an event without blocking. If the queue is full, the event is dropped and counted.
    pub(super) fn send(&self, event: Event) {
        if matches!(event, Event::Started(_)) && !self.wants_starts {
            return;
        }
        let mut state = self.lock();
        if state.is_closed || state.events.len() >= self.capacity {
            state.dropped += 1;
            return;
        }
        state.events.push_back(event);
        drop(state);
        self.changed.notify_all();
    }

    /// Closes the queue. Pending events are still processed.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until the backend has processed all events. Returns whether it did so before the deadline.
    pub(super) fn flush(&self, deadline: Instant) -> bool {
        let mut state = self.lock();
        while state.is_busy || !state.events.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            let (next, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
        true
    }

    pub(super) fn status(&self) -> BackendStatus {
        let state = self.lock();
        BackendStatus {
            name: self.name.clone(),
            dropped: state.dropped,
            failed: state.failed,
            last_error: state.last_error.clone(),
        }
    }

    /// Runs the thread: processes one event at a time, and flushes whenever the queue is empty.
    fn work(&self, mut backend: Box<dyn Backend>) {
        loop {
            let mut state = self.lock();
            while state.events.is_empty() && !state.is_closed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(event) = state.events.pop_front() else { return };
            state.is_busy = true;
            drop(state);
            let failure = guarded(|| deliver(&mut *backend, &event));
            self.note(failure);
            let is_last = self.lock().events.is_empty();
            if is_last {
                let failure = guarded(|| backend.flush());
                self.note(failure);
            }
            self.lock().is_busy = false;
            self.changed.notify_all();
        }
    }

    fn note(&self, failure: Option<String>) {
        if let Some(message) = failure {
            let mut state = self.lock();
            state.failed += 1;
            state.last_error = Some(message.chars().take(MAX_ERROR_CHARS).collect());
        }
    }
}

fn deliver(backend: &mut dyn Backend, event: &Event) -> Result<(), BackendError> {
    match event {
        Event::Started(span) => backend.started(span),
        Event::Ended(span) => backend.ended(span),
        Event::Trace(trace) => backend.trace(trace),
    }
}

/// Calls a backend and returns the message if it fails or panics.
fn guarded(call: impl FnOnce() -> Result<(), BackendError>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("the backend panicked".to_owned()),
    }
}
