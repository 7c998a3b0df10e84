//! The input events of a turn, as data that can be persisted.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Turn;
use super::tools::ToolResult;
use crate::error::{Error, Kind, Result};
use crate::wire::response::Response;

/// The verdict of a guardrail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Allowed.
    Allow,
    /// Denied, with the reason.
    Deny(String),
}

/// An input event of a turn. The same events in the same order always lead to the same state.
///
/// A journal stores these events; see [`Turn::feed`]. The provider's own names for token counts ([`Usage::reported`])
/// are not stored.
///
/// [`Usage::reported`]: crate::wire::response::Usage::reported
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fed", rename_all = "snake_case")]
#[non_exhaustive]
pub enum InputEvent {
    /// The model responded.
    Responded {
        /// The response.
        response: Box<Response>,
    },
    /// The model call failed.
    Failed {
        /// The error.
        failure: Failure,
        /// A random number from 0 to 1 for the wait before the next attempt.
        jitter: f64,
    },
    /// The wait is over.
    Waited,
    /// A guardrail returned a verdict.
    Judged {
        /// The verdict.
        verdict: Verdict,
    },
    /// The approver answered a question of the policy.
    Approved {
        /// The answer.
        verdict: Verdict,
    },
    /// A summary was created, or could not be created.
    Summarized {
        /// The summary, if there is one.
        summary: Option<String>,
    },
    /// A tool returned.
    Returned {
        /// The tool run: its [`ToolRun::index`](super::ToolRun::index).
        index: usize,
        /// The tool's result.
        result: ToolResult,
    },
    /// The turn was cancelled.
    Cancelled,
    /// A steering message was added.
    Steered {
        /// The text of the message.
        text: String,
    },
    /// Time has passed.
    Ticked {
        /// The time since the turn began.
        elapsed: Duration,
    },
}

/// The parts of an error that can be persisted: everything except its location and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The [`Error::code`].
    pub code: String,
    /// The [`Error::message`].
    pub message: String,
    /// The [`Error::help`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The [`Error::partial_text`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_text: Option<String>,
    /// The value of [`Error::is_permanent`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub permanent: bool,
}

impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.message().to_owned(),
            help: error.help().map(str::to_owned),
            partial_text: error.partial_text().map(str::to_owned),
            permanent: error.is_permanent(),
        }
    }
}

impl From<Failure> for Error {
    /// Restores an error. A code that this version does not know becomes an internal error.
    fn from(failure: Failure) -> Self {
        let kind = Kind::from_code(&failure.code).unwrap_or(Kind::Internal);
        let mut error = Self::with_message(kind, failure.message);
        if let Some(help) = failure.help {
            error = error.with_help(help);
        }
        if failure.permanent {
            error = error.permanent();
        }
        match failure.partial_text {
            Some(text) => error.with_partial_text(text),
            None => error,
        }
    }
}

impl Turn {
    /// Applies an input event by calling the method that reports it.
    ///
    /// To restore a turn, create it again, add the steering messages from before it began, call [`Turn::next`], and
    /// feed it all events since then.
    ///
    /// # Errors
    /// Returns an error if the turn is not waiting for this event.
    pub fn feed(&mut self, event: InputEvent) -> Result<()> {
        match event {
            InputEvent::Responded { response } => self.responded(*response),
            InputEvent::Failed { failure, jitter } => self.failed(failure.into(), jitter),
            InputEvent::Waited => self.waited(),
            InputEvent::Judged { verdict } => self.judged(verdict),
            InputEvent::Approved { verdict } => self.approved(verdict),
            InputEvent::Summarized { summary } => self.summarized(summary),
            InputEvent::Returned { index, result } => self.returned(index, result),
            InputEvent::Cancelled => {
                self.cancel();
                Ok(())
            }
            InputEvent::Steered { text } => self.steer(text),
            InputEvent::Ticked { elapsed } => {
                self.tick(elapsed);
                Ok(())
            }
        }
    }
}
