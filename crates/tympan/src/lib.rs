//! Tympan's engine.
#![warn(missing_docs)]

pub mod diagnostic;
pub mod error;
pub mod message;
pub mod origin;
pub mod rendered;
pub mod schema;
pub mod source;
pub mod spec;
pub mod template;

pub use error::{Class, Error, Kind, Result};
pub use message::{Content, ContentPart, JsonMap, Message, Role};
