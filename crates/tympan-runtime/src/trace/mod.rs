//! Traces: a record of what a run did, stage by stage.
//!
//! A [`Tracer`] belongs to a [`Runtime`](crate::Runtime). Each of its backends ([`TracyBackend`], [`ConsoleBackend`],
//! …) has its own thread and queue, so it cannot slow down a run or another backend. A [`Span`] is one stage. It ends
//! when it is dropped, whatever the cause, and its parent is always the span that it was created from.
//!
//! ```
//! use serde_json::json;
//! use tympan_runtime::trace::{ConsoleBackend, Tracer};
//!
//! let tracer = Tracer::default();
//! tracer.add("console", ConsoleBackend::new(std::io::sink()))?;
//! {
//!     let run = tracer.start("run");
//!     let render = run.child("render");
//!     render.inputs(|| json!({ "name": "Ada" }));
//!     render.result(|| json!("Hello Ada"));
//! } // both spans end here
//! assert!(tracer.flush(std::time::Duration::from_secs(5)));
//! # Ok::<(), tympan_core::Error>(())
//! ```

mod console;
pub(crate) mod event;
#[cfg(feature = "providers")]
mod gen_ai;
mod mask;
#[cfg(feature = "providers")]
mod model_event;
#[cfg(feature = "otel")]
mod otel;
mod record;
mod span;
#[cfg(feature = "providers")]
pub mod spans;
mod tracer;
mod tracy;
mod worker;

pub use console::ConsoleBackend;
#[cfg(feature = "providers")]
pub use gen_ai::{operation_name, provider_name};
pub use mask::{mask_inputs, mask_messages, mask_rendered, untrusted};
#[cfg(feature = "otel")]
pub use otel::{OtelBackend, OtelOptions};
pub use record::{SpanError, SpanId, SpanKind, SpanRecord, SpanStart, Trace, TraceId};
pub use span::Span;
pub use tracer::{TraceOptions, Tracer};
pub use tracy::TracyBackend;
pub use tympan_core::Redactor;
pub use worker::{Backend, BackendError, BackendStatus};
