//! Chat messages: converts rendered text to messages that no input can forge.

pub mod guard;
pub mod marker;
pub mod message;
mod parse;
pub mod policy;
pub mod rendered;
pub(crate) mod scan;
mod split;
mod strict;
pub mod text_segment;
pub mod thread;

pub use parse::{ParseTextOptions, parse_text};
pub use split::{Place, split, split_with_places, whole};
pub(crate) use split::{split_as, split_with_places_as, whole_as};
