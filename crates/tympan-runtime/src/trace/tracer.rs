//! The tracer, which holds the backends of a runtime.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tympan_core::spec::Secret;
use tympan_core::{Redactor, Result};

use crate::trace::record::SpanKind;
use crate::trace::span::{Parent, Span};
use crate::trace::worker::{Backend, BackendStatus, Worker};

/// The options of a tracer.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Whether to mask text from untrusted inputs; see [`mask_inputs`](super::mask_inputs),
    /// [`mask_rendered`](super::mask_rendered) and [`mask_messages`](super::mask_messages).
    pub mask_untrusted: bool,
    /// Whether to also redact values that look like credentials, in addition to known keys and values.
    pub redact_values: bool,
    /// The maximum size of strings, in bytes. Longer strings are cut.
    pub max_value_bytes: usize,
    /// The maximum number of events in a backend's queue. Further events are dropped and counted.
    pub queue: usize,
    /// How long to wait for the backends when the last clone of a tracer is dropped.
    pub drop_timeout: Duration,
}

impl Default for TraceOptions {
    fn default() -> Self {
        Self {
            mask_untrusted: false,
            redact_values: true,
            max_value_bytes: 64 << 10,
            queue: 8192,
            drop_timeout: Duration::from_secs(2),
        }
    }
}

/// The backends of a runtime, by name. Clones share them.
#[derive(Clone)]
pub struct Tracer {
    shared: Arc<Shared>,
    /// The parent of spans that are started here.
    parent: Option<Parent>,
}

struct Shared {
    options: TraceOptions,
    workers: RwLock<Arc<[Arc<Worker>]>>,
    /// Most hosts do not use tracing, and should not pay for a lock in every run.
    is_used: AtomicBool,
    /// The secrets to hide in every trace.
    redactor: RwLock<Redactor>,
}

impl Default for Tracer {
    fn default() -> Self {
        Self::new(TraceOptions::default())
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let workers = self.workers();
        let names: Vec<_> = workers.iter().map(|worker| worker.name.as_str()).collect();
        f.debug_struct("Tracer").field("options", &self.shared.options).field("backends", &names).finish()
    }
}

impl Tracer {
    /// Creates a tracer without backends.
    pub fn new(options: TraceOptions) -> Self {
        let redactor = RwLock::new(Redactor::new(options.redact_values));
        let shared = Shared { options, workers: RwLock::new(Arc::from([])), is_used: AtomicBool::new(false), redactor };
        Self { shared: Arc::new(shared), parent: None }
    }

    /// Returns the options.
    pub fn options(&self) -> &TraceOptions {
        &self.shared.options
    }

    /// Returns a tracer that starts children of this span instead of new traces.
    #[must_use]
    pub fn under(&self, span: &Span) -> Self {
        Self { shared: self.shared.clone(), parent: span.as_parent() }
    }

    /// Adds a backend under a name, replacing any existing one. It receives traces that begin from now on.
    ///
    /// # Errors
    /// Returns an error if the operating system cannot create a thread.
    pub fn add(&self, name: impl Into<String>, backend: impl Backend + 'static) -> Result<()> {
        let worker = Worker::start(name.into(), Box::new(backend), self.shared.options.queue)?;
        self.change(|workers| {
            close(workers.extract_if(.., |other| other.name == worker.name));
            workers.push(worker);
        });
        Ok(())
    }

    /// Removes a backend. It still receives the events of running traces up to now. Returns whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.change(|workers| close(workers.extract_if(.., |worker| worker.name == name)) > 0)
    }

    /// Removes all backends.
    pub fn clear(&self) {
        self.change(|workers| close(workers.drain(..)));
    }

    fn change<T>(&self, change: impl FnOnce(&mut Vec<Arc<Worker>>) -> T) -> T {
        let mut workers = self.shared.workers.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = workers.to_vec();
        let result = change(&mut changed);
        self.shared.is_used.store(!changed.is_empty(), Ordering::Release);
        *workers = changed.into();
        result
    }

    fn workers(&self) -> Arc<[Arc<Worker>]> {
        self.shared.workers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether spans that are started here are recorded.
    pub fn is_enabled(&self) -> bool {
        self.parent.is_some() || self.shared.is_used.load(Ordering::Acquire)
    }

    /// Hides a secret in all traces that begin from now on. To hide secrets in a single trace, such as those of a
    /// prompt, use [`Span::hide`].
    pub fn hide(&self, secret: &Secret) {
        self.shared.redactor.write().unwrap_or_else(PoisonError::into_inner).register(secret.expose());
    }

    /// Starts a trace, or a child of the span that this tracer is [under](Tracer::under). Without backends, the span
    /// does nothing and costs almost nothing.
    pub fn start(&self, name: impl Into<String>) -> Span {
        self.start_kind(name, SpanKind::Internal)
    }

    /// Starts a trace or a child span like [`Tracer::start`], for work that a remote service does.
    pub fn start_client(&self, name: impl Into<String>) -> Span {
        self.start_kind(name, SpanKind::Client)
    }

    fn start_kind(&self, name: impl Into<String>, kind: SpanKind) -> Span {
        if let Some(parent) = &self.parent {
            return parent.child(name.into(), kind);
        }
        if !self.is_enabled() {
            return Span::disabled();
        }
        let redactor = self.shared.redactor.read().unwrap_or_else(PoisonError::into_inner).clone();
        Span::root(name.into(), kind, self.workers(), redactor, &self.shared.options)
    }

    /// Waits until all backends have processed all events, up to a time limit. Returns whether they have.
    pub fn flush(&self, timeout: Duration) -> bool {
        let deadline = later(timeout);
        // Flush every backend, even after one that is stuck.
        let late = self.workers().iter().filter(|worker| !worker.flush(deadline)).count();
        late == 0
    }

    /// Returns the status of all backends.
    pub fn status(&self) -> Vec<BackendStatus> {
        self.workers().iter().map(|worker| worker.status()).collect()
    }
}

/// Returns the time after this duration, capped at a year to avoid overflow.
fn later(wait: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(365 * 24 * 3600);
    let now = Instant::now();
    now.checked_add(wait.min(FAR)).unwrap_or(now)
}

fn close(workers: impl Iterator<Item = Arc<Worker>>) -> usize {
    workers.inspect(|worker| worker.close()).count()
}

impl Drop for Shared {
    fn drop(&mut self) {
        let workers = self.workers.get_mut().unwrap_or_else(PoisonError::into_inner);
        workers.iter().for_each(|worker| worker.close());
        let deadline = later(self.options.drop_timeout);
        workers.iter().for_each(|worker| _ = worker.flush(deadline));
    }
}
