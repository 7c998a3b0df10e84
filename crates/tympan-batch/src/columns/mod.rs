//! Columns of Arrow tables as inputs of prompts.
//!
//! Text is borrowed from the buffers of the table. Only what has no form of its own in JSON, such as a date, is written
//! into an arena that lives as long as the row is rendered.

mod array;
mod bind;
mod convert;

#[cfg(feature = "files")]
pub(crate) use self::array::with_views;
#[cfg(feature = "jobs")]
pub(crate) use self::array::{Column, without_views};
pub(crate) use self::bind::BoundBatch;
pub use self::bind::{Bindings, InputColumn};
