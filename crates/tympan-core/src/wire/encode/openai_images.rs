//! OpenAI's Images API.

use serde::{Serialize, Serializer};

use super::body::Entries;
use super::parts::split_messages;
use super::{Ask, cannot_carry};
use crate::chat::message::Role;
use crate::error::Result;

/// The body of a request.
pub(super) struct Request<'a> {
    ask: &'a Ask<'a>,
    prompt: &'a str,
}

impl<'a> Request<'a> {
    /// Builds a request from the last user message, which describes the image.
    pub(super) fn new(ask: &'a Ask<'a>) -> Result<Self> {
        let mut prompt = "";
        for message in
            split_messages(ask.messages)?.iter().rev().filter(|message| message.message.role == Role::User).take(1)
        {
            if let Some(media) = message.parts.media().next() {
                return Err(cannot_carry(&ask.target, media.kind.as_str()));
            }
            prompt = message.parts.texts().first().copied().unwrap_or_default();
        }
        Ok(Self { ask, prompt })
    }
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = Entries::new(serializer.serialize_map(None)?);
        body.put("model", self.ask.target.model)?;
        body.put("prompt", self.prompt)?;
        body.end_with(&self.ask.options.additional_properties)
    }
}
