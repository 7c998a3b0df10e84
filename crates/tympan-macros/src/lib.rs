//! `#[derive(Inputs)]`: prompt files checked when Rust compiles.
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
//! Where to look next: `attributes` reads the struct, `file` the prompt, `check` compares them, `expand` writes the
//! code.
#![warn(missing_docs)]

mod attributes;
mod check;
mod expand;
mod file;
mod rename;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `tympan::TypedInputs` for a struct, if its fields are the variables of a prompt file.
///
/// `#[prompt("path")]` on the struct names the file: a prompt definition (`.yaml`, `.yml`, `.json`, `.toml`) or a
/// `.prompty` file. The path starts in the directory of the crate's `Cargo.toml`.
///
/// The struct has to be `Serialize`. It does not compile if
///
/// - the file is not there, or is no sound prompt;
/// - the prompt has a variable that is no field, or the struct has a field that is no variable. Names are those that
///   serde writes (`rename`, `rename_all`), and fields that it skips do not count;
/// - the prompt says `validation_required` of a variable whose field has no garde rule.
#[proc_macro_derive(Inputs, attributes(prompt))]
pub fn derive_inputs(item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as DeriveInput);
    expand::expand(&item).into()
}

/// The examples of the guide, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/typed-inputs.md")]
struct Guide;
