//! Server-sent events: an incremental decoder that accepts bytes in chunks of any size.

use std::ops::ControlFlow;

use memchr::memchr2;

use crate::error::{Error, Kind, Result};

/// The default limit on the size of an event, in bytes.
pub const DEFAULT_MAX_EVENT_BYTES: usize = 16 << 20;

/// The buffer capacity to keep between events. A larger buffer was needed for an unusually large event, and is freed.
const KEPT_BYTES: usize = 16 << 10;

/// A server-sent event. It borrows from the pushed bytes, unless it was split across several chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// The event's name, if any.
    pub name: Option<&'a str>,
    /// The event's ID, from which a client can resume the stream.
    pub id: Option<&'a str>,
    /// The data. Multiple `data` lines are joined with line feeds.
    pub data: &'a str,
}

/// Decodes server-sent events from bytes.
///
/// ```
/// use tympan::wire::SseDecoder;
///
/// let mut seen = Vec::new();
/// let mut decoder = SseDecoder::new(1024);
/// for bytes in [b"da".as_slice(), b"ta: one\r\n\r", b"\ndata:two\n\n"] {
///     decoder.push(bytes, |event| Ok(seen.push(event.data.to_owned())))?;
/// }
/// assert_eq!(seen, ["one", "two"]);
/// # Ok::<(), tympan::Error>(())
/// ```
#[derive(Debug)]
pub struct SseDecoder {
    max_event_bytes: usize,
    /// The beginning of an event whose end has not been pushed yet.
    pending: Vec<u8>,
    /// The joined data of an event with multiple `data` lines.
    joined: String,
    /// The number of bytes in the event's complete lines, counting each line ending as one.
    complete: usize,
    /// The number of bytes in the current line.
    line: usize,
    /// Whether the last byte was a carriage return. A line feed that follows is part of the same line ending.
    after_cr: bool,
    /// Whether nothing has been read yet. Only then is a byte order mark allowed.
    at_start: bool,
}

