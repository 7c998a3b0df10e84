//! Journals in SQLite databases.
//!
//! There are two tables. `records` has a row for each record, with the same checksum as in a file. `head` has one row
//! with the number of records and the last checksum. It is updated in the transaction that adds records, so missing
//! rows are detected.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};
use tympan_core::Result;

use crate::turn::journal::frame::Chain;
use crate::turn::journal::{
    JournalStore, JournalWriter, MAX_BYTES, Stored, busy, damaged, exists, unusable, without_header,
};

/// The application ID that identifies a journal: "tymj".
const APPLICATION: i64 = 0x7479_6d6a;

/// The schema version. There is only one so far.
const VERSION: i64 = 1;

/// The maximum number of pages of a new database, of 4096 bytes each.
const MAX_PAGES: i64 = (MAX_BYTES / 4096) as i64;

const TABLES: &str = "
    CREATE TABLE records (number INTEGER PRIMARY KEY, record BLOB NOT NULL, sum TEXT NOT NULL) STRICT;
    CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 0), count INTEGER NOT NULL, sum TEXT NOT NULL) STRICT;
";

/// A database that contains one journal.
pub(super) struct SqliteStore {
    path: PathBuf,
}

impl SqliteStore {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Opens an existing database for exclusive use until the connection is closed. Readers need write access too,
    /// because SQLite repairs an interrupted commit when it opens the database.
    fn connect(&self) -> Result<Connection> {
        self.check_file()?;
        // Without SQLITE_OPEN_URI, the path is always a file name and never a URI with options.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(|error| self.wrong(error))?;
        let set_up = || {
            connection.busy_timeout(Duration::ZERO)?;
            connection.pragma_update(None, "trusted_schema", false)?;
            // Hold the lock until the connection is closed, and make commits durable before they return.
            connection.pragma_update(None, "locking_mode", "exclusive")?;
            connection.pragma_update(None, "journal_mode", "delete")?;
            connection.pragma_update(None, "synchronous", "extra")?;
            connection.pragma_update(None, "max_page_count", MAX_PAGES)?;
            connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")
        };
        set_up().map_err(|error| self.wrong(error))?;
        Ok(connection)
    }

    /// Rejects files that would block, such as a pipe, and files that are too large to read. It does not open the file:
    /// closing it would release the locks of other connections in this process.
    fn check_file(&self) -> Result<()> {
        let metadata = fs::metadata(&self.path).map_err(|error| unusable(&self.path, error))?;
        if !metadata.is_file() {
            return Err(unusable(&self.path, "not a regular file"));
        }
        if metadata.len() > MAX_BYTES {
            return Err(unusable(&self.path, format_args!("larger than {MAX_BYTES} bytes")));
        }
        Ok(())
    }

    fn wrong(&self, error: rusqlite::Error) -> tympan_core::Error {
        wrong(&self.path, error)
    }

    fn writer(&self, connection: Connection, count: i64, chain: Chain) -> Box<dyn JournalWriter> {
        Box::new(SqliteWriter { path: self.path.clone(), connection: Some(connection), count, chain })
    }
}

impl JournalStore for SqliteStore {
    fn create(&self, first: &[u8]) -> Result<Box<dyn JournalWriter>> {
        // The database, and SQLite's auxiliary files, get the mode of this file. An existing empty file is left over
        // from a turn that crashed before it began.
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&self.path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(unusable(&self.path, error)),
            _ => {}
        }
        let mut connection = self.connect()?;
        let mut chain = Chain::begin();
        let mut made = || {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
            let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
            if tables > 0 {
                return Ok(false);
            }
            transaction.pragma_update(None, "application_id", APPLICATION)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
            transaction.execute_batch(TABLES)?;
            insert(&transaction, 0, &mut chain, &[first.to_vec()])?;
            transaction.commit()?;
            Ok(true)
        };
        match made().map_err(|error| self.wrong(error))? {
            true => Ok(self.writer(connection, 1, chain)),
            false => Err(exists(&self.path)),
        }
    }

    fn open(&self) -> Result<(Stored, Box<dyn JournalWriter>)> {
        let connection = self.connect()?;
        let (stored, count, chain) = read(&connection, &self.path)?;
        Ok((stored, self.writer(connection, count, chain)))
    }

    fn read(&self) -> Result<Stored> {
        let connection = self.connect()?;
        read(&connection, &self.path).map(|(stored, ..)| stored)
    }
}

