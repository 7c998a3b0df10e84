//! Prompts over tables.
//!
//! Rows come from Arrow tables or from files: Parquet, Arrow IPC, CSV and JSON Lines. Each row becomes the inputs of a
//! prompt, and the prompt becomes messages, or a line of a provider's batch file. Text is borrowed from the buffers of
//! the table and rendered once.
#![warn(missing_docs)]

pub use arrow;
#[cfg(feature = "files")]
pub use parquet;

#[cfg(feature = "jobs")]
mod api;
pub mod columns;
#[cfg(feature = "jobs")]
pub mod direct;
#[cfg(feature = "ipc")]
pub mod ipc;
#[cfg(feature = "jobs")]
pub mod job;
#[cfg(feature = "jobs")]
pub mod limits;
#[cfg(feature = "jobs")]
pub mod manifest;
#[doc(hidden)]
pub mod options;
pub mod output;
#[cfg(feature = "jobs")]
pub mod plan;
#[cfg(feature = "jobs")]
pub mod prepare;
#[cfg(feature = "jobs")]
mod price;
pub mod render;
#[cfg(feature = "jobs")]
pub mod results;
#[cfg(feature = "files")]
pub mod rows;
#[cfg(feature = "jobs")]
pub mod sample;
pub mod stream;
#[cfg(feature = "jobs")]
pub mod way;
