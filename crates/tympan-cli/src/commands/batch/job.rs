//! `tympan batch submit`, `status`, `collect` and `cancel`: the life of a job at its provider.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tympan::{Error, Kind, Prompt, RunOptions, Runtime, RuntimeOptions};
use tympan_batch::job::{BatchJob, FileReport, JobApi, JobInfo, JobOptions, JobProgress, JobReport, Phase};
use tympan_batch::limits::Target;
use tympan_batch::results::{ResultsOptions, ResultsSummary, write_results};

use super::{results, rows};
use crate::args::{BatchCancelArgs, BatchCollectArgs, BatchJobArgs, BatchStatusArgs, BatchSubmitArgs};
use crate::commands::count::grouped;
use crate::escape::visible_line;
use crate::report::Failure;
use crate::{config, json, output, prompt_file, report};

pub(super) fn submit(args: &BatchSubmitArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let mut options = JobOptions::default();
    options.retry_unknown = args.retry_unknown;
    let found = with_job(&args.job, &options, quiet, |job, bar| job.submit(&|now| show(bar, now)))?;
    print(&args.job, &found)?;
    let unknown = found.files.iter().filter(|file| file.is_unknown);
    Ok(exit_code(unknown.map(|file| warn_unknown(file, args.job.json)).count() == 0))
}

