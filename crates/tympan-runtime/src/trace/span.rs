//! A span: one stage of a run, which ends when it is dropped.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Instant, SystemTime};

use serde_json::Value as Json;
use tympan_core::spec::Secret;
use tympan_core::{Error, JsonMap, Kind, Redactor, Result};

use crate::trace::mask::untrusted;
use crate::trace::record::{SpanError, SpanId, SpanKind, SpanRecord, SpanStart, Trace, TraceId};
use crate::trace::tracer::TraceOptions;
use crate::trace::worker::{Event, Worker};

/// One stage of a run. It ends when it is dropped: at the end of a block, by `?`, by a panic, or with a future that
/// nobody waits for any more. Values are made by closures, which a span that nobody listens to never calls.
#[must_use = "a span ends when it is dropped"]
pub struct Span(Option<Box<Open>>);

struct Open {
    trace: Arc<TraceState>,
    begun: Arc<SpanStart>,
    clock: Instant,
    said: Mutex<Said>,
}

/// What the spans of a trace share.
struct TraceState {
    workers: Arc<[Arc<Worker>]>,
    redactor: RwLock<Redactor>,
    max_value_bytes: usize,
    mask_untrusted: bool,
    ended: Mutex<Vec<Arc<SpanRecord>>>,
}

#[derive(Default)]
struct Said {
    fields: JsonMap,
    attributes: JsonMap,
    error: Option<SpanError>,
}

/// A span as the parent of others, also of such that begin in another function.
#[derive(Clone)]
pub(super) struct Parent {
    trace: Arc<TraceState>,
    begun: Arc<SpanStart>,
}

impl Parent {
    pub(super) fn child(&self, name: String, kind: SpanKind) -> Span {
        Span::open(self.trace.clone(), self.begun.trace_id, Some(&self.begun), name, kind)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Span").field(&self.0.as_ref().map(|open| &open.begun.name)).finish()
    }
}

impl Span {
    /// A span that nobody listens to.
    pub const fn disabled() -> Self {
        Self(None)
    }

    pub(super) fn root(
        name: String,
        kind: SpanKind,
        workers: Arc<[Arc<Worker>]>,
        redactor: Redactor,
        options: &TraceOptions,
    ) -> Self {
        let mut id = [0; 16];
        // Without randomness there are no names to tell spans by, and so no spans.
        if getrandom::fill(&mut id).is_err() {
            return Self::disabled();
        }
        let state = TraceState {
            workers,
            redactor: RwLock::new(redactor),
            max_value_bytes: options.max_value_bytes,
            mask_untrusted: options.mask_untrusted,
            ended: Mutex::default(),
        };
        Self::open(Arc::new(state), TraceId(id), None, name, kind)
    }

    fn open(
        trace: Arc<TraceState>,
        trace_id: TraceId,
        parent: Option<&SpanStart>,
        name: String,
        kind: SpanKind,
    ) -> Self {
        let Ok(id) = getrandom::u64() else { return Self::disabled() };
        let begun = Arc::new(SpanStart {
            trace_id,
            span_id: SpanId(id.to_be_bytes()),
            parent: parent.map(|parent| parent.span_id),
            depth: parent.map_or(0, |parent| parent.depth + 1),
            name: trace.text(&name),
            kind,
            start: SystemTime::now(),
        });
        trace.send(&Event::Started(begun.clone()));
        Self(Some(Box::new(Open { trace, begun, clock: Instant::now(), said: Mutex::default() })))
    }

