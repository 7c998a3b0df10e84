//! The loop that answers the client.
//!
//! Messages are handled one after the other, in the order in which they arrive, so that no state is shared and every
//! answer is about the text that the client had when it asked. Before diagnostics are computed, all messages that have
//! arrived are handled: while a user types faster than a document can be checked, only its last version is. Documents that
//! depend on the one in which the user types are checked in a pause, so that they do not delay its diagnostics.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

use crossbeam_channel::RecvTimeoutError;
use gen_lsp_types::{PublishDiagnosticsParams, Uri};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response, ResponseError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tympan_core::format::Resolve;

use crate::analysis::Analysis;
use crate::capabilities::capabilities;
use crate::client::Client;
use crate::diagnostics::diagnostics;
use crate::document::{Change, Document, DocumentRef, Documents};
use crate::failure::{Answer, Failure};
use crate::workspace::WorkspaceFiles;
use crate::{features, settings};

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The client asked for it, as the protocol requires.
    Clean,
    /// The connection was closed, or the client did not send `shutdown` first.
    Unclean,
}

/// Answers a client until it disconnects.
pub fn serve(connection: &Connection) -> Exit {
    Server {
        connection,
        queue: VecDeque::new(),
        phase: Phase::Started,
        client: Client::default(),
        documents: Documents::default(),
        unchecked: Vec::new(),
        dependents: Vec::new(),
    }
    .run()
}

/// The phase of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before `initialize`.
    Started,
    Running,
    /// After `shutdown`.
    ShutDown,
}

pub(crate) struct Server<'c> {
    connection: &'c Connection,
    /// The messages that have arrived.
    queue: VecDeque<Message>,
    phase: Phase,
    pub(crate) client: Client,
    documents: Documents,
    /// The documents whose diagnostics are outdated, in the order of their changes.
    unchecked: Vec<Uri>,
    /// The documents whose diagnostics are outdated because another document has changed.
    dependents: Vec<Uri>,
}

/// How long no message has to arrive before documents are checked that depend on a changed one.
const PAUSE: Duration = Duration::from_millis(50);

