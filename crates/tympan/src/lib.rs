//! Tympan: prompts that know which input wrote every byte.
//!
//! This is the crate to depend on. It re-exports the engine (`tympan-core`) and the runtime (`tympan-runtime`).
//!
//! ```
//! # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the root of the repository");
//! use tympan::inputs;
//!
//! let prompt = tympan::load("examples/hello.prompty")?;
//! let messages = tympan::prepare(&prompt, inputs! { name: "Ada" })?;
//! assert_eq!(messages.len(), 2);
//! # Ok::<(), tympan::Error>(())
//! ```
//!
//! # Features
//!
//! Without any feature, the crate loads, checks and renders prompts and splits them into messages: no HTTP, no TLS, no
//! async runtime.
//!
//! | feature | adds | on by default |
//! |---|---|---|
//! | `providers` | model calls over HTTP: `run`, `invoke`, streams, cassettes | yes |
//! | `agent` | the agent loop: `turn`, tools, journals, `resume` | yes |
//! | `mcp` | tools from MCP servers | yes |
//! | `openapi` | tools from OpenAPI documents | yes |
//! | `derive` | `#[derive(tympan::Inputs)]` | yes |
//! | `signatures` | signed directives and trusted keys | yes |
//! | `toml` | prompt definitions in TOML | yes |
//! | `lint` | the rules of `tympan check`, and checks of files | no |
//! | `eval` | the tests of `tympan test`: cases, assertions, statistics and reports | no |
//! | `tokens` | token counts for OpenAI's models | no |
//! | `sqlite` | journals in SQLite databases; needs a C compiler | no |
//! | `otel` | spans for OpenTelemetry collectors | no |
//! | `garde` | inputs that garde validates | no |
#![warn(missing_docs)]

pub use tympan_core::*;
#[cfg(feature = "derive")]
pub use tympan_macros::Inputs;
pub use tympan_runtime::*;

#[cfg(feature = "eval")]
pub mod eval;
#[cfg(feature = "lint")]
pub mod lint;

/// The agent loop: the state machine of the engine, and the driver of the runtime.
#[cfg(feature = "providers")]
pub mod turn {
    pub use tympan_core::turn::*;
    #[cfg(feature = "agent")]
    pub use tympan_runtime::turn::*;
}

/// The examples of the guide, as tests.
#[cfg(all(doctest, feature = "all"))]
mod guide {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/guide/rust.md")]
    struct Rust;

    #[doc = include_str!("../../../docs/guide/directives.md")]
    struct Directives;

    #[doc = include_str!("../../../docs/guide/guard.md")]
    struct Guard;

    #[doc = include_str!("../../../docs/guide/information-flow.md")]
    struct InformationFlow;

    #[doc = include_str!("../../../docs/guide/results.md")]
    struct Results;

    #[doc = include_str!("../../../docs/guide/tracing.md")]
    struct Tracing;

    #[doc = include_str!("../../../docs/guide/running.md")]
    struct Running;

    #[doc = include_str!("../../../docs/guide/network.md")]
    struct Network;

    #[doc = include_str!("../../../docs/guide/tools.md")]
    struct Tools;

    #[doc = include_str!("../../../docs/guide/mcp.md")]
    struct Mcp;

    #[doc = include_str!("../../../docs/guide/openapi.md")]
    struct Openapi;

    #[doc = include_str!("../../../docs/guide/durable.md")]
    struct Durable;
}
