//! Journals: the persisted events of turns, from which turns can be resumed after a crash.
//!
//! A journal starts with a [`Header`], which describes the turn, followed by all its input events. Replaying the events
//! restores the turn, because turns are deterministic. Anything that cannot be reproduced is persisted before it is
//! acted on: model responses, the start of tools and their results. See [`Runtime::resume`](crate::Runtime::resume).
//!
//! A journal contains the conversation and the inputs, but no credentials.

mod address;
mod compatibility;
mod file;
mod frame;
mod record;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;
use tympan_core::{Error, Kind, Result};

pub use record::Header;

pub(crate) use compatibility::{Fingerprint, mismatch};
pub(crate) use record::{Record, StartedTool, parsed};

/// The maximum size of a journal, in bytes. Resuming a turn reads all of it.
const MAX_BYTES: u64 = 128 << 20;

/// A store that holds one journal.
///
/// Records are opaque bytes. A store must return exactly the records that it was given, in the same order, or fail.
pub trait JournalStore: Send + Sync {
    /// Creates a journal with its first record, atomically: after a failure, it either contains that record or does not
    /// exist.
    ///
    /// # Errors
    /// Returns an error if the journal already exists or cannot be created.
    fn create(&self, first: &[u8]) -> Result<Box<dyn JournalWriter>>;

    /// Opens a journal for exclusive use until the writer is dropped. Removes the remains of an incomplete write at its
    /// end.
    ///
    /// # Errors
    /// Returns an error if the journal does not exist, if another writer has opened it ([`Kind::JournalBusy`]), or if
    /// it is damaged.
    fn open(&self) -> Result<(Stored, Box<dyn JournalWriter>)>;

    /// Reads a journal without changing it.
    ///
    /// # Errors
    /// Returns an error if the journal does not exist or is damaged.
    fn read(&self) -> Result<Stored>;
}

/// Appends to a journal, with exclusive access.
pub trait JournalWriter: Send {
    /// Appends records. When this returns, all of them are on disk. After an error, nothing more can be appended.
    ///
    /// # Errors
    /// Returns an error if the records cannot be written.
    fn commit(&mut self, records: &[Vec<u8>]) -> Result<()>;
}

/// The contents of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The records, oldest first.
    pub records: Vec<Vec<u8>>,
    /// The size of an incomplete write at the end, in bytes. It does not contain a complete record, so nothing is lost.
    pub torn_bytes: u64,
}

/// A journal: its store, and custom data from the host. Clones refer to the same journal.
#[derive(Clone)]
pub struct Journal {
    store: Arc<dyn JournalStore>,
    host: Json,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").finish_non_exhaustive()
    }
}

impl Journal {
    /// Creates a journal in a file of its own. A new turn creates the file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::in_store(Arc::new(file::FileStore::new(path.into())))
    }

    /// Creates a journal in a SQLite database of its own.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self::in_store(Arc::new(sqlite::SqliteStore::new(path.into())))
    }

    /// Creates a journal in a SQLite database if the file extension is `.db`, `.sqlite` or `.sqlite3`, and in a plain
    /// file otherwise.
    ///
    /// # Errors
    /// Returns an error if the path names a SQLite database, but this build does not support SQLite.
    pub fn at(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if !["db", "sqlite", "sqlite3"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
            return Ok(Self::file(path));
        }
        #[cfg(feature = "sqlite")]
        return Ok(Self::sqlite(path));
        #[cfg(not(feature = "sqlite"))]
        Err(Error::new(Kind::InvalidJournal, "this build does not support SQLite journals")
            .with_help("use another file extension, or build with the `sqlite` feature"))
    }

    /// Creates a journal in a custom store.
    pub fn in_store(store: Arc<dyn JournalStore>) -> Self {
        Self { store, host: Json::Null }
    }

    /// Adds custom data to the header; see [`Header::host`].
    #[must_use]
    pub fn with_host(self, host: Json) -> Self {
        Self { host, ..self }
    }

    /// Reads the header of the journal, without changing it.
    ///
    /// # Errors
    /// Returns an error if the journal cannot be read or is invalid.
    pub fn header(&self) -> Result<Header> {
        let stored = self.store.read()?;
        parsed(stored.records.first().ok_or_else(without_header)?, 0)
    }

    /// Returns the store.
    pub fn store(&self) -> Arc<dyn JournalStore> {
        self.store.clone()
    }

    pub(crate) fn host(&self) -> &Json {
        &self.host
    }
}

/// Returns an error for a journal without a header, whose turn never started.
pub(crate) fn without_header() -> Error {
    Error::new(Kind::InvalidJournal, "the header is missing or truncated")
        .with_help("the turn cannot be resumed without it: delete the file and start a new turn")
}

/// Returns an error for a damaged journal.
fn damaged(place: impl fmt::Display) -> Error {
    Error::new(Kind::InvalidJournal, format_args!("the journal is damaged {place}"))
        .with_help("the file has been modified: restore a backup, or start a new turn")
}

/// Returns an error for a new journal whose file already exists.
fn exists(path: &Path) -> Error {
    Error::new(Kind::InvalidJournal, format_args!("`{}` already exists", path.display()))
        .with_help("resume its turn, or choose a path that does not exist")
}

/// Returns an error for a journal that another writer has opened.
fn busy(path: &Path) -> Error {
    Error::new(Kind::JournalBusy, format_args!("another process is writing to `{}`", path.display()))
        .with_help("wait for the other process to finish, or stop it")
}

/// Returns an error for a journal that has reached its size limit and could not be read if it grew.
fn full(path: &Path) -> Error {
    unusable(path, format_args!("larger than {MAX_BYTES} bytes")).with_help("start a new turn with its own journal")
}

/// Returns an error for an unusable file.
fn unusable(path: &Path, reason: impl fmt::Display) -> Error {
    Error::new(Kind::InvalidJournal, format_args!("`{}`: {reason}", path.display()))
}
