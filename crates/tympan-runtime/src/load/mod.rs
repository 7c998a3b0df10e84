//! Loading prompt files, with the environment and the files that they refer to.

mod environment;
mod files;
pub(crate) mod prompt;

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tympan_core::diagnostic::Diagnostic;
use tympan_core::directive;
use tympan_core::format::definition::Syntax;
use tympan_core::format::{Document, ReferencedFile, Resolve, prompty};
use tympan_core::secret::env_value::ValueSource;
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::{Error, Kind, Prompt, Result};

pub use environment::{EnvFile, EnvPolicy};
use files::Files;

use crate::file::read;

/// The most bytes that a prompt file, or a file that it refers to, may have unless the host says otherwise.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// What a prompt file may reach while it is loaded.
#[derive(Clone)]
pub struct LoadOptions {
    /// Which environment variables `${env:NAME}` may name.
    pub env: EnvPolicy,
    /// Variables to use in place of the process's environment.
    pub env_vars: Option<HashMap<String, String>>,
    /// Files of variables that the environment does not have, such as `.env` files; what an earlier one says stands.
    /// They never take the place of a variable that is set, not even of an empty one.
    ///
    /// Whoever wrote such a file is not the host: an address from it gets no key that is not from the same file.
    pub env_files: Vec<EnvFile>,
    /// Values for variables that neither the environment nor a file has. They count as one more file.
    pub env_defaults: HashMap<String, String>,
    /// Directories besides the prompt's own that `${file:path}` may read from.
    pub file_roots: Vec<PathBuf>,
    /// The most bytes that any file may have.
    pub max_file_bytes: u64,
    /// What the prompt of a directive says first; `None` means [`tympan_core::directive::INSTRUCTION`].
    pub directive_instruction: Option<String>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            env: EnvPolicy::default(),
            env_vars: None,
            env_files: Vec::new(),
            env_defaults: HashMap::new(),
            file_roots: Vec::new(),
            max_file_bytes: DEFAULT_MAX_FILE_BYTES,
            directive_instruction: None,
        }
    }
}

impl fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadOptions")
            .field("env", &self.env)
            // Variables hold credentials: their names are enough.
            .field("env_vars", &self.env_vars.as_ref().map(|vars| vars.keys().collect::<Vec<_>>()))
            .field("env_files", &self.env_files)
            .field("env_defaults", &self.env_defaults.keys().collect::<Vec<_>>())
            .field("file_roots", &self.file_roots)
            .field("max_file_bytes", &self.max_file_bytes)
            .field("directive_instruction", &self.directive_instruction)
            .finish()
    }
}

/// What a file says, its source, and what is worth knowing about it.
pub type LoadedDocument = (SourceFile, Document, Vec<Diagnostic>);

/// Reads a `.prompty` file.
///
/// # Errors
///
/// The first mistake in the file, with all others in [`Error::others`]; or why it cannot be read.
pub fn load_document(path: impl AsRef<Path>, options: &LoadOptions) -> Result<LoadedDocument> {
    let path = path.as_ref();
    let source = read_prompt_file(path, options.max_file_bytes)?;
    parse(source, directory_of(path), options)
}

/// The formats of prompt files.
enum Format {
    Definition(Syntax),
    Directive,
    Prompty,
}

impl Format {
    /// The format that a name stands for; `None` if it has no extension, and so says nothing.
    fn of(name: &Path) -> Option<Self> {
        let extension = name.extension()?.to_str().unwrap_or_default();
        Some(match Syntax::from_extension(extension) {
            Some(syntax) => Self::Definition(syntax),
            None if extension.eq_ignore_ascii_case("md") => Self::Directive,
            None => Self::Prompty,
        })
    }

    fn load(self, source: SourceFile, base_dir: &Path, options: &LoadOptions) -> Result<Prompt> {
        let prompt = match self {
            Self::Definition(syntax) => Prompt::from_definition_source(source, syntax),
            Self::Directive => {
                directive::load(source, options.directive_instruction.as_deref().unwrap_or(directive::INSTRUCTION))
            }
            Self::Prompty => parse(source, base_dir, options).map(prompt),
        };
        Ok(prompt?.in_directory(base_dir))
    }
}

/// Loads a prompt file of whatever format its name stands for.
///
/// # Errors
///
/// As [`load_document`].
pub(crate) fn load_prompt(path: &Path, options: &LoadOptions) -> Result<Prompt> {
    let source = read_prompt_file(path, options.max_file_bytes)?;
    Format::of(path).unwrap_or(Format::Prompty).load(source, directory_of(path), options)
}

