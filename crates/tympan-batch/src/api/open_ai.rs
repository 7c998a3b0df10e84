//! OpenAI's batch API, and those that are compatible with it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value as Json, json};
use tympan_core::{Error, Kind, Result};
use tympan_runtime::net::client::TransferError;
use tympan_runtime::{ProviderApi, ResourceBody, ResourceRequest};

use crate::limits::batch_path;

use super::{
    Answer, BatchApi, BatchStatus, Lookup, Outcome, RequestFile, RowError, RowState, Tags, count, identifier,
    is_identifier, shortened, unexpected, unknown,
};

/// The key of a batch's metadata that has the token.
const TOKEN: &str = "tympan_token";
/// The number of batches in a page of the list. This is the most that the API allows.
const PAGE: &str = "100";
/// The most pages of the list that are searched for a batch.
const MAX_PAGES: usize = 200;
/// How far the clocks of this machine and of the provider may differ, in seconds.
const CLOCK_DIFFERENCE: i64 = 24 * 3600;
/// The code of the error for a batch that the queue of the account has no room for.
const QUEUE_FULL: &str = "token_limit_exceeded";
/// The number of reasons for the failure of a batch that are saved.
const MAX_REASONS: usize = 3;

/// OpenAI's batch API.
#[derive(Debug)]
pub(super) struct OpenAi<'a> {
    api: &'a ProviderApi<'a>,
}

impl<'a> OpenAi<'a> {
    pub(super) fn new(api: &'a ProviderApi<'a>) -> Self {
        Self { api }
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Json> {
        let request = ResourceRequest { query, ..ResourceRequest::get(path) };
        self.api.send(request).map_err(|failure| failure.error)
    }
}

impl BatchApi for OpenAi<'_> {
    fn has_uploads(&self) -> bool {
        true
    }

    fn upload(&self, requests: &RequestFile, tags: &Tags<'_>) -> Result<Option<String>, TransferError> {
        let random = getrandom::u64().and_then(|first| Ok((first, getrandom::u64()?)));
        let (first, second) = random.map_err(|error| Error::new(Kind::InvalidBatch, error))?;
        let boundary = format!("tympan-{first:016x}{second:016x}");
        let name = format!("{}-{:05}-{}.jsonl", tags.job, tags.file, tags.attempt);
        let before = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--{boundary}\r\n\
             content-disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             content-type: application/jsonl\r\n\r\n"
        );
        let after = format!("\r\n--{boundary}--\r\n");
        let body = requests.body(format!("multipart/form-data; boundary={boundary}")).between(before, after);
        let request =
            ResourceRequest { is_repeatable: true, ..ResourceRequest::post("/files", ResourceBody::File(body)) };
        let uploaded = self.api.send(request)?;
        Ok(Some(identifier(&uploaded, "a file")?))
    }

    fn create(&self, _: &RequestFile, upload: Option<&str>, tags: &Tags<'_>) -> Result<BatchStatus, TransferError> {
        let body = json!({
            "input_file_id": upload,
            "endpoint": batch_path(self.api.provider().name, self.api.protocol()),
            "completion_window": "24h",
            "metadata": {
                "tympan_job": tags.job,
                "tympan_file": tags.file.to_string(),
                "tympan_attempt": tags.attempt.to_string(),
                TOKEN: tags.token,
            },
        });
        let created = self.api.send(ResourceRequest::post("/batches", ResourceBody::Json(body)))?;
        read_batch(&created).map_err(unknown)
    }

    fn find(&self, upload: Option<&str>, tags: &Tags<'_>) -> Result<Lookup> {
        let mut after: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let mut query = vec![("limit", PAGE)];
            query.extend(after.as_deref().map(|after| ("after", after)));
            let page = match self.get("/batches", &query) {
                Ok(page) => page,
                Err(error) if matches!(error.status(), Some(404 | 405 | 501)) => {
                    return Ok(Lookup::Impossible("the API has no list of batches".to_owned()));
                }
                Err(error) => return Err(error),
            };
            let batches = page.get("data").and_then(Json::as_array).ok_or_else(|| unexpected("a list of batches"))?;
            // Not every compatible API keeps metadata, but all know which file a batch came from.
            let is_ours = |batch: &&Json| {
                let is_of_upload = upload.is_some() && batch.get("input_file_id").and_then(Json::as_str) == upload;
                is_of_upload || batch.get("metadata").is_some_and(|metadata| metadata[TOKEN] == tags.token)
            };
            if let Some(batch) = batches.iter().find(is_ours) {
                return read_batch(batch).map(Lookup::Found);
            }
            let oldest = batches.iter().filter_map(|batch| batch.get("created_at")?.as_i64()).min();
            let is_older = oldest.is_some_and(|oldest| oldest < tags.started - CLOCK_DIFFERENCE);
            let last = batches.last().and_then(|batch| batch.get("id")?.as_str()).map(str::to_owned);
            if is_older || page.get("has_more").and_then(Json::as_bool) != Some(true) || last.is_none() {
                return Ok(Lookup::Absent);
            }
            if last == after {
                break;
            }
            after = last;
        }
        Ok(Lookup::Impossible("the list of batches does not end".to_owned()))
    }

    fn status(&self, batch: &str) -> Result<BatchStatus> {
        same(batch, read_batch(&self.get(&format!("/batches/{batch}"), &[])?)?)
    }

    fn cancel(&self, batch: &str) -> Result<BatchStatus> {
        let path = format!("/batches/{batch}/cancel");
        let request = ResourceRequest { is_repeatable: true, ..ResourceRequest::post(&path, ResourceBody::None) };
        let cancelled = self.api.send(request).map_err(|failure| failure.error)?;
        same(batch, read_batch(&cancelled)?)
    }

    fn results(&self, _: &str, output: Option<&str>, errors: Option<&str>) -> Vec<String> {
        [output, errors].into_iter().flatten().map(|file| format!("/files/{file}/content")).collect()
    }

    fn read_line<'l>(&self, line: &'l [u8]) -> serde_json::Result<Answer<'l>> {
        let Line { custom_id, response, error } = serde_json::from_slice(line)?;
        let outcome = match response {
            Some(Response { status_code: 200..=299, body: Some(body) }) if body.get() != "null" => Outcome::Body(body),
            Some(Response { status_code, body }) => {
                let body = body.and_then(|body| serde_json::from_str(body.get()).ok());
                Outcome::Error(RowError::new(RowState::Failed, body.as_ref().or(error.as_ref()), Some(status_code)))
            }
            None => {
                let code = error.as_ref().and_then(|error| error.get("code")?.as_str());
                let state = match code {
                    Some("batch_expired") => RowState::Expired,
                    Some("batch_cancelled" | "batch_canceled") => RowState::Cancelled,
                    _ => RowState::Failed,
                };
                Outcome::Error(RowError::new(state, error.as_ref(), None))
            }
        };
        Ok(Answer { custom_id, outcome })
    }
}

