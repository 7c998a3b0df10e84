//! `tympan check`: reports all errors and warnings in prompt files and directories.

mod checker;
mod formats;
mod targets;

use std::process::ExitCode;

use tympan::diagnostic::Severity;
use tympan::text::source::SourceFile;
use tympan_lint::{CheckSettings, Finding, Glob, Selection};

use self::checker::Checker;
use self::targets::{Target, Targets};
use crate::args::{CheckArgs, OutputFormat};
use crate::project::Project;
use crate::report::{Failure, warn_plainly};
use crate::{output, prompt_file};

/// The result of checking all files.
pub(super) struct Report {
    /// The files with prompts, in the order of the command line.
    pub(super) files: Vec<FileReport>,
}

/// The result of checking a file.
pub(super) struct FileReport {
    /// The target that the file belongs to, by its index on the command line.
    argument: usize,
    pub(super) source: SourceFile,
    pub(super) findings: Vec<Finding>,
}

impl Report {
    /// Returns all findings with their sources.
    fn findings(&self) -> impl Iterator<Item = (&SourceFile, &Finding)> {
        self.files.iter().flat_map(|file| file.findings.iter().map(|finding| (&file.source, finding)))
    }

    fn count(&self, severity: Severity) -> usize {
        self.findings().filter(|(_, finding)| finding.severity == severity).count()
    }
}

pub(super) fn run(args: &CheckArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let project = Project::find(&args.settings)?;
    let settings = settings(args, &project)?;
    let format = output_format(args, &settings)?;
    let targets = targets(args, &project, &settings)?;
    let checker = Checker::new(args, &project, &settings)?;
    let mut report = Report { files: checker.check_all(&targets) };
    if quiet {
        report.files.iter_mut().for_each(|file| file.findings.retain(|finding| finding.severity == Severity::Error));
    } else if format.is_for_people() {
        warn_about_empty(&targets, &report);
    }
    let shown = formats::show(&report, format);
    if format.is_for_people() {
        output::print_lines(&shown)?
    } else {
        output::print(&shown)?
    }
    Ok(if report.count(Severity::Error) > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the settings of the project, overridden by the environment and the command line.
fn settings(args: &CheckArgs, project: &Project) -> Result<CheckSettings, Failure> {
    let mut settings = project.settings.check.clone();
    let rules = &args.rules;
    let (select, ignore, deny) = (rules.select.clone(), rules.ignore.clone(), rules.deny.clone());
    settings.override_selection(&Selection { select, ignore, deny }, &rules.extend_select);
    let exclude = args.files.exclude.iter().map(|pattern| {
        Glob::new(pattern)
            .map_err(|reason| Failure::Usage(format!("--exclude: `{pattern}` is not a pattern: {reason}")))
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
        Failure::Usage(format!("output-format in the settings: expected one of {names}; found `{name}`"))
    })
}

/// Returns the files to look at.
fn targets(args: &CheckArgs, project: &Project, settings: &CheckSettings) -> Result<Targets, Failure> {
    let named_stdin = args.paths.iter().filter(|path| prompt_file::is_stdin(path)).count();
    if args.files.stdin_filename.is_some() && named_stdin == 0 {
        return Err(Failure::Usage(
            "--stdin-filename: standard input is read only if `-` is one of the paths".to_owned(),
        ));
    }
    Ok(Targets::collect(&args.paths, |path| settings.is_excluded(&project.relative(path))))
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
