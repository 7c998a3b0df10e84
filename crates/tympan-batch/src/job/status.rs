//! Asks the provider for the state of the batches.

use std::time::Duration;

use tympan_core::{Error, Kind, Result};

use super::{BatchJob, OnProgress, Phase};
use crate::api::BatchStatus;
use crate::manifest::FileState;

/// How often the state of a batch is requested that the provider does not know. It may have been created just now.
const TRIES: u32 = 5;
/// The first wait between two such requests.
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// How often in a row a provider that cannot be reached is asked again.
const MAX_FAILURES: u32 = 20;

/// Whether a batch was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Found,
    Absent,
    /// It cannot be looked up.
    Unknown,
}

impl BatchJob<'_> {
    /// Requests the state of all batches that have not ended, and records it.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached, or does not know a batch.
    pub fn poll(&self) -> Result<()> {
        for mut file in self.files()? {
            match file.state {
                FileState::Submitted => {
                    let mut submission = self.current(&file)?;
                    let status = self.status_of(submission.batch.as_deref().unwrap_or_default())?;
                    self.record(&mut file, &mut submission, status)?;
                }
                FileState::Submitting => {
                    let submission = self.current(&file)?;
                    self.look_up(&mut file, &submission)?;
                }
                FileState::Prepared | FileState::Ended | FileState::Collected | FileState::Failed => {}
            }
        }
        Ok(())
    }

    /// Requests the state of the batches until all have ended. A provider that cannot be reached for a while is not an
    /// error.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached for a long time, or does not know a batch.
    pub fn wait_until_ended(&self, progress: OnProgress<'_>) -> Result<()> {
        let mut wait = self.options.first_wait;
        let mut failures = 0;
        loop {
            let mut least = Duration::ZERO;
            match self.poll() {
                Ok(()) => failures = 0,
                Err(error) if is_temporary(&error) && failures < MAX_FAILURES => {
                    failures += 1;
                    least = error.retry_after().unwrap_or_default();
                }
                Err(error) => return Err(error),
            }
            let files = self.files()?;
            let is_over = |state| matches!(state, FileState::Ended | FileState::Collected);
            let mut now = self.progress(Phase::Wait, is_over)?;
            for file in files.iter().filter(|file| file.state == FileState::Submitted) {
                let submission = self.current(file)?;
                now.requests_done += (submission.completed + submission.failed).min(file.requests);
            }
            progress(now);
            if files.iter().all(|file| file.state != FileState::Submitted) {
                return Ok(());
            }
            self.wait(wait.max(least));
            wait = wait.saturating_mul(3).checked_div(2).unwrap_or(wait).min(self.options.longest_wait);
        }
    }

    /// Requests the state of a batch. A batch that was created just now may not be known everywhere yet.
    pub(super) fn status_of(&self, batch: &str) -> Result<BatchStatus> {
        let mut attempt = 0;
        loop {
            match self.api.status(batch) {
                Err(error) if error.status() == Some(404) && attempt + 1 < TRIES => {
                    self.wait(FIRST_WAIT.saturating_mul(1 << attempt));
                    attempt += 1;
                }
                Err(error) if error.status() == Some(404) => {
                    let message = format_args!("the provider does not know the batch `{batch}`: {}", error.message());
                    return Err(Error::new(Kind::InvalidBatch, message)
                        .with_help("check that the key belongs to the account that the job was sent with"));
                }
                other => return other,
            }
        }
    }
}

/// Returns whether a later request may succeed.
fn is_temporary(error: &Error) -> bool {
    matches!(
        error.kind(),
        Kind::ProviderUnavailable
            | Kind::Unreachable
            | Kind::ConnectTimeout
            | Kind::FirstByteTimeout
            | Kind::IdleTimeout
            | Kind::TotalTimeout
            | Kind::Truncated
    )
}