pub(super) fn status(args: &BatchStatusArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let is_open = |file: &FileReport| matches!(file.state, "submitting" | "submitted");
    let mut found = JobReport::read(&args.job.directory)?;
    if found.files.iter().any(is_open) {
        found = with_job(&args.job, &JobOptions::default(), quiet, |job, bar| match args.wait {
            true => job.wait_until_ended(&|now| show(bar, now)),
            false => job.poll(),
        })?;
    }
    print(&args.job, &found)?;
    found.files.iter().filter(|file| file.is_unknown).for_each(|file| warn_unknown(file, args.job.json));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn collect(args: &BatchCollectArgs, quiet: bool) -> Result<ExitCode, Failure> {
    // What cannot be written should not be collected first.
    let results = args.output.as_ref().map(|output| results::options(&args.results, output)).transpose()?;
    let found = JobReport::read(&args.job.directory)?;
    let is_collected = found.files.iter().all(|file| file.state == "collected");
    let is_direct = JobInfo::read(&args.job.directory)?.target == Target::JsonLines;
    let (found, retried) = match results.is_some() && (is_direct || (is_collected && !args.retry)) {
        // Nothing is left to ask the provider, so no key is needed.
        true => (found, 0),
        false => collect_answers(args, quiet)?,
    };
    let written = match (&args.output, results) {
        (Some(output), Some(options)) => Some(write(args, output, options, quiet)?),
        _ => None,
    };
    if args.job.json {
        let mut report = json!(found);
        if let (Some(summary), Some(output)) = (&written, &args.output) {
            report["results"] = results::to_json(summary, output);
        }
        output::print(&(json::pretty(&report) + "\n"))?;
    } else {
        print(&args.job, &found)?;
        if let (Some(summary), Some(output)) = (&written, &args.output) {
            output::print_lines(&(results::shown(summary, output) + "\n"))?;
        }
    }
    if retried > 0 && !quiet {
        report::warn_plainly("retried_rows", &format!("sent {} again", counted(retried, "request", "requests")));
    }
    found.files.iter().filter(|file| file.is_unknown).for_each(|file| warn_unknown(file, args.job.json));
    let is_answered = match written {
        Some(summary) => summary.answered + summary.rejected == summary.rows,
        None => found.is_complete(),
    };
    Ok(exit_code(is_answered && retried == 0))
}

/// Downloads the answers. Returns the number of requests that were sent again as well.
fn collect_answers(args: &BatchCollectArgs, quiet: bool) -> Result<(JobReport, u64), Failure> {
    let options = JobOptions::default();
    let mut retried = 0;
    let found = with_job(&args.job, &options, quiet, |job, bar| {
        match args.wait {
            true => job.wait_until_ended(&|now| show(bar, now))?,
            false => job.poll()?,
        }
        job.collect(&|now| show(bar, now))?;
        if args.retry {
            retried = job.prepare_retry(u64::MAX)?;
            job.submit(&|now| show(bar, now))?;
        }
        Ok(())
    })?;
    Ok((found, retried))
}

/// Writes typed results of the answers that are there.
fn write(
    args: &BatchCollectArgs,
    output: &Path,
    mut options: ResultsOptions,
    quiet: bool,
) -> Result<ResultsSummary, Failure> {
    let info = JobInfo::read(&args.job.directory)?;
    let (runtime, prompt) = prompt(&args.job, &info, quiet)?;
    options.run = info.run_options();
    let sources = match args.rows.is_empty() {
        true => info.sources(),
        false => {
            // Who names the files again knows that they have the same rows.
            options.checks_times = false;
            rows::named(&args.rows, args.format)?
        }
    };
    let bar = super::prepare::progress_bar(&sources, quiet);
    let show = |rows| bar.set_position(rows);
    let summary = write_results(&runtime, &prompt, &sources, &args.job.directory, output, &options, &show);
    bar.finish_and_clear();
    let summary = summary?;
    if !quiet {
        results::warn(&summary, &options, output);
    }
    Ok(summary)
}

pub(super) fn cancel(args: &BatchCancelArgs, quiet: bool) -> Result<ExitCode, Failure> {
    let found = with_job(&args.job, &JobOptions::default(), quiet, |job, _| job.cancel())?;
    print(&args.job, &found)?;
    Ok(ExitCode::SUCCESS)
}

/// Opens the job, works on it, and returns its state afterwards.
fn with_job(
    args: &BatchJobArgs,
    options: &JobOptions,
    quiet: bool,
    work: impl FnOnce(&BatchJob<'_>, &ProgressBar) -> Result<(), Error>,
) -> Result<JobReport, Failure> {
    let info = JobInfo::read(&args.directory)?;
    info.check_sendable(&args.directory)?;
    let (runtime, prompt) = prompt(args, &info, quiet)?;
    let run = RunOptions { base_url: args.base_url.clone(), ..info.run_options() };
    let api = JobApi::new(&runtime, &prompt, &run)?;
    let job = BatchJob::open(&args.directory, &prompt, &api, options)?;
    let bar = progress_bar(quiet);
    let worked = work(&job, &bar);
    bar.finish_and_clear();
    worked?;
    Ok(job.report()?)
}

/// Loads the prompt of the job.
fn prompt(args: &BatchJobArgs, info: &JobInfo, quiet: bool) -> Result<(Runtime, Prompt), Failure> {
    let path = args.prompt.as_ref().or(info.prompt.as_ref()).ok_or_else(|| {
        let error = Error::new(Kind::InvalidBatch, "the manifest does not say which file the prompt is");
        error.with_help("name it with `--prompt FILE`")
    })?;
    if prompt_file::is_stdin(path) {
        return Err(Failure::Usage("the prompt must be a file".to_owned()));
    }
    let options = args.endpoint.over(prompt_file::deferred(args.env.over(RuntimeOptions::default())));
    let runtime = prompt_file::runtime(path, options, quiet);
    config::register_credentials(&runtime, args.credentials.credential_command.as_deref())?;
    let prompt = prompt_file::load(&runtime, path)?;
    Ok((runtime, prompt))
}

fn progress_bar(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    let template = "{msg} {bar:24} {human_pos} of {human_len} requests  {elapsed}";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn show(bar: &ProgressBar, now: JobProgress) {
    bar.set_length(now.requests);
    bar.set_position(now.requests_done);
    let what = match now.phase {
        Phase::Submit => "sending",
        Phase::Wait => "waiting",
        _ => "collecting",
    };
    bar.set_message(format!("{what} ({} of {} files)", now.files_done, now.files));
}

fn print(args: &BatchJobArgs, found: &JobReport) -> Result<(), Failure> {
    if args.json {
        return Ok(output::print(&(json::pretty(&json!(found)) + "\n"))?);
    }
    Ok(output::print_lines(&found.files.iter().map(lines).collect::<String>())?)
}

/// Describes a file. Everything that comes from the provider is escaped.
fn lines(file: &FileReport) -> String {
    let requests = counted(file.requests, "request", "requests");
    let state = match (file.state, file.status.as_deref()) {
        ("submitted" | "ended", Some(status)) => visible_line(status),
        ("submitting", _) => "not known".to_owned(),
        (state, _) => state.to_owned(),
    };
    let mut out = format!("{}: {state}, {requests}", visible_line(&file.name));
    if file.state == "submitted" && file.completed + file.failed > 0 {
        out += &format!(", {} completed, {} failed", number(file.completed), number(file.failed));
    }
    if file.attempts > 1 {
        out += &format!(", attempt {}", file.attempts);
    }
    if let Some(results) = file.results.as_ref().filter(|_| file.state == "collected") {
        out += &format!(", {} answered", number(results.answered));
        for (count, what) in [
            (results.failed, "failed"),
            (results.expired, "expired"),
            (results.cancelled, "cancelled"),
            (results.missing, "without an answer"),
        ] {
            if count > 0 {
                out += &format!(", {} {what}", number(count));
            }
        }
    }
    out.push('\n');
    if let Some(error) = &file.error {
        out += &format!("  {}\n", visible_line(error));
    }
    let notes = file.results.iter().filter(|_| file.state == "collected").flat_map(|results| &results.notes);
    out + &notes.map(|note| format!("  {}\n", visible_line(note))).collect::<String>()
}

pub(super) fn warn_unknown(file: &FileReport, is_json: bool) {
    if is_json {
        return;
    }
    let name = &file.name;
    let message = format!(
        "{name} was being sent when the command or the connection ended, and nobody knows whether the provider has a \
         batch of it. The next call looks it up. Where that is impossible, look at the provider's list of batches; if \
         there is none, send it again with `--retry-unknown`"
    );
    report::warn_plainly("unknown_submission", &message);
}

fn number(value: u64) -> String {
    grouped(usize::try_from(value).unwrap_or(usize::MAX))
}

fn counted(value: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(value), if value == 1 { one } else { many })
}

fn exit_code(is_fine: bool) -> ExitCode {
    if is_fine { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
