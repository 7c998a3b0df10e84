//! Parses prompt files into plain data.
//!
//! A parser reads a whole file and reports everything that is wrong with it, each finding with its position. It renders
//! nothing and opens no other file: files and environment variables that a prompt references come in through
//! [`Resolve`].

mod de;
pub mod definition;
pub mod directive;
mod fields;
pub mod frontmatter;
mod inputs;
pub(crate) mod interpolation;
mod model;
pub mod outline;
pub mod prompty;
mod property;
mod reference;
mod report;
mod shape;
mod template;
pub mod test_file;
mod tool;
mod yaml;

pub use inputs::parse_inputs;

use std::ffi::OsStr;
use std::path::Path;

use crate::error::{Error, Kind, Result};
use crate::secret::env_value::{EnvValue, UnresolvedEnv, ValueSource};
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
    /// The references to the environment that remain unresolved, because the host defers them.
    pub unresolved_env: Vec<UnresolvedEnv>,
}

/// A format of prompt files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A `.prompty` file: front matter and a template.
    Prompty,
    /// A prompt definition in YAML, JSON or TOML.
    Definition(definition::Syntax),
    /// A directive: Markdown with metadata in XML or YAML.
    Directive,
    /// The tests of a prompt in YAML, JSON or TOML. This is not a prompt.
    Tests(definition::Syntax),
}

impl Format {
    /// Returns the format of files with this name, or `None` if the name has no extension.
    ///
    /// Names that end in `.yaml`, `.yml`, `.json` or `.toml` are definitions, or test files if `.test` comes before it.
    /// Those that end in `.md` are directives, and all others are `.prompty` files.
    pub fn from_name(name: impl AsRef<Path>) -> Option<Self> {
        let extension = name.as_ref().extension()?.to_str().unwrap_or_default();
        let file_name = name.as_ref().file_name().and_then(OsStr::to_str).unwrap_or_default();
        if let Some(syntax) = test_file::syntax_of_name(file_name) {
            return Some(Self::Tests(syntax));
        }
        Some(match definition::Syntax::from_extension(extension) {
            Some(syntax) => Self::Definition(syntax),
            None if extension.eq_ignore_ascii_case("md") => Self::Directive,
            None => Self::Prompty,
        })
    }

    /// Returns the format of a file by its name, or by its content if the name has no extension. Only directives are
    /// recognized by their content; everything else is a `.prompty` file.
    pub fn detect(name: impl AsRef<Path>, text: &str) -> Self {
        let by_content = || if directive::is_directive(text) { Self::Directive } else { Self::Prompty };
        Self::from_name(name).unwrap_or_else(by_content)
    }

    /// Returns the format that a text is written in, if it can only be that one: a definition has a role and a body at
    /// the top level, and a directive has a `<directive>` or a signature.
    pub fn of_content(text: &str) -> Option<Self> {
        use definition::Syntax::{Json, Toml, Yaml};
        if directive::is_directive(text) {
            return Some(Self::Directive);
        }
        let syntax = [Json, Yaml, Toml].into_iter().find(|syntax| definition::is_definition(text, *syntax));
        syntax.map(Self::Definition)
    }

    /// Returns whether a text is in this format. Every text is a `.prompty` file, or a test file.
    pub fn matches(self, text: &str) -> bool {
        match self {
            Self::Prompty | Self::Tests(_) => true,
            Self::Definition(syntax) => definition::is_definition(text, syntax),
            Self::Directive => directive::is_directive(text),
        }
    }

    /// Returns the syntax of a document in YAML, JSON or TOML: a definition or a test file.
    pub fn syntax(self) -> Option<definition::Syntax> {
        match self {
            Self::Definition(syntax) | Self::Tests(syntax) => Some(syntax),
            Self::Prompty | Self::Directive => None,
        }
    }
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

    /// Returns whether references to variables that are not set remain unresolved until something needs their values.
    /// Otherwise they are errors.
    fn defers_env(&self) -> bool {
        false
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
        Err(Error::new(Kind::EnvNotAllowed, name).with_help(
            "this prompt is loaded without access to environment \
            variables",
        ))
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        Err(Error::new(Kind::FileOutsideRoot, path).with_help("this prompt is loaded without access to files"))
    }
}
