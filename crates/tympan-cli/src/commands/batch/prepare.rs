//! `tympan batch prepare`: writes the files of a batch.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tympan::Kind;
use tympan_batch::limits::{Limits, Target};
use tympan_batch::prepare::{PrepareOptions, Prepared, Progress, REJECTS, prepare};
use tympan_batch::rows::Source;

use super::rows;
use crate::args::{BatchFilesArgs, BatchFormatChoice, BatchPrepareArgs, BatchTargetChoice};
use crate::commands::count::grouped;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::{json, output, report};

pub(super) fn run(args: &BatchPrepareArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let (runtime, prompt) = rows::prompt(&args.prompt, quiet)?;
    let sources = rows::sources(&args.rows, &args.output)?;
    let options = options(args, &prompt)?;
    let bar = progress_bar(&sources, quiet);
    let prepared = prepare(&runtime, &prompt, &sources, &args.output, &options, &|progress| show(&bar, progress));
    bar.finish_and_clear();
    let prepared = prepared.map_err(|error| match error.kind() {
        // These are about the rows and the directory, not about the prompt.
        Kind::InvalidRows | Kind::InvalidBatch => error,
        _ => in_prompt(error, &prompt),
    })?;
    if args.json {
        output::print(&(json::pretty(&to_json(&prepared, args)) + "\n"))?;
    } else {
        output::print_lines(&summary(&prepared, args))?;
    }
    let is_accepted = prepared.rejects == 0 || args.max_rejects.is_some();
    if prepared.rejects > 0 && !quiet {
        let path = args.output.join(REJECTS);
        let rows = if prepared.rejects == 1 { "row was" } else { "rows were" };
        let rejects = grouped(usize::try_from(prepared.rejects).unwrap_or(usize::MAX));
        report::warn_plainly("rejected_rows", &format!("{rejects} {rows} rejected: see {}", path.display()));
    }
    Ok(if is_accepted { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Returns the options of the command line.
///
/// # Errors
/// Returns an error if options do not fit together.
pub(super) fn options(args: &BatchPrepareArgs, prompt: &tympan::Prompt) -> Result<PrepareOptions, Failure> {
    let target = args.to.target();
    if args.origins && target != Target::Parquet {
        return Err(Failure::Usage("`--origins` needs `--to parquet`".to_owned()));
    }
    let run = rows::run_options(&args.prompt);
    let provider = run.select_model(prompt).provider.to_owned();
    let limits = limits(&args.files, target, &provider);
    let mut options = PrepareOptions::new(target);
    options.map.clone_from(&args.rows.map);
    options.variant.clone_from(&args.prompt.variant);
    options.run = run;
    options.limits = Some(limits);
    options.max_rejects = args.max_rejects;
    options.threads = args.threads.map_or(0, usize::from);
    options.cache_order = args.files.cache_order;
    options.origins = args.origins;
    Ok(options)
}

/// Returns what fits into a file: the limits of the provider, unless the command line has others.
pub(super) fn limits(args: &BatchFilesArgs, target: Target, provider: &str) -> Limits {
    let mut limits = Limits::of(target, provider);
    limits.requests = args.max_requests.unwrap_or(limits.requests);
    limits.bytes = args.max_bytes.unwrap_or(limits.bytes);
    limits.tokens = args.max_tokens;
    limits
}

/// Creates a progress bar. If the files store how many rows they have, it shows a share.
pub(super) fn progress_bar(sources: &[Source], quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let counts: Option<Vec<u64>> = sources.iter().map(|source| source.stored_rows().ok().flatten()).collect();
    let (bar, template) = match counts {
        Some(counts) => (
            ProgressBar::new(counts.iter().sum()),
            "{bar:24} {human_pos} of {human_len} rows  {per_sec}  {msg}  {eta} left",
        ),
        None => (ProgressBar::new_spinner(), "{spinner} {human_pos} rows  {per_sec}  {msg}  {elapsed}"),
    };
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn show(bar: &ProgressBar, progress: Progress) {
    if bar.is_hidden() {
        return;
    }
    bar.set_position(progress.rows);
    let rejects = if progress.rejects > 0 { format!(", {} rejected", progress.rejects) } else { String::new() };
    bar.set_message(format!("{} files{rejects}", progress.files));
}

fn to_json(prepared: &Prepared, args: &BatchPrepareArgs) -> serde_json::Value {
    let files = prepared.files.iter().filter(|file| !file.name.is_empty()).map(|file| {
        json!({
            "path": args.output.join(&file.name).display().to_string(),
            "first_row": file.first_row,
            "end_row": file.end_row,
            "requests": file.requests,
            "bytes": file.bytes,
        })
    });
    let files = files.collect::<Vec<_>>();
    json!({
        "job": prepared.job,
        "directory": args.output.display().to_string(),
        "rows": prepared.rows,
        "rejects": prepared.rejects,
        "resumed_files": prepared.resumed_files,
        "files": files,
    })
}

fn summary(prepared: &Prepared, args: &BatchPrepareArgs) -> String {
    let count = |value: u64| grouped(usize::try_from(value).unwrap_or(usize::MAX));
    let files: Vec<_> = prepared.files.iter().filter(|file| !file.name.is_empty()).collect();
    let requests: u64 = files.iter().map(|file| file.requests).sum();
    let bytes: u64 = files.iter().map(|file| file.bytes).sum();
    let what = if args.to.target().has_requests() { "requests" } else { "rows" };
    let noun = if files.len() == 1 { "file" } else { "files" };
    let mut out = format!(
        "{} {what} in {} {noun} ({}) in {}\n",
        count(requests),
        files.len(),
        megabytes(bytes),
        args.output.display()
    );
    if prepared.resumed_files > 0 {
        out += &format!("{} of the files were there already\n", prepared.resumed_files);
    }
    out
}

/// Formats a size for people.
#[expect(clippy::cast_precision_loss, reason = "the number is rounded anyway")]
pub(super) fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.2} GB", bytes as f64 / 1e9),
    }
}

impl BatchTargetChoice {
    /// Returns the form of the files.
    pub(super) fn target(self) -> Target {
        match self {
            Self::Openai => Target::OpenAi,
            Self::Anthropic => Target::Anthropic,
            Self::Vllm => Target::Vllm,
            Self::Parquet => Target::Parquet,
            Self::Jsonl => Target::JsonLines,
        }
    }
}

impl BatchFormatChoice {
    /// Returns the format of the rows.
    pub(super) fn format(self) -> tympan_batch::rows::FileFormat {
        use tympan_batch::rows::FileFormat;
        match self {
            Self::Parquet => FileFormat::Parquet,
            Self::Arrow => FileFormat::Arrow,
            Self::Csv => FileFormat::Csv,
            Self::Tsv => FileFormat::Tsv,
            Self::Jsonl => FileFormat::JsonLines,
        }
    }
}
