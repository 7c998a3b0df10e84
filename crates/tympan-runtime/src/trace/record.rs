//! What is known of a span when it has ended, as plain data without secrets.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value as Json, json};
use tympan_core::JsonMap;

/// Identifies a trace everywhere.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// Identifies a span within a trace.
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
pub enum SpanKind {
    /// Here.
    #[default]
    Internal,
    /// By somebody else, such as a provider.
    Client,
}

/// What is known of a span when it begins.
#[derive(Clone, Debug)]
pub struct SpanStart {
    /// The trace it belongs to.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// The span it was made from; none for the root of a trace.
    pub parent: Option<SpanId>,
    /// How many spans are above it.
    pub depth: usize,
    /// Its name.
    pub name: String,
    /// Where its work is done.
    pub kind: SpanKind,
    /// When it began.
    pub start: SystemTime,
}

/// A span that has ended.
#[derive(Clone, Debug)]
pub struct SpanRecord {
    /// What was known when it began.
    pub begun: SpanStart,
    /// When it ended: the beginning and [`SpanRecord::duration`], so a clock that is set in between does no harm.
    pub end: SystemTime,
    /// How long it took, by a clock that nobody sets.
    pub duration: Duration,
    /// What was emitted: `signature`, `inputs`, `result`, and whatever else.
    pub fields: JsonMap,
    /// What telemetry wants to know, under its names: `gen_ai.request.model`, …
    pub attributes: JsonMap,
    /// What went wrong.
    pub error: Option<SpanError>,
}

/// What went wrong in a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanError {
    /// The family of the error: `ValueError`, `ConnectionError`, …
    pub class: String,
    /// Its short stable name.
    pub code: String,
    /// What happened.
    pub message: String,
}

impl SpanError {
    /// What stands in the place of a result.
    pub fn to_json(&self) -> Json {
        json!({ "exception": self.class, "message": self.message, "code": self.code })
    }
}

/// A trace whose root has ended, with all of its spans that had ended by then.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The root.
    pub root: Arc<SpanRecord>,
    /// All others, in the order in which they ended.
    pub spans: Vec<Arc<SpanRecord>>,
}
