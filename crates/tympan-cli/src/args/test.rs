//! Arguments of `test`.

use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};

use super::check::SettingsArgs;
use super::model::ModelArgs;
use super::reach::EnvArgs;

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Test files, prompt files with tests, and directories
    #[arg(value_name = "PATHS", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) selection: TestSelectionArgs,

    #[command(flatten)]
    pub(crate) answers: AnswerArgs,

    #[command(flatten)]
    pub(crate) comparison: TestComparisonArgs,

    #[command(flatten)]
    pub(crate) import: ImportArgs,

    #[command(flatten)]
    pub(crate) output: TestOutputArgs,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

/// The cases to run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Cases")]
pub(crate) struct TestSelectionArgs {
    /// Run only cases whose name or file contains this text; can be repeated
    #[arg(short = 'k', value_name = "NAME", action = ArgAction::Append)]
    pub(crate) names: Vec<String>,

    /// Run only the cases that failed or did not run the last time
    #[arg(long, conflicts_with = "resume")]
    pub(crate) last_failed: bool,

    /// Continue a run that was interrupted: cases that are finished do not run again
    #[arg(long)]
    pub(crate) resume: bool,

    /// Stop after the first case that fails
    #[arg(long, short = 'x')]
    pub(crate) fail_fast: bool,

    /// How many cases run at a time; defaults to the number of cores, or 8 if models are called
    #[arg(long, short, value_name = "NUMBER")]
    pub(crate) jobs: Option<usize>,

    /// Write the messages of cases to their snapshots, instead of comparing them
    #[arg(long)]
    pub(crate) accept: bool,

    /// Run again whenever a file changes
    #[arg(long, conflicts_with_all = ["live", "record"])]
    pub(crate) watch: bool,
}

/// Where answers come from.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Answers")]
pub(crate) struct AnswerArgs {
    /// Call models and record their answers in cassettes
    #[arg(long, conflicts_with = "live")]
    pub(crate) record: bool,

    /// Call models, without cassettes
    #[arg(long)]
    pub(crate) live: bool,

    /// Exit with status 0 even if cases could not run because a recording is missing
    #[arg(long)]
    pub(crate) allow_missing: bool,

    /// Run the programs that test files name
    ///
    /// A test file comes with its prompts, perhaps from somebody else. Without this option, assertions of the kind
    /// `program` do not run.
    #[arg(long)]
    pub(crate) allow_programs: bool,

    /// Estimate tokens and cost, and run nothing
    #[arg(long)]
    pub(crate) cost: bool,

    /// Do not let model calls cost more than this many US dollars
    ///
    /// The most that a call can cost is reserved before it is sent. Cases whose calls could exceed the limit are not run.
    /// The calls of judges and all repetitions count. Models need a price, which `[models]` in tympan.toml can set.
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    pub(crate) max_cost: Option<f64>,
}

/// Comparisons with other results.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Comparison")]
pub(crate) struct TestComparisonArgs {
    /// Compare with the results in this file, which `--save` has written
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub(crate) baseline: Option<PathBuf>,

    /// Write the results to this file, for a later `--baseline`
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Run the same tests with the prompts of a git revision, and compare
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["watch", "accept", "resume", "record"])]
    pub(crate) against: Option<String>,
}

/// Tests of other programs.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Import")]
pub(crate) struct ImportArgs {
    /// Convert a configuration of promptfoo to prompt files and test files, and run nothing
    ///
    /// Reports everything that could not be carried over. Programs that the configuration names do not run, and only files
    /// in its directory and below are read.
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "paths", "names", "last_failed", "resume", "fail_fast", "jobs", "accept", "watch", "record", "live", "allow_missing",
        "allow_programs", "cost", "max_cost", "baseline", "save", "against", "report",
    ])]
    pub(crate) import: Option<PathBuf>,

    /// Write the files to this directory; defaults to that of the configuration
    #[arg(long, short, value_name = "DIRECTORY", requires = "import")]
    pub(crate) output_dir: Option<PathBuf>,

    /// Replace files that exist
    #[arg(long, requires = "import")]
    pub(crate) force: bool,
}

/// How results are printed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct TestOutputArgs {
    /// The form of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = TestFormat::Full, env = "TYMPAN_TEST_OUTPUT_FORMAT")]
    pub(crate) output_format: TestFormat,

    /// Print JSON; short for `--output-format json-lines`
    #[arg(long, overrides_with = "output_format")]
    pub(crate) json: bool,

    /// Also write a report to a file, as in `--report html=report.html`; can be repeated
    #[arg(long, value_name = "FORMAT=FILE", action = ArgAction::Append, value_parser = parse_report)]
    pub(crate) report: Vec<(TestFormat, PathBuf)>,
}

/// The form of the output of `test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestFormat {
    /// Failures with their differences, and a summary
    Full,
    /// One line per case
    Concise,
    /// One JSON object per line and case
    JsonLines,
    /// JUnit XML
    Junit,
    /// Test Anything Protocol, version 14
    Tap,
    /// Annotations of GitHub Actions, and a summary of the job
    Github,
    /// Markdown
    Markdown,
    /// One HTML file
    Html,
}

impl TestOutputArgs {
    /// Returns the form of the output.
    pub(crate) fn format(&self) -> TestFormat {
        if self.json { TestFormat::JsonLines } else { self.output_format }
    }
}

pub(super) fn parse_dollars(text: &str) -> Result<f64, String> {
    let dollars = text.trim_start_matches('$').parse::<f64>().ok();
    let is_amount = |dollars: &f64| dollars.is_finite() && *dollars >= 0.0;
    dollars.filter(is_amount).ok_or_else(|| "expected an amount of US dollars, such as 0.50".to_owned())
}

fn parse_report(text: &str) -> Result<(TestFormat, PathBuf), String> {
    let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or("expected FORMAT=FILE")?;
    let format = TestFormat::from_str(format, false).map_err(|_| {
        let known: Vec<_> = TestFormat::value_variants().iter().filter_map(TestFormat::to_possible_value).collect();
        let names: Vec<_> = known.iter().map(|value| value.get_name()).collect();
        format!("`{format}` is not a format; expected one of {}", names.join(", "))
    })?;
    Ok((format, path.into()))
}
