//! Arguments of `fmt`.

use std::path::PathBuf;

use super::check::SettingsArgs;
use super::reach::FileArgs;

/// Arguments of `fmt`.
#[derive(Debug, clap::Args)]
pub(crate) struct FmtArgs {
    /// The prompt files and directories; `-` formats standard input
    #[arg(value_name = "PATHS", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,

    /// Write nothing, list the files that would change, and exit with status 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,

    /// Write nothing, show what would change, and exit with status 1 if anything would
    #[arg(long)]
    pub(crate) diff: bool,

    /// Leave templates as they are, so that no hash changes
    #[arg(long)]
    pub(crate) front_matter_only: bool,

    /// The path of the text on standard input, for messages and its format
    #[arg(long, value_name = "PATH")]
    pub(crate) stdin_filename: Option<PathBuf>,

    /// Print JSON
    #[arg(long, conflicts_with = "diff")]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) settings: SettingsArgs,

    #[command(flatten)]
    pub(crate) allowed: FileArgs,
}
