//! Arguments for files of results.

use clap::ValueEnum;

/// How results are written.
#[derive(Debug, clap::Args)]
pub(crate) struct BatchResultsArgs {
    /// The format of the results; defaults to the ending of the file
    #[arg(long, help_heading = "Results", value_enum, value_name = "FORMAT")]
    pub(crate) results_format: Option<BatchResultsChoice>,

    /// What the names of the columns with results begin with
    ///
    /// The results are beside the columns of the rows. Without a prefix, a column with the name of a result is an error.
    #[arg(long, help_heading = "Results", value_name = "TEXT", default_value = "")]
    pub(crate) prefix: String,

    /// Write an apostrophe before cells of CSV that a spreadsheet would run as a formula
    ///
    /// These are cells that begin with `=`, `+`, `-`, `@`, a tab or a line break and are not numbers. Other programs then
    /// read the apostrophe as a part of the text.
    #[arg(long, help_heading = "Results")]
    pub(crate) csv_safe: bool,
}

/// The values of `--results-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BatchResultsChoice {
    /// Apache Parquet
    Parquet,
    /// Comma-separated values with a header
    Csv,
    /// Tab-separated values with a header
    Tsv,
    /// A JSON object per line
    Jsonl,
}
