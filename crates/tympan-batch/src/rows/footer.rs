//! Checks the end of a Parquet file before it is decoded: decoding takes stack for every level of the schema.
//!
//! Only as much of Thrift's compact protocol is read as is needed to count the levels.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// The most levels of a schema.
const MAX_LEVELS: usize = 64;
/// The most levels of values that are passed over. Those of the format have fewer.
const MAX_SKIPPED: usize = 32;
/// What a file ends with: the length of its metadata, and these bytes.
const MAGIC: &[u8; 4] = b"PAR1";
/// The number of the field with the schema, in the metadata.
const SCHEMA: i16 = 2;
/// The number of the field with the number of children, in an element of the schema.
const CHILDREN: i16 = 5;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const I16: u8 = 4;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Returns an error if the schema of a file has too many levels. What is damaged in other ways is reported when the file is
/// decoded.
pub(super) fn check(file: &File) -> Result<(), String> {
    let Ok(Some(metadata)) = metadata(file) else { return Ok(()) };
    match (Compact { bytes: &metadata, at: 0 }).metadata() {
        Some(levels) if levels <= MAX_LEVELS => Ok(()),
        Some(_) => Err(format!("columns are nested more than {MAX_LEVELS} levels deep")),
        None => Err("the metadata is damaged".to_owned()),
    }
}

/// Returns the metadata of a file, if it is where it has to be.
fn metadata(mut file: &File) -> std::io::Result<Option<Vec<u8>>> {
    let length = file.metadata()?.len();
    if length < 12 {
        return Ok(None);
    }
    let mut end = [0; 8];
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut end)?;
    let ([a, b, c, d, magic @ ..], most) = (end, length - 8);
    let size = u64::from(u32::from_le_bytes([a, b, c, d]));
    let mut metadata = Vec::new();
    if magic == *MAGIC && size <= most {
        file.seek(SeekFrom::Start(most - size))?;
        file.take(size).read_to_end(&mut metadata)?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok((!metadata.is_empty()).then_some(metadata))
}

/// Reads values of Thrift's compact protocol. `None` means that they are damaged.
struct Compact<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Compact<'_> {
    /// Returns the largest number of levels of the schemas in the metadata. There should be one.
    fn metadata(&mut self) -> Option<usize> {
        let (mut field, mut levels) = (0, 0);
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (SCHEMA, LIST) => levels = levels.max(self.schema()?),
                _ => self.skip(kind, 0)?,
            }
        }
        Some(levels)
    }

    /// Returns the number of levels of a schema: a list of elements, each of which is followed by its children.
    fn schema(&mut self) -> Option<usize> {
        let (count, kind) = self.list()?;
        if kind != STRUCT {
            return None;
        }
        // The number of elements that are still missing on each level.
        let mut open: Vec<u64> = Vec::new();
        let mut levels = 0;
        for _ in 0..count {
            let children = self.children()?;
            while open.pop_if(|left| *left == 0).is_some() {}
            if let Some(left) = open.last_mut() {
                *left -= 1;
            }
            if children > 0 {
                open.push(children);
            }
            levels = levels.max(open.len());
            if levels > MAX_LEVELS {
                // The rest does not matter.
                return Some(levels);
            }
        }
        Some(levels)
    }

    /// Reads an element of the schema, and returns the number of its children.
    fn children(&mut self) -> Option<u64> {
        let (mut field, mut children) = (0, 0);
        while let Some(kind) = self.field(&mut field)? {
            match (field, kind) {
                (CHILDREN, I32) => {
                    let number = self.number()?;
                    // Numbers alternate between positive and negative.
                    children = if number % 2 == 0 { number / 2 } else { 0 };
                }
                _ => self.skip(kind, 0)?,
            }
        }
        Some(children)
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn pass(&mut self, bytes: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(bytes).ok()?)?;
        self.at = at;
        (at <= self.bytes.len()).then_some(())
    }

    /// Reads a number, seven bits per byte.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// Reads the beginning of a field and returns its type, or `None` inside at the end of the struct.
    fn field(&mut self, field: &mut i16) -> Option<Option<u8>> {
        let byte = self.byte()?;
        if byte == 0 {
            return Some(None);
        }
        *field = match byte >> 4 {
            0 => {
                let number = self.number()?;
                i16::try_from(number / 2).ok()?
            }
            more => field.checked_add(i16::from(more))?,
        };
        Some(Some(byte & 0x0f))
    }

    /// Reads the beginning of a list: the number of its elements and their type.
    fn list(&mut self) -> Option<(u64, u8)> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 15 { self.number()? } else { u64::from(byte >> 4) };
        Some((count, byte & 0x0f))
    }

    /// Passes over the value of a field.
    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > MAX_SKIPPED {
            return None;
        }
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.pass(1),
            I16 | I32 | I64 => self.number().map(drop),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.number()?;
                self.pass(length)
            }
            LIST | SET => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            MAP => {
                let count = self.number()?;
                if count == 0 {
                    return Some(());
                }
                let kinds = self.byte()?;
                (0..count).try_for_each(|_| {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 0x0f, depth)
                })
            }
            STRUCT => {
                let mut field = 0;
                while let Some(kind) = self.field(&mut field)? {
                    self.skip(kind, depth + 1)?;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Passes over an element of a list. Unlike in fields, truth values have a byte.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            TRUE | FALSE => self.pass(1),
            kind => self.skip(kind, depth + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_metadata_is_refused_and_ends() {
        let read = |bytes: &[u8]| Compact { bytes, at: 0 }.metadata();
        assert_eq!(read(&[0]), Some(0));
        // A list of truth values that claims to be endless, a text that is too long, a struct without an end.
        for damaged in [&[0x19, 0xf1, 0xff, 0xff, 0xff, 0xff, 0x7f][..], &[0x18, 0x05, b'a'], &[0x1c; 50], &[0x15], &[]]
        {
            assert_eq!(read(damaged), None, "{damaged:?}");
        }
    }
}
