//! Prompts from the text of `.prompty` files.

use super::Prompt;
use crate::error::{Error, Kind, Result};
use crate::format::{Document, NoReferences, Resolve, prompty};
use crate::text::source::SourceFile;

impl Prompt {
    /// Reads a prompt from the text of a `.prompty` file.
    ///
    /// ```
    /// use tympan::{Prompt, inputs};
    ///
    /// let prompt = Prompt::from_prompty("---\nname: hello\n---\nuser:\nHi {{ name }}!")?;
    /// assert_eq!(prompt.render(inputs! { name: "Ada" })?.text(), "user:\nHi Ada!");
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// The text cannot refer to the environment or to files: `tympan::load_str` reads text that does.
    ///
    /// # Errors
    /// Returns the first error in the text. The others are in [`Error::others`].
    pub fn from_prompty(text: &str) -> Result<Self> {
        Self::from_prompty_source(SourceFile::new("<prompty>", text), &mut NoReferences)
    }

    /// Reads a prompt from a `.prompty` file, with the environment variables and files that it refers to.
    ///
    /// # Errors
    /// Returns the first error in the file. The others are in [`Error::others`].
    pub fn from_prompty_source(source: SourceFile, resolve: &mut impl Resolve) -> Result<Self> {
        let (document, findings) = prompty::parse(&source, resolve);
        match document {
            Some(Document { spec, body, env_values, unresolved_env, .. }) => {
                let prompt = Self::from_document(spec, source, body.start, findings).with_env_values(env_values);
                Ok(prompt.with_unresolved_env(unresolved_env).with_thread_warnings())
            }
            None => Err(Error::from_parser(findings, &source, Kind::InvalidDocument)),
        }
    }
}
