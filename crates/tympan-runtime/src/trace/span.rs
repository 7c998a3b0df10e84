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

/// One stage of a run. It ends when it is dropped: at the end of a block, by `?`, by a panic, or together with a future
/// that is cancelled. Values are computed by closures, which a disabled span never calls.
#[must_use = "a span ends when it is dropped"]
pub struct Span(Option<Box<Open>>);

struct Open {
    trace: Arc<TraceState>,
    begun: Arc<SpanStart>,
    clock: Instant,
    data: Mutex<SpanData>,
}

/// The state that the spans of a trace share.
struct TraceState {
    workers: Arc<[Arc<Worker>]>,
    redactor: RwLock<Redactor>,
    max_value_bytes: usize,
    mask_untrusted: bool,
    ended: Mutex<Vec<Arc<SpanRecord>>>,
}

/// What a span has recorded so far.
#[derive(Default)]
struct SpanData {
    fields: JsonMap,
    attributes: JsonMap,
    error: Option<SpanError>,
}

/// A handle for creating children of a span, even in other functions.
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
    /// Creates a span that is not recorded.
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
        // Without randomness, spans cannot have unique IDs, so there are no spans.
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
        Self(Some(Box::new(Open { trace, begun, clock: Instant::now(), data: Mutex::default() })))
    }

    /// Returns whether the span is recorded.
    pub const fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether text from untrusted inputs must be masked before it is recorded in this span.
    pub fn masks_untrusted(&self) -> bool {
        self.0.as_ref().is_some_and(|open| open.trace.mask_untrusted)
    }

    /// Returns the IDs of the trace and the span, for example for a `traceparent` header.
    pub fn ids(&self) -> Option<(TraceId, SpanId)> {
        self.0.as_ref().map(|open| (open.begun.trace_id, open.begun.span_id))
    }

    pub(super) fn as_parent(&self) -> Option<Parent> {
        let open = self.0.as_ref()?;
        Some(Parent { trace: open.trace.clone(), begun: open.begun.clone() })
    }

    /// Starts a child span.
    pub fn child(&self, name: impl Into<String>) -> Self {
        self.child_kind(name, SpanKind::Internal)
    }

    /// Starts a child span for work that a remote service does, such as a provider.
    pub fn child_client(&self, name: impl Into<String>) -> Self {
        self.child_kind(name, SpanKind::Client)
    }

    fn child_kind(&self, name: impl Into<String>, kind: SpanKind) -> Self {
        self.as_parent().map_or_else(Self::disabled, |parent| parent.child(name.into(), kind))
    }

    /// Hides secrets in this trace, including values already recorded in spans that are still open.
    pub fn hide<'s>(&self, secrets: impl IntoIterator<Item = &'s Secret>) {
        if let Some(open) = &self.0 {
            open.trace.redactor.write().unwrap_or_else(PoisonError::into_inner).register_all(secrets);
        }
    }

    /// Records a value under a key, replacing any existing one.
    pub fn emit(&self, key: &str, value: impl FnOnce() -> Json) {
        if let Some(open) = &self.0 {
            let value = value();
            open.data().fields.insert(key.to_owned(), value);
        }
    }

    /// Records the function that the stage runs.
    pub fn signature(&self, signature: &str) {
        self.emit("signature", || signature.into());
    }

    /// Records the inputs of the stage, which must be an object.
    pub fn inputs(&self, inputs: impl FnOnce() -> Json) {
        self.emit("inputs", inputs);
    }

    /// Records the result of the stage.
    pub fn result(&self, result: impl FnOnce() -> Json) {
        self.emit("result", result);
    }

    /// Records an error. It replaces the result.
    pub fn error(&self, error: &Error) {
        if let Some(open) = &self.0 {
            open.data().error = Some(SpanError {
                class: error.class().as_str().to_owned(),
                code: error.code().to_owned(),
                message: open.trace.message(error),
            });
        }
    }

    /// Records the outcome of the stage: its result as JSON, or the error.
    pub fn outcome<T>(&self, outcome: &Result<T>, to_json: impl FnOnce(&T) -> Json) {
        match outcome {
            Ok(value) => self.result(|| to_json(value)),
            Err(error) => self.error(error),
        }
    }

    /// Runs a child stage: calls `work` with its span, and records an error. `work` is responsible for recording the
    /// result.
    ///
    /// # Errors
    /// Returns the error of `work`.
    pub fn stage<T>(&self, name: &str, work: impl FnOnce(&Self) -> Result<T>) -> Result<T> {
        let span = self.child(name);
        work(&span).inspect_err(|error| span.error(error))
    }

    /// Records a telemetry attribute. Null is ignored.
    pub fn attribute(&self, key: &str, value: impl Into<Json>) {
        if let Some(open) = &self.0 {
            let value = value.into();
            if !value.is_null() {
                open.data().attributes.insert(key.to_owned(), value);
            }
        }
    }
}

impl Open {
    fn data(&self) -> MutexGuard<'_, SpanData> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceState {
    fn send(&self, event: &Event) {
        self.workers.iter().for_each(|worker| worker.send(event.clone()));
    }

    /// Returns the message of an error. Messages from providers and models may repeat their input, so they may have to
    /// be masked.
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

    /// Redacts a map, then shortens its strings. In this order, because a secret that was cut would not be found.
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
        let Open { trace, begun, clock, data } = *open;
        let duration = clock.elapsed();
        let SpanData { fields, attributes, mut error } = data.into_inner().unwrap_or_else(PoisonError::into_inner);
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

/// Shortens all strings in a value to `max` bytes.
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
