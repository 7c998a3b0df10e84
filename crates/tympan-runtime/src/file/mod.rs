//! Files, opened safely and written atomically.

#[cfg(feature = "signatures")]
pub mod keys;
pub mod read;
pub mod time;
#[cfg(feature = "walk")]
pub mod walk;
pub mod write;
