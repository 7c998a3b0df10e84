//! OpenAI's Embeddings API.

use serde::{Serialize, Serializer};

use super::body::Entries;
use super::parts::split_messages;
use super::{Ask, cannot_carry};
use crate::error::Result;

/// The body of a request.
pub(super) struct Request<'a> {
    ask: &'a Ask<'a>,
    texts: Vec<&'a str>,
}

impl<'a> Request<'a> {
    pub(super) fn new(ask: &'a Ask<'a>) -> Result<Self> {
        let mut texts = Vec::with_capacity(ask.messages.len());
        for message in split_messages(ask.messages)? {
            if let Some(media) = message.parts.media().next() {
                return Err(cannot_carry(&ask.target, media.kind.as_str()));
            }
            texts.extend(message.parts.texts());
        }
        Ok(Self { ask, texts })
    }
}

impl Serialize for Request<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = Entries::new(serializer.serialize_map(None)?);
        body.put("model", self.ask.target.model)?;
        match self.texts.as_slice() {
            [only] => body.put("input", only)?,
            several => body.put("input", several)?,
        }
        body.end_with(&self.ask.options.additional_properties)
    }
}