impl Server<'_> {
    fn run(mut self) -> Exit {
        while let Some(message) = self.next() {
            match message {
                Message::Request(request) => self.request(request),
                Message::Notification(notification) if notification.method == "exit" => {
                    return if self.phase == Phase::ShutDown { Exit::Clean } else { Exit::Unclean };
                }
                Message::Notification(notification) => self.notification(notification),
                // The only request of this server needs no answer.
                Message::Response(_) => {}
            }
        }
        Exit::Unclean
    }

    /// Returns the next message, or `None` if the connection is closed. Publishes diagnostics while there is none.
    fn next(&mut self) -> Option<Message> {
        loop {
            while let Ok(message) = self.connection.receiver.try_recv() {
                self.enqueue(message);
            }
            if let Some(message) = self.queue.pop_front() {
                return Some(message);
            }
            if !self.unchecked.is_empty() {
                let uri = self.unchecked.remove(0);
                self.publish(&uri);
            } else if self.dependents.is_empty() {
                let message = self.connection.receiver.recv().ok()?;
                self.enqueue(message);
            } else {
                match self.connection.receiver.recv_timeout(PAUSE) {
                    Ok(message) => self.enqueue(message),
                    Err(RecvTimeoutError::Timeout) => self.unchecked.append(&mut self.dependents),
                    Err(RecvTimeoutError::Disconnected) => return None,
                }
            }
        }
    }

    /// Appends a message. A request that is cancelled before its turn is answered at once.
    fn enqueue(&mut self, message: Message) {
        if let Message::Notification(notification) = &message
            && notification.method == "$/cancelRequest"
        {
            let id = notification.params.get("id");
            let is_cancelled = |message: &Message| match message {
                Message::Request(request) => serde_json::to_value(&request.id).ok().as_ref() == id,
                _ => false,
            };
            if let Some(at) = self.queue.iter().position(is_cancelled)
                && let Some(Message::Request(request)) = self.queue.remove(at)
            {
                let failure = Failure::new(ErrorCode::RequestCanceled, "the client cancelled the request");
                self.respond(request.id, Err::<(), _>(failure));
            }
            return;
        }
        self.queue.push_back(message);
    }

    fn send(&self, message: impl Into<Message>) {
        // A client that is gone needs no answer. The loop ends at its next message.
        let _ = self.connection.sender.send(message.into());
    }

    fn respond(&self, id: RequestId, answer: Answer<impl Serialize>) {
        let result = answer.map_err(ResponseError::from).and_then(|answer| {
            serde_json::to_value(answer).map_err(|error| ResponseError {
                code: ErrorCode::InternalError as i32,
                message: error.to_string(),
                data: None,
            })
        });
        self.send(Response { id, response_result: result });
    }

    fn request(&mut self, request: Request) {
        let Request { id, method, params } = request;
        let answer = match (self.phase, method.as_str()) {
            (Phase::Started, "initialize") => Ok(self.initialize(&params)),
            (Phase::Started, _) => Err(Failure::new(ErrorCode::ServerNotInitialized, "expected `initialize` first")),
            (Phase::ShutDown, _) => Err(Failure::new(ErrorCode::InvalidRequest, "the server is shut down")),
            (Phase::Running, "initialize") => {
                Err(Failure::new(ErrorCode::InvalidRequest, "the server is already initialized"))
            }
            (Phase::Running, "shutdown") => {
                self.phase = Phase::ShutDown;
                Ok(Json::Null)
            }
            (Phase::Running, method) => features::answer(self, method, params),
        };
        self.respond(id, answer);
    }

    fn initialize(&mut self, params: &Json) -> Json {
        self.client = Client::new(params);
        self.phase = Phase::Running;
        json!({
            "capabilities": capabilities(&self.client),
            "serverInfo": {"name": "tympan", "version": env!("CARGO_PKG_VERSION")},
        })
    }

    fn notification(&mut self, notification: Notification) {
        if self.phase != Phase::Running {
            return;
        }
        let Notification { method, params } = notification;
        let handled = match method.as_str() {
            "initialized" => {
                self.watch_files();
                Ok(())
            }
            "textDocument/didOpen" => parse(params).map(|params| self.open(params)),
            "textDocument/didChange" => parse(params).and_then(|params| self.change(params)),
            "textDocument/didClose" => parse(params).map(|params| self.close(&params)),
            "textDocument/didSave" | "workspace/didChangeWatchedFiles" => {
                self.check_all();
                Ok(())
            }
            "workspace/didChangeWorkspaceFolders" => {
                self.client.change_folders(&params);
                self.check_all();
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(failure) = handled {
            let ResponseError { message, .. } = failure.into();
            let params = json!({"type": 1, "message": format!("tympan lsp: {method}: {message}")});
            self.send(Notification::new("window/logMessage".to_owned(), params));
        }
    }

    /// Asks the client to report changes of the files that prompts can refer to, and of settings.
    fn watch_files(&self) {
        if self.client.watches_files {
            let registration = json!({
                "id": "files",
                "method": "workspace/didChangeWatchedFiles",
                "registerOptions": {"watchers": [{"globPattern": "**/*"}]},
            });
            let params = json!({"registrations": [registration]});
            self.send(Request::new(1.into(), "client/registerCapability".to_owned(), params));
        }
    }

    fn open(&mut self, params: gen_lsp_types::DidOpenTextDocumentParams) {
        let item = params.text_document;
        self.documents.open(Document::new(item.uri.clone(), item.version, &item.text, self.client.encoding));
        self.mark_changed(item.uri);
    }

    fn change(&mut self, params: DidChange) -> Answer<()> {
        let version = params.text_document.version;
        let uri = params.text_document.text_document_identifier.uri;
        let document = self.documents.get_mut(&uri).ok_or_else(|| not_open(&uri))?;
        document.change(version, params.content_changes);
        self.mark_changed(uri);
        Ok(())
    }

    fn close(&mut self, params: &gen_lsp_types::DidCloseTextDocumentParams) {
        let uri = &params.text_document.uri;
        self.forget_marks(uri);
        let path = self.documents.get(uri).and_then(|document| document.path.clone());
        if self.documents.close(uri) {
            self.mark_dependents(path.as_deref());
            // The client would show the last diagnostics of a closed document forever.
            self.send_diagnostics(PublishDiagnosticsParams {
                uri: uri.clone(),
                version: None,
                diagnostics: Vec::new(),
            });
        }
    }

    fn check_all(&mut self) {
        let mut uris = Vec::new();
        for document in self.documents.iter_mut() {
            document.forget_analysis();
            uris.push(document.uri.clone());
        }
        uris.sort();
        uris.into_iter().for_each(|uri| self.mark_unchecked(uri));
    }

    fn mark_unchecked(&mut self, uri: Uri) {
        self.forget_marks(&uri);
        self.unchecked.push(uri);
    }

    fn forget_marks(&mut self, uri: &Uri) {
        self.unchecked.retain(|other| other != uri);
        self.dependents.retain(|other| other != uri);
    }

    /// Marks a document whose text has changed, and those that depend on it. The document itself is checked first: it is
    /// the one in which the user is typing.
    fn mark_changed(&mut self, uri: Uri) {
        let path = self.documents.get(&uri).and_then(|document| document.path.clone());
        self.mark_dependents(path.as_deref());
        self.forget_marks(&uri);
        self.unchecked.insert(0, uri);
    }

    /// Marks the documents whose findings depend on a file.
    fn mark_dependents(&mut self, path: Option<&Path>) {
        let Some(path) = path else { return };
        let depends = |document: &Document| {
            let known = document.known_analysis();
            known.is_some_and(|analysis| analysis.dependencies.iter().any(|dependency| dependency == path))
        };
        let mut outdated = Vec::new();
        for document in self.documents.iter_mut().filter(|document| depends(document)) {
            document.forget_analysis();
            outdated.push(document.uri.clone());
        }
        outdated.sort();
        outdated.retain(|uri| !self.unchecked.contains(uri) && !self.dependents.contains(uri));
        self.dependents.append(&mut outdated);
    }

    fn publish(&self, uri: &Uri) {
        let Some(document) = self.documents.get(uri) else { return };
        let diagnostics =
            settings::diagnostics(document).unwrap_or_else(|| diagnostics(document, self.analysis(document)));
        let version = Some(document.version);
        self.send_diagnostics(PublishDiagnosticsParams { uri: uri.clone(), version, diagnostics });
    }

    fn send_diagnostics(&self, params: PublishDiagnosticsParams) {
        self.send(Notification::new("textDocument/publishDiagnostics".to_owned(), params));
    }

    /// Returns an open document.
    pub(crate) fn document(&self, uri: &Uri) -> Answer<&Document> {
        self.documents.get(uri).ok_or_else(|| not_open(uri))
    }

    /// Returns the analysis of a document, from its last check if it has not changed since.
    pub(crate) fn analysis<'d>(&self, document: &'d Document) -> &'d Analysis {
        document.analysis(|| match document.is_prompt() {
            true => {
                let options = settings::options(&self.client.folders, document.path.as_deref());
                Analysis::new(document.source(), self.files(document), options)
            }
            false => Analysis::empty(),
        })
    }

    /// Returns the files that a document may refer to.
    pub(crate) fn files(&self, document: &Document) -> WorkspaceFiles<'_> {
        WorkspaceFiles::new(&self.client.folders, document.path.as_deref(), &self.documents)
    }

    /// Returns the open documents.
    pub(crate) fn documents(&self) -> impl Iterator<Item = &Document> {
        self.documents.iter()
    }

    /// Returns the document at a path relative to another one, if that may refer to it: the open document, or the file.
    pub(crate) fn document_at(&self, base: &Document, path: &str) -> Option<DocumentRef<'_>> {
        let mut files = self.files(base);
        let text = files.file(path).ok()?.text;
        let path = files.path(path)?;
        if let Some(open) = self.documents.at_path(&path) {
            return Some(DocumentRef::Open(open));
        }
        let uri = Uri::from_file_path(&path).ok()?;
        Some(DocumentRef::Read(Box::new(Document::new(uri, 0, &text, self.client.encoding))))
    }
}

/// The parameters of `textDocument/didChange`. In the types of the protocol, a change with an invalid range would be
/// taken for one of the whole text.
#[derive(Debug, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct DidChange {
    text_document: gen_lsp_types::VersionedTextDocumentIdentifier,
    content_changes: Vec<Change>,
}

fn not_open(uri: &Uri) -> Failure {
    Failure::new(ErrorCode::InvalidParams, format_args!("{uri} is not open"))
}

/// Reads the parameters of a message.
pub(crate) fn parse<P: DeserializeOwned>(params: Json) -> Answer<P> {
    serde_json::from_value(params).map_err(|error| Failure::new(ErrorCode::InvalidParams, error))
}
