//! Anthropic's message batches.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use tympan_core::{Error, Kind, Result};
use tympan_runtime::net::client::TransferError;
use tympan_runtime::{ProviderApi, ResourceBody, ResourceRequest};

use super::{
    Answer, BatchApi, BatchStatus, Lookup, Outcome, RequestFile, RowError, RowState, Tags, count, identifier,
    shortened, unexpected, unknown,
};

/// The path of all batches.
const BATCHES: &str = "/messages/batches";

/// Anthropic's batch API.
#[derive(Debug)]
pub(super) struct Anthropic<'a> {
    api: &'a ProviderApi<'a>,
}

impl<'a> Anthropic<'a> {
    pub(super) fn new(api: &'a ProviderApi<'a>) -> Self {
        Self { api }
    }

    fn send(&self, request: ResourceRequest<'_>, batch: &str) -> Result<BatchStatus> {
        let status = read_batch(&self.api.send(request).map_err(|failure| failure.error)?)?;
        if status.id == batch { Ok(status) } else { Err(unexpected(&format!("the batch `{batch}`"))) }
    }
}

impl BatchApi for Anthropic<'_> {
    fn has_uploads(&self) -> bool {
        false
    }

    fn upload(&self, _: &RequestFile, _: &Tags<'_>) -> Result<Option<String>, TransferError> {
        Ok(None)
    }

    fn create(&self, requests: &RequestFile, _: Option<&str>, _: &Tags<'_>) -> Result<BatchStatus, TransferError> {
        // The lines of the file are the elements of the list.
        let body = requests.body("application/json".to_owned()).as_elements().between("{\"requests\":[", "]}");
        let created = self.api.send(ResourceRequest::post(BATCHES, ResourceBody::File(body)))?;
        read_batch(&created).map_err(unknown)
    }

    fn find(&self, _: Option<&str>, _: &Tags<'_>) -> Result<Lookup> {
        Ok(Lookup::Impossible("Anthropic's batches have no metadata".to_owned()))
    }

    fn status(&self, batch: &str) -> Result<BatchStatus> {
        self.send(ResourceRequest::get(&format!("{BATCHES}/{batch}")), batch)
    }

    fn cancel(&self, batch: &str) -> Result<BatchStatus> {
        let path = format!("{BATCHES}/{batch}/cancel");
        let request = ResourceRequest { is_repeatable: true, ..ResourceRequest::post(&path, ResourceBody::None) };
        self.send(request, batch)
    }

    fn results(&self, batch: &str, _: Option<&str>, _: Option<&str>) -> Vec<String> {
        // The address in the response is not used: the key must not go anywhere else.
        vec![format!("{BATCHES}/{batch}/results")]
    }

    fn read_line<'l>(&self, line: &'l [u8]) -> serde_json::Result<Answer<'l>> {
        let Line { custom_id, result: Received { kind, message, error } } = serde_json::from_slice(line)?;
        let outcome = match (&*kind, message) {
            ("succeeded", Some(message)) if message.get() != "null" => Outcome::Body(message),
            ("expired", _) => Outcome::Error(RowError::new(RowState::Expired, error.as_ref(), None)),
            ("canceled", _) => Outcome::Error(RowError::new(RowState::Cancelled, error.as_ref(), None)),
            _ => Outcome::Error(RowError::new(RowState::Failed, error.as_ref(), None)),
        };
        Ok(Answer { custom_id, outcome })
    }
}

/// A line of the results.
#[derive(Deserialize)]
struct Line<'l> {
    #[serde(borrow)]
    custom_id: Cow<'l, str>,
    #[serde(borrow)]
    result: Received<'l>,
}

#[derive(Deserialize)]
struct Received<'l> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'l, str>,
    #[serde(borrow, default)]
    message: Option<&'l RawValue>,
    #[serde(default)]
    error: Option<Json>,
}

fn read_batch(json: &Json) -> Result<BatchStatus> {
    let status = json.get("processing_status").and_then(Json::as_str);
    let status = status.ok_or_else(|| unexpected("a batch with a `processing_status`"))?;
    let none = Json::Null;
    let counts = json.get("request_counts").unwrap_or(&none);
    let is_archived = json.get("archived_at").is_some_and(|time| !time.is_null());
    if is_archived {
        let message = "the provider has deleted the results of the batch";
        return Err(Error::new(Kind::InvalidBatch, message).with_help("prepare the rows again in another directory"));
    }
    Ok(BatchStatus {
        id: identifier(json, "a batch")?,
        status: shortened(status),
        is_ended: status == "ended",
        completed: count(counts, "succeeded"),
        failed: count(counts, "errored") + count(counts, "canceled") + count(counts, "expired"),
        ..BatchStatus::default()
    })
}
