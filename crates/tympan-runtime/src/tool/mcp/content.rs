//! Converts the result of a tool to message content.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use tympan_core::chat::message::{MediaPart, TextPart};
use tympan_core::{Content, ContentPart, Redactor};

use crate::tool::{ToolError, ToolOutput};

/// The maximum number of bytes of a failed tool's message.
const MAX_FAILURE: usize = 16 << 10;

/// Converts the result of a call, removing the secrets that the server was given.
///
/// # Errors
/// Returns an error with the tool's message if the tool reports a failure.
pub(super) fn output(result: CallToolResult, secrets: &Redactor) -> Result<ToolOutput, ToolError> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let mut parts: Content = content.into_iter().map(part).collect();
    if parts.is_empty()
        && let Some(value) = structured_content
    {
        parts = Content::text(value.to_string());
    }
    for part in parts.iter_mut() {
        if let ContentPart::Text(text) = part {
            text.value = secrets.known_text(std::mem::take(&mut text.value));
        }
    }
    if is_error == Some(true) {
        let said: Vec<_> = parts.iter().filter_map(ContentPart::as_text).collect();
        let said = said.join("\n");
        let said = &said[..said.floor_char_boundary(MAX_FAILURE)];
        return Err(if said.is_empty() { "the MCP server gave no reason" } else { said }.into());
    }
    Ok(parts.into())
}

fn part(block: ContentBlock) -> ContentPart {
    match block {
        ContentBlock::Text(part) => text(part.text),
        ContentBlock::Image(part) => media(part.data, Some(part.mime_type), "image"),
        ContentBlock::Audio(part) => media(part.data, Some(part.mime_type), "audio"),
        ContentBlock::ResourceLink(link) => text(described(&link)),
        ContentBlock::Resource(part) => match part.resource {
            ResourceContents::TextResourceContents { text: value, .. } => text(value),
            ResourceContents::BlobResourceContents { blob, mime_type, .. } => {
                let kind = mime_type.as_deref().and_then(|kind| kind.split('/').next()).unwrap_or_default().to_owned();
                media(blob, mime_type, &kind)
            }
            _ => text("[a resource of an unknown kind]"),
        },
        _ => text("[content of an unknown kind]"),
    }
}

fn text(value: impl Into<String>) -> ContentPart {
    ContentPart::Text(TextPart::new(value))
}

/// Converts media data to a content part. Only base64 data is accepted: a URL in its place would be fetched by the
/// provider.
fn media(data: String, media_type: Option<String>, kind: &str) -> ContentPart {
    let Ok(bytes) = STANDARD.decode(&data) else { return text("[data that are not base64]") };
    let is_type = |given: &str| given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/.+-".contains(&byte));
    let media_type = media_type.filter(|given| is_type(given));
    let part = |media_type: Option<String>| MediaPart { value: data, media_type, detail: None, file_name: None };
    match kind {
        "image" => ContentPart::Image(part(media_type)),
        "audio" => ContentPart::Audio(part(media_type)),
        "text" => match String::from_utf8(bytes) {
            Ok(value) => text(value),
            Err(_) => text("[a text that is not UTF-8]"),
        },
        _ => ContentPart::File(part(media_type.or_else(|| Some("application/octet-stream".to_owned())))),
    }
}

/// Describes a link. The link is not fetched.
fn described(link: &Resource) -> String {
    let kind = link.mime_type.as_deref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    let description = link.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("[resource {}{kind} at {}{description}]", link.name, link.uri)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn parts(result: Json) -> Json {
        let result = serde_json::from_value(result).expect("it is a result");
        json!(output(result, &Redactor::new(false)).expect("it is no failure").content)
    }

    #[test]
    fn what_a_server_was_given_is_taken_out() {
        let mut secrets = Redactor::new(false);
        secrets.register("given-to-it");
        for is_error in [false, true] {
            let result = json!({ "content": [{ "type": "text", "text": "has GIVEN-to-it" }], "isError": is_error });
            let result = serde_json::from_value(result).expect("it is a result");
            let said = match output(result, &secrets) {
                Ok(output) => json!(output.content).to_string(),
                Err(error) => error.to_string(),
            };
            assert!(said.contains("has [REDACTED]") && !said.contains("GIVEN"), "{said}");
        }
    }

    #[test]
    fn all_kinds_of_content_become_parts() {
        let content = json!([
            { "type": "text", "text": "Hello" },
            { "type": "image", "data": "aGk=", "mimeType": "image/png" },
            { "type": "audio", "data": "aGk=", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "x:1", "text": "inner" } },
            { "type": "resource", "resource": { "uri": "x:2", "blob": "aGk=", "mimeType": "text/plain" } },
            { "type": "resource", "resource": { "uri": "x:3", "blob": "aGk=" } },
            { "type": "resource", "resource": { "uri": "x:4", "blob": "aGk=", "mimeType": "image/gif" } },
            { "type": "resource_link", "uri": "x:5", "name": "n", "description": "d" },
        ]);
        let expected = json!([
            { "kind": "text", "value": "Hello" },
            { "kind": "image", "value": "aGk=", "mediaType": "image/png" },
            { "kind": "audio", "value": "aGk=", "mediaType": "audio/wav" },
            { "kind": "text", "value": "inner" },
            { "kind": "text", "value": "hi" },
            { "kind": "file", "value": "aGk=", "mediaType": "application/octet-stream" },
            { "kind": "image", "value": "aGk=", "mediaType": "image/gif" },
            { "kind": "text", "value": "[resource n at x:5: d]" },
        ]);
        assert_eq!(parts(json!({ "content": content })), expected);
    }

    #[test]
    fn structured_content_stands_in_for_content() {
        let result = json!({ "content": [], "structuredContent": { "a": 1 } });
        assert_eq!(parts(result), json!([{ "kind": "text", "value": "{\"a\":1}" }]));
    }

    #[test]
    fn an_address_is_no_picture() {
        let block = json!({ "type": "image", "data": "http://169.254.169.254/", "mimeType": "image/png" });
        assert_eq!(parts(json!({ "content": [block] }))[0]["kind"], "text");
    }

    #[test]
    fn failures_are_errors() {
        let failed = json!({ "content": [{ "type": "text", "text": "out of order" }], "isError": true });
        let failed = output(serde_json::from_value(failed).expect("it is a result"), &Redactor::new(false));
        assert_eq!(failed.expect_err("it failed").to_string(), "out of order");
    }
}
