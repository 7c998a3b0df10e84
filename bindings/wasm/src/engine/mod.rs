//! The functions of the module, without WebAssembly.

mod files;
mod findings;
mod info;
mod offsets;
mod options;
mod reach;
mod render;
mod request;
mod tests_of;

use serde_json::{Value as Json, json};
use tympan_core::format::Format;
use tympan_core::format::prompty;
use tympan_core::prompt::Entropy;
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, directive};
use tympan_lint::format::{FormatError, FormatOptions, format_file};
use tympan_lint::{Options, check_file, reach_as_far_as_possible};

use files::Files;
use offsets::Offsets;

/// Short texts that try to forge messages, from the attack corpus.
pub const FORGERIES: &str = include_str!("../forgeries.json");

/// A prompt file or a test file, and what could be read of it.
#[derive(Debug)]
pub struct Prompt {
    source: SourceFile,
    offsets: Offsets,
    files: Files,
    format: Format,
    /// The prompt as far as it could be read, and the reason why it does not load, if it does not. A test file is not a
    /// prompt.
    prompt: Option<tympan_core::Prompt>,
    error: Option<Error>,
}

impl Prompt {
    /// Opens the text of a file. `files` is a JSON map of the files that it refers to.
    pub fn open(path: &str, text: &str, files: Option<&str>) -> Self {
        let source = SourceFile::new(path, text);
        let offsets = Offsets::new(text);
        let mut files = Files::new(files);
        let format = Format::from_name(path).or_else(|| Format::of_content(text)).unwrap_or(Format::Prompty);
        let (prompt, error) = load(&source, format, &mut files);
        Self { source, offsets, files, format, prompt, error }
    }

    /// Returns what the file declares.
    pub fn info(&self) -> Json {
        info::info(self)
    }

    /// Returns the findings of all rules.
    pub fn check(&self) -> Json {
        let mut files = self.files.clone();
        let findings = check_file(&self.source, &mut files, &Options::default()).findings;
        findings.iter().map(|finding| findings::to_json(finding, &self.source, &self.offsets)).collect()
    }

    /// Returns the formatted text, or an error.
    pub fn format(&self) -> Json {
        match format_file(&self.source, &mut self.files.clone(), &FormatOptions::default()) {
            Ok(formatted) => json!({"text": formatted.text, "changed": formatted.changed, "note": formatted.note}),
            Err(FormatError::Invalid(error)) => self.failure(&error),
            Err(error) => json!({"error": {"code": "unsafe_format", "message": error.to_string()}}),
        }
    }

    /// Returns which inputs can reach which messages.
    pub fn reach(&self) -> Json {
        let Some(prompt) = &self.prompt else { return reach::to_json(&Default::default(), self) };
        reach::to_json(&reach_as_far_as_possible(prompt), self)
    }

    /// Renders the prompt.
    pub fn render(&self, inputs: &str, options: &str, entropy: Entropy<'_>) -> Json {
        render::render(self, inputs, options, entropy).unwrap_or_else(|error| self.failure(&error))
    }

    /// Returns the request that would be sent to a provider.
    pub fn request(&self, inputs: &str, options: &str, entropy: Entropy<'_>) -> Json {
        request::request(self, inputs, options, entropy).unwrap_or_else(|error| self.failure(&error))
    }

    /// Returns the prompt, if the file loads.
    fn loaded(&self) -> Result<&tympan_core::Prompt, Error> {
        match (&self.prompt, &self.error) {
            (Some(prompt), None) => Ok(prompt),
            (_, Some(error)) => Err(error.clone()),
            (None, None) => Err(options::invalid("the file is a test file", "open the prompt that it tests")),
        }
    }

    fn failure(&self, error: &Error) -> Json {
        json!({"error": findings::error_to_json(error, &self.source, &self.offsets)})
    }
}

/// Loads a prompt. If it does not load, returns as much of it as could be read.
fn load(source: &SourceFile, format: Format, files: &mut Files) -> (Option<tympan_core::Prompt>, Option<Error>) {
    let loaded = match format {
        Format::Tests(_) => return (None, None),
        Format::Definition(syntax) => tympan_core::Prompt::from_definition_source(source.clone(), syntax),
        Format::Directive => directive::load(source.clone(), directive::INSTRUCTION),
        _ => tympan_core::Prompt::from_prompty_source(source.clone(), files),
    };
    let error = match loaded {
        Ok(prompt) => return (Some(prompt), None),
        Err(error) => error,
    };
    let partial = match format {
        Format::Definition(syntax) => {
            Some(tympan_core::Prompt::from_definition_as_far_as_possible(source.clone(), syntax).0)
        }
        Format::Prompty => prompty::parse_as_far_as_possible(source, files).0.map(|document| {
            tympan_core::Prompt::from_document(document.spec, source.clone(), document.body.start, Vec::new())
        }),
        _ => None,
    };
    (partial, Some(error))
}
