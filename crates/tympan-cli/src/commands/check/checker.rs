//! Checks of files, on all cores.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::{ProgressBar, ProgressStyle};
use tympan::file::walk::{read_found, unreadable};
use tympan::format::Format;
use tympan::load::{DEFAULT_MAX_FILE_BYTES, References, directory_of, read_prompt_file};
use tympan::text::source::SourceFile;
use tympan::{Error, LoadOptions};
use tympan_lint::{CheckSettings, Finding, FixMode, Options, check_file, fix_file};

use super::{FileFix, FileReport, Place, Target, TargetKind, Targets};
use crate::args::CheckArgs;
use crate::project::Project;
use crate::prompt_file;

/// A check of fewer files than this is done before anybody could read a progress bar.
const MANY: usize = 1000;

/// Checks files with the settings of a project.
pub(super) struct Checker<'a> {
    project: &'a Project,
    settings: &'a CheckSettings,
    load: LoadOptions,
    /// The files that test files may refer to: everything in the project, because a prompt is often elsewhere in it.
    load_tests: LoadOptions,
    /// The options for files without settings of their own.
    options: Options,
    /// The fixes to apply.
    fixes: Option<FixMode>,
    stdin_filename: Option<&'a Path>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(args: &'a CheckArgs, project: &'a Project, settings: &'a CheckSettings) -> Self {
        let load = LoadOptions { file_roots: args.env.files.allow_dir.clone(), ..LoadOptions::default() };
        let mut load_tests = load.clone();
        load_tests.file_roots.push(project.directory.clone());
        let path = Path::new("");
        let options = project.settings.complete(settings.options(path), path);
        let mode = if args.fixes.unsafe_fixes { FixMode::Unsafe } else { FixMode::Safe };
        let fixes = (args.fixes.fix || args.fixes.diff).then_some(mode);
        Self {
            project,
            settings,
            load,
            load_tests,
            options,
            fixes,
            stdin_filename: args.files.stdin_filename.as_deref(),
        }
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
        let (place, read) = match &target.kind {
            TargetKind::Stdin => (Place::Stdin, self.read_stdin()),
            TargetKind::Named(path) => (Place::Named(path.clone()), read_prompt_file(path, DEFAULT_MAX_FILE_BYTES)),
            TargetKind::Found(path) => (Place::Found(path.clone()), read_found(path)?),
            TargetKind::Unreadable(path, reason) => (Place::Found(path.clone()), Err(unreadable(path, reason))),
        };
        Some(match read {
            Ok(source) => self.check(target.argument, place, source),
            Err(error) => {
                let source = error.source_file().cloned().unwrap_or_else(|| SourceFile::new(name_of(&place), ""));
                let mut findings = Finding::from_error(&error);
                findings.iter_mut().for_each(|finding| finding.is_fatal = true);
                FileReport { argument: target.argument, place, source, findings, fix: None }
            }
        })
    }

    fn check(&self, argument: usize, place: Place, source: SourceFile) -> FileReport {
        let path = match &place {
            Place::Stdin => self.stdin_filename.unwrap_or(Path::new("")),
            Place::Named(path) | Place::Found(path) => path,
        };
        let is_test_file = matches!(Format::from_name(path), Some(Format::Tests(_)));
        let load = if is_test_file { &self.load_tests } else { &self.load };
        let mut files = References::new(directory_of(path), load);
        let options = self.options_of(path);
        match self.fixes {
            None => {
                let findings = check_file(&source, &mut files, &options).findings;
                FileReport { argument, place, source, findings, fix: None }
            }
            Some(mode) => {
                let fixed = fix_file(&source, &mut files, &options, mode);
                let fix = Some(FileFix { before: source, fixed: fixed.fixed });
                FileReport { argument, place, source: fixed.source, findings: fixed.checked.findings, fix }
            }
        }
    }

    fn options_of(&self, path: &Path) -> Cow<'_, Options> {
        let policy = &self.project.settings.policy;
        if self.settings.per_file_ignores.is_empty() && policy.paths.is_empty() {
            return Cow::Borrowed(&self.options);
        }
        let path = self.project.relative(path);
        Cow::Owned(self.project.settings.complete(self.settings.options(&path), &path))
    }

    fn read_stdin(&self) -> Result<SourceFile, Error> {
        let name = self.stdin_filename.map_or_else(|| "<stdin>".to_owned(), |path| path.display().to_string());
        Ok(SourceFile::new(name, prompt_file::read_stdin()?))
    }
}

fn name_of(place: &Place) -> String {
    match place {
        Place::Stdin => "<stdin>".to_owned(),
        Place::Named(path) | Place::Found(path) => path.display().to_string(),
    }
}

/// Returns a progress bar on a terminal, if there is much to do.
fn progress(files: usize) -> ProgressBar {
    if files < MANY || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    // The bar does not move while the number of digits grows.
    let digits = files.to_string().len();
    let style = ProgressStyle::with_template(&format!("Checking {{bar:30}} {{pos:>{digits}}}/{{len}} files"));
    ProgressBar::new(files as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
