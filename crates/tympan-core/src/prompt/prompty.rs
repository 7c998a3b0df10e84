//! Prompts from the text of `.prompty` files.

use super::Prompt;
use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind, Result};
use crate::format::{Document, NoReferences, prompty};
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
        let source = SourceFile::new("<prompty>", text);
        let (document, mut findings) = prompty::parse(&source, &mut NoReferences);
        if let Some(Document { spec, body, env_values, .. }) = document {
            return Ok(Self::from_document(spec, source, body.start, findings).with_env_values(env_values));
        }
        let first = findings.iter().position(Diagnostic::is_error).map(|at| findings.remove(at));
        let error =
            first.map_or_else(|| Error::new(Kind::InvalidDocument, "it cannot be read"), Error::from_diagnostic);
        Err(error.in_source(&source, 0).with_others(findings))
    }
}
