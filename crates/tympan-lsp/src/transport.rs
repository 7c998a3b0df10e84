//! Messages over standard input and output.
//!
//! A message that is not valid JSON-RPC is reported to the client and skipped, so that it does not end the session.

use std::io::{self, BufRead, Read, Write};
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, unbounded};
use lsp_server::{Connection, Message, Notification};
use serde_json::json;

/// The maximum length of a message. The length comes from the client, and is allocated before the message is read.
const MAX_BYTES: usize = 256 << 20;

/// The thread that writes messages.
pub(crate) struct Writer(JoinHandle<io::Result<()>>);

impl Writer {
    /// Waits until all messages are written. The connection has to be dropped before.
    pub(crate) fn join(self) -> io::Result<()> {
        self.0.join().unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
    }
}

/// Connects to a client. The reader stops at the end of its input, after `exit`, and if the input is not framed as the
/// protocol requires.
pub(crate) fn connect(
    input: impl BufRead + Send + 'static,
    mut output: impl Write + Send + 'static,
) -> (Connection, Writer) {
    let (to_client, outgoing) = unbounded::<Message>();
    let (to_server, incoming) = unbounded::<Message>();
    let errors = to_client.clone();
    thread::spawn(move || read_all(input, &to_server, errors));
    let writer = thread::spawn(move || outgoing.into_iter().try_for_each(|message| message.write(&mut output)));
    (Connection { sender: to_client, receiver: incoming }, Writer(writer))
}

fn read_all(mut input: impl BufRead, messages: &Sender<Message>, errors: Sender<Message>) {
    let report = |problem: String| {
        let params = json!({"type": 1, "message": format!("tympan lsp: {problem}")});
        errors.send(Notification::new("window/logMessage".to_owned(), params).into()).is_ok()
    };
    loop {
        let payload = match read_payload(&mut input) {
            Ok(Some(payload)) => payload,
            Ok(None) => return,
            Err(error) => {
                report(format!("the input is not framed as messages: {error}"));
                return;
            }
        };
        let goes_on = match serde_json::from_slice::<Message>(&payload) {
            Ok(message) => {
                let is_exit = matches!(&message, Message::Notification(message) if message.method == "exit");
                messages.send(message).is_ok() && !is_exit
            }
            Err(_) => report("ignored a message that is not a valid request, response or notification".to_owned()),
        };
        if !goes_on {
            return;
        }
    }
}

/// Reads the next payload. Returns `None` at the end of the input.
fn read_payload(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
    let mut length = None;
    loop {
        let mut line = Vec::new();
        // No header is longer than this.
        input.by_ref().take(4096).read_until(b'\n', &mut line)?;
        let Ok(header) = str::from_utf8(&line) else { return Err(invalid("a header is not text")) };
        match (header.trim_end(), length) {
            ("", _) if header.is_empty() => return Ok(None),
            ("", Some(_)) => break,
            ("", None) => return Err(invalid("a message has no Content-Length")),
            (header, _) => {
                let (name, value) = header.split_once(':').ok_or_else(|| invalid("a header has no colon"))?;
                if name.trim().eq_ignore_ascii_case("content-length") {
                    let value = value.trim().parse::<usize>().ok().filter(|length| *length <= MAX_BYTES);
                    length = Some(value.ok_or_else(|| invalid("invalid Content-Length"))?);
                }
            }
        }
    }
    let mut payload = vec![0; length.unwrap_or_default()];
    input.read_exact(&mut payload)?;
    Ok(Some(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the methods that the server gets, and the number of errors that are reported to the client.
    fn received(input: &[u8]) -> (Vec<String>, usize) {
        let (connection, writer) = connect(io::Cursor::new(input.to_vec()), io::sink());
        let methods = connection.receiver.iter().map(|message| match message {
            Message::Request(request) => request.method,
            Message::Notification(notification) => notification.method,
            Message::Response(_) => "a response".to_owned(),
        });
        let methods = methods.collect();
        drop(connection);
        writer.join().expect("it writes");
        let (messages, _incoming) = unbounded();
        let (reports, problems) = unbounded();
        read_all(io::Cursor::new(input.to_vec()), &messages, reports);
        drop(messages);
        (methods, problems.len())
    }

    #[test]
    fn invalid_messages_are_skipped() {
        let exit = br#"{"jsonrpc":"2.0","method":"exit"}"#;
        let framed =
            |payload: &[u8]| [format!("Content-Length: {}\r\n\r\n", payload.len()).as_bytes(), payload].concat();
        for garbage in [&b"{"[..], b"[]", b"\xff\xfe", b"", b"{\"id\":1.5,\"method\":2}", b"null"] {
            let input = [framed(garbage), framed(exit), framed(exit)].concat();
            // What follows `exit` is not read.
            assert_eq!(received(&input), (vec!["exit".to_owned()], 1), "{garbage:?}");
        }
    }

    #[test]
    fn input_without_frames_ends_the_session() {
        let long = [b"x".repeat(10_000), b"\r\n\r\n".to_vec()].concat();
        let inputs: [&[u8]; 6] = [
            b"Content-Length: -1\r\n\r\n",
            b"Content-Length: 99999999999\r\n\r\n",
            b"\r\n\r\n",
            b"hello\r\n\r\n",
            b"Content-Length: 10\r\n\r\nshort",
            &long,
        ];
        for input in inputs {
            assert_eq!(received(input), (Vec::new(), 1), "{:?}", String::from_utf8_lossy(input));
        }
        assert_eq!(received(b""), (Vec::new(), 0));
    }
}
