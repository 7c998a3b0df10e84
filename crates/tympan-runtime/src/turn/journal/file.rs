//! Journals in plain files.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tympan_core::Result;

use crate::file::{read, write};
use crate::turn::journal::frame::{self, Chain, FIRST_LINE};
use crate::turn::journal::{JournalStore, JournalWriter, MAX_BYTES, Stored, busy, exists, full, unusable};

/// A file that contains one journal.
pub(super) struct FileStore {
    path: PathBuf,
}

impl FileStore {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    fn writer(&self, file: File, chain: Chain, length: u64) -> Box<dyn JournalWriter> {
        Box::new(FileWriter { path: self.path.clone(), file: Some(file), chain, length })
    }

    /// Opens and locks the file, so that there is only one writer.
    fn locked(&self) -> Result<File> {
        let file = read::open_to_append(&self.path).map_err(|error| unusable(&self.path, error))?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => Err(busy(&self.path)),
            Err(TryLockError::Error(error)) => Err(unusable(&self.path, error)),
        }
    }
}

impl JournalStore for FileStore {
    fn create(&self, first: &[u8]) -> Result<Box<dyn JournalWriter>> {
        let mut chain = Chain::begin();
        let mut bytes = FIRST_LINE.as_bytes().to_vec();
        chain.write(first, &mut bytes)?;
        write::create(&self.path, &bytes, 0o600).and_then(|()| sync_directory(&self.path)).map_err(
            |error| match error.kind() {
                io::ErrorKind::AlreadyExists => exists(&self.path),
                _ => unusable(&self.path, error),
            },
        )?;
        let file = self.locked()?;
        // Another process may have opened the file before it was locked.
        let length = file.metadata().map_err(|error| unusable(&self.path, error))?.len();
        if length != bytes.len() as u64 {
            return Err(busy(&self.path));
        }
        Ok(self.writer(file, chain, length))
    }

    fn open(&self) -> Result<(Stored, Box<dyn JournalWriter>)> {
        let file = self.locked()?;
        let (stored, end, chain) = stored(&file, &self.path)?;
        if stored.torn_bytes > 0 {
            let cut = file.set_len(end).and_then(|()| file.sync_all());
            cut.map_err(|error| unusable(&self.path, error))?;
        }
        Ok((stored, self.writer(file, chain, end)))
    }

    fn read(&self) -> Result<Stored> {
        let file = read::open_regular(&self.path).map_err(|error| unusable(&self.path, error))?;
        stored(&file, &self.path).map(|(stored, ..)| stored)
    }
}

/// Returns the contents of a file, the end of its last complete record, and its checksum.
fn stored(file: &File, path: &Path) -> Result<(Stored, u64, Chain)> {
    let bytes =
        file.try_clone().and_then(|file| read::bytes(file, MAX_BYTES)).map_err(|error| unusable(path, error))?;
    let frames = frame::read(&bytes)?;
    let torn_bytes = (bytes.len() - frames.end) as u64;
    Ok((Stored { records: frames.records, torn_bytes }, frames.end as u64, frames.chain))
}

/// Syncs the directory. Without this, a new file may be missing after a power failure.
fn sync_directory(path: &Path) -> io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

struct FileWriter {
    path: PathBuf,
    /// The locked file; `None` after a failure, because the end of the file is then unknown.
    file: Option<File>,
    chain: Chain,
    /// The size of the file, in bytes.
    length: u64,
}

impl JournalWriter for FileWriter {
    fn commit(&mut self, records: &[Vec<u8>]) -> Result<()> {
        let Some(mut file) = self.file.take() else {
            return Err(unusable(&self.path, "an earlier write failed"));
        };
        let mut bytes = Vec::new();
        for record in records {
            self.chain.write(record, &mut bytes)?;
        }
        self.length = self.length.saturating_add(bytes.len() as u64);
        if self.length > MAX_BYTES {
            return Err(full(&self.path));
        }
        file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(|error| unusable(&self.path, error))?;
        self.file = Some(file);
        Ok(())
    }
}
