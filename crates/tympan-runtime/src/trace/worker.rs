//! A backend and its thread: it may be slow, fail or panic, and nobody else notices.

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tympan_core::{Error, Kind, Result};

use crate::trace::record::{SpanRecord, SpanStart, Trace};

/// Why a backend failed. It is counted, and the last one is kept for [`Tracer::status`](super::Tracer::status).
pub type BackendError = Box<dyn std::error::Error + Send + Sync>;

/// Gets to know what happens, on a thread of its own. Whatever it does not want to know, it leaves out.
pub trait Backend: Send {
    /// Whether it wants to be told when spans begin.
    fn wants_starts(&self) -> bool {
        false
    }

    /// A span has begun.
    ///
    /// # Errors
    /// Whatever prevents the backend from doing its work; the run goes on.
    fn started(&mut self, _span: &SpanStart) -> Result<(), BackendError> {
        Ok(())
    }

    /// A span has ended.
    ///
    /// # Errors
    /// As [`Backend::started`].
    fn ended(&mut self, _span: &SpanRecord) -> Result<(), BackendError> {
        Ok(())
    }

    /// The root of a trace has ended.
    ///
    /// # Errors
    /// As [`Backend::started`].
    fn trace(&mut self, _trace: &Trace) -> Result<(), BackendError> {
        Ok(())
    }

    /// Nothing else is waiting: what was collected should go out now.
    ///
    /// # Errors
    /// As [`Backend::started`].
    fn flush(&mut self) -> Result<(), BackendError> {
        Ok(())
    }
}

/// How a backend is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackendStatus {
    /// The name it was added under.
    pub name: String,
    /// How many events it never got, because it was too slow.
    pub dropped: u64,
    /// How often it failed or panicked.
    pub failed: u64,
    /// What it said the last time.
    pub last_error: Option<String>,
}

/// Something for a backend to know.
#[derive(Clone)]
pub(super) enum Event {
    Started(Arc<SpanStart>),
    Ended(Arc<SpanRecord>),
    Trace(Arc<Trace>),
}

/// The queue between the runs and a backend's thread.
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
    /// Whether the thread is at work on something.
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

/// More of an error than this helps nobody.
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
        spawned.map_err(|error| Error::new(Kind::InvalidTrace, format_args!("no thread for a backend: {error}")))?;
        Ok(worker)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an event over. It never waits: where the backend cannot keep up, the event is counted and gone.
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

    /// No more events come. What is waiting is still worked off.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Waits until the backend has done all its work. Returns whether it did so in time.
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

    /// The thread: one event after the other, and a flush whenever there is none left.
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

/// Why a call of a backend failed; a panic is a failure like any other.
fn guarded(call: impl FnOnce() -> Result<(), BackendError>) -> Option<String> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some("it panicked".to_owned()),
    }
}
