//! Results as data.

use serde_json::json;
use tympan::TurnRun;
use tympan::host::data;
use tympan::{Message, Result, wire};

use crate::border::written;

/// Messages as text, with pictures, sound and documents in parts of their own.
///
/// # Errors
/// An input cannot be used as what it is declared to be.
pub(crate) fn messages(mut messages: Vec<Message>) -> Result<String> {
    wire::inline_media(&mut messages)?;
    written(&messages)
}

/// What a turn came to.
///
/// # Errors
/// As [`messages`].
pub(crate) fn turn(turn: TurnRun) -> Result<String> {
    let mut messages = turn.messages;
    wire::inline_media(&mut messages)?;
    written(&json!({
        "run": data::run(&turn.run),
        "usage": turn.usage,
        "rounds": turn.rounds,
        "messages": messages,
        "resumed_records": turn.resumed.map(|resumed| resumed.records),
    }))
}
