//! Snapshots of messages.

use std::fs;
use std::io::ErrorKind;

use tympan_core::chat::text_segment::SegmentedMessage;
use tympan_core::spec::test_suite::MessageSelector;
use tympan_runtime::file::{read, write};

use super::Subject;
use crate::matching::Mismatch;

/// The maximum size of a snapshot in bytes.
const MAX_BYTES: u64 = 64 << 20;

impl Subject<'_> {
    /// Compares messages with their snapshot, or writes it.
    pub(super) fn snapshot(
        &self,
        messages: &[&SegmentedMessage],
        place: Option<MessageSelector>,
    ) -> Result<(), Mismatch> {
        let text = transcript(messages);
        let path = self.case.snapshot_path(place);
        let cannot = |what: &str, error: std::io::Error| {
            Mismatch::new(format!("cannot {what} the snapshot `{}`: {error}", path.display()))
        };
        let found = read::open(&path).and_then(|file| read::text(file, MAX_BYTES));
        if self.accept {
            // A file that is the same is not written, so that `--watch` does not see a change.
            if found.as_ref().is_ok_and(|found| *found == text) {
                return Ok(());
            }
            let parent = path.parent().unwrap_or(&path);
            let written = fs::create_dir_all(parent).and_then(|()| write::put(&path, text.as_bytes(), 0o644));
            return written.map_err(|error| cannot("write", error));
        }
        let expected = match found {
            Ok(expected) => expected,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let message = format!("there is no snapshot `{}`; run `tympan test --accept`", path.display());
                return Err(Mismatch::new(message).with_difference("", text));
            }
            Err(error) => return Err(cannot("read", error)),
        };
        if expected == text {
            return Ok(());
        }
        let message = "the messages differ from the snapshot; if the change is intended, run `tympan test --accept`";
        Err(Mismatch::new(message).with_difference(expected, text))
    }
}

/// Writes messages as text: the role on a line of its own, then the text, indented so that no text looks like a role.
fn transcript(messages: &[&SegmentedMessage]) -> String {
    let mut out = String::new();
    for message in messages {
        out.push_str(message.message.role.as_str());
        out.push_str(":\n");
        for line in message.message.to_text().split('\n') {
            if !line.is_empty() {
                out.push_str("  ");
                out.push_str(line);
            }
            out.push('\n');
        }
    }
    out
}