/// As [`load_prompt`], for text that is called `name`. Where the name says nothing, the text does.
pub(crate) fn load_prompt_str(text: &str, name: &str, base_dir: &Path, options: &LoadOptions) -> Result<Prompt> {
    let by_content = || if directive::is_directive(text) { Format::Directive } else { Format::Prompty };
    let format = Format::of(Path::new(name)).unwrap_or_else(by_content);
    format.load(SourceFile::new(name, text), base_dir, options)
}

/// The text of a file that a prompt in this directory names, by the rules for what prompts refer to.
///
/// # Errors
/// It is not there, may not be read, or is no text.
pub(crate) fn read_beside(directory: &Path, path: &str, options: &LoadOptions) -> Result<String> {
    Files::new(directory, &options.file_roots, options.max_file_bytes).read(path)
}

/// Loads a prompt file that a prompt in this directory names.
///
/// # Errors
/// As [`read_beside`] and [`load_document`].
pub(crate) fn load_beside(directory: &Path, path: &str, options: &LoadOptions) -> Result<Prompt> {
    let text = read_beside(directory, path, options)?;
    let file = directory.join(path);
    load_prompt_str(&text, &file.display().to_string(), directory_of(&file), options)
}

fn prompt((source, document, warnings): LoadedDocument) -> Prompt {
    let Document { spec, body, env_values, .. } = document;
    Prompt::from_document(spec, source, body.start, warnings).with_env_values(env_values)
}

/// Reads the text of a `.prompty` file that is called `name` in messages and whose references start at `base_dir`.
///
/// # Errors
///
/// The first mistake in the text, with all others in [`Error::others`].
pub fn load_document_str(
    text: &str,
    name: &str,
    base_dir: impl AsRef<Path>,
    options: &LoadOptions,
) -> Result<LoadedDocument> {
    parse(SourceFile::new(name, text), base_dir.as_ref(), options)
}

fn parse(source: SourceFile, base_dir: &Path, options: &LoadOptions) -> Result<LoadedDocument> {
    let mut host = Host { options, files: Files::new(base_dir, &options.file_roots, options.max_file_bytes) };
    let (document, mut diagnostics) = prompty::parse(&source, &mut host);
    if let Some(document) = document {
        return Ok((source, document, diagnostics));
    }
    // There is an error among the findings, or there would be a document.
    let first = diagnostics.iter().position(Diagnostic::is_error).map(|at| diagnostics.remove(at));
    let error = first.map_or_else(|| Error::new(Kind::InvalidDocument, "it cannot be read"), Error::from_diagnostic);
    Err(error.in_source(&source, 0).with_others(diagnostics))
}

/// Where the references of a prompt file start.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn read_prompt_file(path: &Path, max_bytes: u64) -> Result<SourceFile> {
    let name = path.display().to_string();
    let unreadable = |reason: &dyn fmt::Display| Error::new(Kind::UnreadableFile, format_args!("{name}: {reason}"));
    let bytes = read::open(path).and_then(|file| read::bytes(file, max_bytes)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::new(Kind::FileNotFound, &name),
        ErrorKind::FileTooLarge => {
            unreadable(&error).with_help("the host sets this bound: LoadOptions::max_file_bytes")
        }
        _ => unreadable(&error).with_cause(error),
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile::new(name, text)),
        Err(error) => Err(not_utf8(&name, &error)),
    }
}

/// Says where the first byte is that cannot be read.
fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> Error {
    let at = error.utf8_error().valid_up_to();
    let byte = error.as_bytes().get(at).copied().unwrap_or_default();
    // The text before that byte is the same in both, and so is its place.
    let source = SourceFile::new(name, String::from_utf8_lossy(error.as_bytes()).into_owned());
    Error::new(Kind::UnreadableFile, format_args!("{name}: byte {at} (0x{byte:02x}) is not UTF-8"))
        .with_help("save the file as UTF-8")
        .at(Span::new(at, at))
        .in_source(&source, 0)
}

/// The host's side of a prompt's references.
struct Host<'o> {
    options: &'o LoadOptions,
    files: Files<'o>,
}

impl Resolve for Host<'_> {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        environment::read(name, self.options)
    }

    fn env_source(&mut self, name: &str) -> ValueSource {
        self.options.variable(name).map_or(ValueSource::Host, |(_, source)| source)
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        self.files.read(path).map(|text| ReferencedFile { text })
    }
}
