//! The rules of `tympan check`, and checks of files as the command does them.

use std::path::{Path, PathBuf};

pub use tympan_lint::*;

use tympan_core::format::Format;
use tympan_core::text::source::SourceFile;
use tympan_core::{Error, Kind, Result};
use tympan_runtime::LoadOptions;
use tympan_runtime::load::{DEFAULT_MAX_FILE_BYTES, References, directory_of, read_prompt_file};

/// A file and its findings.
#[derive(Debug)]
#[non_exhaustive]
pub struct CheckedFile {
    /// The file.
    pub source: SourceFile,
    /// The findings, sorted by position.
    pub findings: Vec<Finding>,
}

/// Checks a prompt file or a test file with the settings in a `tympan.toml`, or with the default settings. Environment variables are not
/// read.
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the root of the repository");
/// let checked = tympan::lint::check_path("fixtures/cli/prompts/misspelt.prompty", None)?;
/// assert_eq!(checked.findings[0].rule.code, "TY107");
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// # Errors
/// Returns an error if a file cannot be read, or if the settings are invalid. Mistakes in the prompt are findings.
pub fn check_path(path: impl AsRef<Path>, settings: Option<&Path>) -> Result<CheckedFile> {
    let path = path.as_ref();
    let source = read_prompt_file(path, DEFAULT_MAX_FILE_BYTES)?;
    checked(source, path, directory_of(path), settings)
}

/// Checks the text of a prompt file or a test file. `name` implies its format, and its references are relative to `base_dir`. See
/// [`check_path`].
///
/// # Errors
/// Returns an error if the settings cannot be read or are invalid. Mistakes in the prompt are findings.
pub fn check_str(text: &str, name: &str, base_dir: impl AsRef<Path>, settings: Option<&Path>) -> Result<CheckedFile> {
    let base_dir = base_dir.as_ref();
    checked(SourceFile::new(name, text), &base_dir.join(name), base_dir, settings)
}

fn checked(source: SourceFile, path: &Path, base_dir: &Path, settings: Option<&Path>) -> Result<CheckedFile> {
    let options = settings.map_or_else(|| Ok(Options::default()), |file| options(path, file))?;
    let mut load = LoadOptions::default();
    if matches!(Format::from_name(source.name()), Some(Format::Tests(_))) {
        // The prompt of a test file is often elsewhere in the project.
        load.file_roots.push(settings.map_or_else(|| PathBuf::from("."), |file| directory_of(file).to_owned()));
    }
    let findings = check_file(&source, &mut References::new(base_dir, &load), &options).findings;
    Ok(CheckedFile { source, findings })
}

/// Returns the options for a prompt file from a settings file. The patterns in it are relative to its directory.
fn options(path: &Path, settings: &Path) -> Result<Options> {
    let source = read_prompt_file(settings, DEFAULT_MAX_FILE_BYTES)?;
    let parsed = Settings::parse(&source).map_err(|errors| invalid(&source, errors))?;
    let (path, directory) = (absolute(path), absolute(directory_of(settings)));
    Ok(parsed.options(path.strip_prefix(&directory).unwrap_or(&path)))
}

/// Converts the first mistake of a settings file to an error.
pub(crate) fn invalid(source: &SourceFile, errors: Vec<SettingsError>) -> Error {
    let mut error = Error::new(Kind::InvalidInput, format_args!("settings: {} is invalid", source.name()));
    if let Some(first) = errors.into_iter().next() {
        error = Error::new(Kind::InvalidInput, format_args!("settings: {}", first.message)).at(first.span);
        if let Some(help) = first.help {
            error = error.with_help(help);
        }
    }
    error.in_source(source, 0)
}

pub(crate) fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().or_else(|_| std::path::absolute(path)).unwrap_or_else(|_| path.to_owned())
}
