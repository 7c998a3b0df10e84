//! The tracer: the backends of a runtime, by name.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use tympan_core::spec::Secret;
use tympan_core::{Redactor, Result};

use crate::trace::record::SpanKind;
use crate::trace::span::{Parent, Span};
use crate::trace::worker::{Backend, BackendStatus, Worker};

/// What is kept in traces, and what they may cost.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    /// Whether what untrusted inputs wrote is left out: see [`mask_inputs`](super::mask_inputs) and its neighbours.
    pub mask_untrusted: bool,
    /// Whether credentials are also known by their looks, and not only by their keys and values.
    pub redact_values: bool,
    /// Strings with more bytes are cut.
    pub max_value_bytes: usize,
    /// How many events may wait for a backend; what comes on top is dropped and counted.
    pub queue: usize,
    /// How long the last clone of a tracer waits for its backends when it is dropped.
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
    /// What begins here is a stage of this span.
    parent: Option<Parent>,
}

struct Shared {
    options: TraceOptions,
    workers: RwLock<Arc<[Arc<Worker>]>>,
    /// Most hosts trace nothing, and should not pay for a lock at every run.
    is_used: AtomicBool,
    /// The secrets that every trace keeps out.
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
    /// A tracer without backends.
    pub fn new(options: TraceOptions) -> Self {
        let redactor = RwLock::new(Redactor::new(options.redact_values));
        let shared = Shared { options, workers: RwLock::new(Arc::from([])), is_used: AtomicBool::new(false), redactor };
        Self { shared: Arc::new(shared), parent: None }
    }

    /// The options.
    pub fn options(&self) -> &TraceOptions {
        &self.shared.options
    }

    /// The same tracer, where what begins is a stage of this span, and no trace of its own.
    #[must_use]
    pub fn under(&self, span: &Span) -> Self {
        Self { shared: self.shared.clone(), parent: span.as_parent() }
    }

    /// Adds a backend under a name, in place of any other. It gets the traces that begin from now on.
    ///
    /// # Errors
    /// The operating system has no thread for it.
    pub fn add(&self, name: impl Into<String>, backend: impl Backend + 'static) -> Result<()> {
        let worker = Worker::start(name.into(), Box::new(backend), self.shared.options.queue)?;
        self.change(|workers| {
            close(workers.extract_if(.., |other| other.name == worker.name));
            workers.push(worker);
        });
        Ok(())
    }

    /// Removes a backend. It still gets what traces that have begun have to say so far.
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

    /// Whether anybody is told of what begins here.
    pub fn is_enabled(&self) -> bool {
        self.parent.is_some() || self.shared.is_used.load(Ordering::Acquire)
    }

    /// Keeps a secret out of all traces that begin from now on. Those of a prompt are better told to its own trace:
    /// [`Span::hide`].
    pub fn hide(&self, secret: &Secret) {
        self.shared.redactor.write().unwrap_or_else(PoisonError::into_inner).register(secret.expose());
    }

    /// Begins a trace, or a stage of the span that this tracer is [under](Tracer::under). Without a backend the span does nothing, and costs next to nothing.
    pub fn start(&self, name: impl Into<String>) -> Span {
        self.start_kind(name, SpanKind::Internal)
    }

    /// As [`Tracer::start`], for work that somebody else does.
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

    /// Waits until all backends have done their work, and no longer than this. Returns whether they have.
    pub fn flush(&self, timeout: Duration) -> bool {
        let deadline = later(timeout);
        // Every backend gets a chance, also after one that is stuck.
        let late = self.workers().iter().filter(|worker| !worker.flush(deadline)).count();
        late == 0
    }

    /// How the backends are doing.
    pub fn status(&self) -> Vec<BackendStatus> {
        self.workers().iter().map(|worker| worker.status()).collect()
    }
}

/// The time in so long, or in a year if that is longer than anybody can wait.
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
