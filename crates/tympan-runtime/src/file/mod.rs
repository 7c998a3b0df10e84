//! Files, opened safely and written atomically.

#[cfg(feature = "signatures")]
pub mod keys;
pub mod read;
pub mod time;
pub mod write;
