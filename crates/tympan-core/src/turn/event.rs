//! The events that a turn reports to observers.

use super::flow::policy::Ruling;
use super::label::Label;
use super::tools::ToolResult;

/// An event of a turn. The last event is `Done` if the turn succeeds, and `Cancelled` if it is cancelled.
///
/// Streamed tokens are not reported as events; they are available from the response stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnEvent {
    /// A status message for the user.
    Status {
        /// The message to display.
        message: String,
    },
    /// A tool is about to run or to be refused.
    ToolCallStart {
        /// The tool's name.
        name: String,
        /// The arguments as the model wrote them, without bound values.
        arguments: String,
        /// The label of the call.
        label: Label,
    },
    /// The policy does not simply allow a call: it asks for approval, or denies it.
    Policy {
        /// The tool's name.
        name: String,
        /// What the policy decided, and why.
        ruling: Ruling,
    },
    /// A tool returned.
    ToolResult {
        /// The tool's name.
        name: String,
        /// The result as the model will see it.
        result: ToolResult,
        /// The label of what the model will see.
        label: Label,
    },
    /// The conversation has changed. It is available from [`Turn::messages`](super::Turn::messages) and not copied into
    /// the event, because copying would dominate the running time after thousands of rounds.
    MessagesUpdated {
        /// The number of messages.
        count: usize,
    },
    /// An error that the turn has handled.
    Error {
        /// The error message.
        message: String,
    },
    /// The turn is over.
    Done {
        /// The text of the final answer.
        response: String,
        /// The number of messages in the conversation.
        count: usize,
    },
    /// The turn was cancelled.
    Cancelled,
    /// A summary of the messages that no longer fit was requested.
    CompactionStart,
    /// The summary has replaced the messages.
    CompactionComplete {
        /// The number of messages that were removed.
        removed: usize,
        /// The number of messages that remain.
        remaining: usize,
    },
    /// No summary was provided, so the turn created one itself.
    CompactionFailed {
        /// The reason.
        message: String,
    },
}

impl TurnEvent {
    /// Returns the event's name in the specification.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::ToolCallStart { .. } => "tool_call_start",
            Self::Policy { .. } => "policy",
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
