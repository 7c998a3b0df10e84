//! Tympan's runtime: everything that waits.
//!
//! Files, the environment, randomness, models and clocks come in here; the pure engine is the crate `tympan`.
//! The free functions use one default [`Runtime`]; a host with renderers, limits or traces of its own makes another.
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the root of the repository");
//! use serde_json::json;
//!
//! let inputs = json!({"question": "What is a tympan?"});
//! // The provider of this prompt is `echo`, which needs no key and no network.
//! let run = tympan_runtime::invoke("examples/echo.prompty", inputs.as_object().expect("a map"))?;
//! assert_eq!(run.outcome.to_json(), "What is a tympan?");
//! # Ok::<(), tympan_runtime::Error>(())
//! ```
//!
//! Where to look next: [`Runtime`] for everything, [`invoke`] for a whole run, [`ResponseStream`] for answers as they
//! arrive, [`Cassette`] for runs without a provider, [`trace`] for what a run did.
#![warn(missing_docs)]

pub mod file;
pub mod host;
pub mod load;
pub mod model;
pub mod net;
pub mod tool;
pub mod trace;
pub mod turn;

pub use host::pipeline::{
    default_runtime, invoke, invoke_agent, invoke_agent_as, invoke_agent_as_async, invoke_agent_async, invoke_as,
    invoke_as_async, invoke_async, parse, parse_async, prepare, prepare_async, process, process_async, render,
    render_async, resume, resume_async, run, run_async, turn, turn_as, turn_as_async, turn_async, validate_inputs,
};
pub use host::runtime::{Parser, Renderer, Runtime, RuntimeOptions};
pub use load::prompt::{load, load_async, load_str};
pub use load::{EnvFile, EnvPolicy, LoadOptions, LoadedDocument, load_document, load_document_str};
pub use model::cassette::Cassette;
pub use model::invoke::PromptSource;
pub use model::provider::{Deltas, ModelCall, Provider, Reply};
pub use model::run::{Run, RunOptions};
pub use model::stream::ResponseStream;
/// What describes the types that tools take. Derive with this version of it.
pub use schemars;
pub use tool::{Invocation, McpServer, Tool, ToolHandler, ToolOutput, bind_tools};
pub use trace::{TraceOptions, Tracer};
pub use turn::cancel::{CancelToken, Steering};
pub use turn::journal::Journal;
pub use turn::{AgentEvent, Approve, Compact, Resumed, TurnRun, TurnSettings};
pub use tympan_core::chat::marker::pre_render;
pub use tympan_core::chat::{ParseTextOptions, parse_text};
pub use tympan_core::{Error, Guard, Inputs, Kind, Message, Prompt, Rendered, Result};

/// The examples of the guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/rust.md")]
struct Guide;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/directives.md")]
struct GuideToDirectives;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/guard.md")]
struct GuideToTheGuard;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/results.md")]
struct GuideToResults;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/tracing.md")]
struct GuideToTracing;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/running.md")]
struct GuideToRunning;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/network.md")]
struct GuideToTheNetwork;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/tools.md")]
struct GuideToTools;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/mcp.md")]
struct GuideToMcp;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/openapi.md")]
struct GuideToServices;

/// As above.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/durable.md")]
struct GuideToDurableTurns;
