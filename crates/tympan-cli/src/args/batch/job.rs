//! Arguments of `batch submit`, `status`, `collect` and `cancel`.

use std::path::PathBuf;

use crate::args::reach::{CredentialArgs, EndpointArgs, EnvArgs};

/// The job, and how its provider is reached.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchJobArgs {
    /// The directory of the job
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// The prompt file; defaults to the one that the job was prepared with
    #[arg(long, short, value_name = "FILE")]
    pub(crate) prompt: Option<PathBuf>,

    /// The base URL of the provider, overriding its default
    ///
    /// The key from the environment is sent to this address. The address is not saved, so name it for each command.
    #[arg(long, help_heading = "Model", value_name = "URL")]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,

    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,

    #[command(flatten)]
    pub(crate) env: EnvArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `batch submit`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchSubmitArgs {
    #[command(flatten)]
    pub(crate) job: BatchJobArgs,

    /// Send files again whose earlier submission has an unknown outcome and cannot be looked up
    ///
    /// The provider may then answer their requests twice, and charge for both. Look at its list of batches first.
    #[arg(long)]
    pub(crate) retry_unknown: bool,
}

/// Arguments of `batch status`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchStatusArgs {
    #[command(flatten)]
    pub(crate) job: BatchJobArgs,

    /// Wait until all batches have ended
    #[arg(long)]
    pub(crate) wait: bool,
}

/// Arguments of `batch collect`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchCollectArgs {
    #[command(flatten)]
    pub(crate) job: BatchJobArgs,

    /// Wait until all batches have ended
    #[arg(long)]
    pub(crate) wait: bool,

    /// Send the requests again that failed, expired, were cancelled or have no answer
    #[arg(long)]
    pub(crate) retry: bool,
}

/// Arguments of `batch cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchCancelArgs {
    #[command(flatten)]
    pub(crate) job: BatchJobArgs,
}
