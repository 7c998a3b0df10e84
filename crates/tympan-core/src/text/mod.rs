//! Text and its origin: source files, positions in them, and which inputs wrote each byte.

pub mod hash;
pub mod origin;
#[cfg(feature = "wire")]
pub mod pattern;
pub(crate) mod placement;
pub mod source;
pub(crate) mod source_map;
pub mod traced;
