//! Arguments of `batch prepare`.

use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};

use crate::args::reach::EnvArgs;
use crate::args::render::KindsChoice;

/// Arguments of `batch prepare`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchPrepareArgs {
    #[command(flatten)]
    pub(crate) rows: BatchRowsArgs,

    #[command(flatten)]
    pub(crate) prompt: BatchPromptArgs,

    /// The directory of the job; it is created if it does not exist
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,

    /// The form of the files
    #[arg(long, value_enum, value_name = "FORM", default_value_t = BatchTargetChoice::Openai)]
    pub(crate) to: BatchTargetChoice,

    #[command(flatten)]
    pub(crate) files: BatchFilesArgs,

    /// With `--to parquet`, add a column that says which input wrote which bytes
    #[arg(long, help_heading = "Files")]
    pub(crate) origins: bool,

    /// Stop if more rows than this are rejected, and accept fewer
    #[arg(long, value_name = "NUMBER")]
    pub(crate) max_rejects: Option<u64>,

    /// The number of threads; defaults to the number of cores
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Print JSON; errors are printed as JSON to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// What fits into a file, and in which order.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchFilesArgs {
    /// The most requests in a file; defaults to the limit of the provider
    #[arg(long, help_heading = "Files", value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_requests: Option<u64>,

    /// The most bytes in a file, as in `100MB`; defaults to the limit of the provider
    #[arg(long, help_heading = "Files", value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_bytes: Option<u64>,

    /// The most input tokens in a file
    ///
    /// Providers limit the tokens of waiting batches by account. Bytes are an upper bound for tokens, so tokens are only
    /// counted near the limit.
    #[arg(long, help_heading = "Files", value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens: Option<u64>,

    /// Order the requests of each file so that those with the same beginning follow each other
    ///
    /// Caches of providers then work better. The order of the results stays that of the rows.
    #[arg(long, help_heading = "Files")]
    pub(crate) cache_order: bool,
}

/// The rows, and which column is which input.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchRowsArgs {
    /// Files of rows, patterns such as 'data/*.parquet', or `-` for standard input
    #[arg(required = true, value_name = "ROWS")]
    pub(crate) rows: Vec<PathBuf>,

    /// The format of the rows; defaults to the ending of each file
    #[arg(long, help_heading = "Rows", value_enum, value_name = "FORMAT")]
    pub(crate) format: Option<BatchFormatChoice>,

    /// Take the values of an input from a column with another name; can be repeated
    #[arg(long, help_heading = "Rows", value_name = "INPUT=COLUMN", action = ArgAction::Append, value_parser = parse_mapping)]
    pub(crate) map: Vec<(String, String)>,
}

/// The prompt, and how it is rendered.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchPromptArgs {
    /// The prompt file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) prompt: PathBuf,

    /// The variant of a prompt definition to render
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,

    /// The model, overriding the prompt's
    #[arg(long, help_heading = "Model", value_name = "ID")]
    pub(crate) model: Option<String>,

    /// The provider, overriding the prompt's
    #[arg(long, help_heading = "Model", value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// The API: `chat`, `responses` or `embedding`, overriding the prompt's
    #[arg(long, help_heading = "Model", value_name = "NAME")]
    pub(crate) api: Option<String>,

    /// Reject rows in which an untrusted input contains a line that looks like a role marker
    #[arg(long)]
    pub(crate) strict: bool,

    /// Wrap text from untrusted inputs in `<untrusted>…</untrusted>`
    #[arg(long)]
    pub(crate) guard: bool,

    /// Render variables without a value as empty text instead of rejecting the row
    #[arg(long)]
    pub(crate) lenient: bool,

    /// What to do if a value does not match the declared kind or enum of its input: `error` rejects the row
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = KindsChoice::Error)]
    pub(crate) kinds: KindsChoice,

    /// The seed of the template filter `random`; equal seeds give equal choices
    #[arg(long, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,

    #[command(flatten)]
    pub(crate) env: EnvArgs,
}

/// The values of `--to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BatchTargetChoice {
    /// Requests for OpenAI's batch API and those compatible with it
    Openai,
    /// Requests for Anthropic's message batches
    Anthropic,
    /// Requests for `vllm run-batch`
    Vllm,
    /// Tables with the columns of the rows, messages, hashes and tokens
    Parquet,
    /// Messages, one row per line
    Jsonl,
}

/// The values of `--format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BatchFormatChoice {
    /// Apache Parquet
    Parquet,
    /// Arrow IPC, as a file or a stream
    Arrow,
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
    /// A JSON object per line
    Jsonl,
}

fn parse_mapping(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((input, column)) if !input.is_empty() && !column.is_empty() => Ok((input.to_owned(), column.to_owned())),
        _ => Err("expected INPUT=COLUMN, as in `--map text=body`".to_owned()),
    }
}

fn parse_size(text: &str) -> Result<u64, String> {
    let expected = || "expected a number of bytes, as in `500000`, `200MB` or `1GB`".to_owned();
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" => 1_000,
        "M" | "MB" => 1_000_000,
        "G" | "GB" => 1_000_000_000,
        _ => return Err(expected()),
    };
    let number: u64 = digits.trim().parse().map_err(|_| expected())?;
    number.checked_mul(factor).filter(|size| *size > 0).ok_or_else(expected)
}
