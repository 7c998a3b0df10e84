//! The lines of request files.

use std::io::Write as _;

use serde::Serialize;
use tympan_core::wire::{BodyEncoder, Protocol, inline_media};
use tympan_core::{ContentPart, Error, Kind, Message, Prompt, Result};
use tympan_runtime::RunOptions;

use crate::limits::{Target, batch_path};
use crate::output::encode_options;

/// Writes the line of a row.
pub(crate) struct LineWriter<'a> {
    form: Form<'a>,
    /// What the identifiers of all lines begin with.
    job: String,
}

enum Form<'a> {
    /// A request: its encoder, and the text between the identifier and the body.
    Request(Box<BodyEncoder<'a>>, Vec<u8>),
    /// Messages in Tympan's own form.
    Messages,
}

impl<'a> LineWriter<'a> {
    /// Creates a writer. `job` is the identifier of the job.
    pub(crate) fn new(target: Target, prompt: &'a Prompt, run: &'a RunOptions, job: &str) -> Result<Self> {
        let form = if target.has_requests() {
            let encoder = BodyEncoder::new(prompt, &encode_options(run))?;
            let before = before_body(target, encoder.target().provider.name, encoder.target().protocol)?;
            Form::Request(Box::new(encoder), before)
        } else {
            Form::Messages
        };
        Ok(Self { form, job: job.to_owned() })
    }

    /// Returns the name of the provider, if the lines are requests.
    pub(crate) fn provider(&self) -> Option<&'static str> {
        match &self.form {
            Form::Request(encoder, _) => Some(encoder.target().provider.name),
            Form::Messages => None,
        }
    }

    /// Returns the name of the model, or an empty one if the lines are not requests.
    pub(crate) fn model(&self) -> &str {
        match &self.form {
            Form::Request(encoder, _) => encoder.target().model,
            Form::Messages => "",
        }
    }

    /// Appends a line with the messages of a row. On an error, the output is as before.
    pub(crate) fn write(&self, row: u64, messages: &[Message], out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        let written = self.try_write(row, messages, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn try_write(&self, row: u64, messages: &[Message], out: &mut Vec<u8>) -> Result<()> {
        let failed = |error: &dyn std::fmt::Display| Error::new(Kind::InvalidRequest, error.to_string());
        match &self.form {
            Form::Request(encoder, before) => {
                out.extend_from_slice(b"{\"custom_id\":\"");
                out.extend_from_slice(self.job.as_bytes());
                write!(out, "-{row}").map_err(|error| failed(&error))?;
                out.extend_from_slice(before);
                encoder.write(messages, out)?;
            }
            Form::Messages => {
                write!(out, "{{\"row\":{row},\"messages\":").map_err(|error| failed(&error))?;
                // JSON has no positions in texts, so images and files become parts of their own.
                let inlined;
                let messages = if messages.iter().any(has_media) {
                    let mut copy = messages.to_vec();
                    inline_media(&mut copy)?;
                    inlined = copy;
                    &inlined
                } else {
                    messages
                };
                messages.serialize(&mut serde_json::Serializer::new(&mut *out)).map_err(|error| failed(&error))?;
            }
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// Returns whether a text of a message contains an image or a file.
fn has_media(message: &Message) -> bool {
    message.content.iter().any(|part| matches!(part, ContentPart::Text(text) if !text.anchors.is_empty()))
}

/// Returns the row that an identifier belongs to, if it is one of this job.
pub(crate) fn row_of(custom_id: &str, job: &str) -> Option<u64> {
    let digits = custom_id.strip_prefix(job)?.strip_prefix('-')?;
    let is_canonical = digits.bytes().all(|byte| byte.is_ascii_digit()) && (digits == "0" || !digits.starts_with('0'));
    if is_canonical { digits.parse().ok() } else { None }
}

fn before_body(target: Target, provider: &str, protocol: Protocol) -> Result<Vec<u8>> {
    let path = match (target, protocol) {
        (Target::Anthropic, Protocol::AnthropicMessages) => return Ok(b"\",\"params\":".to_vec()),
        (Target::OpenAi | Target::Vllm, Protocol::OpenAiChat | Protocol::OpenAiEmbeddings)
        | (Target::OpenAi, Protocol::OpenAiResponses) => batch_path(provider, protocol),
        (_, protocol) => {
            let (target, protocol) = (target.as_str(), protocol.as_str());
            let message = format_args!("the protocol `{protocol}` has no batch files of the form `{target}`");
            return Err(Error::new(Kind::InvalidBatch, message)
                .with_help("name another provider or API with `--provider` and `--api`, or another form with `--to`"));
        }
    };
    Ok(format!("\",\"method\":\"POST\",\"url\":\"{path}\",\"body\":").into_bytes())
}
