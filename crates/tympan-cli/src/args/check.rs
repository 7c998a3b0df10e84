//! Arguments of `check`.

use std::path::PathBuf;

use clap::ValueEnum;
use tympan_lint::Selector;

use super::reach::EnvArgs;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// The prompt files and directories; `-` reads standard input
    #[arg(value_name = "PATHS", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) rules: SelectionArgs,

    #[command(flatten)]
    pub(crate) fixes: FixArgs,

    #[command(flatten)]
    pub(crate) files: PathArgs,

    #[command(flatten)]
    pub(crate) baseline: BaselineArgs,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

/// The rules to report.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Rules")]
pub(crate) struct SelectionArgs {
    /// Report only these rules: codes, names, beginnings of codes, groups, or ALL
    #[arg(long, value_name = "RULES", value_delimiter = ',', env = "TYMPAN_CHECK_SELECT", value_parser = selector)]
    pub(crate) select: Vec<Selector>,

    /// Report these rules in addition to the selected ones
    #[arg(long, value_name = "RULES", value_delimiter = ',', env = "TYMPAN_CHECK_EXTEND_SELECT", value_parser = selector)]
    pub(crate) extend_select: Vec<Selector>,

    /// Do not report these rules
    #[arg(long, value_name = "RULES", value_delimiter = ',', env = "TYMPAN_CHECK_IGNORE", value_parser = selector)]
    pub(crate) ignore: Vec<Selector>,

    /// Report findings of these rules as errors; `warnings` selects all rules
    #[arg(long, value_name = "RULES", value_delimiter = ',', env = "TYMPAN_CHECK_DENY", value_parser = denied)]
    pub(crate) deny: Vec<Selector>,
}

/// The changes to files.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Fixes")]
pub(crate) struct FixArgs {
    /// Apply safe fixes to the files; with standard input, print the fixed text
    #[arg(long)]
    pub(crate) fix: bool,

    /// With `--fix` or `--diff`, also apply fixes that need a review
    #[arg(long)]
    pub(crate) unsafe_fixes: bool,

    /// Print what `--fix` would change, without changing anything
    ///
    /// The exit status is 1 if there is something to change.
    #[arg(long, conflicts_with = "fix")]
    pub(crate) diff: bool,
}

/// Findings that are not reported again.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Baseline")]
pub(crate) struct BaselineArgs {
    /// Do not report the findings in this file
    ///
    /// A finding is recognized by its file, its rule and the text of its line. Errors that keep a file from loading are
    /// always reported.
    #[arg(long, value_name = "FILE", env = "TYMPAN_CHECK_BASELINE")]
    pub(crate) baseline: Option<PathBuf>,

    /// Write all findings to the baseline file
    #[arg(long, conflicts_with_all = ["fix", "diff", "watch"])]
    pub(crate) write_baseline: bool,
}

/// The files to check.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Files")]
pub(crate) struct PathArgs {
    /// Leave out files and directories that match these patterns, unless they are named
    #[arg(long, value_name = "PATTERNS", value_delimiter = ',', env = "TYMPAN_CHECK_EXCLUDE")]
    pub(crate) exclude: Vec<String>,

    /// The path of the text on standard input, for messages, its format and its settings
    #[arg(long, value_name = "PATH")]
    pub(crate) stdin_filename: Option<PathBuf>,
}

/// How findings are printed.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The form of the output; defaults to `full`
    #[arg(long, value_enum, value_name = "FORMAT", env = "TYMPAN_CHECK_OUTPUT_FORMAT")]
    pub(crate) output_format: Option<OutputFormat>,

    /// Print JSON; short for `--output-format json`
    #[arg(long, overrides_with = "output_format")]
    pub(crate) json: bool,

    /// Print how many findings each rule has, instead of the findings
    #[arg(long, conflicts_with = "diff")]
    pub(crate) statistics: bool,

    /// Check again whenever a file changes
    #[arg(long, conflicts_with = "diff")]
    pub(crate) watch: bool,
}

/// The form of the output of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Each finding with its line
    Full,
    /// One line per finding
    Concise,
    /// One JSON object
    Json,
    /// One JSON object per line and finding
    JsonLines,
    /// Annotations of GitHub Actions
    Github,
    /// A Code Quality report of GitLab
    Gitlab,
    /// SARIF 2.1.0
    Sarif,
    /// JUnit XML
    Junit,
}

impl OutputFormat {
    /// Returns whether people read the output.
    pub(crate) fn is_for_people(self) -> bool {
        matches!(self, Self::Full | Self::Concise)
    }
}

impl CheckArgs {
    /// Returns the form that the command line and the environment ask for.
    pub(crate) fn output_format(&self) -> Option<OutputFormat> {
        if self.output.json { Some(OutputFormat::Json) } else { self.output.output_format }
    }

    /// Returns whether errors of the command are printed as JSON.
    pub(crate) fn is_json(&self) -> bool {
        matches!(self.output_format(), Some(OutputFormat::Json | OutputFormat::JsonLines))
    }
}

/// The settings file.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingsArgs {
    /// Read settings from this file instead of `tympan.toml` in the working directory or above it
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Read no settings file
    #[arg(long, conflicts_with = "config")]
    pub(crate) no_config: bool,
}

fn selector(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|unknown: tympan_lint::UnknownSelector| unknown.to_string())
}

fn denied(text: &str) -> Result<Selector, String> {
    Selector::from_denied(text).map_err(|unknown| unknown.to_string())
}