impl SseDecoder {
    /// Creates a decoder for events of at most `max_event_bytes` bytes.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            pending: Vec::new(),
            joined: String::new(),
            complete: 0,
            line: 0,
            after_cr: false,
            at_start: true,
        }
    }

    /// Pushes more bytes and calls `on_event` for each event that they complete. An event is complete as soon as its
    /// blank line arrives.
    ///
    /// # Errors
    /// Returns an error if an event is too large or is not UTF-8, or any error that `on_event` returns. The decoder
    /// cannot be used after an error.
    pub fn push(&mut self, bytes: &[u8], mut on_event: impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let _ = self.push_until(bytes, |event| on_event(event).map(ControlFlow::Continue))?;
        Ok(())
    }

    /// Pushes more bytes like [`SseDecoder::push`], but stops when `on_event` breaks, and ignores the rest of the
    /// bytes.
    pub(super) fn push_until(
        &mut self,
        bytes: &[u8],
        mut on_event: impl FnMut(Event<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let skipped = usize::from(self.after_cr && bytes.first() == Some(&b'\n'));
        self.after_cr &= bytes.is_empty();
        // Where the current event and the current line begin in these bytes; 0 if they began in an earlier chunk.
        let (mut event, mut line) = (skipped, skipped);
        while let Some(end) = memchr2(b'\n', b'\r', &bytes[line..]).map(|at| line + at) {
            let is_cr = bytes[end] == b'\r';
            self.after_cr = is_cr && end + 1 == bytes.len();
            let next = end + 1 + usize::from(is_cr && bytes.get(end + 1) == Some(&b'\n'));
            let length = self.line + (end - line);
            self.line = 0;
            if length == 0 {
                self.complete = 0;
                let flow = self.dispatch(&bytes[event..end], &mut on_event)?;
                event = next;
                if flow.is_break() {
                    return Ok(flow);
                }
            } else {
                let is_first = self.complete == 0;
                self.complete += length + 1;
                self.check_size()?;
                let first = self.pending.first().or(bytes.get(event));
                // Comments may keep a connection alive for hours, so they must not accumulate in the buffer.
                if is_first && first == Some(&b':') {
                    self.pending.clear();
                    (event, self.complete, self.at_start) = (next, 0, false);
                }
            }
            line = next;
        }
        self.line += bytes.len() - line;
        self.pending.extend_from_slice(&bytes[event..]);
        self.check_size()?;
        Ok(ControlFlow::Continue(()))
    }

    /// Ends the stream. A final event without its blank line is emitted too, even if it is incomplete; only the caller
    /// can tell.
    ///
    /// # Errors
    /// Returns an error if the last event is not UTF-8, or any error that `on_event` returns.
    pub fn finish(mut self, mut on_event: impl FnMut(Event<'_>) -> Result<()>) -> Result<()> {
        let _ = self.dispatch(&[], &mut |event: Event<'_>| on_event(event).map(ControlFlow::Continue))?;
        Ok(())
    }

    fn check_size(&self) -> Result<()> {
        if self.complete + self.line <= self.max_event_bytes {
            return Ok(());
        }
        let max = self.max_event_bytes;
        Err(Error::new(Kind::ResponseTooLarge, format_args!("an event is longer than {max} bytes")))
    }

    /// Emits the event that ends with these bytes.
    fn dispatch(
        &mut self,
        bytes: &[u8],
        on_event: &mut impl FnMut(Event<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let at_start = std::mem::take(&mut self.at_start);
        if self.pending.is_empty() {
            return read_event(bytes, at_start, &mut self.joined, on_event);
        }
        self.pending.extend_from_slice(bytes);
        let flow = read_event(&self.pending, at_start, &mut self.joined, on_event);
        self.pending.clear();
        self.pending.shrink_to(KEPT_BYTES);
        flow
    }
}

/// Parses the lines of an event and emits it. An event without data is ignored.
fn read_event(
    bytes: &[u8],
    at_start: bool,
    joined: &mut String,
    on_event: &mut impl FnMut(Event<'_>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let text = std::str::from_utf8(bytes).map_err(|_| Error::new(Kind::StreamParse, "an event is not UTF-8"))?;
    let mut rest = if at_start { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
    let (mut name, mut id, mut data) = (None, None, None);
    joined.clear();
    joined.shrink_to(KEPT_BYTES);
    while !rest.is_empty() {
        let line;
        (line, rest) = match memchr2(b'\n', b'\r', rest.as_bytes()) {
            Some(end) => (&rest[..end], &rest[end + 1..]),
            None => (rest, ""),
        };
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match data.replace(value) {
                None => {}
                Some(first) => {
                    if joined.is_empty() {
                        joined.push_str(first);
                    }
                    joined.push('\n');
                    joined.push_str(value);
                }
            },
            "event" => name = Some(value),
            "id" => id = Some(value),
            _ => {}
        }
    }
    match data {
        Some(last) if !(joined.is_empty() && last.is_empty()) => {
            on_event(Event { name, id, data: if joined.is_empty() { last } else { joined } })
        }
        _ => Ok(ControlFlow::Continue(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the events as `name|id|data`, or the code of the error.
    fn read(pieces: &[&[u8]], max: usize) -> Result<Vec<String>, &'static str> {
        let mut seen = Vec::new();
        let mut on_event = |event: Event<'_>| {
            seen.push(format!("{}|{}|{}", event.name.unwrap_or(""), event.id.unwrap_or(""), event.data));
            Ok(())
        };
        let mut decoder = SseDecoder::new(max);
        for piece in pieces {
            decoder.push(piece, &mut on_event).map_err(|error| error.code())?;
        }
        decoder.finish(&mut on_event).map_err(|error| error.code())?;
        Ok(seen)
    }

    #[test]
    fn however_it_is_cut_it_reads_the_same() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"data: a\n\ndata:b\r\n\r\ndata: c\r\rdata\n\n", &["||a", "||b", "||c"]),
            ("\u{feff}data: a\n\n\u{feff}data: b\n\n".as_bytes(), &["||a"]),
            (b"\n\r\n\rdata:  two spaces \n\n", &["|| two spaces "]),
            (b": comment\ndata: x\n: y\ndata: z\nevent: e\nid: 7\nretry: 1\nother\n\n", &["e|7|x\nz"]),
            (b"data:\ndata:\n\ndata: \n\nevent: nothing\n\n", &["||\n"]),
            ("data: grüße 👩‍🚀\r\ndata: 🎈\r\n\r\n".as_bytes(), &["||grüße 👩‍🚀\n🎈"]),
            (b"data: a\n\ndata: unfinished", &["||a", "||unfinished"]),
            (b"data:a:b\n\n", &["||a:b"]),
            (b"database: a\n\n Data: b\n\n", &[]),
        ];
        for (bytes, expected) in cases {
            let shown = String::from_utf8_lossy(bytes);
            assert_eq!(read(&[bytes], 100).expect("it reads"), *expected, "{shown:?}");
            let single: Vec<_> = bytes.chunks(1).collect();
            assert_eq!(read(&single, 100).expect("it reads"), *expected, "{shown:?}");
            for at in 0..bytes.len() {
                assert_eq!(read(&[&bytes[..at], &bytes[at..]], 100).expect("it reads"), *expected, "{shown:?} {at}");
            }
        }
    }

    #[test]
    fn an_event_comes_with_the_first_byte_of_its_blank_line() {
        for bytes in ["data: a\n\n", "data: a\r\r", "data: a\r\n\r"] {
            let mut count = 0;
            let pushed = SseDecoder::new(100).push(bytes.as_bytes(), |_| {
                count += 1;
                Ok(())
            });
            assert!(pushed.is_ok() && count == 1, "{bytes:?}");
        }
    }

    #[test]
    fn bounds_do_not_depend_on_cuts() {
        let cases: &[(&[u8], bool)] = &[
            (b"data: 45678\r\nid: 234\r\n\r\n", true),
            (b"data: 45678\r\nid: 2345\r\n\r\n", false),
            (b"data: 67890123456789", true),
            (b"data: 678901234567890", false),
            (b": comments do not add up\n: comments do not add up\ndata: x\n\n", false),
            (b": 2345678901234567\n: 2345678901234567\n: 2345678901234567\ndata: x\n\n", true),
        ];
        for (bytes, fits) in cases {
            let shown = String::from_utf8_lossy(bytes);
            let whole = read(&[bytes], 20);
            assert_eq!(whole.is_ok(), *fits, "{shown:?}: {whole:?}");
            for at in 0..bytes.len() {
                assert_eq!(read(&[&bytes[..at], &bytes[at..]], 20), whole, "{shown:?} {at}");
            }
        }
    }

    #[test]
    fn what_is_no_text_is_an_error() {
        assert_eq!(read(&[b"data: \xff\n\n"], 100), Err("stream_parse"));
        assert_eq!(read(&[b"data: \xf0\x9f\n", b"\n"], 100), Err("stream_parse"));
    }
}
