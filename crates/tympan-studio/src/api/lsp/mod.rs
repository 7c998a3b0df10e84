//! The language server over a WebSocket: one JSON message per text frame.
//!
//! The page sees the project as the root of a file system, `file:///`. Addresses in messages are converted in both
//! directions, and messages about other addresses are refused.

mod address;

use std::sync::Arc;
use std::thread;

use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use crossbeam_channel::{Receiver, Sender, bounded};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value as Json;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tympan_lsp::lsp_server::{Connection, ErrorCode, Message, Response as Reply};

use self::address::Addresses;
use crate::failure::{Answer, Failure};
use crate::server::App;

/// The number of messages that wait in each direction.
const QUEUED: usize = 32;

/// The maximum size of a message, in bytes: a file of the maximum size, as a JSON string.
const MAX_BYTES: usize = 20 << 20;

/// Answers with a session of the language server.
pub(crate) async fn connect(State(app): State<Arc<App>>, socket: WebSocketUpgrade) -> Answer<Response> {
    let place = app.lsp_places.clone().try_acquire_owned();
    let place = place.map_err(|_| Failure::busy("too many pages use the language server"))?;
    let socket = socket.max_message_size(MAX_BYTES).max_frame_size(MAX_BYTES).write_buffer_size(64 << 10);
    let socket = socket.max_write_buffer_size(2 * MAX_BYTES);
    Ok(socket.on_upgrade(move |socket| session(app, socket, place)))
}

/// Runs a session until the page is gone, or the server is done.
async fn session(app: Arc<App>, socket: WebSocket, place: OwnedSemaphorePermit) {
    let (to_server, incoming) = bounded::<Message>(QUEUED);
    let (to_client, outgoing) = bounded::<Message>(QUEUED);
    let (pages, mut from_server) = mpsc::channel::<Message>(QUEUED);
    let (feed, from_page) = mpsc::channel::<Message>(QUEUED);
    let connection = Connection { sender: to_client.clone(), receiver: incoming };
    // The server blocks, so it has a thread of its own, and so do the two queues that connect it.
    let started = [
        spawn(move || {
            let _ = tympan_lsp::serve(&connection);
        }),
        spawn(move || forward_in(from_page, &to_server)),
        spawn(move || forward_out(&outgoing, &pages)),
    ];
    if started.iter().any(|started| !started) {
        return;
    }
    let addresses = Addresses::new(app.project.root());
    let (mut sink, mut stream) = socket.split();
    let send_time = app.limits().send_time;
    let reading = async {
        while let Some(Ok(frame)) = stream.next().await {
            match frame {
                Frame::Text(text) => {
                    let passed = match addresses.parse(&text) {
                        Parsed::Message(message) => feed.send(*message).await.is_ok(),
                        Parsed::Refused(reply) => to_client.try_send(reply.into()).is_ok(),
                        Parsed::Ignored => true,
                    };
                    if !passed {
                        return;
                    }
                }
                Frame::Close(_) | Frame::Binary(_) => return,
                Frame::Ping(_) | Frame::Pong(_) => {}
            }
        }
    };
    let writing = async {
        while let Some(message) = from_server.recv().await {
            let frame = Frame::Text(addresses.write(message).into());
            // A page that does not read is gone.
            if !matches!(tokio::time::timeout(send_time, sink.send(frame)).await, Ok(Ok(()))) {
                return;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
    let goodbye = Frame::Close(Some(CloseFrame { code: 1000, reason: "".into() }));
    let _ = tokio::time::timeout(send_time, sink.send(goodbye)).await;
    drop(place);
}

fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name("studio-lsp".to_owned()).spawn(work).is_ok()
}

/// Passes messages of the page on to the server. Ends when the page is gone, and then the server ends as well.
fn forward_in(mut from_page: mpsc::Receiver<Message>, to_server: &Sender<Message>) {
    while let Some(message) = from_page.blocking_recv() {
        if to_server.send(message).is_err() {
            return;
        }
    }
}

/// Passes messages of the server on to the page, as fast as the page reads them.
fn forward_out(outgoing: &Receiver<Message>, pages: &mpsc::Sender<Message>) {
    for message in outgoing {
        if pages.blocking_send(message).is_err() {
            return;
        }
    }
}

/// A frame of the page.
enum Parsed {
    /// A message for the server.
    Message(Box<Message>),
    /// A request that is not passed on, and its answer.
    Refused(Reply),
    /// A frame without meaning.
    Ignored,
}

impl Addresses {
    /// Reads a frame.
    fn parse(&self, text: &str) -> Parsed {
        let Ok(mut json) = serde_json::from_str::<Json>(text) else { return Parsed::Ignored };
        let is_inside = self.to_real(&mut json);
        if json["method"] == "initialize" {
            self.set_root(&mut json);
        }
        let Ok(message) = serde_json::from_value::<Message>(json) else { return Parsed::Ignored };
        match message {
            message if is_inside => Parsed::Message(Box::new(message)),
            Message::Request(request) => Parsed::Refused(Reply::new_err(
                request.id,
                ErrorCode::InvalidParams as i32,
                "the address is not one of a file in the folder".to_owned(),
            )),
            _ => Parsed::Ignored,
        }
    }

    /// Writes a message of the server.
    fn write(&self, message: Message) -> String {
        // `Message` does not have the member that every message needs.
        let mut json = serde_json::to_value(message).unwrap_or_default();
        json["jsonrpc"] = "2.0".into();
        self.to_virtual(&mut json);
        json.to_string()
    }
}
