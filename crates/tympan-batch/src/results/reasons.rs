//! Why rows have no answer, from the manifest of their job.

use tympan_core::Result;

use crate::manifest::{Exception, JobFile, Manifest};

/// The reasons of rows, which are asked for in order. Those of one file at a time are in memory.
pub(super) struct Reasons {
    manifest: Manifest,
    files: std::iter::Peekable<std::vec::IntoIter<JobFile>>,
    current: std::iter::Peekable<std::vec::IntoIter<Exception>>,
}

/// Returns the reason of a row for people.
pub(super) fn shown(reason: &Exception) -> String {
    match (reason.detail.is_empty(), reason.is_rejected()) {
        (true, _) => reason.state.clone(),
        (false, true) => reason.detail.clone(),
        (false, false) => format!("{}: {}", reason.state, reason.detail),
    }
}

impl Reasons {
    pub(super) fn new(manifest: Manifest) -> Result<Self> {
        let files = manifest.files()?.into_iter().peekable();
        Ok(Self { manifest, files, current: Vec::new().into_iter().peekable() })
    }

    /// Returns the reason of a row, if the manifest has one.
    pub(super) fn of_row(&mut self, row: u64) -> Result<Option<Exception>> {
        while let Some(file) = self.files.next_if(|file| file.first_row <= row) {
            if row < file.end_row {
                self.current = self.manifest.exceptions(file.number)?.into_iter().peekable();
            }
        }
        while self.current.next_if(|exception| exception.row < row).is_some() {}
        Ok(self.current.next_if(|exception| exception.row == row))
    }
}
