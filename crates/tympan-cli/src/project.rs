//! The project: the directory of the settings file, and what the file says.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use tympan::file::read;
use tympan::text::source::SourceFile;
use tympan::turn::ToolPolicy;
use tympan::wire::catalog::Catalog;
use tympan_lint::{SETTINGS_FILE, Settings};

use crate::args::SettingsArgs;
use crate::report::Failure;

/// The maximum size of a settings file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The settings of a project, and the directory that its paths are relative to.
#[derive(Debug)]
pub(crate) struct Project {
    /// The directory of the settings file. Without one, the working directory.
    pub(crate) directory: PathBuf,
    pub(crate) settings: Settings,
}

impl Project {
    /// Reads the settings file that the command line names, or else the one in the working directory or above it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid.
    pub(crate) fn find(args: &SettingsArgs) -> Result<Self, Failure> {
        let here = std::env::current_dir()?;
        if args.no_config {
            return Ok(Self { directory: here, settings: Settings::default() });
        }
        if let Some(path) = &args.config {
            return Self::open(path);
        }
        match locate(&here)? {
            Some((path, text)) => Self::parse(&path, text),
            None => Ok(Self { directory: here, settings: Settings::default() }),
        }
    }

    /// Reads what the settings file in the working directory or above it says about tool calls. It can only tighten the
    /// policy. Mistakes in other sections of the file are left to `check`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if this section is invalid.
    pub(crate) fn tool_policy() -> Result<Option<ToolPolicy>, Failure> {
        let here = std::env::current_dir()?;
        let Some((path, text)) = locate(&here)? else { return Ok(None) };
        let source = named(&path, text)?;
        Settings::parse_tool_policy(&source).map_err(|errors| Failure::Settings(source, errors))
    }

    /// Reads what the settings file in the working directory or above it says about models, over the built-in prices and
    /// context windows. Mistakes in other sections of the file are left to `check`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if this section is invalid.
    pub(crate) fn catalog() -> Result<Catalog, Failure> {
        let here = std::env::current_dir()?;
        let Some((path, text)) = locate(&here)? else { return Ok(Catalog::default()) };
        let source = named(&path, text)?;
        Settings::parse_models(&source).map_err(|errors| Failure::Settings(source, errors))
    }

    /// Reads a settings file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is invalid.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let text = read::open(path).and_then(|file| read::text(file, MAX_BYTES));
        Self::parse(path, text.map_err(|error| unreadable(path, &error))?)
    }

    fn parse(path: &Path, text: String) -> Result<Self, Failure> {
        let source = named(path, text)?;
        let settings = Settings::parse(&source).map_err(|errors| Failure::Settings(source, errors))?;
        let directory = absolute(path).parent().map(Path::to_owned).unwrap_or_default();
        Ok(Self { directory, settings })
    }

    /// Returns a path relative to the project's directory, if it is in it.
    pub(crate) fn relative(&self, path: &Path) -> PathBuf {
        let absolute = absolute(path);
        absolute.strip_prefix(&self.directory).map(Path::to_owned).unwrap_or(absolute)
    }
}

/// Finds the settings file in a directory or above it.
fn locate(here: &Path) -> Result<Option<(PathBuf, String)>, Failure> {
    for directory in here.ancestors() {
        let path = directory.join(SETTINGS_FILE);
        // A file that nobody named is not read through links that lead out of its directory.
        match read::open_in(directory, SETTINGS_FILE).and_then(|file| read::text(file, MAX_BYTES)) {
            Ok(text) => return Ok(Some((path, text))),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(unreadable(&path, &error)),
        }
    }
    Ok(None)
}

fn named(path: &Path, text: String) -> std::io::Result<SourceFile> {
    let name = path.strip_prefix(std::env::current_dir()?).unwrap_or(path).display().to_string();
    Ok(SourceFile::new(name, text))
}

/// Returns the absolute form of a path, without `.` and `..`.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut clean = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(clean.pop()),
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Usage(format!("{}: cannot read the settings: {error}", path.display()))
}
