//! What a turn is told, as data that can be kept.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Turn;
use super::tools::ToolResult;
use crate::error::{Error, Kind, Result};
use crate::wire::response::Response;

/// Whether something is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is.
    Allow,
    /// It is not, for this reason.
    Deny(String),
}

/// Anything that a turn can be told. Told the same in the same order, a turn comes to the same.
///
/// A journal keeps these; see [`Turn::feed`]. What a provider calls its tokens ([`Usage::reported`]) is not kept.
///
/// [`Usage::reported`]: crate::wire::response::Usage::reported
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fed", rename_all = "snake_case")]
pub enum Fed {
    /// The model answered.
    Responded {
        /// What.
        response: Box<Response>,
    },
    /// The model could not be called.
    Failed {
        /// Why.
        failure: Failure,
        /// A random number from 0 to 1, for the wait.
        jitter: f64,
    },
    /// The wait is over.
    Waited,
    /// Somebody has judged.
    Judged {
        /// The verdict.
        verdict: Verdict,
    },
    /// A summary was made, or could not be.
    Summarized {
        /// The summary.
        summary: Option<String>,
    },
    /// A tool came to an end.
    Returned {
        /// Which: [`ToolRun::index`](super::ToolRun::index).
        index: usize,
        /// With what.
        result: ToolResult,
    },
    /// Somebody wants it to stop.
    Cancelled,
    /// Somebody has something to say.
    Steered {
        /// What.
        text: String,
    },
    /// Time has passed.
    Ticked {
        /// Since the turn began.
        elapsed: Duration,
    },
}

/// An error, as far as it can be kept: without its place and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// [`Error::code`].
    pub code: String,
    /// [`Error::message`].
    pub message: String,
    /// [`Error::help`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// [`Error::partial_text`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_text: Option<String>,
    /// [`Error::is_permanent`].
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
    /// A code that this version does not know is an internal error.
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
    /// Tells the turn anything, as the method of that name does.
    ///
    /// To bring a turn back, make it anew, hand over what had been steered before it began, call [`Turn::next`], and
    /// feed it what it had been told since.
    ///
    /// # Errors
    /// It was not asked for.
    pub fn feed(&mut self, fed: Fed) -> Result<()> {
        match fed {
            Fed::Responded { response } => self.responded(*response),
            Fed::Failed { failure, jitter } => self.failed(failure.into(), jitter),
            Fed::Waited => self.waited(),
            Fed::Judged { verdict } => self.judged(verdict),
            Fed::Summarized { summary } => self.summarized(summary),
            Fed::Returned { index, result } => self.returned(index, result),
            Fed::Cancelled => {
                self.cancel();
                Ok(())
            }
            Fed::Steered { text } => self.steer(text),
            Fed::Ticked { elapsed } => {
                self.tick(elapsed);
                Ok(())
            }
        }
    }
}
