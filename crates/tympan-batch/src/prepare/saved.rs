//! The files of rows of a job, as they were when it was prepared, so that other rows are not taken for them.

use std::fs;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tympan_core::{Error, Kind, Result};

use crate::rows::{FileFormat, Source};

/// A file of rows, as it was when a job was prepared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedSource {
    path: String,
    format: String,
    bytes: u64,
    /// When the file was changed, in nanoseconds since the Unix epoch, if the system knows it.
    modified: Option<String>,
}

impl SavedSource {
    /// Describes a file as it is now.
    pub(crate) fn of(source: &Source) -> Result<Self> {
        let failed = |error: &std::io::Error| {
            Error::new(Kind::InvalidRows, format_args!("cannot read `{}`: {error}", source.path.display()))
        };
        let path = fs::canonicalize(&source.path).map_err(|error| failed(&error))?;
        let metadata = fs::metadata(&path).map_err(|error| failed(&error))?;
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            path: path.display().to_string(),
            format: source.format.as_str().to_owned(),
            bytes: metadata.len(),
            modified: modified.map(|since| since.as_nanos().to_string()),
        })
    }

    /// Reads the files from the identity of a job.
    pub(crate) fn all(identity: &Json) -> Option<Vec<Self>> {
        serde_json::from_value(identity.get("rows")?.clone()).ok()
    }

    /// Returns the file, wherever it was when the job was prepared.
    pub(crate) fn source(&self) -> Option<Source> {
        let format = FileFormat::from_name(&self.format)?;
        Source::new(PathBuf::from(&self.path), Some(format)).ok()
    }

    /// Returns an error if a file is not the same as this one was: its format, its size and, with `checks_time`, the time
    /// at which it was changed.
    pub(crate) fn check(&self, source: &Source, checks_time: bool) -> Result<()> {
        let found = Self::of(source)?;
        let change = if found.format != self.format {
            format!("it is read as `{}`, expected `{}`", found.format, self.format)
        } else if found.bytes != self.bytes {
            format!("it has {} bytes, expected {}", found.bytes, self.bytes)
        } else if checks_time && found.modified != self.modified {
            "it was written again".to_owned()
        } else {
            return Ok(());
        };
        let path = source.path.display();
        let message = format_args!("`{path}` has changed since the job was prepared: {change}");
        Err(Error::new(Kind::InvalidRows, message).with_help(
            "restore the file; if it has the same rows, name it with `tympan batch collect DIR --rows FILE -o RESULTS`",
        ))
    }
}
