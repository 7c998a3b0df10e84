//! Loads prompt files, and resolves their references to the environment and to other files.

mod environment;
mod files;
mod loader;
pub(crate) mod prompt;

use std::collections::HashMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tympan_core::diagnostic::Diagnostic;
use tympan_core::directive;
use tympan_core::format::{Document, Format, ReferencedFile, Resolve, prompty};
use tympan_core::secret::env_value::ValueSource;
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::{Error, Kind, Prompt, Result};

pub use environment::{EnvFile, EnvPolicy};
use files::Files;
pub use loader::PromptLoader;

use crate::file::read;

/// The default limit on the size of a prompt file, or of a file that it refers to, in bytes.
pub const DEFAULT_MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// What a prompt file may access while it is loaded.
#[derive(Clone)]
pub struct LoadOptions {
    /// The environment variables that `${env:NAME}` may refer to.
    pub env: EnvPolicy,
    /// Whether references to variables that are not set remain unresolved, instead of being errors. Their values are
    /// then `${env:NAME}`, and rendering or calling the model is an error only if it needs them;
    /// [`Prompt::unresolved_env`] lists them. This is for tools that inspect or render prompts without their secrets.
    pub defer_env: bool,
    /// Variables to use instead of the process's environment.
    pub env_vars: Option<HashMap<String, String>>,
    /// Files of variables, such as `.env` files, for variables that are not in the environment. Earlier files take
    /// precedence. They never override a variable that is set, even if it is empty.
    ///
    /// Such a file is not trusted like the host: a key is sent to an address from the file only if the key comes from
    /// the same file.
    pub env_files: Vec<EnvFile>,
    /// Values for variables that are neither in the environment nor in a file. They count as one more file.
    pub env_defaults: HashMap<String, String>,
    /// Directories that `${file:path}` may read from, in addition to the prompt's own.
    pub file_roots: Vec<PathBuf>,
    /// The maximum size of a file, in bytes.
    pub max_file_bytes: u64,
    /// The instruction at the beginning of a directive's prompt; `None` means [`tympan_core::directive::INSTRUCTION`].
    pub directive_instruction: Option<String>,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            env: EnvPolicy::default(),
            defer_env: false,
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
            .field("defer_env", &self.defer_env)
            // Values may be credentials, so only the names are shown.
            .field("env_vars", &self.env_vars.as_ref().map(|vars| vars.keys().collect::<Vec<_>>()))
            .field("env_files", &self.env_files)
            .field("env_defaults", &self.env_defaults.keys().collect::<Vec<_>>())
            .field("file_roots", &self.file_roots)
            .field("max_file_bytes", &self.max_file_bytes)
            .field("directive_instruction", &self.directive_instruction)
            .finish()
    }
}

/// The source of a file, its document, and any warnings about it.
pub type LoadedDocument = (SourceFile, Document, Vec<Diagnostic>);

/// Loads a `.prompty` file.
///
/// # Errors
///
/// Returns the first error in the file, with all other diagnostics in [`Error::others`], or an error if the file cannot
/// be read.
pub fn load_document(path: impl AsRef<Path>, options: &LoadOptions) -> Result<LoadedDocument> {
    let path = path.as_ref();
    let source = read_prompt_file(path, options.max_file_bytes)?;
    parse(source, directory_of(path), options)
}

fn load_as(format: Format, source: SourceFile, base_dir: &Path, options: &LoadOptions) -> Result<Prompt> {
    let prompt = match format {
        Format::Definition(syntax) => Prompt::from_definition_source(source, syntax),
        Format::Tests(_) => return Err(not_a_prompt(&source)),
        Format::Directive => {
            directive::load(source, options.directive_instruction.as_deref().unwrap_or(directive::INSTRUCTION))
        }
        _ => Prompt::from_prompty_source(source, &mut References::new(base_dir, options)),
    };
    Ok(prompt?.in_directory(base_dir))
}

/// Creates the error for a test file in the place of a prompt.
fn not_a_prompt(source: &SourceFile) -> Error {
    let message = "expected a prompt, found a test file: its name ends in `.test` and an extension";
    let help = "name the prompt file, run the tests with `tympan test`, or rename the file if it is a prompt";
    Error::new(Kind::InvalidDefinition, message).with_help(help).in_source(source, 0)
}

/// Loads a prompt file in the format that its name implies.
///
/// # Errors
///
/// Returns the first error in the file, or an error if it cannot be read; see [`load_document`].
pub(crate) fn load_prompt(path: &Path, options: &LoadOptions) -> Result<Prompt> {
    let source = read_prompt_file(path, options.max_file_bytes)?;
    load_as(Format::from_name(path).unwrap_or(Format::Prompty), source, directory_of(path), options)
}

