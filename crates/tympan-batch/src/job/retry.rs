//! Writes the requests without an answer to new files.

use std::collections::BTreeSet;
use std::io::{BufWriter, Write};

use tympan_core::Result;

use super::collect::sync_directory;
use super::join::create_new;
use super::requests::Requests;
use super::{BatchJob, cannot_read, cannot_write};
use crate::api::RequestFile;
use crate::manifest::{FileState, JobFile, Submission};

impl BatchJob<'_> {
    /// Prepares the next attempt for all collected files that have requests without an answer, and returns the number of
    /// these requests. Files that were sent this often already are left as they are.
    ///
    /// The lines of the requests are the same as before, with the same identifiers. [`BatchJob::submit`] sends them.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written.
    pub fn prepare_retry(&self, max_attempts: u64) -> Result<u64> {
        let mut requests = 0;
        for mut file in self.files()? {
            if file.state == FileState::Collected && file.attempts < max_attempts {
                requests += self.retry_file(&mut file)?;
            }
        }
        Ok(requests)
    }

    fn retry_file(&self, file: &mut JobFile) -> Result<u64> {
        let mut rows: BTreeSet<u64> = BTreeSet::new();
        let exceptions = self.manifest.exceptions(file.number)?;
        rows.extend(exceptions.iter().filter(|exception| exception.state != "rejected").map(|exception| exception.row));
        if rows.is_empty() {
            return Ok(0);
        }
        let (directory, name, bytes) = (self.directory.clone(), file.name.clone(), file.bytes);
        let original = RequestFile { directory, name, bytes };
        let requests = Requests::read(&original, &self.info.job, file.first_row..file.end_row, file.requests)?;

        let attempt = file.attempts + 1;
        let name = format!("retry-{:05}-{attempt}.jsonl", file.number);
        let (path, part) = (self.directory.join(&name), self.directory.join(format!("{name}.part")));
        let mut from = original.open().map_err(|error| cannot_read(&self.directory.join(&original.name), &error))?;
        let mut to = BufWriter::new(create_new(&part)?);
        let mut copy = || -> std::io::Result<(u64, u64)> {
            let (mut bytes, mut count) = (0, 0);
            for row in requests.in_file_order().filter(|row| rows.contains(row)) {
                bytes += requests.copy_line(&mut from, row, &mut to)?;
                count += 1;
            }
            to.flush()?;
            to.get_ref().sync_all()?;
            std::fs::rename(&part, &path)?;
            Ok((bytes, count))
        };
        let (bytes, count) = copy().map_err(|error| cannot_write(&path, &error))?;
        sync_directory(&self.directory);

        let submission =
            Submission { file: file.number, attempt, name, requests: count, bytes, ..Submission::default() };
        (file.state, file.error) = (FileState::Prepared, None);
        self.manifest.save_submission(file, &submission)?;
        Ok(count)
    }
}
