//! Arguments of `batch`.

mod job;
mod prepare;
mod results;
mod run;

use clap::Subcommand;

pub(crate) use job::{BatchCancelArgs, BatchCollectArgs, BatchJobArgs, BatchStatusArgs, BatchSubmitArgs};
pub(crate) use prepare::{
    BatchFilesArgs, BatchFormatChoice, BatchPrepareArgs, BatchPromptArgs, BatchRowsArgs, BatchTargetChoice,
};
pub(crate) use results::{BatchResultsArgs, BatchResultsChoice};
pub(crate) use run::{BatchPlanArgs, BatchRunArgs};

/// Arguments of `batch`.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchArgs {
    #[command(subcommand)]
    pub(crate) command: BatchCommand,
}

/// The subcommands of `batch`.
#[derive(Debug, Subcommand)]
pub(crate) enum BatchCommand {
    /// Render a prompt for every row of a table, and write the files of a batch
    ///
    /// Reads Parquet, Arrow, CSV, TSV and JSON Lines. Columns become the inputs of the same name, and text is read as
    /// the declared kind. Files never exceed the limits of the provider. Rows that cannot be rendered are written to
    /// `rejects.jsonl` with the reason. Memory does not depend on the number of rows.
    ///
    /// Nothing is sent. If the command is interrupted, calling it again continues after the last complete file.
    #[command(after_long_help = "Examples:
  tympan batch prepare tickets.parquet --prompt classify.prompty -o job
  tympan batch prepare 'data/*.csv' --prompt classify.prompty --map text=body -o job
  tympan batch prepare tickets.csv --prompt classify.prompty --to anthropic --provider anthropic --model claude-haiku-4-5 -o job
  tympan batch prepare tickets.jsonl --prompt classify.prompty --to parquet --origins -o messages

Exit status: 1 if rows were rejected, unless --max-rejects allows them.")]
    Prepare(Box<BatchPrepareArgs>),

    /// Send the files of a job to the provider's batch API
    ///
    /// The connection and the key are those that `tympan run` would use for the prompt. Files are read while they are
    /// sent. If the command is interrupted, calling it again continues: before each step, the manifest records what is
    /// about to be done, and a batch whose creation was interrupted is looked up before the file is sent again.
    ///
    /// Anthropic's batches cannot be looked up. If a file may have been sent, the command reports it, and sends it again
    /// only with `--retry-unknown`.
    #[command(after_long_help = "Examples:
  tympan batch submit job
  tympan batch submit job --base-url https://proxy.example.com/v1
  tympan batch submit job --retry-unknown

Exit status: 1 if a file could not be sent, or if nobody knows whether it was.")]
    Submit(BatchSubmitArgs),

    /// Show the state of the batches of a job
    ///
    /// Asks the provider once, or with `--wait` until all batches have ended, at growing intervals.
    #[command(after_long_help = "Examples:
  tympan batch status job
  tympan batch status job --wait
  tympan batch status job --json")]
    Status(BatchStatusArgs),

    /// Download the answers of the batches that have ended
    ///
    /// Each file `requests-00001.jsonl` gets a file `answers-00001.jsonl` with one line for each request, in the order of
    /// the rows: the body of the response, or the error. Answers are joined by their identifiers. Answers to requests
    /// that were not sent, and different answers to the same request, are reported.
    ///
    /// With `--output`, the answers are written as typed results beside the columns of the rows, as `batch run` does. The
    /// rows are read again from the files that the job was prepared with.
    #[command(after_long_help = "Examples:
  tympan batch collect job
  tympan batch collect job --wait
  tympan batch collect job --retry
  tympan batch collect job -o results.parquet
  tympan batch collect job -o results.csv --csv-safe --rows moved/tickets.csv

Exit status: 1 if batches have not ended, if requests have no answer, or with --output if a row has no result.")]
    Collect(Box<BatchCollectArgs>),

    /// Cancel the batches of a job
    ///
    /// Requests that were answered before can still be collected.
    #[command(after_long_help = "Examples:
  tympan batch cancel job && tympan batch collect job --wait")]
    Cancel(BatchCancelArgs),

    /// Answer every row of a table, and write the results beside its columns
    ///
    /// OpenAI and Anthropic answer the rows through their batch APIs, at half the price and within 24 hours; the command
    /// waits. Other providers, and OpenAI and Anthropic with `--direct`, are called row by row. `--dry-run` says which way
    /// is used.
    ///
    /// Results are typed columns: one for each output that the prompt declares, or `answer` with the text, and `error`,
    /// `finish_reason`, `input_tokens` and `output_tokens`. An answer that does not match the declared outputs is an error
    /// of its row; no row is lost.
    ///
    /// If the command is interrupted, calling it again continues. Batches go on in the meantime, and no row that has an
    /// answer is sent again.
    #[command(after_long_help = "Examples:
  tympan batch run tickets.parquet --prompt classify.prompty -o results.parquet
  tympan batch run tickets.csv --prompt classify.prompty --provider echo -o results.csv --csv-safe
  tympan batch run tickets.parquet --prompt classify.prompty --dry-run
  tympan batch run tickets.parquet --prompt classify.prompty --direct -o results.parquet
  tympan batch run tickets.parquet --prompt classify.prompty --direct --concurrency 32 --requests-per-minute 500 --max-cost 20 -o results.parquet
  tympan batch run tickets.parquet --prompt classify.prompty --retry -o results.parquet

Exit status: 1 if a row has no answer that matches the declared outputs, unless --max-rejects allows the rejected ones.")]
    Run(Box<BatchRunArgs>),

    /// Plan a job: files, tokens, cost and time by provider, and the workers of a cluster
    ///
    /// Renders the first rows and measures their requests. Nothing is sent. Prices are those of `tympan count`, with the
    /// discounts of batch APIs.
    #[command(after_long_help = "Examples:
  tympan batch plan tickets.parquet --prompt classify.prompty
  tympan batch plan sample.csv --rows 10000000 --prompt classify.prompty --compare anthropic/claude-haiku-4-5
  tympan batch plan sample.csv --rows 10000000 --prompt classify.prompty --within 1h --json")]
    Plan(Box<BatchPlanArgs>),
}

impl BatchCommand {
    /// Returns whether the command prints JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Prepare(args) => args.json,
            Self::Submit(args) => args.job.json,
            Self::Status(args) => args.job.json,
            Self::Collect(args) => args.job.json,
            Self::Cancel(args) => args.job.json,
            Self::Run(args) => args.json,
            Self::Plan(args) => args.json,
        }
    }
}
