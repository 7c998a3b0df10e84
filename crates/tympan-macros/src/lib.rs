//! `#[derive(Inputs)]`: checks prompt files at compile time.
//!
//! ```
//! use tympan::TypedInputs;
//! use tympan::Inputs;
//!
//! #[derive(serde::Serialize, Inputs)]
//! #[prompt("tests/prompts/hello.yaml")]
//! struct Hello {
//!     name: String,
//! }
//!
//! let rendered = Hello { name: "Ada".into() }.render()?;
//! assert_eq!(rendered.text(), "Hello Ada!");
//! # Ok::<(), tympan::Error>(())
//! ```
//!
//! The modules: `attributes` parses the struct, `file` reads the prompt, `check` compares them, and `expand` generates
//! the code.
#![warn(missing_docs)]

mod attributes;
mod check;
mod expand;
mod file;
mod rename;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `tympan::TypedInputs` for a struct whose fields match the variables of a prompt file.
///
/// `#[prompt("path")]` on the struct names the file: a prompt definition (`.yaml`, `.yml`, `.json`, `.toml`) or a
/// `.prompty` file. The path is relative to the directory of the crate's `Cargo.toml`.
///
/// The struct has to implement `Serialize`. Compilation fails if
///
/// - the file does not exist or is not a valid prompt;
/// - the prompt has a variable without a default that has no field, or the struct has a field that is not a variable.
///   Names are the ones that serde writes (`rename`, `rename_all`), and fields that serde skips are ignored;
/// - a variable is declared with `validation_required` and its field has no garde rule.
#[proc_macro_derive(Inputs, attributes(prompt))]
pub fn derive_inputs(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expand::expand(&item).into()
}

/// Runs the examples in the guide as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/typed-inputs.md")]
struct Guide;
