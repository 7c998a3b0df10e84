//! Loading directives as prompts.

pub mod result;
#[cfg(feature = "signatures")]
pub mod signature;

use crate::error::{Error, Kind, Result};
use crate::format::directive::parse;
use crate::json::JsonMap;
use crate::prompt::Prompt;
use crate::spec::PromptKind;
use crate::text::source::SourceFile;

pub use crate::format::directive::{INSTRUCTION, is_directive};

/// Loads a directive as a prompt whose text starts with `instruction`.
///
/// ```
/// use tympan::directive::{INSTRUCTION, load};
/// use tympan::text::source::SourceFile;
///
/// let text = "```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <inputs><input name=\"who\" required=\"true\"/></inputs>\n\
///             </directive>\n```\nGreet {input:who}.\n";
/// let prompt = load(SourceFile::new("greet.md", text), INSTRUCTION)?;
/// let inputs = serde_json::json!({"who": "Ada {input:who}"});
/// let rendered = prompt.render(inputs)?;
/// assert!(rendered.text().contains("Greet Ada {input:who}.")); // values are not expanded again
/// assert_eq!(prompt.directive().expect("it is one")["version"], "1.0.0");
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// # Errors
/// Returns the first error in the file. The remaining findings are in [`Error::others`].
pub fn load(source: SourceFile, instruction: &str) -> Result<Prompt> {
    let (directive, diagnostics) = parse(&source);
    let Some(directive) = directive else {
        return Err(Error::from_parser(diagnostics, &source, Kind::InvalidDirective));
    };
    let (spec, source_map) = directive.into_spec(&source, instruction);
    Ok(Prompt::from_source_map(spec, source, source_map, diagnostics))
}

impl Prompt {
    /// Returns the directive's metadata, or `None` if the prompt was not loaded from a directive.
    pub fn directive(&self) -> Option<&JsonMap> {
        (self.kind() == PromptKind::Directive).then(|| self.metadata())
    }

    /// Reads a directive from its text, with the default [`INSTRUCTION`] for the model.
    ///
    /// # Errors
    /// Returns the first error in the text. The others are in [`Error::others`].
    pub fn from_directive(text: &str) -> Result<Self> {
        load(SourceFile::new("<directive>", text), INSTRUCTION)
    }
}
