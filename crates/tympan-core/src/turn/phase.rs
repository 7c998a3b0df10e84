//! The states of a turn.

use std::time::Duration;

use super::context::Cut;
use super::round::Round;
use crate::error::Error;
use crate::wire::response::{Answer, Response};

/// The current state of a turn.
pub(super) enum Phase {
    /// A round is about to begin.
    Begin,
    Summarizing(Cut),
    JudgingInput,
    Calling,
    Waiting(Duration),
    JudgingOutput(Box<Response>),
    Tools(Box<Answer>, Round),
    Done(Box<Response>),
    Failed(Error),
}

impl Phase {
    /// Names what the turn waits for.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Begin => "the start of a round",
            Self::Summarizing(_) => "a summary",
            Self::JudgingInput => "a guardrail verdict on the input",
            Self::Calling => "a model response",
            Self::Waiting(_) => "the end of a wait",
            Self::JudgingOutput(_) => "a guardrail verdict on the response",
            Self::Tools(..) => "tool results",
            Self::Done(_) => "nothing (the turn is over)",
            Self::Failed(_) => "nothing (the turn has failed)",
        }
    }
}
