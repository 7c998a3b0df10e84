//! Journals of turns as lists of events.

use std::io::Write;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde_json::{Value, json};
use tympan_core::secret::url::redacted_url;
use tympan_runtime::Journal;

use super::{blocking, path_of};
use crate::failure::{Answer, Failure};
use crate::project::FileKind;
use crate::server::App;

/// Answers with the events of a journal.
pub(crate) async fn journal(State(app): State<Arc<App>>, uri: Uri) -> Answer<Json<Value>> {
    let path = path_of(&uri)?;
    blocking(move || {
        let (kind, text) = app.project.read(&path)?;
        if kind != FileKind::Journal {
            return Err(Failure::invalid("the file is not a journal").with_help("journals are `.journal` files"));
        }
        // Journals are read by their path. Reading a copy makes sure that it is the file that was checked.
        let mut copy = tempfile::NamedTempFile::new()?;
        copy.write_all(text.text.as_bytes())?;
        let journal = Journal::file(copy.path());
        let header = journal.header()?;
        let stored = journal.store().read()?;
        let records = stored.records.iter().skip(1).filter_map(|record| serde_json::from_slice(record).ok());
        let events = records.map(|record: Value| event(&record));
        Ok(Json(json!({
            "turn": header.turn,
            "began": header.began,
            "prompt": header.prompt,
            "inputs": header.inputs,
            "provider": header.provider,
            "model": header.model,
            "base_url": header.base_url.as_deref().map(redacted_url),
            "torn_bytes": stored.torn_bytes,
            "events": events.collect::<Value>(),
        })))
    })
    .await
}

/// Converts a record to an event: its type, when it happened in milliseconds since the turn began, and its data.
fn event(record: &Value) -> Value {
    let (kind, data) = match record["record"].as_str() {
        Some("told") => (record["what"]["fed"].as_str().unwrap_or("event"), &record["what"]),
        Some(kind) => (kind, record),
        None => ("unknown", record),
    };
    json!({"type": kind, "time": record["at"], "summary": summary(kind, data), "data": data})
}

fn summary(kind: &str, data: &Value) -> String {
    let names = |list: &Value, key: &str| {
        let names = list.as_array().into_iter().flatten().filter_map(|item| item[key].as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    match kind {
        "responded" => "the model responded".to_owned(),
        "failed" => "the model call failed".to_owned(),
        "waited" => "the wait before the next attempt is over".to_owned(),
        "judged" => "a guardrail returned a verdict".to_owned(),
        "approved" => "the approver answered".to_owned(),
        "summarized" => "older messages were summarized".to_owned(),
        "returned" => "a tool returned".to_owned(),
        "started" => format!("tools started: {}", names(&data["tools"], "name")),
        "cancelled" => "the turn was cancelled".to_owned(),
        "steered" => "a message was added".to_owned(),
        "ticked" => "time passed".to_owned(),
        other => other.replace('_', " "),
    }
}
