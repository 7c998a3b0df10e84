//! The log of a run: the results of finished cases, so that a run can be resumed after a crash.
//!
//! The log is a file of JSON Lines. Each result is written as soon as its case is finished, so the order is that in which
//! cases finish. A last line that is not complete is ignored.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use serde::Deserialize;

use crate::result::{CaseResult, Verdict};

/// The name of the directory for what a run leaves behind, in the directory of the project.
pub const DIRECTORY: &str = ".tympan";

/// The name of the log in this directory.
const NAME: &str = "last-test.jsonl";

/// The maximum length of a line in bytes.
const MAX_LINE: u64 = 64 << 20;

/// A log that results are appended to, by any number of threads.
#[derive(Debug)]
pub struct RunLog {
    file: Mutex<File>,
}

/// The finished cases of an earlier run.
#[derive(Debug, Default)]
pub struct FinishedCases {
    file: Option<File>,
    cases: HashMap<String, Finished>,
}

#[derive(Debug)]
struct Finished {
    hash: String,
    verdict: Verdict,
    offset: u64,
}

/// The part of a result that decides whether a case has to run again.
#[derive(Deserialize)]
struct Head {
    id: String,
    #[serde(default)]
    hash: String,
    verdict: Verdict,
}

impl RunLog {
    /// Starts a log in the directory of a project, replacing the one of the last run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn create(project: &Path) -> Result<Self> {
        let directory = project.join(DIRECTORY);
        fs::create_dir_all(&directory)?;
        let ignore = directory.join(".gitignore");
        if !ignore.exists() {
            fs::write(ignore, "*\n")?;
        }
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(directory.join(NAME))?;
        Ok(Self { file: Mutex::new(file) })
    }

    /// Continues the log of the last run. What its last line lacks is removed.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written.
    pub fn append(project: &Path) -> Result<(Self, FinishedCases)> {
        let path = project.join(DIRECTORY).join(NAME);
        let (cases, end) = match File::open(&path) {
            Ok(file) => index(&file)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok((Self::create(project)?, FinishedCases::default()));
            }
            Err(error) => return Err(error),
        };
        let mut file = OpenOptions::new().write(true).open(&path)?;
        file.set_len(end)?;
        file.seek(SeekFrom::End(0))?;
        Ok((Self { file: Mutex::new(file) }, FinishedCases { file: Some(File::open(&path)?), cases }))
    }

    /// Writes the result of a finished case.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, result: &CaseResult) -> Result<()> {
        let mut line = serde_json::to_vec(result)?;
        line.push(b'\n');
        // One call, so that a crash leaves at most one incomplete line.
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}

impl FinishedCases {
    /// Reads the finished cases of the last run.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read.
    pub fn read(project: &Path) -> Result<Self> {
        match File::open(project.join(DIRECTORY).join(NAME)) {
            Ok(file) => {
                let (cases, _) = index(&file)?;
                Ok(Self { file: Some(file), cases })
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Returns whether a case failed or did not run.
    pub fn has_failed(&self, id: &str) -> bool {
        self.cases.get(id).is_some_and(|case| matches!(case.verdict, Verdict::Failed | Verdict::NotRun))
    }

    /// Returns whether any case failed or did not run.
    pub fn has_failures(&self) -> bool {
        self.cases.values().any(|case| matches!(case.verdict, Verdict::Failed | Verdict::NotRun))
    }

    /// Returns whether there is the result of a case that passed or failed, and nothing that decides about it has changed
    /// since.
    pub fn contains(&self, id: &str, hash: &str) -> bool {
        self.find(id, hash).is_some()
    }

    fn find(&self, id: &str, hash: &str) -> Option<&Finished> {
        self.cases.get(id).filter(|case| case.hash == hash && case.verdict != Verdict::NotRun)
    }

    /// Returns the result of a case that passed or failed, if nothing that decides about it has changed since.
    pub fn result(&self, id: &str, hash: &str) -> Option<CaseResult> {
        let case = self.find(id, hash)?;
        let mut file = self.file.as_ref()?;
        file.seek(SeekFrom::Start(case.offset)).ok()?;
        let mut line = String::new();
        BufReader::new(file).take(MAX_LINE).read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }
}

/// Returns the positions of all complete results, and the end of the last complete line.
fn index(file: &File) -> Result<(HashMap<String, Finished>, u64)> {
    let mut reader = BufReader::new(file);
    let (mut cases, mut offset) = (HashMap::new(), 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            return Ok((cases, offset));
        }
        if let Ok(Head { id, hash, verdict }) = serde_json::from_slice(&line) {
            cases.insert(id, Finished { hash, verdict, offset });
        }
        offset += length as u64;
    }
}
