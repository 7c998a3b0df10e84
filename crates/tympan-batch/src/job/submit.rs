//! Sends the files of a job.

use std::time::Duration;

use tympan_core::{Error, Kind, Result};

use super::requests::Requests;
use super::status::Seen;
use super::{BatchJob, OnProgress, Phase, now};
use crate::api::{BatchStatus, Lookup};
use crate::manifest::{FileState, JobFile, Submission};

/// How often a batch whose creation has an unknown outcome is looked up. Lists of providers lag behind.
const LOOKUPS: u32 = 3;
/// The first wait between two lookups.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// A batch that was created this many seconds ago is in the list.
const LISTED_AFTER: i64 = 600;

impl BatchJob<'_> {
    /// Sends all files that were not sent, and those that the provider refused before.
    ///
    /// If the process was killed while it sent a file, or if the connection broke then, the batch is looked up before
    /// the file is sent again. Where that is impossible, the file is left as it is, unless the options say otherwise;
    /// [`FileReport::is_unknown`](super::FileReport::is_unknown) says so.
    ///
    /// # Errors
    /// Returns the first error of a file. The next call continues.
    pub fn submit(&self, progress: OnProgress<'_>) -> Result<()> {
        for mut file in self.files()? {
            progress(self.progress(Phase::Submit, FileState::is_sent)?);
            match file.state {
                FileState::Prepared | FileState::Failed => {
                    let submission = self.next(&file)?;
                    self.send(&mut file, submission)?;
                }
                FileState::Submitting => self.resume(&mut file)?,
                FileState::Submitted | FileState::Ended | FileState::Collected => {}
            }
        }
        progress(self.progress(Phase::Submit, FileState::is_sent)?);
        Ok(())
    }

    /// Continues with a file whose sending was interrupted.
    fn resume(&self, file: &mut JobFile) -> Result<()> {
        let submission = self.current(file)?;
        match self.look_up(file, &submission)? {
            Seen::Found => Ok(()),
            Seen::Absent => self.send(file, submission),
            Seen::Unknown if self.options.retry_unknown => self.send(file, submission),
            Seen::Unknown => Ok(()),
        }
    }

    /// Finds out whether a file whose sending was interrupted has become a batch, and records the batch if it has.
    pub(super) fn look_up(&self, file: &mut JobFile, submission: &Submission) -> Result<Seen> {
        if self.api.has_uploads() && submission.upload.is_none() {
            // Without a file, no batch was created.
            return Ok(Seen::Absent);
        }
        let tags = self.tags(submission);
        let is_recent = now().saturating_sub(submission.started) < LISTED_AFTER;
        let tries = if is_recent { LOOKUPS } else { 1 };
        for attempt in 0..tries {
            if attempt > 0 {
                self.wait(FIRST_WAIT.saturating_mul(attempt));
            }
            match self.api.find(submission.upload.as_deref(), &tags)? {
                Lookup::Found(batch) => {
                    let mut submission = submission.clone();
                    submission.error = None;
                    file.error = None;
                    self.record(file, &mut submission, batch)?;
                    return Ok(Seen::Found);
                }
                Lookup::Absent => {}
                Lookup::Impossible(reason) => {
                    if file.error.is_none() {
                        let mut submission = submission.clone();
                        file.error = Some(format!("nobody knows whether there is a batch: {reason}"));
                        submission.error.clone_from(&file.error);
                        self.manifest.save_submission(file, &submission)?;
                    }
                    return Ok(Seen::Unknown);
                }
            }
        }
        Ok(Seen::Absent)
    }

    /// Sends a file. What is about to be sent is recorded first.
    fn send(&self, file: &mut JobFile, mut submission: Submission) -> Result<()> {
        let requests = self.request_file(&submission);
        Requests::read(&requests, &self.info.job, file.first_row..file.end_row, submission.requests)?;
        (submission.token, submission.started) = (token()?, now());
        (submission.batch, submission.error) = (None, None);
        submission.status.clear();
        (file.state, file.attempts, file.error) = (FileState::Submitting, submission.attempt, None);
        self.manifest.save_submission(file, &submission)?;

        let uploaded =
            if submission.upload.is_some() { Ok(None) } else { self.api.upload(&requests, &self.tags(&submission)) };
        match uploaded {
            Ok(None) => {}
            Ok(upload) => {
                submission.upload = upload;
                self.manifest.save_submission(file, &submission)?;
            }
            // An uploaded file alone is no batch.
            Err(failure) => return Err(self.refused(file, submission, failure.error)?),
        }
        match self.api.create(&requests, submission.upload.as_deref(), &self.tags(&submission)) {
            Ok(batch) => self.record(file, &mut submission, batch),
            Err(failure) if !failure.is_outcome_unknown => Err(self.refused(file, submission, failure.error)?),
            Err(failure) => {
                let error = failure.error;
                match self.look_up(file, &submission)? {
                    Seen::Found => Ok(()),
                    // The next call looks again before it sends the file.
                    Seen::Absent => Err(error),
                    Seen::Unknown => Err(unknown_outcome(file, &error)),
                }
            }
        }
    }

    /// Records that there is no batch, so that the file can be sent again, and returns the error.
    fn refused(&self, file: &mut JobFile, mut submission: Submission, error: Error) -> Result<Error> {
        file.state = FileState::Failed;
        file.attempts = submission.attempt - 1;
        file.error = Some(error.message().to_owned());
        submission.error.clone_from(&file.error);
        // The provider may have deleted the file.
        submission.upload = None;
        self.manifest.save_submission(file, &submission)?;
        Ok(error)
    }

    /// Records the state of a batch.
    pub(super) fn record(&self, file: &mut JobFile, submission: &mut Submission, batch: BatchStatus) -> Result<()> {
        let before = (file.clone(), submission.clone());
        submission.batch = Some(batch.id);
        submission.status = batch.status;
        (submission.completed, submission.failed) = (batch.completed, batch.failed);
        submission.output = batch.output.or(submission.output.take());
        submission.errors = batch.errors.or(submission.errors.take());
        submission.error = batch.error.or(submission.error.take());
        file.error.clone_from(&submission.error);
        file.state = match batch.is_ended {
            // Nothing of the file was accepted, and the provider still has it.
            true if batch.is_queue_full => {
                file.attempts = submission.attempt - 1;
                FileState::Failed
            }
            true => FileState::Ended,
            false => FileState::Submitted,
        };
        if before == (file.clone(), submission.clone()) {
            return Ok(());
        }
        self.manifest.save_submission(file, submission)
    }
}

impl FileState {
    /// Returns whether the provider has the file.
    pub(super) const fn is_sent(self) -> bool {
        matches!(self, Self::Submitted | Self::Ended | Self::Collected)
    }
}

fn token() -> Result<String> {
    let random = getrandom::u64().and_then(|first| Ok((first, getrandom::u64()?)));
    let (first, second) = random.map_err(|error| Error::new(Kind::InvalidBatch, error))?;
    Ok(format!("{first:016x}{second:016x}"))
}

fn unknown_outcome(file: &JobFile, error: &Error) -> Error {
    let message = format_args!("nobody knows whether the provider has a batch of `{}`: {}", file.name, error.message());
    Error::new(Kind::InvalidBatch, message).with_help(
        "look at the provider's list of batches; if it has none of this file, call `tympan batch submit --retry-unknown`",
    )
}
