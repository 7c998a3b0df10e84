//! Arguments of `resume`.

use std::path::PathBuf;

use super::{CallArgs, EnvArgs, ModelArgs};

/// Arguments of `resume`.
#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// The journal file
    pub(crate) file: PathBuf,

    /// The prompt file, if it has moved
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,

    /// Fail if text of an untrusted input is in a message of another role
    ///
    /// A comma-separated list of roles, or the path of a settings file with a `[policy]`. It applies in addition to the
    /// policy that the run was started with.
    #[arg(long, value_name = "ROLES|FILE")]
    pub(crate) policy: Option<String>,

    #[command(flatten)]
    pub(crate) model: ModelArgs,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print the model's text unchanged, even if the prompt declares outputs
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,

    /// Request the answer in one piece instead of as a stream
    #[arg(long)]
    pub(crate) no_stream: bool,

    #[command(flatten)]
    pub(crate) call: CallArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}
