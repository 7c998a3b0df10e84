//! The results of a job, as files and as a summary.

use std::path::Path;

use serde_json::{Value as Json, json};
use tympan_batch::results::{ResultsOptions, ResultsSummary};
use tympan_batch::rows::FileFormat;

use crate::args::{BatchResultsArgs, BatchResultsChoice};
use crate::commands::count::grouped;
use crate::escape::visible_line;
use crate::report;
use crate::report::Failure;

/// Returns the options of the command line.
///
/// # Errors
/// Returns an error if results cannot have the ending of this path.
pub(super) fn options(args: &BatchResultsArgs, output: &Path) -> Result<ResultsOptions, Failure> {
    let mut options = match args.results_format {
        Some(choice) => ResultsOptions::new(choice.format()),
        None => ResultsOptions::for_path(output)?,
    };
    options.prefix.clone_from(&args.prefix);
    options.escapes_formulas = args.csv_safe;
    Ok(options)
}

impl BatchResultsChoice {
    fn format(self) -> FileFormat {
        match self {
            Self::Parquet => FileFormat::Parquet,
            Self::Csv => FileFormat::Csv,
            Self::Tsv => FileFormat::Tsv,
            Self::Jsonl => FileFormat::JsonLines,
        }
    }
}

/// Prints warnings about what was written.
pub(super) fn warn(summary: &ResultsSummary, options: &ResultsOptions, output: &Path) {
    let warn = |code: &str, number: u64, what: &str| {
        if number > 0 {
            report::warn_plainly(code, &format!("{} {what}", grouped(number)));
        }
    };
    let without = summary.mismatched + summary.failed + summary.missing;
    let rows = if without == 1 { "row has" } else { "rows have" };
    warn("unanswered_rows", without, &format!("{rows} no result: see the column `{}error`", options.prefix));
    let what = match summary.unknown {
        1 => "answer belongs to no request of the job, and was left out",
        _ => "answers belong to no request of the job, and were left out",
    };
    warn("unknown_answers", summary.unknown, what);
    let rows = if summary.conflicting == 1 { "row has" } else { "rows have" };
    warn("conflicting_answers", summary.conflicting, &format!("{rows} two different answers; the first one counts"));
    if !options.escapes_formulas {
        let output = output.display();
        let what = format!("cells of {output} begin like a formula, which a spreadsheet would run: see `--csv-safe`");
        warn("csv_formulas", summary.formulas, &what);
    }
}

/// Prints a warning about lines of results that could not be used.
pub(super) fn warn_unreadable(lines: u64) {
    if lines > 0 {
        let noun = if lines == 1 { "line" } else { "lines" };
        let message =
            format!("{} {noun} of the provider's results cannot be read; see `tympan batch status`", grouped(lines));
        report::warn_plainly("unreadable_answers", &message);
    }
}

/// Describes the results for people.
pub(super) fn shown(summary: &ResultsSummary, output: &Path) -> String {
    let rows = if summary.rows == 1 { "row" } else { "rows" };
    let path = visible_line(&output.display().to_string());
    format!("{} of {} {rows} answered, in {path}", grouped(summary.answered), grouped(summary.rows))
}

/// Returns the summary as JSON.
pub(super) fn to_json(summary: &ResultsSummary, output: &Path) -> Json {
    json!({
        "path": output.display().to_string(),
        "rows": summary.rows,
        "answered": summary.answered,
        "mismatched": summary.mismatched,
        "failed": summary.failed,
        "rejected": summary.rejected,
        "missing": summary.missing,
        "unknown": summary.unknown,
        "conflicting": summary.conflicting,
        "formulas": summary.formulas,
        "input_tokens": summary.input_tokens,
        "output_tokens": summary.output_tokens,
    })
}
