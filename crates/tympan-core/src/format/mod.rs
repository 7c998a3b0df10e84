//! From the text of a prompt file to plain data.
//!
//! A format reads a whole file and reports everything that is wrong with it, each finding with its place. It renders
//! nothing and reads no other file: what a file refers to comes in through [`Resolve`].

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

/// What a prompt file says, and where its template stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// What the file says.
    pub spec: PromptSpec,
    /// Where the template stands in the source: [`PromptSpec::instructions`] is the text of this place, unchanged.
    pub body: Span,
    /// Where the front matter stands, if there is any.
    pub front_matter: Option<Span>,
    /// What the environment gave, and who set it there: nobody may see it, and not every address may get it.
    pub env_values: Vec<EnvValue>,
}

/// The text of a file that a prompt refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferencedFile {
    /// All of its text.
    pub text: String,
}

/// How a prompt file reaches what it refers to.
pub trait Resolve {
    /// The value of an environment variable; `None` if it is not set.
    ///
    /// # Errors
    ///
    /// When the host does not let prompts read this variable.
    fn env(&mut self, name: &str) -> Result<Option<String>>;

    /// Who gave the value that [`Resolve::env`] has for a variable.
    fn env_source(&mut self, _name: &str) -> ValueSource {
        ValueSource::Host
    }

    /// The file at a path that is relative to the prompt file.
    ///
    /// # Errors
    ///
    /// When there is no such file, or the host does not let prompts read it.
    fn file(&mut self, path: &str) -> Result<ReferencedFile>;
}

/// Refuses every reference, for text that comes without a host around it.
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
