//! Test files, and the prompts that they test.

use std::path::{Component, Path, PathBuf};

use tympan_core::format::{Format, test_file};
use tympan_core::spec::test_suite::TestSuite;
use tympan_core::text::source::{SourceFile, Span};
use tympan_core::{Error, Kind, Result};
use tympan_runtime::file::walk::read_found;
use tympan_runtime::load::{DEFAULT_MAX_FILE_BYTES, directory_of, read_prompt_file};

/// The directory of recorded answers if a test file names none.
const CASSETTES: &str = "cassettes";

/// A test file, or a prompt file that contains tests.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TestFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The text.
    pub source: SourceFile,
    /// The tests.
    pub suite: TestSuite,
    /// The path of the prompt file.
    pub prompt: PathBuf,
}

impl TestFile {
    /// Returns whether files with this name are test files.
    pub fn is_test_file(path: &Path) -> bool {
        path.to_str().is_some_and(|name| test_file::syntax_of_name(name).is_some())
    }

    /// Returns whether a file that was found in a directory may contain tests. Other files there may be anything, so
    /// prompt files that never mention tests are not read further.
    pub fn may_contain_tests(path: &Path) -> bool {
        Self::is_test_file(path) || matches!(read_found(path), Some(Ok(source)) if source.text().contains("tests"))
    }

    /// Reads a test file, or the tests in a prompt file. Returns `None` if a prompt file contains no tests.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, if its tests are invalid, or if it names no prompt file and there is
    /// none with the same name.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let source = read_prompt_file(path, DEFAULT_MAX_FILE_BYTES)?;
        let syntax = path.to_str().and_then(test_file::syntax_of_name);
        let (suite, diagnostics) = match syntax {
            Some(syntax) => test_file::parse(&source, syntax),
            None => match test_file::parse_embedded(&source, Format::detect(path, source.text())) {
                Some(parsed) => parsed,
                None => return Ok(None),
            },
        };
        let Some(suite) = suite else {
            return Err(Error::from_parser(diagnostics, &source, Kind::InvalidTests));
        };
        let prompt = match (&suite.prompt, syntax) {
            (Some(prompt), _) => contained(directory_of(path), prompt)
                .map_err(|error| error.at(suite.prompt_span).in_source(&source, 0))?,
            (None, Some(_)) => prompt_beside(path).map_err(|error| error.at(Span::new(0, 0)).in_source(&source, 0))?,
            (None, None) => path.to_owned(),
        };
        Ok(Some(Self { path: path.to_owned(), source, suite, prompt }))
    }

    /// Returns the directory that paths in the file are relative to.
    pub fn directory(&self) -> &Path {
        directory_of(&self.path)
    }

    /// Returns the name of the file without its endings: `greeting` for `greeting.test.yaml`.
    pub fn stem(&self) -> String {
        let name = self.path.file_stem().unwrap_or_default().to_string_lossy();
        name.strip_suffix(".test").unwrap_or(&name).to_owned()
    }

    /// Returns the directory of recorded answers.
    ///
    /// # Errors
    /// Returns an error if the path leads out of the project.
    pub fn cassettes(&self) -> Result<PathBuf> {
        self.resolve(self.suite.cassettes.as_deref().unwrap_or(CASSETTES))
    }

    /// Resolves a path in the file.
    ///
    /// # Errors
    /// Returns an error if the path leads out of the project.
    pub fn resolve(&self, path: &str) -> Result<PathBuf> {
        contained(self.directory(), path)
    }

    /// Returns the line of a position, counted from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.source.line_column(offset).line
    }
}

/// Finds the prompt file with the same name as a test file.
fn prompt_beside(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut candidates = test_file::default_prompts(&name).map(|name| path.with_file_name(name));
    candidates.find(|candidate| candidate.is_file()).ok_or_else(|| {
        let usual = test_file::default_prompts(&name).next().unwrap_or_default();
        Error::new(Kind::InvalidTests, format_args!("there is no prompt file `{usual}` beside the test file"))
            .with_help("name the prompt file with the key `prompt`")
    })
}

/// Resolves a path relative to a directory. A test file may come from anyone, so it can name only files in its own
/// directory and in the working directory.
pub(crate) fn contained(directory: &Path, path: &str) -> Result<PathBuf> {
    let outside = || {
        Error::new(Kind::InvalidTests, format_args!("the path `{path}` leads out of the project"))
            .with_help("use a relative path to a file in the directory of the test file or in the working directory")
    };
    if Path::new(path).has_root() {
        return Err(outside());
    }
    // Messages name files without `./`.
    let joined = if directory == Path::new(".") { PathBuf::from(path) } else { directory.join(path) };
    let real = real_path(&joined);
    let roots = [directory, Path::new(".")].map(real_path);
    if roots.iter().any(|root| real.starts_with(root)) { Ok(joined) } else { Err(outside()) }
}

/// Returns the absolute path without links. The part of it that does not exist cannot contain any.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut real = PathBuf::new();
    for component in absolute.components() {
        match component {
            Component::ParentDir => drop(real.pop()),
            Component::CurDir => {}
            other => real.push(other),
        }
        if let Ok(resolved) = real.canonicalize() {
            real = resolved;
        }
    }
    real
}
