//! Cancels the batches of a job.

use tympan_core::Result;

use super::BatchJob;
use crate::manifest::FileState;

impl BatchJob<'_> {
    /// Requests that all batches end early. Requests that were answered before can still be collected.
    ///
    /// # Errors
    /// Returns an error if the provider cannot be reached, or refuses.
    pub fn cancel(&self) -> Result<()> {
        for mut file in self.files()? {
            if file.state == FileState::Submitting {
                let submission = self.current(&file)?;
                self.look_up(&mut file, &submission)?;
            }
            if file.state != FileState::Submitted {
                continue;
            }
            let mut submission = self.current(&file)?;
            let batch = submission.batch.clone().unwrap_or_default();
            let status = match self.api.cancel(&batch) {
                // The batch may have ended in the meantime.
                Err(error) if matches!(error.status(), Some(400 | 404 | 409)) => match self.status_of(&batch)? {
                    status if status.is_ended => status,
                    _ => return Err(error),
                },
                other => other?,
            };
            self.record(&mut file, &mut submission, status)?;
        }
        Ok(())
    }
}
