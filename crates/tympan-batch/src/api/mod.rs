//! The batch APIs of providers.

mod anthropic;
mod open_ai;

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::PathBuf;

use serde_json::Value as Json;
use serde_json::value::RawValue;
use tympan_core::wire::Protocol;
use tympan_core::{Error, Kind, Result};
use tympan_runtime::ProviderApi;
use tympan_runtime::file::read;
use tympan_runtime::net::client::{FileBody, TransferError};

use self::anthropic::Anthropic;
use self::open_ai::OpenAi;
use crate::limits::Target;

/// The most characters of a provider's message that are saved.
const MESSAGE_CHARS: usize = 1000;

/// A batch API.
pub(crate) trait BatchApi {
    /// Returns whether a batch is created from a file that was uploaded before.
    fn has_uploads(&self) -> bool;

    /// Uploads the file of a batch, if the API separates that from the creation of the batch. Uploading a file twice
    /// has no effect on batches.
    fn upload(&self, requests: &RequestFile, tags: &Tags<'_>) -> Result<Option<String>, TransferError>;

    /// Creates a batch. The error says whether there may be a batch nevertheless.
    fn create(
        &self,
        requests: &RequestFile,
        upload: Option<&str>,
        tags: &Tags<'_>,
    ) -> Result<BatchStatus, TransferError>;

    /// Finds the batch that was created with these tags.
    fn find(&self, upload: Option<&str>, tags: &Tags<'_>) -> Result<Lookup>;

    /// Returns the state of a batch.
    fn status(&self, batch: &str) -> Result<BatchStatus>;

    /// Requests that a batch ends early.
    fn cancel(&self, batch: &str) -> Result<BatchStatus>;

    /// Returns the paths of the files with the results of a batch that has ended.
    fn results(&self, batch: &str, output: Option<&str>, errors: Option<&str>) -> Vec<String>;

    /// Reads a line of such a file.
    fn read_line<'l>(&self, line: &'l [u8]) -> serde_json::Result<Answer<'l>>;
}

/// Returns the batch API for a job with files of this form.
pub(crate) fn of_target<'a>(target: Target, api: &'a ProviderApi<'a>) -> Result<Box<dyn BatchApi + 'a>> {
    let protocol = api.protocol();
    match (target, protocol) {
        (Target::OpenAi, Protocol::OpenAiChat | Protocol::OpenAiResponses | Protocol::OpenAiEmbeddings) => {
            Ok(Box::new(OpenAi::new(api)))
        }
        (Target::Anthropic, Protocol::AnthropicMessages) => Ok(Box::new(Anthropic::new(api))),
        _ => {
            let (target, provider) = (target.as_str(), api.provider().name);
            let message = format_args!("provider `{provider}` has no batch API for files of the form `{target}`");
            Err(Error::new(Kind::InvalidBatch, message)
                .with_help("prepare the job with `--to openai` or `--to anthropic` and a provider that fits"))
        }
    }
}

/// What identifies a submission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags<'t> {
    pub(crate) job: &'t str,
    pub(crate) file: u64,
    pub(crate) attempt: u64,
    /// A random text.
    pub(crate) token: &'t str,
    /// When sending began, in seconds since the Unix epoch.
    pub(crate) started: i64,
}

/// A file of requests in the directory of a job.
#[derive(Clone, Debug)]
pub(crate) struct RequestFile {
    pub(crate) directory: PathBuf,
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

impl RequestFile {
    /// Opens the file. Neither its name nor a link leads out of the directory.
    pub(crate) fn open(&self) -> io::Result<File> {
        read::open_in(&self.directory, &self.name)
    }

    /// Returns a request body with the content of the file.
    fn body(&self, content_type: String) -> FileBody {
        let requests = self.clone();
        FileBody::new(content_type, move || requests.open(), self.bytes)
    }
}

/// Whether a batch was found.
#[derive(Clone, Debug)]
pub(crate) enum Lookup {
    Found(BatchStatus),
    Absent,
    /// The API cannot find batches by what was recorded. The text says why.
    Impossible(String),
}

/// The state of a batch, as the provider reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchStatus {
    pub(crate) id: String,
    /// The provider's name for the state.
    pub(crate) status: String,
    /// Whether the state is final.
    pub(crate) is_ended: bool,
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) output: Option<String>,
    pub(crate) errors: Option<String>,
    /// Why the batch failed as a whole.
    pub(crate) error: Option<String>,
    /// Whether it failed because too many requests of the account are waiting. It can be sent again later.
    pub(crate) is_queue_full: bool,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) struct Answer<'l> {
    pub(crate) custom_id: Cow<'l, str>,
    pub(crate) outcome: Outcome<'l>,
}

#[derive(Debug)]
pub(crate) enum Outcome<'l> {
    /// The body of the response, as the provider sent it.
    Body(&'l RawValue),
    Error(RowError),
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowError {
    pub(crate) state: RowState,
    pub(crate) code: Option<String>,
    pub(crate) message: String,
    /// The HTTP status.
    pub(crate) status: Option<u16>,
}

/// What became of a request without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowState {
    Failed,
    Expired,
    Cancelled,
    /// The provider says nothing about the request.
    Missing,
}

impl RowState {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Missing => "missing",
        }
    }
}

impl RowError {
    /// Reads an error in any of the forms that providers use: `{"code", "message"}`, or such a map below `error`.
    fn new(state: RowState, json: Option<&Json>, status: Option<u16>) -> Self {
        let inner = json.and_then(|json| json.get("error").filter(|inner| inner.is_object()).or(Some(json)));
        let text = |key: &str| inner.and_then(|inner| inner.get(key)?.as_str()).map(shortened);
        let message = text("message").or_else(|| inner.and_then(Json::as_str).map(shortened));
        let default = || status.map_or_else(|| state.as_str().to_owned(), |status| format!("HTTP {status}"));
        Self { state, code: text("code").or_else(|| text("type")), message: message.unwrap_or_else(default), status }
    }

    pub(crate) fn to_json(&self) -> Json {
        let Self { state, code, message, status } = self;
        let mut json = serde_json::json!({ "state": state.as_str(), "message": message });
        if let Some(code) = code {
            json["code"] = code.as_str().into();
        }
        if let Some(status) = status {
            json["status"] = (*status).into();
        }
        json
    }
}

/// Shortens a text of a provider.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(MESSAGE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns an error for a response that is not a batch.
fn unexpected(what: &str) -> Error {
    Error::new(Kind::UnexpectedResponse, format_args!("expected {what}"))
        .with_help("check that the base URL belongs to an API with batches")
}

/// Returns the identifier in a response, which later becomes part of a path.
fn identifier(json: &Json, what: &str) -> Result<String> {
    let id = json.get("id").and_then(Json::as_str).filter(|id| is_identifier(id));
    id.map(str::to_owned).ok_or_else(|| unexpected(&format!("{what} with an `id`")))
}

fn is_identifier(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    id.len() <= 200 && id.bytes().all(is_plain) && id.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

/// Returns an error after which nobody knows whether there is a batch.
fn unknown(error: Error) -> TransferError {
    let mut failure = TransferError::from(error);
    failure.is_outcome_unknown = true;
    failure
}

fn count(json: &Json, key: &str) -> u64 {
    json.get(key).and_then(Json::as_u64).unwrap_or_default()
}
