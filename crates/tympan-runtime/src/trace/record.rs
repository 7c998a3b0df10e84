//! The data of a span, without secrets.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};
use tympan_core::JsonMap;

/// The globally unique ID of a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// The ID of a span within a trace.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

/// Where the work of a span is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanKind {
    /// In this process.
    #[default]
    Internal,
    /// By a remote service, such as a provider.
    Client,
}

/// The data of a span that is known when it begins.
#[derive(Clone, Debug)]
pub struct SpanStart {
    /// The ID of the trace.
    pub trace_id: TraceId,
    /// The ID of the span.
    pub span_id: SpanId,
    /// The ID of the parent span; `None` for the root of a trace.
    pub parent: Option<SpanId>,
    /// The number of ancestors.
    pub depth: usize,
    /// The span's name.
    pub name: String,
    /// Where the work of the span is done.
    pub kind: SpanKind,
    /// The start time.
    pub start: SystemTime,
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct SpanRecord {
    /// The data from when it began.
    pub begun: SpanStart,
    /// The end time: the start time plus [`SpanRecord::duration`], so it is not affected by clock changes.
    pub end: SystemTime,
    /// The duration, measured with a monotonic clock.
    pub duration: Duration,
    /// The emitted values: `signature`, `inputs`, `result` and others.
    pub fields: JsonMap,
    /// The telemetry attributes, such as `gen_ai.request.model`.
    pub attributes: JsonMap,
    /// The error, if any.
    pub error: Option<SpanError>,
}

/// The error of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanError {
    /// The class of the error, such as `ValueError` or `ConnectionError`.
    pub class: String,
    /// The short, stable error code.
    pub code: String,
    /// The error message.
    pub message: String,
}

impl SpanError {
    /// Returns the JSON that replaces a result.
    pub fn to_json(&self) -> Json {
        json!({ "exception": self.class, "message": self.message, "code": self.code })
    }
}

/// A trace whose root has ended, with all spans that had ended by then.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The root span.
    pub root: Arc<SpanRecord>,
    /// All other spans, in the order in which they ended.
    pub spans: Vec<Arc<SpanRecord>>,
}
