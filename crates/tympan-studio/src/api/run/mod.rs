//! Runs: model calls with tools, whose calls a person approves in the page.

mod registry;
mod turn;

use std::sync::{Arc, Mutex};

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tympan_core::turn::Verdict;

use super::{RenderRequest, checked, parse};
use crate::failure::{Answer, Failure};
use crate::server::App;
use crate::stream::Events;

pub(crate) use registry::Runs;
use turn::Turn;

/// Starts a run, and answers with a stream of its events.
pub(crate) async fn start(State(app): State<Arc<App>>, body: Bytes) -> Answer<Response> {
    let request: RenderRequest = parse(&body)?;
    let path = checked(&request.path)?;
    let record = request.options.record.as_deref().map(checked).transpose()?;
    if record.is_some() && app.options.read_only {
        return Err(Failure::forbidden("nothing is recorded: the studio was started with `--read-only`"));
    }
    let place = app.places.clone().try_acquire_owned();
    let place = place.map_err(|_| Failure::busy("too many runs and tests at a time"))?;
    let (events, response) = Events::new(app.limits().queued_events);
    let (run, cancel) = app.runs.begin();
    let pending = Mutex::default();
    let turn = Turn { app: app.clone(), run, cancel, events, path, record, request, pending };
    tokio::spawn(async move {
        turn.perform().await;
        app.runs.end(run);
        drop(place);
    });
    Ok(response)
}

/// An answer to a question about a tool call.
#[derive(Deserialize)]
struct ApproveRequest {
    run: u64,
    id: u64,
    approve: bool,
    /// What the model is told if the call is declined.
    reason: Option<String>,
}

/// The reason that a model is told if the person gives none.
const DECLINED: &str = "the user declined";

/// Answers a question about a tool call. Every question is answered once.
pub(crate) async fn approve(State(app): State<Arc<App>>, body: Bytes) -> Answer<Json<Value>> {
    let request: ApproveRequest = parse(&body)?;
    let verdict = match request.approve {
        true => Verdict::Allow,
        false => Verdict::Deny(request.reason.unwrap_or_else(|| DECLINED.to_owned())),
    };
    match app.runs.answer(request.run, request.id, verdict) {
        true => Ok(Json(json!({}))),
        false => Err(Failure::not_found("nobody waits for this answer")),
    }
}

/// A run to stop.
#[derive(Deserialize)]
struct StopRequest {
    run: u64,
}

/// Stops a run.
pub(crate) async fn stop(State(app): State<Arc<App>>, body: Bytes) -> Answer<Json<Value>> {
    let request: StopRequest = parse(&body)?;
    match app.runs.stop(request.run) {
        true => Ok(Json(json!({}))),
        false => Err(Failure::not_found("the run is over")),
    }
}
