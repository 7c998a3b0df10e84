//! Files: opened safely, written atomically.

pub mod read;
pub mod time;
pub mod write;
