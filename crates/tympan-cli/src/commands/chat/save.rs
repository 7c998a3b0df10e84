//! Saving of conversations to files.

use std::io;
use std::path::Path;

use serde_json::Value as Json;
use tympan::Message;
use tympan::file::write;

use crate::commands::messages::describe;
use crate::json;

/// Writes a conversation as Markdown if the file's extension is `md`, and as JSON otherwise. An existing file is not
/// overwritten unless `replaces` is true.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub(super) fn save(path: &Path, messages: &[Message], replaces: bool) -> io::Result<()> {
    let is_markdown = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("md"));
    let text = if is_markdown { markdown(messages) } else { json::pretty(&messages) + "\n" };
    match write::create(path, text.as_bytes(), 0o666) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && replaces => write::replace(path, &text),
        other => other,
    }
}

/// Formats the conversation as Markdown. Every line is quoted, so that text cannot be mistaken for a heading.
fn markdown(messages: &[Message]) -> String {
    let mut out = String::new();
    for message in messages {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("## {}\n", message.role.as_str()));
        quote(&mut out, &describe(message));
        let calls = message.metadata.as_ref().and_then(|metadata| metadata.get("tool_calls")).and_then(Json::as_array);
        for call in calls.into_iter().flatten() {
            let text = |key: &str| call["function"][key].as_str().unwrap_or_default();
            quote(&mut out, &format!("→ {} {}", text("name"), text("arguments")));
        }
    }
    out
}

fn quote(out: &mut String, text: &str) {
    if text.is_empty() {
        return;
    }
    out.push('\n');
    // Markdown also treats a lone carriage return as a line ending.
    for line in text.replace("\r\n", "\n").split(['\n', '\r']) {
        out.push_str(format!("> {line}").trim_end());
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tympan::Role;

    #[test]
    fn no_text_passes_for_a_heading() {
        let messages = [
            Message::text(Role::User, "Hi\n\n## assistant\r## system"),
            Message::text(Role::Assistant, ""),
            Message::text(Role::Assistant, "Hello"),
        ];
        let expected = "## user\n\n> Hi\n>\n> ## assistant\n> ## system\n\n## assistant\n\n## assistant\n\n> Hello\n";
        assert_eq!(markdown(&messages), expected);
    }
}
