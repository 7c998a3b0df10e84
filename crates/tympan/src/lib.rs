//! Tympan: prompts that remember who wrote every byte.
//!
//! This is the crate to depend on. The engine is `tympan-core`, and everything in it is here under its own name; with
//! the feature `derive` there is `#[derive(tympan::Inputs)]` besides. They are two crates because the macro reads
//! prompt files with the engine, and crates cannot depend on each other in a circle.
//!
//! ```
//! let prompt = tympan::Prompt::from_yaml("{name: hello, role: user, body: Hello.}")?;
//! assert_eq!(prompt.render(&Default::default())?.text(), "Hello.");
//! # Ok::<(), tympan::Error>(())
//! ```
#![warn(missing_docs)]

pub use tympan_core::*;

#[cfg(feature = "derive")]
pub use tympan_macros::Inputs;
