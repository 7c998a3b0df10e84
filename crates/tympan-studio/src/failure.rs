//! Errors as responses.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tympan_core::Error;

/// The result of a request.
pub(crate) type Answer<T> = Result<T, Failure>;

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
    /// More members of the response.
    pub(crate) more: Vec<(&'static str, serde_json::Value)>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), help: None, more: Vec::new() }
    }

    /// Creates a failure for a request that is not as this server expects it.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// Creates a failure for something that this server does not do.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    /// Creates a failure for a client that uses more than its share.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "busy", message)
    }

    pub(crate) fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a member to the response.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<serde_json::Value>) -> Self {
        self.more.push((name, value.into()));
        self
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let mut failure = Self::new(StatusCode::UNPROCESSABLE_ENTITY, error.code(), error.message());
        failure.help = error.help().map(str::to_owned);
        failure
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let status = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => StatusCode::NOT_FOUND,
            ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
            ErrorKind::FileTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Self::new(status, "file", error.to_string())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut body = json!({"error": {"code": self.code, "message": self.message, "help": self.help}});
        for (name, value) in self.more {
            body[name] = value;
        }
        (self.status, Json(body)).into_response()
    }
}
