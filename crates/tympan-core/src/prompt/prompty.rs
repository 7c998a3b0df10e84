//! Prompts from the text of `.prompty` files.

use super::Prompt;
use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind, Result};
use crate::format::outline::Outline;
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
        Self::from_parsed(&source, document, findings)
    }

    /// Reads a prompt from a `.prompty` file, and its outline, which is that of [`Prompt::outline`]. The front matter is
    /// parsed once.
    ///
    /// # Errors
    /// Returns the first error in the file. The others are in [`Error::others`].
    pub fn from_prompty_with_outline<'s>(
        source: &'s SourceFile,
        resolve: &mut impl Resolve,
    ) -> Result<(Self, Outline<'s>)> {
        let mut outline = Outline::default();
        let (document, findings) = prompty::parse_outlined(source, resolve, Some(&mut outline));
        let has_errors = findings.iter().any(Diagnostic::is_error);
        let prompt = Self::from_parsed(source, document.filter(|_| !has_errors), findings)?;
        Ok((prompt, outline))
    }

    fn from_parsed(source: &SourceFile, document: Option<Document>, findings: Vec<Diagnostic>) -> Result<Self> {
        match document {
            Some(Document { spec, body, env_values, unresolved_env, .. }) => {
                let prompt = Self::from_document(spec, source.clone(), body.start, findings);
                let prompt = prompt.with_env_values(env_values).with_unresolved_env(unresolved_env);
                Ok(prompt.with_thread_warnings())
            }
            None => Err(Error::from_parser(findings, source, Kind::InvalidDocument)),
        }
    }
}
