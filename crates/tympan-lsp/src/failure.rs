//! Errors of requests.

use std::fmt;

use lsp_server::{ErrorCode, ResponseError};

/// The error that a request is answered with.
#[derive(Debug)]
pub(crate) struct Failure {
    code: ErrorCode,
    message: String,
}

pub(crate) type Answer<T> = Result<T, Failure>;

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl fmt::Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// Creates the error for a request that is valid but cannot be done.
    pub(crate) fn refused(message: impl fmt::Display) -> Self {
        Self::new(ErrorCode::RequestFailed, message)
    }
}

impl From<Failure> for ResponseError {
    fn from(failure: Failure) -> Self {
        Self { code: failure.code as i32, message: failure.message, data: None }
    }
}
