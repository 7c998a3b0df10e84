//! Serialization of results.

use serde_json::json;
use tympan::TurnRun;
use tympan::host::data;
use tympan::{Message, Result, wire};

use crate::border::written;

/// Serializes messages. Images, audio and files become separate parts.
///
/// # Errors
/// Returns an error if an input does not match its declared kind.
pub(crate) fn messages(mut messages: Vec<Message>) -> Result<String> {
    wire::inline_media(&mut messages)?;
    written(&messages)
}

/// Serializes the result of a turn.
///
/// # Errors
/// Returns an error if an input does not match its declared kind.
pub(crate) fn turn(turn: TurnRun) -> Result<String> {
    let mut messages = turn.messages;
    wire::inline_media(&mut messages)?;
    written(&json!({
        "run": data::run(&turn.run),
        "usage": turn.usage,
        "rounds": turn.rounds,
        "messages": messages,
        "labels": data::message_labels(&turn.labels),
        "label": data::label(&turn.label),
        "resumed_records": turn.resumed.map(|resumed| resumed.records),
    }))
}
