//! `tympan check`: reports all errors and warnings in prompt files and directories.

mod baseline;
pub(super) mod checker;
mod fixes;
mod formats;
pub(super) mod targets;
pub(super) mod watch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tympan::diagnostic::Severity;
use tympan::text::source::SourceFile;
use tympan_lint::{CheckSettings, Finding, Glob, Rule, Selection};

use self::baseline::BaselineReport;
use self::checker::Checker;
use self::targets::{Target, TargetKind, Targets};
use crate::args::{CheckArgs, OutputFormat};
use crate::project::Project;
use crate::report::{Failure, warn_plainly};
use crate::{output, prompt_file};

/// The result of checking all files.
pub(super) struct Report {
    /// The files with prompts, in the order of the command line.
    files: Vec<FileReport>,
    baseline: Option<BaselineReport>,
    /// Whether fixes were applied.
    is_fixed: bool,
}

/// The result of checking a file.
pub(super) struct FileReport {
    /// The target that the file belongs to, by its index on the command line.
    argument: usize,
    place: Place,
    /// The text, after fixes.
    source: SourceFile,
    findings: Vec<Finding>,
    fix: Option<FileFix>,
}

/// Where a file comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Stdin,
    /// A path that the user named.
    Named(PathBuf),
    /// A path in a directory that the user named.
    Found(PathBuf),
}

/// The fixes of a file.
struct FileFix {
    /// The text before the fixes.
    before: SourceFile,
    /// The rules of the findings that were fixed.
    fixed: Vec<&'static Rule>,
}

impl Report {
    /// Returns all findings with their sources.
    fn findings(&self) -> impl Iterator<Item = (&SourceFile, &Finding)> {
        self.files.iter().flat_map(|file| file.findings.iter().map(|finding| (&file.source, finding)))
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings().filter(|(_, finding)| finding.severity == severity).count()
    }

    /// Returns the rules of the findings that were fixed.
    fn fixed(&self) -> impl Iterator<Item = &'static Rule> {
        self.files.iter().filter_map(|file| file.fix.as_ref()).flat_map(|fix| fix.fixed.iter().copied())
    }

    fn status(&self) -> ExitCode {
        if self.count(Severity::Error) > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
    }
}

pub(super) fn run(args: &CheckArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let stdin = args.paths.iter().filter(|path| prompt_file::is_stdin(path)).count();
    if args.files.stdin_filename.is_some() && stdin == 0 {
        return Err(usage("--stdin-filename: standard input is read only if `-` is one of the paths"));
    }
    if args.output.watch && stdin > 0 {
        return Err(usage("--watch: standard input cannot be watched"));
    }
    if args.output.watch {
        return watch::repeat(&args.paths, &args.settings, &[], quiet, &mut || check(args, quiet));
    }
    check(args, quiet)
}

/// Checks all files once.
fn check(args: &CheckArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let project = Project::find(&args.settings)?;
    let settings = settings(args, &project)?;
    let format = output_format(args, &settings)?;
    let baseline = baseline::path(args, &project, &settings)?;
    let is_excluded = |path: &Path| settings.is_excluded(&project.relative(path));
    let targets = Targets::collect(&args.paths, is_excluded);
    let checker = Checker::new(args, &project, &settings);
    let files = checker.check_all(&targets);
    let mut report = Report { files, baseline: None, is_fixed: args.fixes.fix };
    if !quiet && format.is_for_people() {
        warn_about_empty(&targets, &report);
    }
    if let Some(path) = &baseline {
        if args.baseline.write_baseline {
            return baseline::write(path, &report);
        }
        baseline::apply(path, &mut report)?;
    }
    if args.fixes.diff {
        return fixes::print_diff(&report);
    }
    if args.fixes.fix {
        fixes::write(&mut report)?;
    }
    if quiet {
        report.files.iter_mut().for_each(|file| file.findings.retain(|finding| finding.severity == Severity::Error));
    }
    print(args, &report, format)?;
    Ok(report.status())
}

fn print(args: &CheckArgs, report: &Report, format: OutputFormat) -> Result<(), Failure> {
    let shown =
        if args.output.statistics { formats::statistics(report, format) } else { formats::show(report, format) };
    if args.fixes.fix && report.files.iter().any(|file| file.place == Place::Stdin) {
        // Standard output has the fixed text.
        output::print_error(&shown);
    } else if format.is_for_people() {
        output::print_lines(&shown)?;
    } else {
        output::print(&shown)?;
    }
    Ok(())
}

/// Returns the settings of the project, overridden by the environment and the command line.
fn settings(args: &CheckArgs, project: &Project) -> Result<CheckSettings, Failure> {
    let mut settings = project.settings.check.clone();
    let rules = &args.rules;
    let (select, ignore, deny) = (rules.select.clone(), rules.ignore.clone(), rules.deny.clone());
    settings.override_selection(&Selection { select, ignore, deny }, &rules.extend_select);
    let exclude = args.files.exclude.iter().map(|pattern| {
        Glob::new(pattern).map_err(|reason| usage(&format!("--exclude: `{pattern}` is not a pattern: {reason}")))
    });
    settings.exclude.extend(exclude.collect::<Result<Vec<_>, _>>()?);
    Ok(settings)
}

fn output_format(args: &CheckArgs, settings: &CheckSettings) -> Result<OutputFormat, Failure> {
    if let Some(format) = args.output_format() {
        return Ok(format);
    }
    let Some(name) = &settings.output_format else { return Ok(OutputFormat::Full) };
    clap::ValueEnum::from_str(name, false).map_err(|_| {
        let known = <OutputFormat as clap::ValueEnum>::value_variants().iter();
        let names = known.filter_map(|format| Some(clap::ValueEnum::to_possible_value(format)?.get_name().to_owned()));
        let names = names.collect::<Vec<_>>().join(", ");
        usage(&format!("output-format in the settings: expected one of {names}; found `{name}`"))
    })
}

/// Warns about directories without prompts.
fn warn_about_empty(targets: &Targets, report: &Report) {
    for (argument, directory) in &targets.directories {
        if !report.files.iter().any(|file| file.argument == *argument) {
            let message = format!("no prompt files found in `{}`", directory.display());
            warn_plainly("no_files", &message);
        }
    }
}

fn usage(message: &str) -> Failure {
    Failure::Usage(message.to_owned())
}
