//! Server-sent events from a queue of limited length.

use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use serde_json::Value as Json;
use tokio::sync::mpsc;

/// How often a comment is sent while there are no events, so that a closed connection is noticed.
const ALIVE: Duration = Duration::from_secs(15);

/// The sending end of a stream of events.
#[derive(Clone)]
pub(crate) struct Events(mpsc::Sender<(&'static str, Json)>);

/// The client is gone, or reads too slowly.
#[derive(Debug)]
pub(crate) struct Gone;

impl Events {
    /// Creates a stream that holds this many events for a client that reads slowly.
    pub(crate) fn new(length: usize) -> (Self, Response) {
        let (sender, receiver) = mpsc::channel::<(&'static str, Json)>(length.max(1));
        let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
            let (name, data) = receiver.recv().await?;
            // JSON on one line: `data` of an event must not contain line breaks.
            let event = Event::default().event(name).data(data.to_string());
            Some((Ok::<_, Infallible>(event), receiver))
        });
        let response = Sse::new(stream).keep_alive(KeepAlive::new().interval(ALIVE)).into_response();
        (Self(sender), response)
    }

    /// Sends an event without waiting.
    ///
    /// # Errors
    /// Returns an error if the client is gone, or if it has not read the events before.
    pub(crate) fn send(&self, name: &'static str, data: Json) -> Result<(), Gone> {
        self.0.try_send((name, data)).map_err(|_| Gone)
    }

    /// Returns whether an event can be sent without waiting.
    pub(crate) fn has_room(&self) -> bool {
        self.0.capacity() > 0
    }

    /// Waits until the client has read enough, and sends an event.
    ///
    /// # Errors
    /// Returns an error if the client is gone.
    pub(crate) async fn send_when_read(&self, name: &'static str, data: Json) -> Result<(), Gone> {
        self.0.send((name, data)).await.map_err(|_| Gone)
    }

    /// Waits on this thread until the client has read enough, and sends an event.
    ///
    /// # Errors
    /// Returns an error if the client is gone.
    pub(crate) fn send_blocking(&self, name: &'static str, data: Json) -> Result<(), Gone> {
        self.0.blocking_send((name, data)).map_err(|_| Gone)
    }

    /// Waits until the client is gone.
    pub(crate) async fn closed(&self) {
        self.0.closed().await;
    }
}
