//! Arguments of `batch submit`, `status`, `collect` and `cancel`.

use std::path::PathBuf;

use clap::ArgAction;

use super::prepare::BatchFormatChoice;
use super::results::BatchResultsArgs;
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

    /// Write typed results beside the columns of the rows: `.parquet`, `.csv`, `.tsv` or `.jsonl`
    #[arg(long, short, help_heading = "Results", value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) results: BatchResultsArgs,

    /// The files of rows, if they are not where they were when the job was prepared; can be repeated
    ///
    /// They must have the same rows. Their sizes and the number of rows are compared.
    #[arg(long, help_heading = "Results", value_name = "FILE", action = ArgAction::Append, requires = "output")]
    pub(crate) rows: Vec<PathBuf>,

    /// The format of the files in `--rows`; defaults to the ending of each file
    #[arg(long, help_heading = "Results", value_enum, value_name = "FORMAT", requires = "rows")]
    pub(crate) format: Option<BatchFormatChoice>,
}

/// Arguments of `batch cancel`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchCancelArgs {
    #[command(flatten)]
    pub(crate) job: BatchJobArgs,
}
