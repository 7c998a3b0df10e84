//! The labels of saved conversations: where their messages came from.
//!
//! They are not part of the file that `/save` writes, because anybody could write such a file and claim that its messages
//! are trusted. Instead, they are in the user's state directory, under the hash of the conversation. A conversation that
//! is not known there, or was changed, is as untrusted as any other input.

use std::io;

use serde_json::json;
use tympan::Message;
use tympan::chat::thread::{ThreadRoles, parse_thread};
use tympan::file::{read, write};
use tympan::json::canonical_json;
use tympan::text::hash::sha256_hex;
use tympan::turn::MessageLabel;

use super::reader::state_folder;
use crate::commands::render::Labeled;
use crate::json;

/// The folder in the state directory.
const FOLDER: &str = "conversations";

/// The maximum size of the labels of a conversation, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Saves the labels of a conversation.
///
/// # Errors
/// Returns an error if they cannot be written.
pub(super) fn save(messages: &Labeled) -> io::Result<()> {
    let Some(folder) = state_folder(Some(FOLDER))? else { return Ok(()) };
    // They are found by what is read from the file.
    let Ok(read) = parse_thread(&json!(messages.messages), ThreadRoles::Any) else { return Ok(()) };
    write::put(&folder.join(name(&read)), json::pretty(&messages.labels).as_bytes(), 0o600)
}

/// Loads the labels of a conversation, if it was saved here.
pub(super) fn load(messages: &[Message]) -> Option<Vec<MessageLabel>> {
    if messages.is_empty() {
        return None;
    }
    let folder = state_folder(Some(FOLDER)).ok()??;
    let text = read::open_in(&folder, name(messages)).and_then(|file| read::text(file, MAX_BYTES)).ok()?;
    let labels: Vec<MessageLabel> = serde_json::from_str(&text).ok()?;
    (labels.len() == messages.len()).then_some(labels)
}

fn name(messages: &[Message]) -> String {
    format!("{}.json", sha256_hex(canonical_json(json!(messages))))
}