/// Loads a prompt from text with a name. If the name has no extension, the text determines the format.
pub(crate) fn load_prompt_str(text: &str, name: &str, base_dir: &Path, options: &LoadOptions) -> Result<Prompt> {
    load_as(Format::detect(name, text), SourceFile::new(name, text), base_dir, options)
}

/// Reads a file that a prompt in this directory refers to, with the same restrictions as for all references.
///
/// # Errors
/// Returns an error if the file does not exist, cannot be read or is not text.
pub(crate) fn read_beside(directory: &Path, path: &str, options: &LoadOptions) -> Result<String> {
    Files::new(directory, &options.file_roots, options.max_file_bytes).read(path)
}

/// Loads a prompt file that a prompt in this directory refers to.
///
/// # Errors
/// Returns an error if [`read_beside`] or [`load_document`] does.
pub(crate) fn load_beside(directory: &Path, path: &str, options: &LoadOptions) -> Result<Prompt> {
    let text = read_beside(directory, path, options)?;
    let file = directory.join(path);
    load_prompt_str(&text, &file.display().to_string(), directory_of(&file), options)
}

/// Loads a document from the text of a `.prompty` file. `name` identifies it in messages, and its references are
/// relative to `base_dir`.
///
/// # Errors
///
/// Returns the first error in the text, with all other diagnostics in [`Error::others`].
pub fn load_document_str(
    text: &str,
    name: &str,
    base_dir: impl AsRef<Path>,
    options: &LoadOptions,
) -> Result<LoadedDocument> {
    parse(SourceFile::new(name, text), base_dir.as_ref(), options)
}

fn parse(source: SourceFile, base_dir: &Path, options: &LoadOptions) -> Result<LoadedDocument> {
    let (document, diagnostics) = prompty::parse(&source, &mut References::new(base_dir, options));
    match document {
        Some(document) => Ok((source, document, diagnostics)),
        None => Err(Error::from_parser(diagnostics, &source, Kind::InvalidDocument)),
    }
}

/// Returns the directory that the references of a prompt file are relative to.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Reads a prompt file that the user named, without parsing it. [`DEFAULT_MAX_FILE_BYTES`] is the usual limit.
///
/// # Errors
/// Returns an error if the file does not exist, cannot be read, is too large or is not UTF-8.
pub fn read_prompt_file(path: &Path, max_bytes: u64) -> Result<SourceFile> {
    let name = path.display().to_string();
    let unreadable = |reason: &dyn fmt::Display| Error::new(Kind::UnreadableFile, format_args!("{name}: {reason}"));
    let bytes = read::open(path).and_then(|file| read::bytes(file, max_bytes)).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Error::new(Kind::FileNotFound, &name),
        ErrorKind::FileTooLarge => unreadable(&error).with_help("LoadOptions::max_file_bytes sets this limit"),
        _ => unreadable(&error).with_cause(error),
    })?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(SourceFile::new(name, text)),
        Err(error) => Err(not_utf8(&name, &error)),
    }
}

/// Returns an error with the position of the first invalid byte.
fn not_utf8(name: &str, error: &std::string::FromUtf8Error) -> Error {
    let at = error.utf8_error().valid_up_to();
    let byte = error.as_bytes().get(at).copied().unwrap_or_default();
    // The text before that byte is the same in both, so its position is too.
    let source = SourceFile::new(name, String::from_utf8_lossy(error.as_bytes()).into_owned());
    Error::new(Kind::UnreadableFile, format_args!("{name}: byte {at} (0x{byte:02x}) is not valid UTF-8"))
        .with_help("save the file as UTF-8")
        .at(Span::new(at, at))
        .in_source(&source, 0)
}

/// Resolves the references of a prompt file as [`LoadOptions`] allow.
pub struct References<'o> {
    options: &'o LoadOptions,
    files: Files<'o>,
}

impl<'o> References<'o> {
    /// Creates a resolver for a prompt file in a directory.
    pub fn new(base_dir: &'o Path, options: &'o LoadOptions) -> Self {
        Self { options, files: Files::new(base_dir, &options.file_roots, options.max_file_bytes) }
    }
}

impl Resolve for References<'_> {
    fn env(&mut self, name: &str) -> Result<Option<String>> {
        environment::read(name, self.options)
    }

    fn env_source(&mut self, name: &str) -> ValueSource {
        self.options.variable(name).map_or(ValueSource::Host, |(_, source)| source)
    }

    fn defers_env(&self) -> bool {
        self.options.defer_env
    }

    fn file(&mut self, path: &str) -> Result<ReferencedFile> {
        self.files.read(path).map(|text| ReferencedFile { text })
    }
}
