//! Journals: what a turn was told, kept so that a turn that died can go on.
//!
//! A journal begins with a [`Header`], which says what the turn is about, and goes on with everything that the turn was
//! told. Told the same again, a turn comes to the same. What cannot be had twice is kept before anybody acts on it: the
//! answer of a model, the beginning of a tool, its result. See [`Runtime::resume`](crate::Runtime::resume).
//!
//! The conversation and the inputs are in a journal; credentials are not.

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

pub(crate) use compatibility::{Fits, mismatch};
pub(crate) use record::{Record, Started, parsed};

/// The most bytes of a journal. All of it is read when a turn is resumed.
const MAX_BYTES: u64 = 128 << 20;

/// A place where journals are kept, one journal in each.
///
/// Records are bytes that mean nothing here. A store gives back exactly those that it took, in their order, or fails.
pub trait JournalStore: Send + Sync {
    /// Begins a journal with its first record, in one step: whatever happens, it is there with that record or not at all.
    ///
    /// # Errors
    /// There is one already, or it cannot be made.
    fn create(&self, first: &[u8]) -> Result<Box<dyn JournalWriter>>;

    /// Takes up a journal, which nobody else can do until the writer is dropped. What a torn write left at its end is
    /// taken away.
    ///
    /// # Errors
    /// There is none, somebody else writes to it ([`Kind::JournalBusy`]), or it is damaged.
    fn open(&self) -> Result<(Stored, Box<dyn JournalWriter>)>;

    /// Reads a journal and leaves it as it is.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    fn read(&self) -> Result<Stored>;
}

/// Adds to a journal. Nobody else does so at the same time.
pub trait JournalWriter: Send {
    /// Adds records. When this returns they are on the disk, all of them; if it fails, nothing more can be added.
    ///
    /// # Errors
    /// They cannot be written.
    fn commit(&mut self, records: &[Vec<u8>]) -> Result<()>;
}

/// What a store holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// The records, the oldest first.
    pub records: Vec<Vec<u8>>,
    /// How many bytes at the end are of a write that was torn. No record was there yet, so nothing is lost.
    pub torn_bytes: u64,
}

/// A journal: where it is kept, and what its host wants to find in it again. Clones are the same journal.
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
    /// A journal in a file of its own, which a new turn makes.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::in_store(Arc::new(file::FileStore::new(path.into())))
    }

    /// A journal in a SQLite database of its own.
    #[cfg(feature = "sqlite")]
    pub fn sqlite(path: impl Into<PathBuf>) -> Self {
        Self::in_store(Arc::new(sqlite::SqliteStore::new(path.into())))
    }

    /// A journal in a SQLite database if the name ends in `.db`, `.sqlite` or `.sqlite3`, and else in a file.
    ///
    /// # Errors
    /// This build has no SQLite.
    pub fn at(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if !["db", "sqlite", "sqlite3"].iter().any(|known| extension.eq_ignore_ascii_case(known)) {
            return Ok(Self::file(path));
        }
        #[cfg(feature = "sqlite")]
        return Ok(Self::sqlite(path));
        #[cfg(not(feature = "sqlite"))]
        Err(Error::new(Kind::InvalidJournal, "this build cannot keep journals in SQLite databases")
            .with_help("give the file another ending, or build with the feature `sqlite`"))
    }

    /// A journal in a place of the host's own.
    pub fn in_store(store: Arc<dyn JournalStore>) -> Self {
        Self { store, host: Json::Null }
    }

    /// With data of the host's in its header: [`Header::host`].
    #[must_use]
    pub fn with_host(self, host: Json) -> Self {
        Self { host, ..self }
    }

    /// What a journal is about. The journal stays as it is.
    ///
    /// # Errors
    /// It cannot be read, or is none.
    pub fn header(&self) -> Result<Header> {
        let stored = self.store.read()?;
        parsed(stored.records.first().ok_or_else(without_header)?, 0)
    }

    /// The place where it is kept.
    pub fn store(&self) -> Arc<dyn JournalStore> {
        self.store.clone()
    }

    pub(crate) fn host(&self) -> &Json {
        &self.host
    }
}

/// A journal that holds nothing: the turn never began.
pub(crate) fn without_header() -> Error {
    Error::new(Kind::InvalidJournal, "its header is missing or cut off")
        .with_help("without it nothing can be resumed: remove the file, and begin the turn anew")
}

/// Damage, with the place of it.
fn damaged(place: impl fmt::Display) -> Error {
    Error::new(Kind::InvalidJournal, format_args!("it is damaged {place}")).with_help(
        "its bytes have changed since they were written: take a copy from before that, or begin the turn anew",
    )
}

/// A journal that is to be begun, and is there.
fn exists(path: &Path) -> Error {
    Error::new(Kind::InvalidJournal, format_args!("`{}` is there already", path.display()))
        .with_help("resume the turn that it tells of, or name a file that is not there yet")
}

/// A journal that somebody else has taken up.
fn busy(path: &Path) -> Error {
    Error::new(Kind::JournalBusy, format_args!("somebody else writes to `{}`", path.display()))
        .with_help("another process goes through this turn: wait for it, or end it")
}

/// A journal that nothing more can be added to, because it could not be read again.
fn full(path: &Path) -> Error {
    unusable(path, format_args!("it would have more than {MAX_BYTES} bytes"))
        .with_help("begin a turn with a journal of its own")
}

/// A file that cannot be used.
fn unusable(path: &Path, reason: impl fmt::Display) -> Error {
    Error::new(Kind::InvalidJournal, format_args!("`{}`: {reason}", path.display()))
}
