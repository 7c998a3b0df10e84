//! The labels of saved conversations: where their messages came from.
//!
//! They are not part of the file that `/save` writes, because anybody could write such a file and claim that its messages
//! are trusted. Instead, they are in the user's state directory, under the hash of the conversation. A conversation that
//! is not known there, or was changed, is as untrusted as any other input.

use std::path::Path;
use std::time::SystemTime;
use std::{fs, io};

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

/// The maximum number of conversations whose labels are kept.
const MAX_FILES: usize = 1000;

/// The end of the names of the files.
const ENDING: &str = ".json";

/// Saves the labels of a conversation, and removes the oldest ones if there are too many.
///
/// # Errors
/// Returns an error if they cannot be written.
pub(super) fn save(messages: &Labeled) -> io::Result<()> {
    let Some(folder) = state_folder(Some(FOLDER))? else { return Ok(()) };
    // They are found by what is read from the file.
    let Ok(read) = parse_thread(&json!(messages.messages), ThreadRoles::Any) else { return Ok(()) };
    write::put(&folder.join(name(&read)), json::pretty(&messages.labels).as_bytes(), 0o600)?;
    // Another chat may be doing the same. What cannot be removed now is removed later.
    let _ = remove_oldest(&folder, MAX_FILES);
    Ok(())
}

/// Removes the labels that were written first, until this many are left.
fn remove_oldest(folder: &Path, max: usize) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_name) {
            files.push((entry.metadata()?.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path()));
        }
    }
    files.sort();
    let excess = files.len().saturating_sub(max);
    files[..excess].iter().try_for_each(|(_, path)| fs::remove_file(path))
}

fn is_name(name: &str) -> bool {
    let hash = name.strip_suffix(ENDING);
    hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
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
    format!("{}{ENDING}", sha256_hex(canonical_json(json!(messages))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_oldest_labels_are_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let names: Vec<_> =
            (0..5).map(|number| name(&[Message::text(tympan::Role::User, number.to_string())])).collect();
        for (age, name) in names.iter().enumerate() {
            let file = fs::File::create(path(name)).expect("it can be created");
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age as u64);
            file.set_modified(time).expect("it has a time");
        }
        for other in ["notes.json", "x"] {
            fs::write(path(other), "").expect("it can be written");
        }
        remove_oldest(folder.path(), 5).expect("it works");
        assert!(names.iter().all(|name| path(name).exists()), "as many as allowed");
        remove_oldest(folder.path(), 2).expect("it works");
        let left: Vec<_> = names.iter().map(|name| path(name).exists()).collect();
        assert_eq!(left, [true, true, false, false, false]);
        assert!(path("notes.json").exists() && path("x").exists(), "other files stay");
    }
}
