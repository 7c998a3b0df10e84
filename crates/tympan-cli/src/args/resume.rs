//! What `resume` takes.

use std::path::PathBuf;

use super::{CallArgs, EnvArgs, ModelArgs};

/// What `resume` takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// The journal
    pub(crate) file: PathBuf,

    /// The prompt file, if it is no longer where it was
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print what the model wrote, unchanged, also where outputs are declared
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,

    /// Ask for the answer in one piece
    #[arg(long)]
    pub(crate) no_stream: bool,

    #[command(flatten)]
    pub(crate) call: CallArgs,

    /// Print JSON; an error is JSON on standard error
    #[arg(long)]
    pub(crate) json: bool,
}
