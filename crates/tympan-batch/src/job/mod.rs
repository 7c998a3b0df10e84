//! The life of a job: its files are sent to the provider's batch API, and the answers are collected.
//!
//! The manifest records what is about to be done before it is done, and what was done before anything depends on it. So
//! whatever the moment at which a process is killed, the next call continues, and no row is lost or sent twice.

mod cancel;
mod collect;
mod cost;
mod drive;
mod info;
mod join;
mod report;
mod requests;
mod retry;
mod status;
mod submit;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tympan_core::wire::catalog::Catalog;
use tympan_core::{Error, Kind, Prompt, Result};
use tympan_runtime::{ProviderApi, RunOptions, Runtime};

pub use self::cost::JobUsage;
pub use self::drive::{Flaws, JobRun, run_batch_job};
pub use self::info::JobInfo;
pub use self::report::{FileReport, Findings, JobReport};

use crate::api::{self, BatchApi, RequestFile, Tags};
use crate::manifest::{FileState, JobFile, Manifest, Submission};
use crate::prepare::lock;

/// What the names of files with answers begin with.
pub const ANSWERS: &str = "answers-";

/// How a job is sent and collected.
#[derive(Clone)]
#[non_exhaustive]
pub struct JobOptions {
    /// The base URL and the key, where they are not those of the prompt or the environment. The provider, the model and
    /// the API are those that the job was prepared for.
    pub run: RunOptions,
    /// Whether to send a file again if nobody knows whether the provider has a batch of it, and it cannot be looked up.
    pub retry_unknown: bool,
    /// How often [`run_batch_job`] sends requests that failed, the first time included.
    pub max_attempts: u64,
    /// Whether [`run_batch_job`] begins with sending all requests again that have no answer, however often they were sent.
    pub retry: bool,
    /// The prices.
    pub catalog: Catalog,
    /// The most that all requests of the job may cost, in US dollars. [`run_batch_job`] checks it before it sends anything,
    /// with an upper bound.
    pub max_cost: Option<f64>,
    /// The first wait between two looks at the state of the batches.
    pub first_wait: Duration,
    /// The longest wait between two looks at the state of the batches.
    pub longest_wait: Duration,
    /// How to wait.
    #[doc(hidden)]
    pub sleep: Arc<dyn Fn(Duration) + Send + Sync>,
}

impl Default for JobOptions {
    fn default() -> Self {
        Self {
            run: RunOptions::default(),
            retry_unknown: false,
            max_attempts: 2,
            retry: false,
            catalog: Catalog::default(),
            max_cost: None,
            first_wait: Duration::from_secs(5),
            longest_wait: Duration::from_secs(120),
            sleep: Arc::new(std::thread::sleep),
        }
    }
}

impl fmt::Debug for JobOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobOptions")
            .field("run", &self.run)
            .field("retry_unknown", &self.retry_unknown)
            .field("max_attempts", &self.max_attempts)
            .field("retry", &self.retry)
            .field("max_cost", &self.max_cost)
            .field("first_wait", &self.first_wait)
            .field("longest_wait", &self.longest_wait)
            .finish_non_exhaustive()
    }
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Files are being sent.
    Submit,
    /// The provider is working.
    Wait,
    /// Answers are being downloaded.
    Collect,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobProgress {
    /// What the job is doing.
    pub phase: Phase,
    /// The number of files.
    pub files: u64,
    /// The number of files for which the phase is over.
    pub files_done: u64,
    /// The number of requests in all files.
    pub requests: u64,
    /// The number of requests for which the phase is over.
    pub requests_done: u64,
    /// What the answers that were collected have used.
    pub usage: JobUsage,
    /// When the last batch that has not ended was sent, in seconds since the Unix epoch.
    pub last_sent: Option<i64>,
}

/// A function that is called when a job advances.
pub type OnProgress<'p> = &'p dyn Fn(JobProgress);

/// The access to a provider that a job needs.
#[derive(Debug)]
pub struct JobApi<'a> {
    api: ProviderApi<'a>,
}

impl<'a> JobApi<'a> {
    /// Determines the API of the job's provider, with the connection of the prompt and these options.
    ///
    /// # Errors
    /// Returns an error if there is no key, or if it may not be sent to the address.
    pub fn new(runtime: &'a Runtime, prompt: &'a Prompt, run: &'a RunOptions) -> Result<Self> {
        Ok(Self { api: ProviderApi::new(runtime, prompt, run)? })
    }
}

