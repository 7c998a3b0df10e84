//! Checks of files, on all cores.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use tympan::file::read;
use tympan::format::Format;
use tympan::load::{DEFAULT_MAX_FILE_BYTES, References, directory_of, read_prompt_file};
use tympan::text::source::SourceFile;
use tympan::{Error, Kind, LoadOptions};
use tympan_lint::{CheckSettings, Finding, Options, check_file};

use super::targets::TargetKind;
use super::{FileReport, Target, Targets};
use crate::args::CheckArgs;
use crate::project::Project;
use crate::prompt_file;
use crate::report::Failure;

/// A check of fewer files than this is done before anybody could read a progress bar.
const MANY: usize = 1000;

/// Checks files with the settings of a project.
pub(super) struct Checker<'a> {
    project: &'a Project,
    settings: &'a CheckSettings,
    load: LoadOptions,
    /// The options for files without settings of their own.
    options: Options,
    stdin_filename: Option<&'a Path>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(args: &'a CheckArgs, project: &'a Project, settings: &'a CheckSettings) -> Result<Self, Failure> {
        let load = LoadOptions { file_roots: args.env.files.allow_dir.clone(), ..LoadOptions::default() };
        let options = settings.options(Path::new("")).with_policy(project.settings.policy.messages);
        Ok(Self { project, settings, load, options, stdin_filename: args.files.stdin_filename.as_deref() })
    }

    /// Checks all files. The reports are in the order of the targets, without files that are not prompts.
    pub(super) fn check_all(&self, targets: &Targets) -> Vec<FileReport> {
        let files = &targets.files;
        let reports: Vec<OnceLock<Option<FileReport>>> = files.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let progress = progress(files.len());
        let work = || {
            while let Some((target, report)) = {
                let index = next.fetch_add(1, Ordering::Relaxed);
                files.get(index).zip(reports.get(index))
            } {
                report.get_or_init(|| self.check_target(target));
                progress.inc(1);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(files.len() / 8);
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        progress.finish_and_clear();
        reports.into_iter().filter_map(OnceLock::into_inner).flatten().collect()
    }

    /// Checks a file. Returns `None` if it is not a prompt.
    fn check_target(&self, target: &Target) -> Option<FileReport> {
        let read = match &target.kind {
            TargetKind::Stdin => self.read_stdin(),
            TargetKind::Named(path) => read_named(path),
            TargetKind::Found(path) => read_found(path)?,
            TargetKind::Unreadable(path, reason) => Err(unreadable(path, reason)),
        };
        Some(match read {
            Ok((path, source)) => self.check(target.argument, &path, source),
            Err(error) => {
                let source = error.source_file().cloned().unwrap_or_else(|| SourceFile::new(name_of(&target.kind), ""));
                FileReport { argument: target.argument, source, findings: Finding::from_error(&error) }
            }
        })
    }

    fn check(&self, argument: usize, path: &Path, source: SourceFile) -> FileReport {
        let mut files = References::new(directory_of(path), &self.load);
        let checked = check_file(&source, &mut files, &self.options_of(path));
        FileReport { argument, source, findings: checked.findings }
    }

    fn options_of(&self, path: &Path) -> Cow<'_, Options> {
        let policy = &self.project.settings.policy;
        if self.settings.per_file_ignores.is_empty() && policy.paths.is_empty() {
            return Cow::Borrowed(&self.options);
        }
        let path = self.project.relative(path);
        Cow::Owned(self.settings.options(&path).with_policy(policy.of(&path)))
    }

    fn read_stdin(&self) -> Result<(PathBuf, SourceFile), Error> {
        let text = prompt_file::read_stdin()?;
        let name = self.stdin_filename.map_or_else(|| "<stdin>".to_owned(), |path| path.display().to_string());
        Ok((self.stdin_filename.unwrap_or(Path::new("")).to_owned(), SourceFile::new(name, text)))
    }
}

/// Reads a file that the user named.
fn read_named(path: &Path) -> Result<(PathBuf, SourceFile), Error> {
    Ok((path.to_owned(), read_prompt_file(path, DEFAULT_MAX_FILE_BYTES)?))
}

/// Reads a file in a directory. Returns `None` if it is not a prompt.
fn read_found(path: &Path) -> Option<Result<(PathBuf, SourceFile), Error>> {
    let format = Format::from_name(path)?;
    let file = read::open_in(directory_of(path), path.file_name().unwrap_or(OsStr::new("")));
    match file.and_then(|file| read::text(file, DEFAULT_MAX_FILE_BYTES)) {
        Ok(text) if format.matches(&text) => {
            Some(Ok((path.to_owned(), SourceFile::new(path.display().to_string(), text))))
        }
        Err(error) if format == Format::Prompty => Some(Err(unreadable(path, &error.to_string()))),
        // Most files with these extensions are not prompts, and this one was not named.
        _ => None,
    }
}

fn unreadable(path: &Path, reason: &str) -> Error {
    Error::new(Kind::UnreadableFile, format_args!("{}: {reason}", path.display()))
}

fn name_of(kind: &TargetKind) -> String {
    match kind {
        TargetKind::Stdin => "<stdin>".to_owned(),
        TargetKind::Named(path) | TargetKind::Found(path) | TargetKind::Unreadable(path, _) => {
            path.display().to_string()
        }
    }
}

/// Returns a progress bar on a terminal, if there is much to do.
fn progress(files: usize) -> ProgressBar {
    if files < MANY || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} files");
    ProgressBar::new(files as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
