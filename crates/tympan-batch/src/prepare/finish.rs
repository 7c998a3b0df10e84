//! Completes files: makes them durable and records them, while the next file is being written.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use tympan_core::{Error, Kind, Result};

use super::cannot_write;
use super::part::Part;
use crate::manifest::{Exception, JobFile, Manifest};

/// The number of complete files that may wait for the disk. A faster writer waits for it as well.
const WAITING: usize = 1;

/// A file that no more rows are added to.
pub(super) struct Completed {
    /// The file, unless all rows of its range were rejected.
    pub(super) part: Option<Part>,
    /// The entry of the manifest.
    pub(super) file: JobFile,
    /// The rows of its range that were rejected.
    pub(super) exceptions: Vec<Exception>,
    /// The file of rejected rows, which is made durable first.
    pub(super) rejects: File,
    /// Where the job continues after this file.
    pub(super) properties: [(&'static str, String); 3],
}

/// A thread that completes files in order.
pub(super) struct Finisher {
    files: SyncSender<Completed>,
    thread: JoinHandle<Result<Manifest>>,
}

impl Finisher {
    pub(super) fn start(directory: &Path, manifest: Manifest) -> Self {
        let (files, received) = sync_channel(WAITING);
        let directory = directory.to_owned();
        Self { files, thread: thread::spawn(move || complete_all(&directory, manifest, &received)) }
    }

    /// Hands over a file. Returns false if the thread has failed; [`Finisher::finish`] then returns the error.
    pub(super) fn add(&self, completed: Completed) -> bool {
        self.files.send(completed).is_ok()
    }

    /// Waits until all files are complete.
    pub(super) fn finish(self) -> Result<Manifest> {
        drop(self.files);
        self.thread.join().unwrap_or_else(|_| Err(Error::new(Kind::InvalidBatch, "a thread has ended early")))
    }
}

fn complete_all(directory: &Path, manifest: Manifest, files: &Receiver<Completed>) -> Result<Manifest> {
    for completed in files {
        complete(directory, &manifest, completed)?;
    }
    Ok(manifest)
}

/// Completes a file. The manifest comes last, so that it describes nothing that could be lost.
fn complete(directory: &Path, manifest: &Manifest, completed: Completed) -> Result<()> {
    let Completed { part, mut file, exceptions, rejects, properties } = completed;
    if let Some(part) = part {
        let path: PathBuf = part.path().to_owned();
        file.bytes = part.finish()?;
        let complete = directory.join(&file.name);
        std::fs::rename(&path, &complete).map_err(|error| cannot_write(&complete, &error))?;
        sync_directory(directory);
    }
    rejects.sync_data().map_err(|error| cannot_write(directory, &error))?;
    let properties = properties.each_ref().map(|(key, value)| (*key, value.as_str()));
    manifest.add_file(&file, &exceptions, &properties)
}

/// Makes the new name of a file durable. Not all systems can, and without it a file is only written again.
fn sync_directory(directory: &Path) {
    if let Ok(directory) = File::open(directory) {
        let _ = directory.sync_all();
    }
}
