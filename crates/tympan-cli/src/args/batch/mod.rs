//! Arguments of `batch`.

mod prepare;

use clap::Subcommand;

pub(crate) use prepare::{BatchFormatChoice, BatchPrepareArgs, BatchPromptArgs, BatchRowsArgs, BatchTargetChoice};

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
    Prepare(BatchPrepareArgs),
}

impl BatchCommand {
    /// Returns whether the command prints JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            Self::Prepare(args) => args.json,
        }
    }
}
