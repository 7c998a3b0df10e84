//! The runtime and its options, and the same as plain data for hosts in other languages.

#[cfg(feature = "agent")]
#[doc(hidden)]
pub mod config;
pub(crate) mod custom_renderer;
#[cfg(feature = "agent")]
#[doc(hidden)]
pub mod data;
pub(crate) mod pipeline;
pub(crate) mod runtime;
