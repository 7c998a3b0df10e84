//! What a turn tells those who watch it.

use super::tools::ToolResult;

/// Something that has happened. `Done` is the last of a turn that ends well, and `Cancelled` of one that is cancelled.
///
/// Tokens as they arrive are no part of this: they are with whoever reads the stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnEvent {
    /// How it goes, for people.
    Status {
        /// What to show.
        message: String,
    },
    /// A tool is about to run, or to be refused.
    ToolCallStart {
        /// The tool.
        name: String,
        /// The arguments as the model wrote them: nothing that is bound is in them.
        arguments: String,
    },
    /// A tool came to an end.
    ToolResult {
        /// The tool.
        name: String,
        /// What the model is going to see.
        result: ToolResult,
    },
    /// The conversation has changed. It is [`Turn::messages`](super::Turn::messages), and not copied here: after
    /// thousands of rounds that would be what a turn spends its time on.
    MessagesUpdated {
        /// How many messages it has now.
        count: usize,
    },
    /// Something went wrong, and the turn has dealt with it.
    Error {
        /// What.
        message: String,
    },
    /// It is over.
    Done {
        /// The text of the last answer.
        response: String,
        /// How many messages the conversation has.
        count: usize,
    },
    /// It was cancelled.
    Cancelled,
    /// A summary is asked for of what no longer fits.
    CompactionStart,
    /// The summary has taken its place.
    CompactionComplete {
        /// How many messages were taken away.
        removed: usize,
        /// How many there are now.
        remaining: usize,
    },
    /// There is no summary; one of the turn's own takes its place.
    CompactionFailed {
        /// Why.
        message: String,
    },
}

impl TurnEvent {
    /// The name that the specification uses.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::ToolCallStart { .. } => "tool_call_start",
            Self::ToolResult { .. } => "tool_result",
            Self::MessagesUpdated { .. } => "messages_updated",
            Self::Error { .. } => "error",
            Self::Done { .. } => "done",
            Self::Cancelled => "cancelled",
            Self::CompactionStart => "compaction_start",
            Self::CompactionComplete { .. } => "compaction_complete",
            Self::CompactionFailed { .. } => "compaction_failed",
        }
    }
}
