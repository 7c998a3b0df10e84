//! Runs a job from its prepared files to its answers.

use std::path::Path;

use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::{RunOptions, Runtime};

use super::{BatchJob, Findings, JobApi, JobInfo, JobOptions, JobReport, JobUsage, OnProgress};
use crate::manifest::FileState;

/// The end of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct JobRun {
    /// The state of the job.
    pub report: JobReport,
    /// What the answers of the job have used.
    pub usage: JobUsage,
    /// What was wrong with the results of all batches.
    pub flaws: Flaws,
    /// Why requests were not sent, if any were left: because of the limit on the cost, or because the provider accepts no
    /// more of them at the moment.
    pub stopped: Option<Error>,
}

/// What was wrong with the results of batches. None of it became an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Flaws {
    /// The number of answers to requests that were not sent.
    pub unknown: u64,
    /// The number of answers that differ from an earlier one to the same request.
    pub conflicts: u64,
    /// The number of lines that cannot be read, or that are too long.
    pub unreadable: u64,
}

/// Sends all files of a job, waits until the provider has answered them, collects the answers, and sends requests without
/// an answer again, until they are answered or were sent [`JobOptions::max_attempts`] times.
///
/// It can be called at any time: a job that was interrupted continues.
///
/// # Errors
/// Returns an error if the provider cannot be reached or refuses a file. The next call continues.
pub fn run_batch_job(
    runtime: &Runtime,
    prompt: &Prompt,
    directory: &Path,
    options: &JobOptions,
    progress: OnProgress<'_>,
) -> Result<JobRun> {
    let RunOptions { base_url, api_key, functions, .. } = options.run.clone();
    let info = JobInfo::read(directory)?;
    info.check_sendable(directory)?;
    let run = RunOptions { base_url, api_key, functions, ..info.run_options() };
    let api = JobApi::new(runtime, prompt, &run)?;
    let job = BatchJob::open(directory, prompt, &api, options)?;
    if options.retry {
        job.prepare_retry(u64::MAX)?;
    }
    let stopped = job.finish(progress)?;
    Ok(JobRun { report: job.report()?, usage: job.usage()?, flaws: job.flaws()?, stopped })
}

impl BatchJob<'_> {
    /// Sends, waits and collects until nothing is left to do. Returns why requests were left, if any were.
    fn finish(&self, progress: OnProgress<'_>) -> Result<Option<Error>> {
        loop {
            let collected = self.count(FileState::Collected)?;
            match self.check_cost() {
                Err(error) if error.kind() == Kind::SpendLimit => return Ok(Some(error)),
                other => other?,
            }
            self.submit(progress)?;
            self.wait_until_ended(progress)?;
            self.collect(progress)?;
            if self.count(FileState::Failed)? > 0 {
                // The provider's queue was full. It has room again when other batches have ended.
                if self.count(FileState::Collected)? > collected {
                    continue;
                }
                return Ok(Some(self.queue_is_full()?));
            }
            if self.prepare_retry(self.options.max_attempts)? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns what was wrong with the results of all attempts.
    fn flaws(&self) -> Result<Flaws> {
        let mut sum = Flaws::default();
        for file in self.files()? {
            for attempt in 1..=file.attempts {
                let report = self.manifest.submission(file.number, attempt)?.and_then(|submission| submission.report);
                let found: Findings = report.and_then(|report| serde_json::from_str(&report).ok()).unwrap_or_default();
                sum.unknown += found.unknown;
                sum.conflicts += found.conflicts;
                sum.unreadable += found.malformed + found.too_long;
            }
        }
        Ok(sum)
    }

    fn count(&self, state: FileState) -> Result<usize> {
        Ok(self.files()?.iter().filter(|file| file.state == state).count())
    }

    fn queue_is_full(&self) -> Result<Error> {
        let files = self.files()?;
        let reason = files.iter().filter(|file| file.state == FileState::Failed).find_map(|file| file.error.as_deref());
        let reason = reason.unwrap_or("no reason");
        let message = format_args!("the provider has too many waiting requests: {reason}");
        Ok(Error::new(Kind::InvalidBatch, message).with_help(
            "wait until your other batches have ended, and call the command again; if there are none, prepare smaller files \
             with `--max-tokens` in another directory",
        ))
    }
}
