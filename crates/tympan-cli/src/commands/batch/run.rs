//! `tympan batch run`: answers every row, and writes the results.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tympan::model::estimate::{Estimate, EstimateBasis};
use tympan::wire::catalog::PRICES_DATE;
use tympan::{Cassette, Error, Kind, Prompt, RunOptions, Runtime, RuntimeOptions};
use tympan_batch::direct::{DirectOptions, DirectProgress, DirectSummary, LIMITS, run_directly};
use tympan_batch::limits::Target;
use tympan_batch::plan::{Offer, PlanOptions, Way, plan};
use tympan_batch::prepare::{PrepareOptions, Prepared, prepare};
use tympan_batch::results::{ResultsSummary, write_results};
use tympan_batch::rows::Source;
use tympan_batch::sample::{SampleOptions, measure};

use super::prepare::progress_bar;
use super::{plan, results, rows};
use crate::args::BatchRunArgs;
use crate::commands::count::grouped;
use crate::escape::visible_line;
use crate::project::Project;
use crate::prompt_file::in_prompt;
use crate::report::Failure;
use crate::{config, json, output, prices, report};

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
    let answered = answer(args, &runtime, &prompt, &sources, &directory, quiet)?;
    let bar = progress_bar(&sources, quiet);
    let show = |rows| bar.set_position(rows);
    let summary = write_results(&runtime, &prompt, &sources, &directory, &output, &options, &show);
    bar.finish_and_clear();
    let summary = summary.map_err(|error| about(error, &prompt))?;
    if args.json {
        let mut report = results::to_json(&summary, &output);
        let progress = answered.direct.progress;
        report["job"] = json!(answered.prepared.job);
        report["directory"] = json!(directory.display().to_string());
        report["calls"] = json!(answered.direct.calls);
        report["cost"] = json!((progress.unpriced == 0).then_some(progress.cost));
        report["stopped"] = json!(answered.direct.stopped.as_ref().map(ToString::to_string));
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        output::print_lines(&shown(&summary, &answered.direct, &output))?;
    }
    if !quiet {
        results::warn(&summary, &options, &output);
        warn_rejected(summary.rejected, &directory);
    }
    if let Some(error) = answered.direct.stopped {
        let left = grouped(summary.missing);
        let help = format!("{left} rows were not called; call the command again to continue");
        return Err(with_advice(error, &help).into());
    }
    let accepted = if args.max_rejects.is_some() { summary.rejected } else { 0 };
    Ok(if summary.answered + accepted == summary.rows { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

fn run_options(args: &BatchRunArgs) -> RunOptions {
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

/// What happened before the results are written.
struct Answered {
    prepared: Prepared,
    direct: DirectSummary,
}

/// Answers the rows. This is the one place that decides how: until batch APIs are called here, every provider is called
/// row by row, as `--direct` demands.
fn answer(
    args: &BatchRunArgs,
    runtime: &Runtime,
    prompt: &Prompt,
    sources: &[Source],
    directory: &Path,
    quiet: bool,
) -> Result<Answered, Failure> {
    let _ = args.direct;
    call_directly(args, runtime, prompt, sources, directory, quiet)
}

fn call_directly(
    args: &BatchRunArgs,
    runtime: &Runtime,
    prompt: &Prompt,
    sources: &[Source],
    directory: &Path,
    quiet: bool,
) -> Result<Answered, Failure> {
    let mut job = PrepareOptions::new(Target::JsonLines);
    job.map.clone_from(&args.rows.map);
    job.variant.clone_from(&args.prompt.variant);
    job.run = rows::run_options(&args.prompt);
    job.limits = Some(LIMITS);
    job.max_rejects = args.max_rejects;
    let bar = progress_bar(sources, quiet);
    let prepared = prepare(runtime, prompt, sources, directory, &job, &|progress| bar.set_position(progress.rows));
    bar.finish_and_clear();
    let prepared = prepared.map_err(|error| about(error, prompt))?;

    let mut options = DirectOptions::default();
    options.map = job.map;
    options.variant = job.variant;
    options.run = run_options(args);
    options.concurrency = usize::from(args.rates.concurrency);
    options.requests_per_minute = args.rates.requests_per_minute;
    options.tokens_per_minute = args.rates.tokens_per_minute;
    options.retry = args.retry;
    options.catalog = Project::catalog()?;
    options.max_cost = args.max_cost;
    let requests = prepared.files.iter().map(|file| file.requests).sum();
    let bar = call_bar(requests, quiet);
    let direct = run_directly(runtime, prompt, sources, directory, &options, &|progress| show(&bar, progress));
    bar.finish_and_clear();
    let direct = direct.map_err(|error| about(error, prompt))?;
    Ok(Answered { prepared, direct })
}

fn call_bar(requests: u64, quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(requests);
    let template = "{bar:24} {human_pos} of {human_len} rows  {per_sec}  {msg}  {eta} left";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn show(bar: &ProgressBar, progress: DirectProgress) {
    if bar.is_hidden() {
        return;
    }
    bar.set_position(progress.answered + progress.failed);
    bar.set_message(used(&progress));
}

/// Returns the tokens, the cost and the failures for people.
fn used(progress: &DirectProgress) -> String {
    let tokens = grouped(progress.input_tokens.saturating_add(progress.output_tokens));
    let cost = match progress.unpriced {
        0 if progress.cost > 0.0 => format!(", {}", prices::shown(progress.cost)),
        _ => String::new(),
    };
    let failed = if progress.failed > 0 { format!(", {} failed", grouped(progress.failed)) } else { String::new() };
    format!("{tokens} tokens{cost}{failed}")
}

/// Adds the prompt to errors that are not about rows and directories.
fn about(error: Error, prompt: &Prompt) -> Error {
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

fn shown(summary: &ResultsSummary, direct: &DirectSummary, output: &Path) -> String {
    let rows = if summary.rows == 1 { "row" } else { "rows" };
    let path = visible_line(&output.display().to_string());
    let answered = format!("{} of {} {rows} answered, in {path}\n", grouped(summary.answered), grouped(summary.rows));
    let calls = if direct.calls == 1 { "call" } else { "calls" };
    format!("{answered}{} {calls}, {} in the whole job\n", grouped(direct.calls), used(&direct.progress))
}

/// Estimates the job, and prints the estimate.
fn dry_run(
    args: &BatchRunArgs,
    runtime: &Runtime,
    prompt: &Prompt,
    directory: &Path,
    quiet: bool,
) -> Result<ExitCode, Failure> {
    if args.rows.rows.iter().any(|path| crate::prompt_file::is_stdin(path)) {
        return Err(Failure::Usage("an estimate needs files of rows, not standard input".to_owned()));
    }
    let sources = rows::sources(&args.rows, directory)?;
    let mut options = SampleOptions::default();
    options.map.clone_from(&args.rows.map);
    options.variant.clone_from(&args.prompt.variant);
    options.models = vec![run_options(args)];
    let bar = progress_bar(&sources, quiet);
    let sample = measure(runtime, prompt, &sources, &options, &|rows| bar.set_position(rows));
    bar.finish_and_clear();
    let sample = sample.map_err(|error| about(error, prompt))?;
    let mut wanted = PlanOptions::new(sample.rows);
    wanted.catalog = Project::catalog()?;
    wanted.concurrency = usize::from(args.rates.concurrency);
    wanted.requests_per_minute = args.rates.requests_per_minute;
    wanted.tokens_per_minute = args.rates.tokens_per_minute;
    let planned = plan::of_direct(plan(prompt, &sample, &wanted));
    let Some(offer) = planned else { return Ok(ExitCode::SUCCESS) };
    if args.json {
        let report = json!({
            "rows": sample.rows,
            "rejects": sample.rejects,
            "estimate": offer.estimate,
            "hours": offer.hours,
            "hours_are_bounded": offer.hours_are_bounded,
            "prices_date": PRICES_DATE,
        });
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        output::print_lines(&estimate_shown(sample.rows, sample.rejects, &offer))?;
    }
    let is_over = args.max_cost.is_some_and(|most| offer.estimate.cost > most);
    if is_over && !quiet {
        report::warn_plainly("over_max_cost", "the estimate exceeds `--max-cost`; the job would stop before it does");
    }
    Ok(ExitCode::SUCCESS)
}

fn estimate_shown(rows: u64, rejects: u64, offer: &Offer) -> String {
    let Estimate { requests, input_tokens, output_tokens, cost, unpriced, basis, .. } = &offer.estimate;
    debug_assert_eq!(offer.way, Way::Direct);
    let rejected =
        if rejects > 0 { format!(", of which {} would be rejected", grouped(rejects)) } else { String::new() };
    let mut out = format!("{} rows{rejected}\n", grouped(rows));
    if *basis == EstimateBasis::NoModel {
        return out + "  the provider `echo` costs nothing\n";
    }
    out += &format!("  {} requests\n", grouped(requests));
    out += &format!("  about {} input tokens and {} output tokens\n", grouped(input_tokens), grouped(output_tokens));
    out += &match unpriced {
        0 => format!("  about {}, at prices of {PRICES_DATE}\n", prices::shown(*cost)),
        _ => "  the price is not known; set it in `[models]` of tympan.toml\n".to_owned(),
    };
    let time = plan::duration(offer.hours);
    out += &match offer.hours_are_bounded {
        true => format!("  at least {time}, by the limits per minute\n"),
        false => format!("  about {time}, if a model waits a second and writes 50 tokens per second\n"),
    };
    out += match basis {
        EstimateBasis::Limit => "  answers count as long as the prompt allows\n",
        _ => "  answers count as 1,000 tokens, because the prompt sets no limit\n",
    };
    out
}
