//! What became of a job.

use serde::{Deserialize, Serialize};
use tympan_core::Result;
use tympan_core::wire::response::Usage;

use super::{BatchJob, answers_name};
use crate::manifest::{FileState, JobFile, Manifest};

/// The most notes about the results of a file.
const MAX_NOTES: usize = 20;

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct JobReport {
    /// The identifier of the job.
    pub job: String,
    /// The provider.
    pub provider: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The number of rows.
    pub rows: u64,
    /// The number of rejected rows, which have no request.
    pub rejects: u64,
    /// The files that have requests.
    pub files: Vec<FileReport>,
}

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct FileReport {
    /// The number of the file.
    pub number: u64,
    /// The name of the file.
    pub name: String,
    /// The name of the file with the answers, if they were collected.
    pub answers: Option<String>,
    /// The first row.
    pub first_row: u64,
    /// The row after the last.
    pub end_row: u64,
    /// The number of requests.
    pub requests: u64,
    /// The state: `prepared`, `submitting`, `submitted`, `ended`, `collected` or `failed`.
    pub state: &'static str,
    /// Whether sending was interrupted, so that nobody knows whether the provider has a batch.
    pub is_unknown: bool,
    /// How often the file, or the rest of it, was sent.
    pub attempts: u64,
    /// The provider's identifier of the batch.
    pub batch: Option<String>,
    /// The provider's name for the state of the batch.
    pub status: Option<String>,
    /// The number of requests of the batch that succeeded, as the provider reports it.
    pub completed: u64,
    /// The number of requests of the batch that failed, as the provider reports it.
    pub failed: u64,
    /// Why the file or the batch failed.
    pub error: Option<String>,
    /// What the results contain, if they were collected.
    pub results: Option<Findings>,
}

/// What the results of a file contain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Findings {
    /// The number of lines.
    pub lines: u64,
    /// The number of requests with an answer, in this attempt or an earlier one.
    pub answered: u64,
    /// The number of requests that failed.
    pub failed: u64,
    /// The number of requests that expired.
    pub expired: u64,
    /// The number of requests that were cancelled.
    pub cancelled: u64,
    /// The number of requests that the results do not mention.
    pub missing: u64,
    /// The number of answers to requests that were not sent.
    pub unknown: u64,
    /// The number of answers that were there already.
    pub duplicates: u64,
    /// The number of answers that differ from an earlier one to the same request.
    pub conflicts: u64,
    /// The number of lines that cannot be read.
    pub malformed: u64,
    /// The number of lines that are too long.
    pub too_long: u64,
    /// The tokens of all answers, in this attempt and earlier ones.
    pub usage: Usage,
    /// The number of answers without token counts.
    pub uncounted: u64,
    /// Details of the first of these. They can contain text of the provider.
    pub notes: Vec<String>,
}

impl Findings {
    /// Adds a detail, unless there are many already.
    pub(super) fn note(&mut self, note: String) {
        if self.notes.len() < MAX_NOTES {
            self.notes.push(note);
        }
    }

    /// Adds the tokens of an answer. A provider may report any number.
    pub(super) fn add_usage(&mut self, usage: &Usage) {
        let sum = &mut self.usage;
        for (sum, more) in [
            (&mut sum.input_tokens, usage.input_tokens),
            (&mut sum.output_tokens, usage.output_tokens),
            (&mut sum.total_tokens, usage.total_tokens),
            (&mut sum.cached_input_tokens, usage.cached_input_tokens),
            (&mut sum.cache_write_tokens, usage.cache_write_tokens),
            (&mut sum.reasoning_tokens, usage.reasoning_tokens),
        ] {
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns the number of requests without an answer.
    pub fn open(&self) -> u64 {
        self.failed + self.expired + self.cancelled + self.missing
    }

    /// Returns the number of lines that do not belong to the job or differ from others.
    pub fn suspicious(&self) -> u64 {
        self.unknown + self.conflicts + self.malformed + self.too_long
    }
}

impl JobReport {
    /// Reads the state of a job.
    ///
    /// # Errors
    /// Returns an error if the directory has no job.
    pub fn read(directory: &std::path::Path) -> Result<Self> {
        let manifest = Manifest::open(directory)?;
        let info = super::JobInfo::of_manifest(&manifest, directory)?;
        Self::of(&manifest, &info)
    }

    fn of(manifest: &Manifest, info: &super::JobInfo) -> Result<Self> {
        let files = manifest.files()?.into_iter().filter(|file| file.requests > 0);
        Ok(Self {
            job: info.job.clone(),
            provider: info.provider.clone(),
            model: info.model.clone(),
            rows: info.rows.unwrap_or_default(),
            rejects: info.rejects,
            files: files.map(|file| FileReport::of(manifest, file)).collect::<Result<_>>()?,
        })
    }

    /// Returns whether every request has an answer.
    pub fn is_complete(&self) -> bool {
        self.files.iter().all(|file| file.results.as_ref().is_some_and(|results| results.open() == 0))
    }
}

impl FileReport {
    fn of(manifest: &Manifest, file: JobFile) -> Result<Self> {
        // While the rest of a file waits to be sent again, its last attempt is reported.
        let submission = manifest.submission(file.number, file.attempts)?.unwrap_or_default();
        let results = submission.report.as_deref().and_then(|report| serde_json::from_str(report).ok());
        Ok(Self {
            number: file.number,
            answers: (file.state == FileState::Collected).then(|| answers_name(file.number)),
            name: file.name,
            first_row: file.first_row,
            end_row: file.end_row,
            requests: file.requests,
            state: file.state.as_str(),
            is_unknown: file.state == FileState::Submitting,
            attempts: file.attempts,
            batch: submission.batch,
            status: Some(submission.status).filter(|status| !status.is_empty()),
            completed: submission.completed,
            failed: submission.failed,
            error: file.error,
            results,
        })
    }
}

impl BatchJob<'_> {
    /// Returns the state of the job.
    ///
    /// # Errors
    /// Returns an error if the manifest cannot be read.
    pub fn report(&self) -> Result<JobReport> {
        JobReport::of(&self.manifest, &super::JobInfo::of_manifest(&self.manifest, &self.directory)?)
    }
}