/// A prepared job, and the API that answers its requests. While it exists, no other process works on the job.
pub struct BatchJob<'a> {
    directory: PathBuf,
    manifest: Manifest,
    info: JobInfo,
    api: Box<dyn BatchApi + 'a>,
    options: &'a JobOptions,
    /// The longest answer, in bytes.
    longest_answer: u64,
    /// Whether requests may contain images or other media.
    has_media: bool,
    downloads: &'a ProviderApi<'a>,
    _lock: File,
}

impl fmt::Debug for BatchJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BatchJob").field("directory", &self.directory).field("info", &self.info).finish_non_exhaustive()
    }
}

impl<'a> BatchJob<'a> {
    /// Opens a job that is completely prepared.
    ///
    /// # Errors
    /// Returns an error if the directory has no complete job, if the prompt is not the one that it was prepared with, if
    /// the provider has no batch API, if the job was sent to another address before, or if another process works on it.
    pub fn open(directory: &Path, prompt: &Prompt, api: &'a JobApi<'a>, options: &'a JobOptions) -> Result<Self> {
        let lock = lock(directory)?;
        let manifest = Manifest::open(directory)?;
        let info = JobInfo::of_manifest(&manifest, directory)?;
        info.check_sendable(directory)?;
        info.check_prompt(prompt)?;
        let (provider, model) = (api.api.provider().name, api.api.model());
        let origin = api.api.origin();
        info.check_destination(provider, model, origin)?;
        let batches = api::of_target(info.target, &api.api)?;
        if info.origin.is_none() {
            manifest.set(&[("provider", provider), ("model", model), ("origin", origin)])?;
        }
        let longest_answer = api.api.http_options().max_response_bytes;
        Ok(Self {
            directory: directory.to_owned(),
            manifest,
            info,
            api: batches,
            options,
            longest_answer,
            has_media: cost::has_media(prompt),
            downloads: &api.api,
            _lock: lock,
        })
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns what the job is.
    pub fn info(&self) -> &JobInfo {
        &self.info
    }

    /// Returns the files that have requests.
    fn files(&self) -> Result<Vec<JobFile>> {
        let mut files = self.manifest.files()?;
        files.retain(|file| file.requests > 0);
        Ok(files)
    }

    /// Returns the attempt that a file is in.
    fn current(&self, file: &JobFile) -> Result<Submission> {
        let found = self.manifest.submission(file.number, file.attempts)?;
        found.ok_or_else(|| {
            let (number, attempt) = (file.number, file.attempts);
            let message = format_args!("the manifest does not have attempt {attempt} of file {number}");
            Error::new(Kind::InvalidBatch, message).with_help("the directory was changed; prepare the rows again")
        })
    }

    /// Returns the attempt to make next.
    fn next(&self, file: &JobFile) -> Result<Submission> {
        let attempt = file.attempts + 1;
        let found = self.manifest.submission(file.number, attempt)?;
        Ok(found.unwrap_or_else(|| Submission {
            file: file.number,
            attempt,
            name: file.name.clone(),
            requests: file.requests,
            bytes: file.bytes,
            ..Submission::default()
        }))
    }

    fn tags<'t>(&'t self, submission: &'t Submission) -> Tags<'t> {
        let Submission { file, attempt, ref token, started, .. } = *submission;
        Tags { job: &self.info.job, file, attempt, token, started }
    }

    fn request_file(&self, submission: &Submission) -> RequestFile {
        let (directory, name) = (self.directory.clone(), submission.name.clone());
        RequestFile { directory, name, bytes: submission.bytes }
    }

    /// Returns how far a phase is, if it is over for files in one of these states.
    fn progress(&self, phase: Phase, is_over: impl Fn(FileState) -> bool) -> Result<JobProgress> {
        let files = self.files()?;
        let over = files.iter().filter(|file| is_over(file.state));
        let (files_done, requests_done) =
            over.fold((0, 0), |(files, requests), file| (files + 1, requests + file.requests));
        let requests = files.iter().map(|file| file.requests).sum();
        let waiting = files.iter().filter(|file| file.state == FileState::Submitted);
        let sent = waiting.map(|file| Ok(self.current(file)?.started)).collect::<Result<Vec<_>>>()?;
        let (files, last_sent) = (files.len() as u64, sent.into_iter().max());
        Ok(JobProgress { phase, files, files_done, requests, requests_done, usage: self.usage()?, last_sent })
    }

    fn wait(&self, time: Duration) {
        (self.options.sleep)(time);
    }
}

/// Returns the time, in seconds since the Unix epoch.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Returns the name of the file with the answers to the requests of a file.
pub fn answers_name(file: u64) -> String {
    format!("{ANSWERS}{file:05}.jsonl")
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::InvalidBatch, format_args!("cannot write `{}`: {error}", path.display()))
}

fn cannot_read(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Kind::InvalidBatch, format_args!("cannot read `{}`: {error}", path.display()))
}