/// A line of a file with results.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    custom_id: Cow<'l, str>,
    #[serde(borrow, default)]
    response: Option<Response<'l>>,
    #[serde(default)]
    error: Option<Json>,
}

#[derive(Deserialize)]
struct Response<'l> {
    status_code: u16,
    #[serde(borrow, default)]
    body: Option<&'l RawValue>,
}

/// Returns the state of a batch, if it is the requested one.
fn same(id: &str, batch: BatchStatus) -> Result<BatchStatus> {
    if batch.id == id { Ok(batch) } else { Err(unexpected(&format!("the batch `{id}`"))) }
}

fn read_batch(json: &Json) -> Result<BatchStatus> {
    let status = json.get("status").and_then(Json::as_str).ok_or_else(|| unexpected("a batch with a `status`"))?;
    let none = Json::Null;
    let counts = json.get("request_counts").unwrap_or(&none);
    let file = |key: &str| -> Result<Option<String>> {
        match json.get(key).and_then(Json::as_str) {
            None | Some("") => Ok(None),
            Some(id) if is_identifier(id) => Ok(Some(id.to_owned())),
            Some(_) => Err(unexpected(&format!("an identifier as `{key}`"))),
        }
    };
    Ok(BatchStatus {
        id: identifier(json, "a batch")?,
        status: shortened(status),
        is_ended: matches!(status, "completed" | "failed" | "expired" | "cancelled" | "canceled"),
        completed: count(counts, "completed"),
        failed: count(counts, "failed"),
        output: file("output_file_id")?,
        errors: file("error_file_id")?,
        error: reasons(json),
        is_queue_full: status == "failed" && is_queue_full(json),
    })
}

/// Returns whether a batch failed because too many tokens of the account are waiting.
fn is_queue_full(json: &Json) -> bool {
    let reasons = json.get("errors").and_then(|errors| errors.get("data")?.as_array());
    let code = |reason: &Json| reason.get("code").and_then(Json::as_str) == Some(QUEUE_FULL);
    reasons.is_some_and(|reasons| !reasons.is_empty() && reasons.iter().all(code))
}

/// Returns why a batch failed as a whole.
fn reasons(json: &Json) -> Option<String> {
    let reasons = json.get("errors")?.get("data")?.as_array()?;
    let reason = |reason: &Json| {
        let message = reason.get("message").and_then(Json::as_str).unwrap_or("no reason");
        match reason.get("line").and_then(Json::as_u64) {
            Some(line) => format!("line {line}: {message}"),
            None => message.to_owned(),
        }
    };
    let texts: Vec<_> = reasons.iter().take(MAX_REASONS).map(reason).collect();
    (!texts.is_empty()).then(|| shortened(&texts.join("; ")))
}
