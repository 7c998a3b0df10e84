//! A client that talks to a server in another thread.

use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value as Json, json};
use tympan_lsp::lsp_server::{Connection, Message, Notification, Request, Response, ResponseError};
use tympan_lsp::{Exit, serve};

pub(crate) struct Client {
    connection: Connection,
    server: JoinHandle<Exit>,
    next_id: i32,
    /// The notifications and responses that arrived while the client waited for something else.
    notifications: Vec<Notification>,
    responses: Vec<Response>,
}

impl Client {
    /// Starts a server without initializing it.
    pub(crate) fn start() -> Self {
        let (client, server) = Connection::memory();
        let server = std::thread::spawn(move || serve(&server));
        Self { connection: client, server, next_id: 0, notifications: Vec::new(), responses: Vec::new() }
    }

    /// Starts and initializes a server.
    pub(crate) fn initialized(params: Json) -> Self {
        let mut client = Self::start();
        client.request("initialize", params).expect("it initializes");
        client.notify("initialized", json!({}));
        client
    }

    /// Starts a server for a client with the usual capabilities.
    pub(crate) fn usual() -> Self {
        Self::initialized(usual_params())
    }

    pub(crate) fn notify(&self, method: &str, params: Json) {
        self.send(Notification::new(method.to_owned(), params));
    }

    pub(crate) fn send(&self, message: impl Into<Message>) {
        self.connection.sender.send(message.into()).expect("the server is there");
    }

    /// Sends a request and waits for its answer.
    pub(crate) fn request(&mut self, method: &str, params: Json) -> Result<Json, ResponseError> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(Request::new(id.into(), method.to_owned(), params));
        self.answer(id)
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: i32) -> Result<Json, ResponseError> {
        loop {
            if let Some(at) = self.responses.iter().position(|response| response.id == id.into()) {
                return self.responses.remove(at).response_result;
            }
            self.receive();
        }
    }

    fn receive(&mut self) {
        // Without a limit, a bug would be a test that never ends.
        match self.connection.receiver.recv_timeout(Duration::from_secs(100)).expect("the server answers") {
            Message::Response(response) => self.responses.push(response),
            Message::Notification(notification) => self.notifications.push(notification),
            Message::Request(_) => {}
        }
    }

    pub(crate) fn open(&self, uri: &str, text: &str) {
        let document = json!({"uri": uri, "languageId": "prompty", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    pub(crate) fn change(&self, uri: &str, version: i32, changes: Json) {
        let document = json!({"uri": uri, "version": version});
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}));
    }

    /// Waits for the next diagnostics of a document, and returns the parameters of the notification.
    pub(crate) fn diagnostics(&mut self, uri: &str) -> Json {
        let is_wanted = |notification: &Notification| {
            notification.method == "textDocument/publishDiagnostics" && notification.params["uri"] == uri
        };
        loop {
            if let Some(at) = self.notifications.iter().position(is_wanted) {
                return self.notifications.remove(at).params;
            }
            self.receive();
        }
    }

    /// Returns the notifications of a method that have arrived.
    pub(crate) fn notifications(&self, method: &str) -> Vec<&Json> {
        let found = self.notifications.iter().filter(|notification| notification.method == method);
        found.map(|notification| &notification.params).collect()
    }

    /// Sends `exit` and returns how the server ended.
    pub(crate) fn exit(self) -> Exit {
        self.notify("exit", Json::Null);
        self.server.join().expect("the server does not panic")
    }

    /// Closes the connection and returns how the server ended.
    pub(crate) fn disconnect(self) -> Exit {
        let Self { connection, server, .. } = self;
        drop(connection);
        server.join().expect("the server does not panic")
    }

    /// Shuts the server down as the protocol requires.
    pub(crate) fn shut_down(mut self) {
        self.request("shutdown", Json::Null).expect("it shuts down");
        assert_eq!(self.exit(), Exit::Clean);
    }
}

pub(crate) fn usual_params() -> Json {
    json!({
        "processId": null,
        "rootUri": null,
        "capabilities": {
            "general": {"positionEncodings": ["utf-8", "utf-16"]},
            "textDocument": {
                "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}},
                "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
            },
        },
    })
}
