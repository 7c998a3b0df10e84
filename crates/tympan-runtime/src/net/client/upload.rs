//! The body of a request: bytes, or a file that is read while it is sent.

use std::fmt;
use std::fs::File;
use std::io::{self as std_io, Read};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use reqwest::Body;

use crate::net::io;
use crate::{Error, Kind, Result};

/// The number of bytes that are read at once.
const PIECE_BYTES: usize = 256 << 10;

/// The body of a request.
pub(super) enum RequestBody {
    Bytes(Bytes),
    File(FileBody),
}

impl RequestBody {
    /// Returns the length, if the client cannot determine it.
    pub(super) fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(_) => None,
            Self::File(file) => Some(file.len()),
        }
    }

    pub(super) fn to_body(&self) -> Option<Body> {
        match self {
            Self::Bytes(bytes) if bytes.is_empty() => None,
            Self::Bytes(bytes) => Some(bytes.clone().into()),
            Self::File(file) => Some(Body::wrap_stream(file.pieces())),
        }
    }
}

/// Opens the file of a body. It is called for each attempt.
type Open = Arc<dyn Fn() -> std_io::Result<File> + Send + Sync>;

/// A body that contains a file, which is read while the body is sent. It is never in memory as a whole.
#[derive(Clone)]
pub struct FileBody {
    content_type: String,
    before: Bytes,
    open: Open,
    length: u64,
    after: Bytes,
    /// Whether lines become the elements of a JSON array.
    is_array: bool,
}

impl FileBody {
    /// Creates a body with the bytes of a file. The file must have this length when it is sent.
    pub fn new(
        content_type: impl Into<String>,
        open: impl Fn() -> std_io::Result<File> + Send + Sync + 'static,
        length: u64,
    ) -> Self {
        let (content_type, open) = (content_type.into(), Arc::new(open));
        Self { content_type, before: Bytes::new(), open, length, after: Bytes::new(), is_array: false }
    }

    /// Adds bytes before and after the file.
    #[must_use]
    pub fn between(self, before: impl Into<Bytes>, after: impl Into<Bytes>) -> Self {
        Self { before: before.into(), after: after.into(), ..self }
    }

    /// Sends lines of JSON as the elements of an array: each line break except the last becomes a comma.
    #[must_use]
    pub fn as_elements(self) -> Self {
        Self { is_array: true, ..self }
    }

    pub(crate) fn content_type(&self) -> &str {
        &self.content_type
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.before.len() as u64 + self.length + self.after.len() as u64
    }

    fn pieces(&self) -> impl Stream<Item = Result<Bytes>> + Send + use<> {
        let (before, after) = (self.before.clone(), self.after.clone());
        let pieces = stream::unfold(Some(Reading::of(self)), |reading| async move {
            // After an error, there is nothing more to read.
            let read = io::blocking(move || reading?.next()).await;
            match read {
                Ok(Some(Ok((piece, reading)))) => Some((Ok(piece), Some(reading))),
                Ok(Some(Err(error))) | Err(error) => Some((Err(error), None)),
                Ok(None) => None,
            }
        });
        let one = |bytes: Bytes| stream::iter((!bytes.is_empty()).then_some(Ok(bytes)));
        one(before).chain(pieces).chain(one(after))
    }
}

impl fmt::Debug for FileBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileBody").field("content_type", &self.content_type).field("bytes", &self.len()).finish()
    }
}

/// A file that is being read.
struct Reading {
    open: Open,
    file: Option<File>,
    left: u64,
    is_array: bool,
}

impl Reading {
    fn of(body: &FileBody) -> Self {
        Self { open: Arc::clone(&body.open), file: None, left: body.length, is_array: body.is_array }
    }

    /// Reads the next piece.
    fn next(mut self) -> Option<Result<(Bytes, Self)>> {
        if self.left == 0 {
            return None;
        }
        let read = self.read();
        Some(
            read.map(|piece| (piece, self)).map_err(|error| {
                Error::new(Kind::InvalidRequest, format_args!("cannot read the file to send: {error}"))
            }),
        )
    }

    fn read(&mut self) -> std_io::Result<Bytes> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert((self.open)()?),
        };
        let most = usize::try_from(self.left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let mut piece = vec![0; most];
        file.read_exact(&mut piece)?;
        self.left -= most as u64;
        if self.is_array {
            // JSON has no line breaks within texts.
            let end = if self.left == 0 { most - 1 } else { most };
            piece[..end].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b',');
        }
        Ok(piece.into())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn body(lines: &str, length: u64) -> FileBody {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(lines.as_bytes()).expect("writable");
        let open = move || file.reopen();
        FileBody::new("application/json", open, length).between("[", "]").as_elements()
    }

    fn sent(body: &FileBody) -> Result<Vec<u8>> {
        let pieces = body.pieces();
        io::spawn(async move {
            let pieces: Vec<_> = pieces.collect().await;
            Ok(pieces.into_iter().collect::<Result<Vec<_>>>()?.concat())
        })
        .wait()
    }

    #[test]
    fn lines_become_elements() {
        for count in [0, 1, 2, 30_000] {
            let lines: String = (0..count).map(|number| format!("{{\"n\":{number},\"text\":\"a\\nb\"}}\n")).collect();
            for lines in [lines.as_str(), lines.trim_end()] {
                let body = body(lines, lines.len() as u64);
                // Each attempt reads the file from its beginning.
                let all = (sent(&body).expect("it is read"), sent(&body).expect("it is read again"));
                assert_eq!(all.0, all.1);
                assert_eq!(all.0.len() as u64, body.len());
                let elements: Vec<serde_json::Value> = serde_json::from_slice(&all.0).expect("an array");
                assert_eq!(elements.len(), count);
            }
        }
    }

    #[test]
    fn a_file_that_has_become_shorter_is_an_error() {
        let error = sent(&body("{}\n", 4)).expect_err("it is too short");
        assert!(error.message().contains("cannot read the file to send"), "{error}");
    }
}
