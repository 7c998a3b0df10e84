//! The format of a journal in a file.
//!
//! A first line, `tympan-journal 1`, is followed by one line per record:
//!
//! ```text
//! LENGTH CHECK SUM RECORD
//! ```
//!
//! The length of the record has eight hexadecimal digits. The check has eight digits and covers the length and the
//! previous sum, so that a corrupted length is not mistaken for a truncated record. The sum has 32 digits and covers
//! the record and the previous sum, so that changing, moving or removing a record invalidates all later sums.

use tympan_core::text::hash::sha256_hex;
use tympan_core::{Error, Kind, Result};

use crate::turn::journal::{damaged, without_header};

/// The first line.
pub(super) const FIRST_LINE: &str = "tympan-journal 1\n";

/// The start of the first line in all versions.
const ANY_VERSION: &str = "tympan-journal ";

const LENGTH_DIGITS: usize = 8;
const CHECK_DIGITS: usize = 8;
const SUM_DIGITS: usize = 32;
/// The size of the part of a line before the record.
const HEAD: usize = LENGTH_DIGITS + 1 + CHECK_DIGITS + 1 + SUM_DIGITS + 1;

/// The maximum size of a record, in bytes.
pub(super) const MAX_RECORD: usize = crate::turn::journal::MAX_BYTES as usize;

/// The running checksum of all records so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chain(String);

impl Chain {
    /// Returns the checksum of a journal without records.
    pub(super) fn begin() -> Self {
        Self(first_digits(&sha256_hex(FIRST_LINE), SUM_DIGITS))
    }

    /// Returns the checksum in hexadecimal digits.
    pub(super) fn sum(&self) -> &str {
        &self.0
    }

    /// Updates the checksum with a record.
    pub(super) fn add(&mut self, record: &[u8]) {
        self.0 = first_digits(&sha256_hex(format!("{} {}", self.sum(), sha256_hex(record))), SUM_DIGITS);
    }

    /// Appends the line of a record.
    pub(super) fn write(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if record.len() > MAX_RECORD {
            let details = format_args!("a record has {} bytes, at most {MAX_RECORD} allowed", record.len());
            return Err(Error::new(Kind::InvalidJournal, details));
        }
        out.extend(self.head(record).into_bytes());
        self.add(record);
        out.extend(record);
        out.push(b'\n');
        Ok(())
    }

    /// Returns the part of the line before the record.
    fn head(&self, record: &[u8]) -> String {
        let mut next = self.clone();
        next.add(record);
        format!("{}{} ", self.beginning(record.len()), next.sum())
    }

    /// Returns the length and its check.
    fn beginning(&self, length: usize) -> String {
        let length = format!("{length:0LENGTH_DIGITS$x}");
        let check = first_digits(&sha256_hex(format!("{} {length}", self.sum())), CHECK_DIGITS);
        format!("{length} {check} ")
    }
}

fn first_digits(digits: &str, count: usize) -> String {
    digits.chars().take(count).collect()
}

/// The parsed contents of a file.
#[derive(Debug)]
pub(super) struct Frames {
    pub(super) records: Vec<Vec<u8>>,
    /// The end of the last complete record.
    pub(super) end: usize,
    pub(super) chain: Chain,
}

/// The next item in a file.
enum Next {
    /// A record, and the length of its line.
    Record(Vec<u8>, usize),
    /// The remains of an incomplete write.
    Torn,
    Damaged,
}

/// Parses a file. Damage is an error; an incomplete line at the end is ignored.
pub(super) fn read(bytes: &[u8]) -> Result<Frames> {
    if !bytes.starts_with(FIRST_LINE.as_bytes()) {
        return Err(wrong_first_line(bytes));
    }
    let mut frames = Frames { records: Vec::new(), end: FIRST_LINE.len(), chain: Chain::begin() };
    while frames.end < bytes.len() {
        match next(&frames.chain, &bytes[frames.end..]) {
            Next::Record(record, length) => {
                frames.chain.add(&record);
                frames.records.push(record);
                frames.end += length;
            }
            Next::Torn => break,
            Next::Damaged if is_unwritten(&bytes[frames.end..]) => break,
            Next::Damaged => {
                let (record, at) = (frames.records.len(), frames.end);
                return Err(damaged(format_args!("at byte {at}, in record {record}")));
            }
        }
    }
    if frames.records.is_empty() {
        return Err(without_header());
    }
    Ok(frames)
}

fn next(chain: &Chain, rest: &[u8]) -> Next {
    let Some(head) = rest.get(..HEAD) else { return Next::Torn };
    let digits = str::from_utf8(&head[..LENGTH_DIGITS]).unwrap_or_default();
    let Ok(length) = usize::from_str_radix(digits, 16) else { return Next::Damaged };
    let beginning = chain.beginning(length);
    if !head.starts_with(beginning.as_bytes()) || length > MAX_RECORD {
        return Next::Damaged;
    }
    let Some(record) = rest.get(HEAD..HEAD + length) else { return Next::Torn };
    let Some(line_end) = rest.get(HEAD + length) else { return Next::Torn };
    match head == chain.head(record).as_bytes() && *line_end == b'\n' {
        true => Next::Record(record.to_vec(), HEAD + length + 1),
        false => Next::Damaged,
    }
}

/// Returns whether the rest is part of a line followed by zeros. After a power failure, a file may have grown before
/// its data reached the disk. A line contains no zeros, so a complete line never matches.
fn is_unwritten(rest: &[u8]) -> bool {
    let written = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    written < rest.len() && !rest[..written].iter().any(|byte| matches!(byte, 0 | b'\n'))
}

fn wrong_first_line(bytes: &[u8]) -> Error {
    if FIRST_LINE.as_bytes().starts_with(bytes) {
        return without_header();
    }
    let is_other_version = bytes.starts_with(ANY_VERSION.as_bytes());
    let details = if is_other_version { "written by another version, or damaged at byte 0" } else { "not a journal" };
    Error::new(Kind::InvalidJournal, details)
        .with_help(format!("a journal that this version can read starts with the line `{}`", FIRST_LINE.trim_end()))
}