/// Inserts records, and updates their number in the same transaction.
fn insert(transaction: &Transaction<'_>, count: i64, chain: &mut Chain, records: &[Vec<u8>]) -> rusqlite::Result<i64> {
    let mut add = transaction.prepare("INSERT INTO records (number, record, sum) VALUES (?1, ?2, ?3)")?;
    let mut count = count;
    for record in records {
        chain.add(record);
        add.execute(params![count, record, chain.sum()])?;
        count += 1;
    }
    transaction
        .execute("INSERT OR REPLACE INTO head (id, count, sum) VALUES (0, ?1, ?2)", params![count, chain.sum()])?;
    Ok(count)
}

/// Reads and verifies all records.
fn read(connection: &Connection, path: &Path) -> Result<(Stored, i64, Chain)> {
    let all = || {
        let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        let kind = (number("application_id")?, number("user_version")?, tables);
        if kind == (0, 0, 0) || kind.0 != APPLICATION || kind.1 != VERSION {
            return Ok((kind, Vec::new(), None));
        }
        let mut select = connection.prepare("SELECT number, record, sum FROM records ORDER BY number")?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let rows = rows.collect::<rusqlite::Result<Vec<(i64, Vec<u8>, String)>>>()?;
        let head = connection.query_row("SELECT count, sum FROM head WHERE id = 0", [], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        });
        Ok((kind, rows, head.optional()?))
    };
    let (kind, rows, head) = all().map_err(|error| wrong(path, error))?;
    match kind {
        (0, 0, 0) => return Err(without_header()),
        (APPLICATION, VERSION, _) => {}
        _ => return Err(unusable(path, "not a journal database, or damaged")),
    }
    let (mut chain, mut count, mut stored) = (Chain::begin(), 0, Stored::default());
    for (number, record, sum) in rows {
        chain.add(&record);
        if number != count || sum != chain.sum() {
            return Err(damaged(format_args!("in record {count}")));
        }
        count += 1;
        stored.records.push(record);
    }
    if head != Some((count, chain.sum().to_owned())) {
        return Err(damaged(format_args!("after record {count}")));
    }
    Ok((stored, count, chain))
}

fn wrong(path: &Path, error: rusqlite::Error) -> tympan_core::Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => busy(path),
        _ => unusable(path, error),
    }
}

struct SqliteWriter {
    path: PathBuf,
    /// The connection; `None` after a failure.
    connection: Option<Connection>,
    count: i64,
    chain: Chain,
}

impl JournalWriter for SqliteWriter {
    fn commit(&mut self, records: &[Vec<u8>]) -> Result<()> {
        let Some(mut connection) = self.connection.take() else {
            return Err(unusable(&self.path, "an earlier write failed"));
        };
        let mut committed = || {
            let transaction = connection.transaction()?;
            let count = insert(&transaction, self.count, &mut self.chain, records)?;
            transaction.commit().map(|()| count)
        };
        self.count = committed().map_err(|error| wrong(&self.path, error))?;
        self.connection = Some(connection);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_were_changed_or_taken_out_are_noticed() {
        for (change, place) in [
            ("UPDATE records SET record = x'7b20' WHERE number = 1", "in record 1"),
            ("DELETE FROM records WHERE number = 1", "in record 1"),
            ("DELETE FROM records WHERE number = 2", "after record 2"),
            ("DELETE FROM head", "after record 3"),
            ("PRAGMA user_version = 2", "not a journal database"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let store = SqliteStore::new(folder.path().join("turn.db"));
            let mut writer = store.create(b"{}").expect("it is new");
            writer.commit(&[b"{}".to_vec(), b"{}".to_vec()]).expect("it is written");
            drop(writer);
            store.connect().expect("it is free").execute_batch(change).expect("it can be changed");
            let error = store.read().expect_err("it is damaged");
            assert!(error.message().contains(place), "{change}: {error}");
        }
    }
}
