//! Runs a job from its prepared files to its answers.

use std::path::Path;

use tympan_core::{Prompt, Result};
use tympan_runtime::{RunOptions, Runtime};

use super::{BatchJob, JobApi, JobInfo, JobOptions, JobReport, OnProgress};

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
) -> Result<JobReport> {
    let RunOptions { base_url, api_key, functions, .. } = options.run.clone();
    let info = JobInfo::read(directory)?;
    info.check_sendable(directory)?;
    let run = RunOptions { base_url, api_key, functions, ..info.run_options() };
    let api = JobApi::new(runtime, prompt, &run)?;
    let job = BatchJob::open(directory, prompt, &api, options)?;
    loop {
        job.submit(progress)?;
        job.wait_until_ended(progress)?;
        job.collect(progress)?;
        if job.prepare_retry(options.max_attempts)? == 0 {
            return job.report();
        }
    }
}
