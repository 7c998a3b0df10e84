//! The runtime, its options, and their plain-data forms for hosts in other languages.

#[cfg(feature = "agent")]
#[doc(hidden)]
pub mod config;
pub(crate) mod custom_renderer;
#[cfg(feature = "agent")]
#[doc(hidden)]
pub mod data;
pub(crate) mod pipeline;
mod registry;
mod render;
pub(crate) mod runtime;
