//! Files of rows and their formats.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use tympan_core::{Error, Kind, Result};
use tympan_runtime::file::read;

use super::csv::CsvRows;
use super::ipc::IpcRows;
use super::json_lines::JsonLines;
use super::parquet::ParquetRows;
use super::{ReadRows, parquet};

/// The format of a file of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileFormat {
    /// Apache Parquet.
    Parquet,
    /// Arrow's IPC format, as a file or as a stream.
    Arrow,
    /// Comma-separated values. The first line has the names of the columns.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// A JSON object per line.
    JsonLines,
}

impl FileFormat {
    /// Every format.
    pub const ALL: [Self; 5] = [Self::Parquet, Self::Arrow, Self::Csv, Self::Tsv, Self::JsonLines];

    /// Returns the name that options use, which is also the usual ending of such files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::JsonLines => "jsonl",
        }
    }

    /// Returns the format with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == name)
    }

    /// Returns the format of files with the ending of this path.
    pub fn of_path(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_string_lossy().to_ascii_lowercase();
        match ending.as_str() {
            "parquet" | "pq" => Some(Self::Parquet),
            "arrow" | "arrows" | "ipc" | "feather" => Some(Self::Arrow),
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => None,
        }
    }
}

impl fmt::Display for FileFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A file of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The path.
    pub path: PathBuf,
    /// The format.
    pub format: FileFormat,
}

impl Source {
    /// Creates a source. Without a format, the ending of the path decides.
    ///
    /// # Errors
    /// Returns an error if the ending is not known.
    pub fn new(path: impl Into<PathBuf>, format: Option<FileFormat>) -> Result<Self> {
        let path = path.into();
        let format = format.or_else(|| FileFormat::of_path(&path)).ok_or_else(|| {
            let error = Error::new(Kind::InvalidRows, format_args!("`{}` has an unknown ending", path.display()));
            error.with_help("name the format: `--format parquet`, `arrow`, `csv`, `tsv` or `jsonl`")
        })?;
        Ok(Self { path, format })
    }

    /// Returns the names of the columns. For JSON Lines, these are the keys of the first row.
    ///
    /// # Errors
    /// Returns an error if the beginning of the file cannot be read.
    pub fn columns(&self) -> Result<Vec<String>> {
        let file = self.file()?;
        match self.format {
            FileFormat::Parquet => parquet::columns(file, &self.path),
            FileFormat::Arrow => IpcRows::open(file, &self.path, None).map(|rows| rows.columns()),
            FileFormat::Csv | FileFormat::Tsv => {
                CsvRows::open(file, &self.path, self.delimiter()).map(|rows| rows.columns())
            }
            FileFormat::JsonLines => JsonLines::open(file, &self.path).columns(),
        }
    }

    /// Returns the types of the columns as they are read, or `None` for JSON Lines, whose rows need not agree.
    ///
    /// # Errors
    /// Returns an error if the beginning of the file cannot be read.
    pub fn schema(&self) -> Result<Option<SchemaRef>> {
        let file = self.file()?;
        Ok(match self.format {
            FileFormat::Parquet => Some(ParquetRows::open(file, &self.path, None, 0)?.schema()),
            FileFormat::Arrow => Some(IpcRows::open(file, &self.path, None)?.schema()),
            FileFormat::Csv | FileFormat::Tsv => Some(CsvRows::open(file, &self.path, self.delimiter())?.schema()),
            FileFormat::JsonLines => None,
        })
    }

    /// Returns the number of rows, if the file stores it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn stored_rows(&self) -> Result<Option<u64>> {
        match self.format {
            FileFormat::Parquet => parquet::count(self.file()?, &self.path).map(Some),
            _ => Ok(None),
        }
    }

    /// Opens the file. A format that can seek passes over the rows to skip, and counts them in `next`.
    pub(super) fn open(&self, columns: Option<&[String]>, skip: &mut u64, next: &mut u64) -> Result<Box<dyn ReadRows>> {
        let file = self.file()?;
        Ok(match self.format {
            FileFormat::Parquet => {
                let rows = ParquetRows::open(file, &self.path, columns, *skip)?;
                *next += std::mem::take(skip);
                Box::new(rows)
            }
            FileFormat::Arrow => Box::new(IpcRows::open(file, &self.path, columns)?),
            FileFormat::Csv | FileFormat::Tsv => Box::new(CsvRows::open(file, &self.path, self.delimiter())?),
            FileFormat::JsonLines => Box::new(JsonLines::open(file, &self.path)),
        })
    }

    fn delimiter(&self) -> u8 {
        if self.format == FileFormat::Tsv { b'\t' } else { b',' }
    }

    fn file(&self) -> Result<File> {
        read::open(&self.path).map_err(|error| unreadable(&self.path, None, &error))
    }
}

/// Returns an error about a file.
pub(super) fn unreadable(path: &Path, line: Option<u64>, reason: &dyn fmt::Display) -> Error {
    match line {
        Some(line) => Error::new(Kind::InvalidRows, format_args!("`{}`, line {line}: {reason}", path.display())),
        None => Error::new(Kind::InvalidRows, format_args!("`{}`: {reason}", path.display())),
    }
}
