//! The manifest of a job: an SQLite database in the directory of the job.
//!
//! It records which rows each file has, as ranges, and row by row only what differs from its range. Every change is one
//! transaction, and is made after the file that it describes is safely on disk. So whatever the moment at which a
//! process is killed, the manifest describes files that exist, and the next process continues from there.

mod fault;
mod schema;
mod submission;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use tympan_core::{Error, Kind, Result};

pub use self::submission::Submission;

use self::schema::{SCHEMA, VERSION};

/// The name of the database in the directory of a job.
pub const MANIFEST: &str = "job.sqlite";

/// How long to wait for another process that writes to the same manifest.
const BUSY: Duration = Duration::from_secs(30);

/// The state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileState {
    /// The file is complete, and nothing was sent.
    Prepared,
    /// The file is being sent, or the process ended while it was: whether the provider has it is not known.
    Submitting,
    /// The provider has accepted the file.
    Submitted,
    /// The provider has ended the batch. Its results are not yet here.
    Ended,
    /// The results are here.
    Collected,
    /// The provider refused the file, so there is no batch. It can be sent again.
    Failed,
}

impl FileState {
    const ALL: [Self; 6] =
        [Self::Prepared, Self::Submitting, Self::Submitted, Self::Ended, Self::Collected, Self::Failed];

    /// Returns the name of the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Submitting => "submitting",
            Self::Submitted => "submitted",
            Self::Ended => "ended",
            Self::Collected => "collected",
            Self::Failed => "failed",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }
}

/// A file of a job.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct JobFile {
    /// The number of the file, counted from 1.
    pub number: u64,
    /// The name in the directory of the job.
    pub name: String,
    /// The first row.
    pub first_row: u64,
    /// The row after the last.
    pub end_row: u64,
    /// The number of requests. Rejected rows have none.
    pub requests: u64,
    /// The size in bytes.
    pub bytes: u64,
    /// The number of input tokens, or an upper bound.
    pub tokens: u64,
    /// The state.
    pub state: FileState,
    /// How often the file was sent.
    pub attempts: u64,
    /// The provider's identifier of the batch.
    pub batch: Option<String>,
    /// The provider's identifier of the uploaded file.
    pub upload: Option<String>,
    /// Why the file failed.
    pub error: Option<String>,
}

/// A row that differs from the other rows of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exception {
    /// The number of the row.
    pub row: u64,
    /// What happened: `rejected`, `failed`, `expired`, `cancelled` or `missing`.
    pub state: String,
    /// Details for people.
    pub detail: String,
}

impl Exception {
    /// Returns whether the row was rejected when the job was prepared, so that nothing was sent for it.
    pub fn is_rejected(&self) -> bool {
        self.state == "rejected"
    }
}

/// The manifest of a job.
#[derive(Debug)]
pub struct Manifest {
    connection: Connection,
    path: PathBuf,
}

impl Manifest {
    /// Opens the manifest in a directory, and creates it if there is none.
    ///
    /// # Errors
    /// Returns an error if the database cannot be opened, or if a newer version of Tympan has written it.
    pub fn create(directory: &Path) -> Result<Self> {
        let path = directory.join(MANIFEST);
        let manifest = Self::connect(Connection::open(&path), &path)?;
        manifest.check_version()?;
        Ok(manifest)
    }

    /// Opens the manifest of an existing job.
    ///
    /// # Errors
    /// Returns an error if the directory has no manifest, or for the same reasons as [`Manifest::create`].
    pub fn open(directory: &Path) -> Result<Self> {
        let path = directory.join(MANIFEST);
        if !path.is_file() {
            return Err(Error::new(
                Kind::InvalidBatch,
                format_args!("`{}` is not the directory of a job", directory.display()),
            )
            .with_help("`tympan batch prepare ROWS --prompt PROMPT -o DIR` creates one"));
        }
        let manifest = Self::connect(Connection::open(&path), &path)?;
        manifest.check_version()?;
        Ok(manifest)
    }

    fn connect(connection: rusqlite::Result<Connection>, path: &Path) -> Result<Self> {
        let connection = connection.map_err(|error| failed(path, &error))?;
        let ready = connection.busy_timeout(BUSY).and_then(|()| connection.pragma_update(None, "synchronous", "FULL"));
        let ready = ready.and_then(|()| connection.execute_batch(SCHEMA));
        ready.map_err(|error| failed(path, &error))?;
        Ok(Self { connection, path: path.to_owned() })
    }

    fn check_version(&self) -> Result<()> {
        let found: String = self.get("version")?.unwrap_or_default();
        if found.is_empty() {
            return self.set(&[("version", VERSION)]);
        }
        if found == VERSION {
            return Ok(());
        }
        let path = self.path.display();
        Err(Error::new(
            Kind::InvalidBatch,
            format_args!("`{path}` has version {found}, and this Tympan reads {VERSION}"),
        )
        .with_help("use the version of Tympan that created the job"))
    }

