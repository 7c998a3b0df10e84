//! Typed inputs: a Rust type with the inputs of one prompt.
//!
//! `#[derive(tympan::Inputs)]` implements [`TypedInputs`] for a struct and compares its fields with the prompt's
//! variables at compile time. The derived code calls the functions in this module.

#[doc(hidden)]
pub use serde::Serialize;

use crate::chat::rendered::Rendered;
use crate::diagnostic::Diagnostic;
use crate::error::{Error, Kind, Result};
use crate::format::{Format, ReferencedFile, Resolve, prompty};
use crate::prompt::inputs::Serialized;
use crate::prompt::{Prompt, RenderOptions};
use crate::text::source::SourceFile;

/// A type whose values are the inputs of one prompt. `#[derive(tympan::Inputs)]` implements it, and checks at compile
/// time that the fields match the prompt's variables.
///
/// ```
/// use tympan::{Result, TypedInputs};
///
/// /// Renders any prompt from its typed inputs.
/// fn ask(inputs: &impl TypedInputs) -> Result<String> {
///     Ok(inputs.render()?.into_text())
/// }
/// ```
pub trait TypedInputs: Serialize {
    /// Returns the prompt that takes these inputs. It is parsed only once.
    fn prompt() -> &'static Prompt;

    /// Renders the prompt with these inputs.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`TypedInputs::render_with`].
    fn render(&self) -> Result<Rendered> {
        self.render_with(&RenderOptions::default())
    }

    /// Renders the prompt with these inputs and with options. If the prompt requires validation of a variable, the
    /// derived method validates the inputs first and does not render invalid ones.
    ///
    /// # Errors
    /// Returns an error if rendering fails (see [`Prompt::render_with`]) or if the inputs are not valid.
    fn render_with(&self, options: &RenderOptions<'_>) -> Result<Rendered> {
        Self::prompt().render_with(Serialized(self), options)
    }
}

/// Builds a prompt from the text of a file. The extension of its name determines the format. The prompt cannot refer to
/// the environment or to files, and its templates can only refer to declared variables.
///
/// # Errors
/// Returns the first error in the file. All others are in [`Error::others`].
#[doc(hidden)]
pub fn embedded(name: &str, text: &str) -> Result<Prompt> {
    let source = SourceFile::new(name, text);
    match Format::from_name(name) {
        Some(Format::Definition(syntax)) => Prompt::from_definition_source(source, syntax),
        Some(Format::Prompty) if name.ends_with(".prompty") => embedded_prompty(source),
        _ => Err(Error::new(Kind::InvalidDocument, format_args!("{name} is not a prompt file"))
            .with_help("prompt files end in .yaml, .yml, .json, .toml or .prompty")),
    }
}

fn embedded_prompty(source: SourceFile) -> Result<Prompt> {
    let (document, mut findings) = prompty::parse_as_far_as_possible(&source, &mut Embedded);
    let prompt = document.map(|document| {
        let warnings = findings.iter().filter(|finding| !finding.is_error()).cloned().collect();
        Prompt::from_document(document.spec, source.clone(), document.body.start, warnings)
    });
    findings.retain(Diagnostic::is_error);
    if let Some(prompt) = &prompt {
        prompt.check_arms(&mut findings);
    }
    match (prompt, findings.is_empty()) {
        (Some(prompt), true) => Ok(prompt),
        _ => Err(Error::from_findings(findings, &source)),
    }
}

/// A resolver that rejects every reference. The environment and the files at compile time are not those at run time.
struct Embedded;

impl Resolve for Embedded {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        Err(Error::new(Kind::EnvNotAllowed, name).with_help(EMBEDDED_HELP))
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        Err(Error::new(Kind::FileOutsideRoot, path).with_help(EMBEDDED_HELP))
    }
}

const EMBEDDED_HELP: &str = "a prompt embedded in a program cannot refer to environment variables or files; load it \
    with `tympan::load` instead";

/// The validation that derived code performs before it renders a prompt with variables whose validation is required.
/// It is implemented for every type that garde can validate. Without the `garde` feature no type implements it, and the
/// compiler error names the feature.
#[doc(hidden)]
#[cfg_attr(
    feature = "garde",
    diagnostic::on_unimplemented(
        message = "the prompt of `{Self}` requires validation",
        label = "cannot be validated",
        note = "derive `garde::Validate`; if it has a context, the context must implement `Default`"
    )
)]
#[cfg_attr(
    not(feature = "garde"),
    diagnostic::on_unimplemented(
        message = "the prompt of `{Self}` requires validation, which needs the `garde` feature of tympan",
        label = "cannot be validated",
        note = "add `features = [\"garde\"]` to the tympan dependency in Cargo.toml"
    )
)]
pub trait Validated {
    /// Validates the value.
    ///
    /// # Errors
    /// Returns an error if validation fails. The error names the fields but does not quote their values.
    fn check_rules(&self) -> Result<()>;
}

#[cfg(feature = "garde")]
#[diagnostic::do_not_recommend]
impl<V: garde::Validate<Context: Default>> Validated for V {
    fn check_rules(&self) -> Result<()> {
        self.validate().map_err(|report| crate::prompt::inputs::broken_rules(&report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_says_what_is_in_the_file() {
        let yaml = "{name: a, role: user, body: Hi}";
        assert_eq!(embedded("p/a.yml", yaml).expect("a prompt").body(), "Hi");
        assert_eq!(
            embedded("a.json", r#"{"name": "a", "role": "user", "body": "Hi"}"#).expect("a prompt").body(),
            "Hi"
        );
        assert_eq!(embedded("a.prompty", "user:\nHi").expect("a prompt").body(), "user:\nHi");
        assert_eq!(embedded("a.txt", yaml).expect_err("no prompt").kind(), Kind::InvalidDocument);
    }

    #[test]
    fn a_prompty_file_stands_for_itself() {
        let text = "---\nname: ${env:NAME}\ndescription: ${file:a.md}\ninputs:\n  - {name: who, kind: string}\n---\n\
                    {{ who }} {{ hwo }}";
        let error = embedded("a.prompty", text).expect_err("it refers to things");
        let codes: Vec<_> = error.others().iter().map(|finding| finding.code).collect();
        assert_eq!(error.kind(), Kind::EnvNotAllowed);
        assert_eq!(codes, [Kind::FileOutsideRoot.code(), Kind::UndeclaredVariable.code()]);
        assert_eq!(error.others()[1].help.as_deref(), Some("did you mean `who`?"));
    }

    #[test]
    fn names_in_sections_of_mustache_are_their_own() {
        let text = "---\ntemplate: mustache\ninputs:\n  - {name: items, kind: array}\n---\n\
                    {{#items}}{{ label }}{{/items}}";
        assert!(embedded("a.prompty", text).is_ok());
    }
}
