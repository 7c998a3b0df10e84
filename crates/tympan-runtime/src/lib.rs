//! Tympan's runtime: everything that waits.
//!
//! Files, the environment and randomness come in here; the pure engine is the crate `tympan`.
//! The free functions use one default [`Runtime`]; a host with renderers or limits of its own
//! makes another.
#![warn(missing_docs)]

mod foreign;
pub mod keys;
pub mod load;
mod load_prompt;
mod pipeline;
mod runtime;
pub mod write;

pub use load::{EnvPolicy, LoadOptions, LoadedDocument, load_document, load_document_str};
pub use load_prompt::{load, load_async, load_str};
pub use pipeline::{
    default_runtime, parse, parse_async, prepare, prepare_async, render, render_async, validate_inputs,
};
pub use runtime::{Parser, Renderer, Runtime, RuntimeOptions};
pub use tympan::chat::{ParseTextOptions, parse_text};
pub use tympan::marker::pre_render;
pub use tympan::{Error, Guard, Inputs, Kind, Message, Prompt, Rendered, Result};

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
