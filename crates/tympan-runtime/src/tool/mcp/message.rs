//! Checks messages of a server before they are parsed.

use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};
use serde::Deserialize;
use serde_json::Value as Json;
use tympan_core::Error;

use crate::tool::mcp::list::unavailable;

/// The maximum size of a message, in bytes.
pub(super) const MAX_BYTES: usize = 32 << 20;

/// The maximum number of values in a message. A value can be as short as one byte, but takes a hundred times that in
/// memory.
const MAX_VALUES: usize = 200_000;

/// Why something is not a valid message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    /// It is too large.
    TooLarge,
    /// It is not a message.
    NoMessage,
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        unavailable(match problem {
            Problem::TooLarge => "the MCP server sent a message that is too large",
            Problem::NoMessage => "the MCP server sent an invalid message",
        })
    }
}

/// Parses a message. A malformed response becomes an error response, so that its request does not wait forever.
///
/// # Errors
/// Returns an error if the bytes are not a message or exceed the limits.
pub(super) fn read(bytes: &[u8]) -> Result<ServerJsonRpcMessage, Problem> {
    check(bytes)?;
    serde_json::from_slice(bytes).or_else(|_| broken_answer(bytes).ok_or(Problem::NoMessage))
}

/// Checks the size of a message.
///
/// # Errors
/// Returns an error if the message is too large.
pub(super) fn check(bytes: &[u8]) -> Result<(), Problem> {
    if bytes.len() > MAX_BYTES || values(bytes) > MAX_VALUES { Err(Problem::TooLarge) } else { Ok(()) }
}

/// Checks that a message is the response to a request. A response to a different request would leave this one waiting
/// forever.
///
/// # Errors
/// Returns an error if the message is not a response to this request.
pub(super) fn answer_to(id: &RequestId, message: ServerJsonRpcMessage) -> Result<ServerJsonRpcMessage, Problem> {
    match message {
        ServerJsonRpcMessage::Response(answer) if answer.id == *id => Ok(ServerJsonRpcMessage::Response(answer)),
        // A server that cannot parse a request does not know its ID either.
        ServerJsonRpcMessage::Error(error) if error.id.as_ref().is_none_or(|given| given == id) => {
            Ok(ServerJsonRpcMessage::error(error.error, Some(id.clone())))
        }
        _ => Err(Problem::NoMessage),
    }
}

/// Returns an upper bound on the number of values in JSON.
fn values(bytes: &[u8]) -> usize {
    let (mut count, mut in_string, mut is_escaped) = (0, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = in_string,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Converts a response with a malformed result to an error response.
fn broken_answer(bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
    #[derive(Deserialize)]
    struct Answer {
        id: RequestId,
        method: Option<Json>,
    }
    let answer: Answer = serde_json::from_slice(bytes).ok()?;
    let error = ErrorData::internal_error("the response does not match the protocol", None);
    answer.method.is_none().then(|| ServerJsonRpcMessage::error(error, Some(answer.id)))
}

/// The first error of a connection. It is recorded here because the code that detects an error is rarely the code that
/// reports it.
#[derive(Clone, Default)]
pub(super) struct Notes(Arc<Mutex<Option<Error>>>);

impl Notes {
    /// Records an error, unless there already is one.
    pub(super) fn keep(&self, error: Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// Clears the error.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Returns the error.
    pub(super) fn get(&self) -> Option<Error> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_text_is_not() {
        assert_eq!(values(br#"{"a":[1,2,{"b":"x,[{\",["}],"c":3}"#), 6);
        assert_eq!(values(br#"["\\",1]"#), 2);
    }

    #[test]
    fn a_message_of_many_values_is_refused() {
        let result = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":[0{}]}}}}"#, ",0".repeat(MAX_VALUES));
        assert_eq!(read(result.as_bytes()).err(), Some(Problem::TooLarge));
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_an_error_for_who_asked() {
        let read = read(br#"{"jsonrpc":"2.0","id":7,"error":"no"}"#);
        assert!(matches!(read, Ok(ServerJsonRpcMessage::Error(error)) if error.id == Some(RequestId::Number(7))));
        assert!(super::read(b"{}").is_err() && super::read(b"hello").is_err());
    }
}
