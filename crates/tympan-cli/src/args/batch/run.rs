//! Arguments of `batch run` and `batch plan`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ArgAction;

use super::prepare::{BatchFilesArgs, BatchPromptArgs, BatchRowsArgs};
use super::results::BatchResultsArgs;
use crate::args::reach::{CredentialArgs, EndpointArgs};
use crate::args::test::parse_dollars;

/// Arguments of `batch run`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchRunArgs {
    #[command(flatten)]
    pub(crate) rows: BatchRowsArgs,

    #[command(flatten)]
    pub(crate) prompt: BatchPromptArgs,

    /// The file for the results: `.parquet`, `.csv`, `.tsv` or `.jsonl`
    #[arg(long, short, value_name = "FILE", required_unless_present = "dry_run")]
    pub(crate) output: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) results: BatchResultsArgs,

    /// The directory of the job; defaults to the name of the results with `.job`
    ///
    /// It has the answers so far. An interrupted job continues there.
    #[arg(long, value_name = "DIR")]
    pub(crate) job: Option<PathBuf>,

    /// The base URL of the provider, overriding its default
    ///
    /// The key from the environment is sent to this address, because you named it and not the prompt.
    #[arg(long, help_heading = "Model", value_name = "URL")]
    pub(crate) base_url: Option<String>,

    #[command(flatten)]
    pub(crate) way: BatchWayArgs,

    #[command(flatten)]
    pub(crate) rates: BatchRateArgs,

    #[command(flatten)]
    pub(crate) files: BatchFilesArgs,

    /// Send rows again that failed in earlier runs, however often they were sent
    #[arg(long)]
    pub(crate) retry: bool,

    /// Do not let the whole job cost more than this many US dollars
    ///
    /// With direct calls, the most that a call can cost is reserved before it is sent, and the job stops before a call that
    /// could exceed the limit. A batch cannot be stopped at a price, so nothing is sent if all of its requests together
    /// could cost more: every byte counts as a token, and every answer as long as the prompt allows.
    #[arg(long, value_name = "DOLLARS", value_parser = parse_dollars)]
    pub(crate) max_cost: Option<f64>,

    /// Say which way is used, estimate rows, requests, tokens, cost and time, and send nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Record the exchanges with the provider to files in this directory
    #[arg(long, help_heading = "Calls", value_name = "DIR", conflicts_with = "replay")]
    pub(crate) record: Option<PathBuf>,

    /// Replay recorded answers from this directory without calling the provider
    #[arg(long, help_heading = "Calls", value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,

    /// Stop if more rows than this are rejected, and accept fewer
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_rejects: Option<u64>,

    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,

    #[command(flatten)]
    pub(crate) credentials: CredentialArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// How the rows are answered.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchWayArgs {
    /// Use the provider's batch API, even if it is not known to have one
    ///
    /// This is the default for OpenAI and Anthropic at their own addresses. Name it for proxies and servers that have a
    /// compatible batch API, and for Azure with a model that was deployed for batches.
    #[arg(long, help_heading = "Batches", conflicts_with_all = ["direct", "record", "replay"])]
    pub(crate) batch: bool,

    /// Call the model row by row, even if the provider has a batch API
    ///
    /// Answers come at once, at the full price. `--record` and `--replay` do the same.
    #[arg(long, help_heading = "Calls")]
    pub(crate) direct: bool,

    /// How often a request is sent in a batch until it is answered
    #[arg(long, help_heading = "Batches", value_name = "NUMBER", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) attempts: u64,

    /// Send files again whose earlier submission has an unknown outcome and cannot be looked up
    ///
    /// The provider may then answer their requests twice, and charge for both. Look at its list of batches first.
    #[arg(long, help_heading = "Batches")]
    pub(crate) retry_unknown: bool,
}

/// How fast models are called.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchRateArgs {
    /// How many rows are called at a time
    #[arg(long, help_heading = "Calls", value_name = "NUMBER", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) concurrency: u16,

    /// The most requests per minute
    #[arg(long, help_heading = "Calls", value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests_per_minute: Option<u64>,

    /// The most tokens per minute, of the requests and of the answers
    ///
    /// Before a call, its answer counts as long as the prompt allows, or else 1,000 tokens. Afterwards, its real length
    /// counts.
    #[arg(long, help_heading = "Calls", value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) tokens_per_minute: Option<u64>,
}

/// Arguments of `batch plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchPlanArgs {
    #[command(flatten)]
    pub(crate) rows: BatchRowsArgs,

    #[command(flatten)]
    pub(crate) prompt: BatchPromptArgs,

    /// The number of rows to plan for; defaults to that of the files
    #[arg(long = "rows", value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,

    /// The number of rows to measure, from the beginning of the files
    #[arg(long, value_name = "NUMBER", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sample: u64,

    /// Another model to compare with, as PROVIDER/MODEL; can be repeated
    #[arg(long, value_name = "MODEL", action = ArgAction::Append, value_parser = parse_model)]
    pub(crate) compare: Vec<(String, String)>,

    /// The time in which a cluster has to render all rows, as in `1h`, `30m` or `90s`
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub(crate) within: Option<Duration>,

    #[command(flatten)]
    pub(crate) rates: BatchRateArgs,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

fn parse_model(text: &str) -> Result<(String, String), String> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => {
            Ok((provider.to_owned(), model.to_owned()))
        }
        _ => Err("expected PROVIDER/MODEL, as in `anthropic/claude-haiku-4-5`".to_owned()),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time, as in `1h`, `30m` or `90s`".to_owned();
    let (number, factor) = match text.char_indices().last() {
        Some((at, 'h')) => (&text[..at], 3600.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 's')) => (&text[..at], 1.0),
        _ => return Err(expected()),
    };
    let seconds = number.trim().parse::<f64>().map_err(|_| expected())? * factor;
    Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero()).ok_or_else(expected)
}