    /// Whether anybody listens.
    pub const fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Whether what untrusted inputs wrote is to be left out of what this span is told.
    pub fn masks_untrusted(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.trace.mask_untrusted)
    }

    /// The trace and the span, for whoever carries them on, such as a `traceparent` header.
    pub fn ids(&self) -> Option<(TraceId, SpanId)> {
        self.0.as_ref().map(|open| (open.begun.trace_id, open.begun.span_id))
    }

    pub(super) fn as_parent(&self) -> Option<Parent> {
        let open = self.0.as_ref()?;
        Some(Parent { trace: open.trace.clone(), begun: open.begun.clone() })
    }

    /// A stage of this one.
    pub fn child(&self, name: impl Into<String>) -> Self {
        self.child_kind(name, SpanKind::Internal)
    }

    /// A stage of this one that somebody else works on, such as a provider.
    pub fn child_client(&self, name: impl Into<String>) -> Self {
        self.child_kind(name, SpanKind::Client)
    }

    fn child_kind(&self, name: impl Into<String>, kind: SpanKind) -> Self {
        self.as_parent().map_or_else(Self::disabled, |parent| parent.child(name.into(), kind))
    }

    /// Keeps secrets out of this trace, also out of what its spans have been told already, as long as they are open.
    pub fn hide<'s>(&self, secrets: impl IntoIterator<Item = &'s Secret>) {
        if let Some(open) = &self.0 {
            open.trace.redactor.write().unwrap_or_else(PoisonError::into_inner).register_all(secrets);
        }
    }

    /// Emits a value under a key, in place of what was emitted under it before.
    pub fn emit(&self, key: &str, value: impl FnOnce() -> Json) {
        if let Some(open) = &self.0 {
            let value = value();
            open.said().fields.insert(key.to_owned(), value);
        }
    }

    /// The function that the stage is.
    pub fn signature(&self, signature: &str) {
        self.emit("signature", || signature.into());
    }

    /// What the stage got: an object.
    pub fn inputs(&self, inputs: impl FnOnce() -> Json) {
        self.emit("inputs", inputs);
    }

    /// What the stage made.
    pub fn result(&self, result: impl FnOnce() -> Json) {
        self.emit("result", result);
    }

    /// What went wrong. It stands in the place of the result.
    pub fn error(&self, error: &Error) {
        if let Some(open) = &self.0 {
            open.said().error = Some(SpanError {
                class: error.class().as_str().to_owned(),
                code: error.code().to_owned(),
                message: open.trace.message(error),
            });
        }
    }

    /// What became of the stage: its result as JSON, or what went wrong.
    pub fn outcome<T>(&self, outcome: &Result<T>, to_json: impl FnOnce(&T) -> Json) {
        match outcome {
            Ok(value) => self.result(|| to_json(value)),
            Err(error) => self.error(error),
        }
    }

    /// Runs a stage of this one: `work` gets its span, and an error is recorded. The result is `work`'s to record.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn stage<T>(&self, name: &str, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let span = self.child(name);
        work(&span).inspect_err(|error| span.error(error))
    }

    /// Something that telemetry wants to know, under its name. Null is nothing.
    pub fn attribute(&self, key: &str, value: impl Into<Json>) {
        if let Some(open) = &self.0 {
            let value = value.into();
            if !value.is_null() {
                open.said().attributes.insert(key.to_owned(), value);
            }
        }
    }
}

impl Open {
    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceState {
    fn send(&self, event: &Event) {
        self.workers.iter().for_each(|worker| worker.send(event.clone()));
    }

    /// What an error says. Providers repeat what they were sent, and what a model says may do so, too.
    fn message(&self, error: &Error) -> String {
        let kind = error.kind();
        let is_quoted =
            matches!(kind, Kind::Provider | Kind::ProviderUnavailable | Kind::Refused | Kind::UnexpectedResponse);
        match self.mask_untrusted && is_quoted {
            true => kind.pattern().replacen("{}", &untrusted(error.message().len()), 1),
            false => error.message().to_owned(),
        }
    }

    fn text(&self, text: &str) -> String {
        let redactor = self.redactor.read().unwrap_or_else(PoisonError::into_inner);
        cut(redactor.text(text).into_owned(), self.max_value_bytes)
    }

    /// The map without secrets, and then without what is too long: a secret that was cut would not be found.
    fn map(&self, map: JsonMap) -> JsonMap {
        let redacted = self.redactor.read().unwrap_or_else(PoisonError::into_inner).json(&Json::Object(map));
        match bounded(redacted, self.max_value_bytes) {
            Json::Object(map) => map,
            _ => JsonMap::new(),
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let Some(open) = self.0.take() else { return };
        let Open { trace, begun, clock, said } = *open;
        let duration = clock.elapsed();
        let Said { fields, attributes, mut error } = said.into_inner().unwrap_or_else(PoisonError::into_inner);
        if error.is_none() && std::thread::panicking() {
            let message = "the thread panicked".to_owned();
            error = Some(SpanError { class: "Panic".into(), code: "panic".into(), message });
        }
        let error = error.map(|error| SpanError { message: trace.text(&error.message), ..error });
        let record = Arc::new(SpanRecord {
            end: begun.start + duration,
            duration,
            fields: trace.map(fields),
            attributes: trace.map(attributes),
            error,
            begun: (*begun).clone(),
        });
        trace.send(&Event::Ended(record.clone()));
        let mut ended = trace.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if record.begun.parent.is_some() {
            ended.push(record);
        } else {
            let spans = std::mem::take(&mut *ended);
            trace.send(&Event::Trace(Arc::new(Trace { root: record, spans })));
        }
    }
}

/// The value with its strings cut to so many bytes.
fn bounded(value: Json, max: usize) -> Json {
    match value {
        Json::String(text) => Json::String(cut(text, max)),
        Json::Array(items) => items.into_iter().map(|item| bounded(item, max)).collect(),
        Json::Object(map) => map.into_iter().map(|(key, value)| (cut(key, max), bounded(value, max))).collect(),
        other => other,
    }
}

fn cut(mut text: String, max: usize) -> String {
    if text.len() > max {
        let total = text.len();
        text.truncate(text.floor_char_boundary(max));
        text.push_str(&format!("… [{} of {total} bytes]", text.len()));
    }
    text
}
