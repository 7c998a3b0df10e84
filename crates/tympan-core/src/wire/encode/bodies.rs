//! Encodes the bodies of many requests of one prompt.

use std::borrow::Cow;
use std::fmt;

use super::functions::{Function, functions};
use super::{Ask, budget, dialect, openai_chat, write_body};
use crate::chat::message::Message;
use crate::error::{Error, Kind, Result};
use crate::prompt::Prompt;
use crate::spec::ModelOptions;
use crate::spec::schema::Property;
use crate::wire::target::{Target, target};
use crate::wire::{EncodeOptions, Protocol};

/// Encodes the bodies of many requests that differ only in their messages. The work that is the same for all of them,
/// such as the schemas of tools and outputs, is done once.
///
/// ```
/// use tympan_core::wire::{BodyEncoder, EncodeOptions};
/// use tympan_core::{Prompt, Message, chat::message::Role};
///
/// let prompt = Prompt::from_prompty("---\nmodel: gpt-4o-mini\n---\nuser:\nHi")?;
/// let encoder = BodyEncoder::new(&prompt, &EncodeOptions::default())?;
/// let mut body = Vec::new();
/// encoder.write(&[Message::text(Role::User, "Hi")], &mut body)?;
/// assert_eq!(body, br#"{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hi"}]}"#);
/// # Ok::<(), tympan_core::Error>(())
/// ```
pub struct BodyEncoder<'a> {
    target: Target<'a>,
    functions: Vec<Function<'a>>,
    outputs: &'a [Property],
    options: Cow<'a, ModelOptions>,
    /// The parts of a body before and after the value of `messages`, if they are the same for all messages.
    around: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for BodyEncoder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyEncoder").field("target", &self.target).finish_non_exhaustive()
    }
}

impl<'a> BodyEncoder<'a> {
    /// Prepares everything that does not depend on the messages. `options.stream` is ignored.
    ///
    /// # Errors
    /// Returns an error for the same reasons as [`encode`](super::encode), except those that concern the messages, the
    /// address or the key.
    pub fn new(prompt: &'a Prompt, options: &EncodeOptions<'a>) -> Result<Self> {
        let target = target(prompt, options)?;
        let spec = prompt.spec();
        let dialect = dialect(&target);
        let mut encoder = Self {
            target,
            functions: functions(&spec.tools, options.functions, dialect, budget(&spec.outputs, dialect)),
            outputs: &spec.outputs,
            options: spec.model.as_ref().map_or_else(Cow::default, |model| Cow::Borrowed(&model.options)),
            around: None,
        };
        encoder.around = encoder.around()?;
        Ok(encoder)
    }

    /// Returns the provider, the protocol and the model.
    pub fn target(&self) -> &Target<'a> {
        &self.target
    }

    /// Appends the body of a request with these messages. It is the same as that of [`encode`](super::encode).
    ///
    /// # Errors
    /// Returns an error if a rich input does not match its declaration, or if the protocol cannot carry it.
    pub fn write(&self, messages: &[Message], out: &mut Vec<u8>) -> Result<()> {
        let ask = self.ask(messages);
        let Some((before, after)) = &self.around else { return write_body(&ask, out) };
        let request = openai_chat::Request::new(&ask)?;
        out.extend_from_slice(before);
        serde_json::to_writer(&mut *out, request.messages())
            .map_err(|error| Error::new(Kind::InvalidRequest, error))?;
        out.extend_from_slice(after);
        Ok(())
    }

    fn ask<'b>(&'b self, messages: &'b [Message]) -> Ask<'b> {
        let Self { target, functions, outputs, options, .. } = self;
        Ask { target: target.clone(), messages, functions, outputs, options, stream: false }
    }

    /// Encodes a body without messages and cuts it where they would be.
    fn around(&self) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        if self.target.protocol != Protocol::OpenAiChat {
            return Ok(None);
        }
        let mut body = Vec::new();
        write_body(&self.ask(&[]), &mut body)?;
        let model =
            serde_json::to_string(self.target.model).map_err(|error| Error::new(Kind::InvalidRequest, error))?;
        let before = format!("{{\"model\":{model},\"messages\":");
        let rest = body.strip_prefix(before.as_bytes()).and_then(|rest| rest.strip_prefix(b"[]"));
        Ok(rest.map(|after| (before.into_bytes(), after.to_vec())))
    }
}
