//! Tests of prompts, and the cases of a test file for test runners of other languages.

use std::collections::HashSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
pub use tympan_eval::*;

use tympan_core::text::source::SourceFile;
use tympan_core::wire::catalog::Catalog;
use tympan_core::{Error, Kind, Result};
use tympan_lint::{SETTINGS_FILE, Settings};
use tympan_runtime::Runtime;
use tympan_runtime::file::read;
use tympan_runtime::file::walk::{Found, prompt_files};
use tympan_runtime::load::DEFAULT_MAX_FILE_BYTES;

use crate::lint::{absolute, invalid};

use self::answer::{AnswerMode, AnswerOptions};
use self::case::Case;
use self::file::TestFile;
use self::runner::{Job, Runner, RunnerOptions, jobs};

/// The options of [`CollectedFile::load`]. By default, no model is called, no program runs and no file is written.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct CollectOptions {
    /// Whether models are called.
    pub live: bool,
    /// Whether models are called, and their answers are recorded as cassettes.
    pub record: bool,
    /// Whether snapshots are written instead of compared.
    pub accept: bool,
    /// Whether programs of test files may run.
    pub allow_programs: bool,
}

/// What is known about a case before it runs.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct CaseInfo {
    /// The name of the case in its file, unique among all cases of a run.
    pub id: String,
    /// The name of the case.
    pub name: String,
    /// The line of the case in the file, counted from 1.
    pub line: usize,
    /// The reason why the case is skipped.
    pub skip: Option<String>,
}

/// A test file, or a prompt file that contains tests, with all of its cases.
///
/// `tympan test` reads the rows of tables when they are needed. Test runners of other languages list all cases before
/// the first of them runs, so here all of them are in memory.
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the root of the repository");
/// use tympan::eval::{CollectedFile, CollectOptions, Verdict};
///
/// let file = CollectedFile::load("examples/hello.test.yaml", &tympan::Runtime::default(), CollectOptions::default())?;
/// let file = file.expect("a test file");
/// assert_eq!(file.cases()[0].name, "greets by name");
/// assert_eq!(file.run(0)?.verdict, Verdict::Passed);
/// # Ok::<(), tympan::Error>(())
/// ```
pub struct CollectedFile {
    runner: Runner,
    jobs: Vec<Job>,
}

impl CollectedFile {
    /// Reads a test file or the tests in a prompt file, loads the prompt, and expands rows and matrices. Returns `None`
    /// if a prompt file contains no tests. The cases run with the registered functions and tools of the runtime, and
    /// with the prices in the `tympan.toml` of the working directory or above it.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or if the tests, the prompt or the prices are invalid.
    pub fn load(path: impl AsRef<Path>, runtime: &Runtime, options: CollectOptions) -> Result<Option<Self>> {
        let mode = match (options.record, options.live) {
            (true, _) => AnswerMode::Record,
            (_, true) => AnswerMode::Live,
            _ => AnswerMode::Replay,
        };
        // Without calls, prompts are rendered without the variables that only a call needs.
        let runtime = if mode == AnswerMode::Replay { runtime.with_deferred_env() } else { runtime.clone() };
        let catalog = catalog()?;
        let mut settings = RunnerOptions::default();
        settings.answers = AnswerOptions::new(mode, Some(Arc::new(move |model, usage| catalog.cost(model, usage))));
        settings.allow_programs = options.allow_programs;
        settings.accept = options.accept;
        let runner = Runner::new(runtime, settings);
        let Some(loaded) = runner.load(path.as_ref())? else { return Ok(None) };
        Ok(Some(Self { jobs: jobs(&loaded).collect(), runner }))
    }

    /// Returns what is known about each case.
    pub fn cases(&self) -> Vec<CaseInfo> {
        self.jobs.iter().map(info).collect()
    }

    /// Runs the case with this index.
    ///
    /// # Errors
    /// Returns an error if there is no such case.
    pub fn run(&self, index: usize) -> Result<CaseResult> {
        match self.jobs.get(index) {
            Some(Job::Case(case)) => Ok(self.runner.run_case(case)),
            Some(Job::Finished(result)) => Ok((**result).clone()),
            None => {
                let count = self.jobs.len();
                Err(Error::new(Kind::InvalidInput, format_args!("case {index}: the file has {count} cases")))
            }
        }
    }
}

fn info(job: &Job) -> CaseInfo {
    match job {
        Job::Case(case) => {
            let Case { name, line, skip, .. } = &**case;
            CaseInfo { id: case.id(), name: name.clone(), line: *line, skip: skip.clone() }
        }
        Job::Finished(result) => {
            CaseInfo { id: result.id.clone(), name: result.name.clone(), line: result.line, skip: None }
        }
    }
}

/// Returns the files that contain tests, as `tympan test` finds them. A file that is named is one of them, and a directory
/// is searched: hidden files, and what ignore files or the `tympan.toml` of the working directory or above it exclude,
/// are left out. No file is named twice. A directory that cannot be read is in the list too, so that loading it reports
/// why.
///
/// ```
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the root of the repository");
/// let files = tympan::eval::find_test_files(["examples"])?;
/// assert_eq!(files, ["examples/hello.test.yaml", "examples/retrieval.test.yaml"].map(std::path::PathBuf::from));
/// # Ok::<(), tympan::Error>(())
/// ```
///
/// # Errors
/// Returns an error if the settings are invalid.
pub fn find_test_files(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Vec<PathBuf>> {
    let settings = match settings_file()? {
        Some((directory, source)) => {
            let settings = Settings::parse(&source).map_err(|errors| invalid(&source, errors))?;
            Some((directory, settings.check))
        }
        None => None,
    };
    let is_excluded = |path: &Path| {
        settings.as_ref().is_some_and(|(directory, settings)| {
            let path = absolute(path);
            settings.is_excluded(path.strip_prefix(directory).unwrap_or(&path))
        })
    };
    let (mut files, mut seen) = (Vec::new(), HashSet::new());
    for path in paths {
        let path = path.as_ref();
        let found = if path.is_dir() { found_in(path, is_excluded) } else { vec![path.to_owned()] };
        files.extend(found.into_iter().filter(|file| seen.insert(absolute(file))));
    }
    Ok(files)
}

fn found_in(directory: &Path, is_excluded: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let found = prompt_files(directory, is_excluded).into_iter();
    let path = |found| match found {
        Found::File(path) => TestFile::may_contain_tests(&path).then_some(path),
        Found::Unreadable(path, _) => Some(path),
        _ => None,
    };
    found.filter_map(path).collect()
}

/// Returns the prices of models, with those that the project sets.
fn catalog() -> Result<Catalog> {
    match settings_file()? {
        Some((_, source)) => Settings::parse_models(&source).map_err(|errors| invalid(&source, errors)),
        None => Ok(Catalog::default()),
    }
}

/// Returns the settings file of the working directory or above it, and its directory.
fn settings_file() -> Result<Option<(PathBuf, SourceFile)>> {
    let here = std::env::current_dir().map_err(|error| Error::new(Kind::UnreadableFile, error))?;
    for directory in here.ancestors() {
        // A file that nobody named is not read through links that lead out of its directory.
        let text = read::open_in(directory, SETTINGS_FILE).and_then(|file| read::text(file, DEFAULT_MAX_FILE_BYTES));
        let path = directory.join(SETTINGS_FILE);
        match text {
            Ok(text) => {
                return Ok(Some((directory.to_owned(), SourceFile::new(path.display().to_string(), text))));
            }
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => {
                return Err(Error::new(Kind::UnreadableFile, format_args!("{}: {error}", path.display())));
            }
        }
    }
    Ok(None)
}
