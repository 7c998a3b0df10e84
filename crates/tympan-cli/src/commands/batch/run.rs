//! `tympan batch run`: answers every row, and writes the results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value as Json, json};
use tympan::{Cassette, Error, Kind, Prompt, RunOptions, Runtime, RuntimeOptions};
use tympan_batch::job::FileReport;
use tympan_batch::results::{ResultsSummary, check_results, write_results};
use tympan_batch::way::Way;

use super::answer::{Answered, Answers, answer};
use super::estimate::dry_run;
use super::job::warn_unknown;
use super::prepare::progress_bar;
use super::{results, rows};
use crate::args::BatchRunArgs;
use crate::commands::count::grouped;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::{config, json, output, report};

/// What the name of the directory of a job ends with.
const JOB: &str = "job";

pub(super) fn run(args: &BatchRunArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let (runtime, prompt) = load(args, quiet)?;
    let directory = directory(args);
    if args.dry_run {
        return dry_run(args, &runtime, &prompt, &directory, quiet);
    }
    let output = args.output.clone().unwrap_or_default();
    let mut options = results::options(&args.results, &output)?;
    options.run = run_options(args);
    let sources = rows::sources(&args.rows, &directory)?;
    check_results(&prompt, &sources, &output, &options)?;
    let answered = answer(args, &runtime, &prompt, &sources, &directory, quiet)?;
    let bar = progress_bar(&sources, quiet);
    let show = |rows| bar.set_position(rows);
    let summary = write_results(&runtime, &prompt, &sources, &directory, &output, &options, &show);
    bar.finish_and_clear();
    let mut summary = summary.map_err(|error| about(error, &prompt))?;
    summary.unknown += answered.flaws().unknown;
    summary.conflicting += answered.flaws().conflicts;
    match args.json {
        true => output::print(&(json::pretty(&to_json(&summary, &answered, &output, &directory)) + "\n"))?,
        false => output::print_lines(&format!("{}\n{}\n", results::shown(&summary, &output), answered.shown()))?,
    }
    if !quiet {
        results::warn(&summary, &options, &output);
        results::warn_unreadable(answered.flaws().unreadable);
        warn_rejected(summary.rejected, &directory);
        unknown_files(&answered).for_each(|file| warn_unknown(file, args.json));
    }
    if let Some(error) = answered.stopped() {
        let left = grouped(summary.missing + summary.failed);
        let help = match answered.way() {
            Way::Batch => format!("{left} rows have no answer; call the command again to continue"),
            Way::Direct => {
                format!("{} rows were not called; call the command again to continue", grouped(summary.missing))
            }
        };
        return Err(with_advice(error.clone(), &help).into());
    }
    let accepted = if args.max_rejects.is_some() { summary.rejected } else { 0 };
    Ok(if summary.answered + accepted == summary.rows { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn to_json(summary: &ResultsSummary, answered: &Answered, output: &Path, directory: &Path) -> Json {
    let mut report = results::to_json(summary, output);
    report["unreadable"] = json!(answered.flaws().unreadable);
    report["way"] = json!(answered.way());
    report["job"] = json!(answered.prepared.job);
    report["directory"] = json!(directory.display().to_string());
    report["calls"] = json!(answered.calls());
    report["batches"] = json!(answered.batches());
    report["cost"] = json!(answered.cost());
    report["stopped"] = json!(answered.stopped().map(ToString::to_string));
    report
}

/// Loads the prompt, with a runtime that calls models.
fn load(args: &BatchRunArgs, quiet: bool) -> Result<(Runtime, Prompt), Failure> {
    let options = args.endpoint.over(rows::runtime_options(&args.prompt));
    let record = args.record.clone().map(Cassette::Record);
    let cassette = record.or_else(|| args.replay.clone().map(Cassette::Replay));
    let options = RuntimeOptions { cassette, ..options };
    // An estimate needs no key.
    let options = if args.dry_run { crate::prompt_file::deferred(options) } else { options };
    let (runtime, prompt) = rows::prompt_with(&args.prompt, options, quiet)?;
    config::register_credentials(&runtime, args.credentials.credential_command.as_deref())?;
    Ok((runtime, prompt))
}

pub(super) fn run_options(args: &BatchRunArgs) -> RunOptions {
    RunOptions { base_url: args.base_url.clone(), ..rows::run_options(&args.prompt) }
}

/// Returns the directory of the job.
fn directory(args: &BatchRunArgs) -> PathBuf {
    let beside = || {
        let output = args.output.clone().unwrap_or_else(|| PathBuf::from("results"));
        let mut name = output.file_name().unwrap_or_default().to_os_string();
        name.push(".");
        name.push(JOB);
        output.with_file_name(name)
    };
    args.job.clone().unwrap_or_else(beside)
}

/// Adds the prompt to errors that are not about rows and directories.
pub(super) fn about(error: Error, prompt: &Prompt) -> Error {
    match error.kind() {
        Kind::InvalidRows | Kind::InvalidBatch => error,
        _ => in_prompt(error, prompt),
    }
}

/// Adds advice to that of an error.
fn with_advice(error: Error, advice: &str) -> Error {
    let help = error.help().map_or_else(|| advice.to_owned(), |help| format!("{help}; {advice}"));
    error.with_help(help)
}

fn warn_rejected(rejected: u64, directory: &Path) {
    if rejected > 0 {
        let rows = if rejected == 1 { "row was" } else { "rows were" };
        let path = directory.join(tympan_batch::prepare::REJECTS);
        let message = format!("{} {rows} rejected: see {}", grouped(rejected), path.display());
        report::warn_plainly("rejected_rows", &message);
    }
}

/// Returns the files of which nobody knows whether they were sent.
fn unknown_files(answered: &Answered) -> impl Iterator<Item = &FileReport> {
    let files = match &answered.answers {
        Answers::Batch(run) => run.report.files.as_slice(),
        Answers::Direct(_) => &[],
    };
    files.iter().filter(|file| file.is_unknown)
}
