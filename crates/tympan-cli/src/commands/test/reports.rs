//! Reports for people and for programs.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tympan_eval::CaseResult;
use tympan_eval::report::{Format, Report, ReportOptions, Summary, writer};

use super::comparison;
use super::terminal::Terminal;
use crate::args::{TestArgs, TestComparisonArgs, TestFormat};
use crate::output;
use crate::report::Failure;

/// The variable with the file that GitHub Actions shows as the summary of a job.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// The reports of a run.
pub(super) struct Reports {
    terminal: Option<Terminal>,
    others: Vec<Box<dyn Report + Send>>,
}

impl Reports {
    pub(super) fn start(args: &TestArgs, quiet: bool) -> Result<Self, Failure> {
        let mut options = ReportOptions::default();
        options.allow_missing = args.answers.allow_missing;
        let mut reports = Self { terminal: None, others: Vec::new() };
        let format = args.output.format();
        match report_format(format) {
            Some(format) => reports.others.push(writer(format, &options, Unbroken(io::stdout()))?),
            None => reports.terminal = Some(Terminal::new(format == TestFormat::Concise, quiet)),
        }
        for (format, path) in &args.output.report {
            let Some(format) = report_format(*format) else {
                let message = format!("--report {}: expected a format for files, such as `html`", path.display());
                return Err(Failure::Usage(message));
            };
            reports.others.push(writer(format, &options, BufWriter::new(created(path)?))?);
        }
        if let Some(path) = args.comparison.save.as_deref() {
            reports.others.push(writer(Format::JsonLines, &options, created(path)?)?);
        }
        if let Some(path) = std::env::var_os(STEP_SUMMARY).filter(|_| format == TestFormat::Github) {
            let file = File::options().append(true).create(true).open(&path)?;
            reports.others.push(writer(Format::Markdown, &options, file)?);
        }
        Ok(reports)
    }

    /// Shows how many cases there are, if anybody sees it.
    pub(super) fn set_total(&self, count: impl FnOnce() -> Option<usize>) {
        if let Some(terminal) = self.terminal.as_ref().filter(|terminal| terminal.has_progress())
            && let Some(cases) = count()
        {
            terminal.set_total(cases);
        }
    }

    pub(super) fn add(&mut self, result: &CaseResult) -> io::Result<()> {
        if let Some(terminal) = &mut self.terminal {
            terminal.show(result)?;
        }
        self.others.iter_mut().try_for_each(|report| report.case(result))
    }

    pub(super) fn finish(self, summary: &Summary, args: &TestArgs) -> io::Result<()> {
        if let Some(terminal) = &self.terminal {
            terminal.finish(summary)?;
            let TestComparisonArgs { baseline, against, .. } = &args.comparison;
            let name = against.clone().or_else(|| baseline.as_ref().map(|path| path.display().to_string()));
            if let Some((comparison, name)) = summary.comparison.as_ref().zip(name) {
                terminal.print(&comparison::shown(comparison, &name, output::looks()))?;
            }
        }
        self.others.into_iter().try_for_each(|report| report.finish(summary))
    }
}

fn created(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| {
        Failure::Output(io::Error::new(error.kind(), format!("cannot write `{}`: {error}", path.display())))
    })
}

/// Returns the format of a report for programs.
const fn report_format(format: TestFormat) -> Option<Format> {
    Some(match format {
        TestFormat::Full | TestFormat::Concise => return None,
        TestFormat::JsonLines => Format::JsonLines,
        TestFormat::Junit => Format::Junit,
        TestFormat::Tap => Format::Tap,
        TestFormat::Github => Format::Github,
        TestFormat::Markdown => Format::Markdown,
        TestFormat::Html => Format::Html,
    })
}

/// A stream whose reader may stop reading.
struct Unbroken<W>(W);

impl<W: Write> Write for Unbroken<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            other => other,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            other => other,
        }
    }
}
