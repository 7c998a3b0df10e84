//! Parses prompt files into plain data.
//!
//! A parser reads a whole file and reports everything that is wrong with it, each finding with its position. It renders
//! nothing and opens no other file: files and environment variables that a prompt references come in through
//! [`Resolve`].

pub mod definition;
pub mod directive;
mod fields;
pub mod frontmatter;
mod inputs;
pub(crate) mod interpolation;
mod model;
pub mod prompty;
mod property;
mod reference;
mod report;
mod template;
mod tool;
mod yaml;

pub use inputs::parse_inputs;

use crate::error::{Error, Kind, Result};
use crate::secret::env_value::{EnvValue, ValueSource};
use crate::spec::PromptSpec;
use crate::text::source::Span;

/// A parsed prompt file, and the position of its template.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The contents of the file.
    pub spec: PromptSpec,
    /// The span of the template in the source. [`PromptSpec::instructions`] is exactly this text.
    pub body: Span,
    /// The span of the front matter, if there is any.
    pub front_matter: Option<Span>,
    /// The values that came from the environment, and their sources. They must not be shown, and must not be sent to
    /// every address.
    pub env_values: Vec<EnvValue>,
}

/// A file that a prompt references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedFile {
    /// The full text.
    pub text: String,
}

/// Resolves the references in a prompt file.
pub trait Resolve {
    /// Returns the value of an environment variable, or `None` if it is not set.
    ///
    /// # Errors
    ///
    /// Returns an error if the host does not allow prompts to read this variable.
    fn env(&mut self, name: &str) -> Result<Option<String>>;

    /// Returns the source of the value that [`Resolve::env`] returns for a variable.
    fn env_source(&mut self, _name: &str) -> ValueSource {
        ValueSource::Host
    }

    /// Returns the file at a path relative to the prompt file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist, or if the host does not allow prompts to read it.
    fn file(&mut self, path: &str) -> Result<ReferencedFile>;
}

/// Rejects every reference. Use it for text that is parsed without access to the environment and to files.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoReferences;

impl Resolve for NoReferences {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        Err(Error::new(Kind::EnvNotAllowed, name).with_help("this text is read without access to the environment"))
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        Err(Error::new(Kind::FileOutsideRoot, path).with_help("this text is read without access to files"))
    }
}
