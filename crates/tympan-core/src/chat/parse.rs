//! Splits a plain string into messages, for custom renderers.

use std::sync::Arc;

use super::message::{Message, RichInput, RichValue};
use super::rendered::{Rendered, RichContent, RichPlace};
use super::scan::for_each_marker;
use super::split::split;
use crate::error::{Error, Kind, Result};
use crate::spec::schema::PropertyKind;
use crate::text::origin::Origin;
use crate::text::source::SourceFile;
use crate::text::traced::TracedText;

/// Options for parsing text whose origins are not known.
#[derive(Clone, Debug, Default)]
pub struct ParseTextOptions {
    /// The nonce that [`pre_render`](crate::chat::marker::pre_render) wrote into the author's markers. If it is set,
    /// every marker must have it.
    pub nonce: Option<String>,
    /// Threads by their placeholder, `__PROMPTY_THREAD_<16 hexadecimal digits>_<name>__`, or by the name of their
    /// input. If [`nonce`](Self::nonce) is set, a thread passed by name replaces a placeholder only if the
    /// placeholder's digits are that nonce. Without this check, anyone who wrote a part of the text could insert the
    /// thread there.
    pub threads: Vec<(String, Vec<Message>)>,
}

/// Splits a plain string into messages. All of it counts as the author's text, so this is only safe with a nonce, or
/// with text that no input contributed to.
///
/// # Errors
/// Returns an error if a role marker lacks the expected nonce.
pub fn parse_text(text: &str, options: &ParseTextOptions) -> Result<Vec<Message>> {
    let mut rendered = Rendered::new(TracedText::whole(text, Origin::AUTHOR), Arc::default());
    rendered.rich = RichContent::new(find_threads(text, options), Vec::new());
    let mut mismatch = None;
    if let Some(expected) = &options.nonce {
        for_each_marker(&rendered, |line, marker| {
            let is_right = marker
                .attributes
                .and_then(|attributes| attributes.nonce)
                .is_some_and(|nonce| same_bytes(nonce.as_bytes(), expected.as_bytes()));
            if !is_right && mismatch.is_none() {
                mismatch = Some(line);
            }
        });
    }
    if let Some(line) = mismatch {
        let source = SourceFile::new("<text>", text);
        return Err(Error::new(Kind::NonceMismatch, "")
            .with_help(
                "this role marker does not have the expected nonce: an input wrote it, or the text was rendered with \
                    another nonce",
            )
            .at(line.into())
            .in_source(&source, 0));
    }
    let mut messages = split(rendered);
    if options.nonce.is_some() {
        messages.iter_mut().for_each(remove_nonce);
    }
    Ok(messages)
}

/// Compares in constant time, so that timing does not reveal the position of the first difference.
fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b)) == 0
}

fn remove_nonce(message: &mut Message) {
    if let Some(metadata) = &mut message.metadata {
        metadata.shift_remove("nonce");
        if metadata.is_empty() {
            message.metadata = None;
        }
    }
}

/// Returns the positions of thread placeholders in a text.
fn find_threads(text: &str, options: &ParseTextOptions) -> Vec<RichPlace> {
    const PREFIX: &str = "__PROMPTY_THREAD_";
    const DIGITS: usize = 16;
    let mut places = Vec::new();
    for (start, _) in text.match_indices(PREFIX) {
        let after = &text[start + PREFIX.len()..];
        let named = after.split_at_checked(DIGITS).and_then(|(digits, rest)| {
            let is_expected = match &options.nonce {
                Some(nonce) => same_bytes(digits.as_bytes(), nonce.as_bytes()),
                None => true,
            };
            let is_nonce = is_expected && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
            rest.strip_prefix('_').filter(|_| is_nonce)
        });
        let found = options.threads.iter().find_map(|(key, messages)| {
            if text[start..].starts_with(key.as_str()) && key.starts_with(PREFIX) {
                return Some((key.len(), key, messages));
            }
            named?.strip_prefix(key.as_str())?.strip_prefix("__")?;
            Some((PREFIX.len() + DIGITS + 1 + key.len() + 2, key, messages))
        });
        if let Some((len, name, messages)) = found {
            let input = RichInput {
                name: name.clone(),
                kind: PropertyKind::Thread,
                nonce: text[start..start + len].to_owned(),
                value: RichValue::Thread(messages.clone()),
            };
            places.push(RichPlace { range: start..start + len, input: Arc::new(input) });
        }
    }
    places
}
