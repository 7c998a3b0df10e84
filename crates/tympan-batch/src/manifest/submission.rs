//! What was sent, and what became of it.

use rusqlite::{OptionalExtension, Row, params};
use tympan_core::Result;

use super::{Exception, JobFile, Manifest, add_exceptions, number};

/// One time that a file, or the rest of it, was sent or will be.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Submission {
    /// The number of the file.
    pub file: u64,
    /// The number of the attempt, counted from 1.
    pub attempt: u64,
    /// The name of the file with the requests. From the second attempt on, it has only those without an answer.
    pub name: String,
    /// The number of requests.
    pub requests: u64,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// A random text by which the batch is found if the outcome of sending it is not known.
    pub token: String,
    /// When sending began, in seconds since the Unix epoch.
    pub started: i64,
    /// The provider's identifier of the uploaded file.
    pub upload: Option<String>,
    /// The provider's identifier of the batch.
    pub batch: Option<String>,
    /// The provider's name for the state of the batch.
    pub status: String,
    /// The number of requests that succeeded, as the provider reports it.
    pub completed: u64,
    /// The number of requests that failed, as the provider reports it.
    pub failed: u64,
    /// The provider's identifier of the file with the answers.
    pub output: Option<String>,
    /// The provider's identifier of the file with the errors.
    pub errors: Option<String>,
    /// Why the batch failed.
    pub error: Option<String>,
    /// What was found in the results, as JSON.
    pub report: Option<String>,
}

const COLUMNS: &str = "file, attempt, name, requests, bytes, token, started, upload, batch, status, completed, failed, \
                       output, errors, error, report";

impl Manifest {
    /// Returns an attempt to send a file.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn submission(&self, file: u64, attempt: u64) -> Result<Option<Submission>> {
        let query = format!("SELECT {COLUMNS} FROM submission WHERE file = ?1 AND attempt = ?2");
        let found = self.connection.query_row(&query, params![number(file), number(attempt)], read);
        found.optional().map_err(|error| self.failed(&error))
    }

    /// Saves an attempt to send a file, and the state of the file, all at once.
    ///
    /// # Errors
    /// Returns an error if the database cannot be written.
    pub fn save_submission(&self, file: &JobFile, submission: &Submission) -> Result<()> {
        self.save(file, submission, None)
    }

    /// Saves an attempt whose results are here: the rows without an answer, and the state of the file, all at once.
    ///
    /// # Errors
    /// Returns an error if the database cannot be written.
    pub fn save_results(&self, file: &JobFile, submission: &Submission, exceptions: &[Exception]) -> Result<()> {
        self.save(file, submission, Some(exceptions))
    }

    fn save(&self, file: &JobFile, submission: &Submission, exceptions: Option<&[Exception]>) -> Result<()> {
        self.transaction(|transaction| {
            let values = "?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16";
            transaction.execute(
                &format!("INSERT OR REPLACE INTO submission ({COLUMNS}) VALUES ({values})"),
                params![
                    number(submission.file),
                    number(submission.attempt),
                    submission.name,
                    number(submission.requests),
                    number(submission.bytes),
                    submission.token,
                    submission.started,
                    submission.upload,
                    submission.batch,
                    submission.status,
                    number(submission.completed),
                    number(submission.failed),
                    submission.output,
                    submission.errors,
                    submission.error,
                    submission.report,
                ],
            )?;
            if let Some(exceptions) = exceptions {
                let delete = "DELETE FROM exception WHERE file = ?1 AND state <> 'rejected'";
                transaction.execute(delete, [number(file.number)])?;
                add_exceptions(transaction, file.number, exceptions)?;
            }
            transaction.execute(
                "UPDATE file SET state = ?2, attempts = ?3, batch = ?4, upload = ?5, error = ?6 WHERE number = ?1",
                params![
                    number(file.number),
                    file.state.as_str(),
                    number(file.attempts),
                    submission.batch,
                    submission.upload,
                    file.error
                ],
            )?;
            Ok(())
        })
    }

    /// Counts the rows that differ from the others, by state.
    ///
    /// # Errors
    /// Returns an error if the database cannot be read.
    pub fn exception_counts(&self, file: u64) -> Result<Vec<(String, u64)>> {
        let read = || -> rusqlite::Result<Vec<(String, u64)>> {
            let query = "SELECT state, count(*) FROM exception WHERE file = ?1 GROUP BY state ORDER BY state";
            let mut statement = self.connection.prepare(query)?;
            let rows = statement.query_map([number(file)], |row| Ok((row.get(0)?, count(row, 1)?)))?;
            rows.collect()
        };
        read().map_err(|error| self.failed(&error))
    }
}

fn count(row: &Row<'_>, index: usize) -> rusqlite::Result<u64> {
    Ok(u64::try_from(row.get::<_, i64>(index)?).unwrap_or_default())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Submission> {
    Ok(Submission {
        file: count(row, 0)?,
        attempt: count(row, 1)?,
        name: row.get(2)?,
        requests: count(row, 3)?,
        bytes: count(row, 4)?,
        token: row.get(5)?,
        started: row.get(6)?,
        upload: row.get(7)?,
        batch: row.get(8)?,
        status: row.get(9)?,
        completed: count(row, 10)?,
        failed: count(row, 11)?,
        output: row.get(12)?,
        errors: row.get(13)?,
        error: row.get(14)?,
        report: row.get(15)?,
    })
}