    /// Returns a property of the job.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<String>> {
        let row = self.connection.query_row("SELECT value FROM job WHERE key = ?1", [key], |row| row.get(0));
        row.optional().map_err(|error| self.failed(&error))
    }

    /// Sets properties of the job.
    ///
    /// # Errors
    /// Returns an error if the database cannot be written.
    pub fn set(&self, properties: &[(&str, &str)]) -> Result<()> {
        self.transaction(|transaction| {
            for (key, value) in properties {
                transaction.execute("INSERT OR REPLACE INTO job (key, value) VALUES (?1, ?2)", [key, value])?;
            }
            Ok(())
        })
    }

    /// Adds a complete file and the rows of its range that were rejected, and sets properties of the job, all at once.
    ///
    /// # Errors
    /// Returns an error if the database cannot be written.
    pub fn add_file(&self, file: &JobFile, exceptions: &[Exception], properties: &[(&str, &str)]) -> Result<()> {
        self.transaction(|transaction| {
            transaction.execute(
                "INSERT INTO file (number, name, first_row, end_row, requests, bytes, tokens, state, attempts) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0)",
                params![
                    number(file.number),
                    file.name,
                    number(file.first_row),
                    number(file.end_row),
                    number(file.requests),
                    number(file.bytes),
                    number(file.tokens),
                    file.state.as_str()
                ],
            )?;
            add_exceptions(transaction, file.number, exceptions)?;
            for (key, value) in properties {
                transaction.execute("INSERT OR REPLACE INTO job (key, value) VALUES (?1, ?2)", [key, value])?;
            }
            Ok(())
        })
    }

    /// Changes the state of a file.
    ///
    /// # Errors
    /// Returns an error if the database cannot be written.
    pub fn update_file(&self, file: &JobFile) -> Result<()> {
        self.transaction(|transaction| {
            transaction.execute(
                "UPDATE file SET state = ?2, attempts = ?3, batch = ?4, upload = ?5, error = ?6 WHERE number = ?1",
                params![
                    number(file.number),
                    file.state.as_str(),
                    number(file.attempts),
                    file.batch,
                    file.upload,
                    file.error
                ],
            )?;
            Ok(())
        })
    }

    /// Replaces the exceptions of a file in these states, and changes the state of the file.
    ///
    /// # Errors
    /// Returns an error if the database cannot be written.
    pub fn set_results(&self, file: &JobFile, states: &[&str], exceptions: &[Exception]) -> Result<()> {
        self.transaction(|transaction| {
            for state in states {
                let delete = "DELETE FROM exception WHERE file = ?1 AND state = ?2";
                transaction.execute(delete, params![number(file.number), state])?;
            }
            add_exceptions(transaction, file.number, exceptions)?;
            transaction.execute(
                "UPDATE file SET state = ?2, error = ?3 WHERE number = ?1",
                params![number(file.number), file.state.as_str(), file.error],
            )?;
            Ok(())
        })
    }

    /// Returns all files, in order.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn files(&self) -> Result<Vec<JobFile>> {
        let query = "SELECT number, name, first_row, end_row, requests, bytes, tokens, state, attempts, batch, upload, \
                     error FROM file ORDER BY number";
        let read = || -> rusqlite::Result<Vec<JobFile>> {
            let mut statement = self.connection.prepare(query)?;
            let rows = statement.query_map([], |row| {
                let count = |index| row.get::<_, i64>(index).map(|value| u64::try_from(value).unwrap_or_default());
                Ok(JobFile {
                    number: count(0)?,
                    name: row.get(1)?,
                    first_row: count(2)?,
                    end_row: count(3)?,
                    requests: count(4)?,
                    bytes: count(5)?,
                    tokens: count(6)?,
                    state: FileState::from_name(&row.get::<_, String>(7)?).unwrap_or(FileState::Failed),
                    attempts: count(8)?,
                    batch: row.get(9)?,
                    upload: row.get(10)?,
                    error: row.get(11)?,
                })
            })?;
            rows.collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// Returns the exceptions of a file, by row.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn exceptions(&self, file: u64) -> Result<Vec<Exception>> {
        let read = || -> rusqlite::Result<Vec<Exception>> {
            let query = "SELECT row, state, detail FROM exception WHERE file = ?1 ORDER BY row";
            let mut statement = self.connection.prepare(query)?;
            let rows = statement.query_map([number(file)], |row| {
                let at = u64::try_from(row.get::<_, i64>(0)?).unwrap_or_default();
                Ok(Exception { row: at, state: row.get(1)?, detail: row.get(2)? })
            })?;
            rows.collect()
        };
        read().map_err(|error| self.failed(&error))
    }

    fn transaction(&self, write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>) -> Result<()> {
        // Only one process changes the manifest at a time: it holds the lock of the job.
        let transaction = self.connection.unchecked_transaction();
        let written = transaction.and_then(|transaction| {
            write(&transaction)?;
            fault::point();
            transaction.commit()
        });
        fault::point();
        written.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &rusqlite::Error) -> Error {
        failed(&self.path, error)
    }
}

fn add_exceptions(transaction: &Transaction<'_>, file: u64, exceptions: &[Exception]) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO exception (file, row, state, detail) VALUES (?1, ?2, ?3, ?4)";
    let mut insert = transaction.prepare(insert)?;
    for exception in exceptions {
        insert.execute(params![number(file), number(exception.row), exception.state, exception.detail])?;
    }
    Ok(())
}

/// SQLite has no unsigned integers. Nobody has so many rows.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn failed(path: &Path, error: &rusqlite::Error) -> Error {
    Error::new(Kind::InvalidBatch, format_args!("the manifest `{}`: {error}", path.display()))
}
