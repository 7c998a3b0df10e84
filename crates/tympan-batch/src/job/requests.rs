//! The requests of a file: which rows it has, and where their lines are.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use tympan_core::{Error, Kind, Result};

use crate::api::RequestFile;
use crate::prepare::row_of;

const BUFFER: usize = 1 << 20;

/// The requests of a file, by row.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// The rows, the positions of their lines, and the lengths with the line break, by row.
    lines: Vec<(u64, u64, u64)>,
    /// The row of each line, in the order of the file.
    order: Vec<u64>,
}

impl Requests {
    /// Reads the identifiers of all requests, and checks that the file is what the manifest says: this many requests of
    /// the job, each of a different row of this range.
    ///
    /// # Errors
    /// Returns an error if it is not.
    pub(super) fn read(file: &RequestFile, job: &str, rows: std::ops::Range<u64>, requests: u64) -> Result<Self> {
        let path = file.directory.join(&file.name);
        let opened = file.open().map_err(|error| super::cannot_read(&path, &error))?;
        let length = opened.metadata().map_err(|error| super::cannot_read(&path, &error))?.len();
        if length != file.bytes {
            return Err(changed(&path, &format!("it has {length} bytes, expected {}", file.bytes)));
        }
        let mut reader = BufReader::with_capacity(BUFFER, opened);
        let mut found = Self::default();
        let mut position = 0;
        while let Some((id, length)) = next_id(&mut reader).map_err(|error| super::cannot_read(&path, &error))? {
            let row = id.as_deref().and_then(|id| row_of(id, job)).filter(|row| rows.contains(row));
            let Some(row) = row else {
                let line = found.lines.len() + 1;
                return Err(changed(&path, &format!("line {line} is not a request of this job")));
            };
            found.lines.push((row, position, length));
            found.order.push(row);
            position += length;
        }
        found.lines.sort_unstable();
        let is_unique = found.lines.windows(2).all(|pair| matches!(pair, [(a, ..), (b, ..)] if a != b));
        if !is_unique || found.lines.len() as u64 != requests {
            return Err(changed(
                &path,
                &format!("it has {} requests, expected {requests} different ones", found.lines.len()),
            ));
        }
        Ok(found)
    }

    /// Returns the rows, in order.
    pub(super) fn rows(&self) -> impl Iterator<Item = u64> {
        self.lines.iter().map(|(row, ..)| *row)
    }

    /// Returns the index of a row among the rows.
    pub(super) fn index_of(&self, row: u64) -> Option<usize> {
        self.lines.binary_search_by_key(&row, |(row, ..)| *row).ok()
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    /// Returns the rows in the order of the file.
    pub(super) fn in_file_order(&self) -> impl Iterator<Item = u64> {
        self.order.iter().copied()
    }

    /// Copies the line of a row.
    pub(super) fn copy_line(&self, from: &mut File, row: u64, to: &mut impl std::io::Write) -> std::io::Result<u64> {
        let Some((_, position, length)) = self.index_of(row).and_then(|index| self.lines.get(index)) else {
            return Ok(0);
        };
        from.seek(SeekFrom::Start(*position))?;
        std::io::copy(&mut from.by_ref().take(*length), to)
    }
}

/// What all lines begin with.
const BEGINNING: &[u8] = b"{\"custom_id\":\"";
/// The most characters of an identifier.
const LONGEST_ID: u64 = 64;

/// Reads the identifier at the beginning of a line, and passes over the rest. Returns the length of the line as well.
fn next_id(reader: &mut BufReader<File>) -> std::io::Result<Option<(Option<String>, u64)>> {
    let mut start = Vec::new();
    let most = BEGINNING.len() as u64 + LONGEST_ID + 1;
    let mut length = reader.by_ref().take(most).read_until(b'\n', &mut start)? as u64;
    if length == 0 {
        return Ok(None);
    }
    if !start.ends_with(b"\n") {
        length += reader.skip_until(b'\n')? as u64;
    }
    let id = start.strip_prefix(BEGINNING).and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        String::from_utf8(rest.get(..end)?.to_vec()).ok()
    });
    Ok(Some((id, length)))
}

fn changed(path: &Path, found: &str) -> Error {
    let message = format_args!("`{}` has changed since it was prepared: {found}", path.display());
    Error::new(Kind::InvalidBatch, message).with_help("prepare the rows again in another directory")
}
