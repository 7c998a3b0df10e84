//! Tympan's runtime: files, the environment, model calls, tools, journals and traces.
//!
//! Depend on the crate `tympan`, which re-exports this one and the engine. The free functions use one default
//! [`Runtime`]; create your own for custom renderers, limits or traces.
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the root of the repository");
//! use serde_json::json;
//!
//! // The provider of this prompt is `echo`, which needs no key and no network.
//! let run = tympan_runtime::invoke("examples/echo.prompty", json!({"question": "What is a tympan?"}))?;
//! assert_eq!(run.outcome.to_json(), "What is a tympan?");
//! # Ok::<(), tympan_runtime::Error>(())
//! ```
//!
//! Start with [`Runtime`]; then see `invoke` for a complete call, `ResponseStream` for streamed responses, `Cassette`
//! for recorded calls, and [`trace`] for traces.
#![warn(missing_docs)]
// The parts share helpers, and none of them needs all of these alone.
#![cfg_attr(not(feature = "all"), allow(dead_code, unused_imports, reason = "only a part of the crate is compiled"))]

pub mod file;
pub mod host;
pub mod load;
#[cfg(feature = "providers")]
pub mod model;
#[cfg(feature = "providers")]
pub mod net;
#[cfg(feature = "agent")]
pub mod tool;
pub mod trace;
#[cfg(feature = "agent")]
pub mod turn;

/// The boxed future that the traits [`Tool`], [`ToolHandler`] and [`Provider`] return.
#[cfg(feature = "agent")]
pub use futures_util::future::BoxFuture;
pub use host::pipeline::{
    default_runtime, parse, parse_async, prepare, prepare_async, render, render_async, validate_inputs,
};
#[cfg(feature = "providers")]
pub use host::pipeline::{invoke, invoke_as, invoke_as_async, invoke_async, process, process_async, run, run_async};
#[cfg(feature = "agent")]
pub use host::pipeline::{
    invoke_agent, invoke_agent_as, invoke_agent_as_async, invoke_agent_async, resume, resume_async, turn, turn_as,
    turn_as_async, turn_async,
};
pub use host::runtime::{Parser, RenderFuture, Renderer, Runtime, RuntimeOptions};
pub use load::prompt::{load, load_async, load_str};
pub use load::{EnvFile, EnvPolicy, LoadOptions, LoadedDocument, PromptLoader, load_document, load_document_str};
#[cfg(feature = "providers")]
pub use model::cassette::Cassette;
#[cfg(feature = "providers")]
pub use model::invoke::{PromptCheck, PromptSource};
#[cfg(feature = "providers")]
pub use model::provider::{Deltas, ModelCall, Provider, Reply};
#[cfg(feature = "providers")]
pub use model::resource::{ProviderApi, ResourceBody, ResourceRequest};
#[cfg(feature = "providers")]
pub use model::run::{Run, RunOptions};
#[cfg(feature = "providers")]
pub use model::stream::ResponseStream;
#[cfg(feature = "providers")]
pub use model::token::{AccessToken, CredentialProvider, TokenRequest};
/// The crate that describes the argument types of tools. Derive `JsonSchema` with this version of it.
#[cfg(feature = "agent")]
pub use schemars;
#[cfg(feature = "mcp")]
pub use tool::McpServer;
#[cfg(feature = "agent")]
pub use tool::{CredentialCommand, Invocation, Tool, ToolHandler, ToolOutput, bind_tools};
pub use trace::{TraceOptions, Tracer};
#[cfg(feature = "agent")]
pub use turn::cancel::{CancelToken, Steering};
#[cfg(feature = "agent")]
pub use turn::journal::Journal;
#[cfg(feature = "agent")]
pub use turn::{AgentEvent, Approve, Compact, Resumed, TurnRun, TurnSettings};
pub use tympan_core::chat::marker::pre_render;
pub use tympan_core::chat::{ParseTextOptions, parse_text};
pub use tympan_core::{Error, Guard, Inputs, Kind, Message, Prompt, Rendered, Result};
