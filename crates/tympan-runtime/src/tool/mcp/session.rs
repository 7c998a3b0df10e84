//! A session with a server.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientJsonRpcMessage, ClientRequest, Implementation, ListToolsRequest,
    PaginatedRequestParams, ProtocolVersion, ServerJsonRpcMessage, ServerNotification, ServerResult,
};
use rmcp::service::{ClientInitializeError, Peer, RoleClient, RunningService, ServiceError, serve_client};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use rmcp::transport::{DynamicTransportError, Transport};
use tympan_core::{Error, Redactor, Result};

use crate::host::runtime::RuntimeOptions;
use crate::net::client::shown;
use crate::tool::mcp::connections::Key;
use crate::tool::mcp::declaration::Target;
use crate::tool::mcp::http::{self, HttpFailure};
use crate::tool::mcp::list::{MAX_TOOLS, ToolList, details, unavailable};
use crate::tool::mcp::message::Notes;
use crate::tool::mcp::server::Reach;
use crate::tool::mcp::stdio::Program;

/// The maximum number of pages of a list of tools.
const MAX_PAGES: usize = 100;

/// How long to wait for a server to end the session.
const GRACE: Duration = Duration::from_secs(2);

/// A session with a server. Dropping it ends the session and the program.
pub(super) struct Session {
    pub(super) peer: Peer<RoleClient>,
    running: Mutex<Option<RunningService<RoleClient, Client>>>,
    program: Mutex<Option<Program>>,
    /// Set when the server notifies that its tools have changed.
    is_stale: Arc<AtomicBool>,
    /// The latest list of tools. It is cleared before it is requested again, because that request may be cancelled.
    list: tokio::sync::Mutex<Option<Arc<ToolList>>>,
    has_listed: AtomicBool,
    limit: Duration,
    key: Key,
    notes: Notes,
    reach: Reach,
    redactor: Redactor,
    /// Redacts only the secrets that the server was given.
    known: Redactor,
}

/// The client side of a session. It offers no capabilities: no sampling, no elicitation, no roots.
struct Client;

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new("tympan", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// A transport that detects when the server's tools change. All other notifications, such as logs, are dropped.
struct Watched<T> {
    transport: T,
    is_stale: Arc<AtomicBool>,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Watched<T> {
    type Error = T::Error;

    fn send(&mut self, item: ClientJsonRpcMessage) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            // Detect changes here, so that they are known before the next response is processed.
            match self.transport.receive().await? {
                ServerJsonRpcMessage::Notification(message) => {
                    if matches!(message.notification, ServerNotification::ToolListChangedNotification(_)) {
                        self.is_stale.store(true, Ordering::Release);
                    }
                }
                message => return Some(message),
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

impl Session {
    /// Starts a session.
    ///
    /// # Errors
    /// Returns an error if the server does not start, cannot be reached, does not respond in time, or does not follow
    /// the protocol.
    pub(super) async fn begin(target: &Target, options: &RuntimeOptions) -> Result<Self> {
        let mut redactor = Redactor::new(true);
        redactor.register_all(target.server.reach.secrets());
        let begun = Self::begin_as(target, options, &redactor).await;
        begun.map_err(|error| error.without_secrets(&target.server.reach.with_tokens(&redactor)))
    }

    async fn begin_as(target: &Target, options: &RuntimeOptions, redactor: &Redactor) -> Result<Self> {
        let (notes, is_stale) = (Notes::default(), Arc::new(AtomicBool::new(true)));
        let limit = target.server.connect_timeout;
        let begin = Begin { key: &target.key, notes: &notes, limit, is_stale: &is_stale };
        let (running, program) = match &target.server.reach {
            Reach::Program(command) => {
                let (program, lines) = Program::start(command, notes.clone())?;
                match begin.handshake(lines).await {
                    Ok(running) => (running, Some(program)),
                    Err(error) => return Err(program.last_words(error).await),
                }
            }
            Reach::Address(address) => {
                (begin.handshake(http::transport(address, options, notes.clone())?).await?, None)
            }
        };
        Ok(Self {
            peer: running.peer().clone(),
            running: Mutex::new(Some(running)),
            program: Mutex::new(program),
            is_stale,
            list: tokio::sync::Mutex::default(),
            has_listed: AtomicBool::new(false),
            limit,
            key: target.key.clone(),
            notes,
            reach: target.server.reach.clone(),
            redactor: redactor.clone(),
            known: known_secrets(target),
        })
    }

    /// Returns whether the connection is closed.
    pub(super) fn is_over(&self) -> bool {
        // The end of a program is known before the end of its output has been read.
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        self.peer.is_transport_closed() || program.as_mut().is_some_and(Program::has_exited)
    }

    /// Returns whether the server has listed its tools before.
    pub(super) fn has_listed(&self) -> bool {
        self.has_listed.load(Ordering::Acquire)
    }

    /// Requests the list of tools from the server.
    ///
    /// # Errors
    /// Returns an error if the server cannot list its tools, times out, or has too many.
    pub(super) async fn fresh_list(&self) -> Result<Arc<ToolList>> {
        self.is_stale.store(true, Ordering::Release);
        self.list().await
    }

    /// Returns the list of tools. Requests it only if the server has notified a change.
    ///
    /// # Errors
    /// Returns an error if [`Session::fresh_list`] would.
    pub(super) async fn list(&self) -> Result<Arc<ToolList>> {
        let mut list = self.list.lock().await;
        // Reset the flag before the request, so that a change during the request leads to another one.
        if self.is_stale.swap(false, Ordering::AcqRel) {
            *list = None;
        }
        if let Some(list) = &*list {
            return Ok(list.clone());
        }
        let listed = tokio::time::timeout(self.limit, self.read_list()).await.unwrap_or_else(|_| {
            Err(unavailable(format_args!("{} did not list its tools within {} s", self.key, self.limit.as_secs_f64())))
        });
        let listed = listed.map_err(|error| self.explained(error))?;
        self.has_listed.store(true, Ordering::Release);
        Ok(list.insert(Arc::new(listed)).clone())
    }

    async fn read_list(&self) -> Result<ToolList> {
        let (mut tools, mut cursor) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            // Bypass the library's response cache: the current list is what matters.
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let page = match self.peer.send_request(request).await {
                Ok(ServerResult::ListToolsResult(page)) => page,
                Ok(_) => return Err(unavailable(format_args!("{} did not return a list of tools", self.key))),
                Err(error) => return Err(unavailable(format_args!("{}: {}", self.key, reason(&error)))),
            };
            tools.extend(page.tools);
            if tools.len() > MAX_TOOLS {
                return Err(unavailable(format_args!("{} has more than {MAX_TOOLS} tools", self.key)));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return ToolList::new(tools);
            }
        }
        Err(unavailable(format_args!("{} lists its tools on more than {MAX_PAGES} pages", self.key)))
    }

    /// Adds all that is known about the cause to an error.
    pub(super) fn explained(&self, error: Error) -> Error {
        let error = self.notes.get().unwrap_or(error);
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        let error = match &*program {
            Some(program) => program.complaint(error),
            None => error,
        };
        error.without_secrets(&self.reach.with_tokens(&self.redactor))
    }

    /// Returns a redactor for the secrets that the server was given so far, and nothing else.
    pub(super) fn known(&self) -> Cow<'_, Redactor> {
        self.reach.with_tokens(&self.known)
    }

    /// Ends the session gracefully, with a time limit.
    pub(super) async fn end(self: Arc<Self>) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut running) = running {
            let _ = running.close_with_timeout(GRACE).await;
        }
        let program = self.program.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(program) = program {
            program.wait().await;
        }
    }
}

fn known_secrets(target: &Target) -> Redactor {
    let mut redactor = Redactor::new(false);
    redactor.register_all(target.server.reach.secrets());
    redactor
}

/// The parameters for starting a session.
struct Begin<'a> {
    key: &'a Key,
    notes: &'a Notes,
    limit: Duration,
    is_stale: &'a Arc<AtomicBool>,
}

impl Begin<'_> {
    async fn handshake(
        &self,
        transport: impl Transport<RoleClient> + 'static,
    ) -> Result<RunningService<RoleClient, Client>> {
        let transport = Watched { transport, is_stale: self.is_stale.clone() };
        match tokio::time::timeout(self.limit, serve_client(Client, transport)).await {
            Ok(Ok(running)) => Ok(running),
            Ok(Err(failure)) => Err(self.refused(failure)),
            Err(_) => {
                let late = format!("{} did not respond within {} s", self.key, self.limit.as_secs_f64());
                Err(match self.notes.get() {
                    Some(problem) => unavailable(format_args!("{late}; {}", details(&problem))),
                    None => unavailable(late),
                })
            }
        }
    }

    fn refused(&self, failure: ClientInitializeError) -> Error {
        let what = match failure {
            ClientInitializeError::TransportError { error, .. } => match of_transport(&error) {
                Some(error) => return error.clone(),
                None => "cannot write to the server".to_owned(),
            },
            ClientInitializeError::JsonRpcError(error) => {
                format!("the server rejected the connection: {}", shown(&error.message))
            }
            ClientInitializeError::ConnectionClosed(_) => match self.notes.get() {
                Some(error) => return error,
                None => "the server closed the connection during startup".to_owned(),
            },
            _ => "the server does not follow the protocol".to_owned(),
        };
        unavailable(format_args!("{}: {what}", self.key))
    }
}

/// Returns the error of our HTTP client, if it caused a transport error.
pub(super) fn of_transport(error: &DynamicTransportError) -> Option<&Error> {
    match error.error.downcast_ref::<StreamableHttpError<HttpFailure>>()? {
        StreamableHttpError::Client(failure) => Some(&failure.error),
        _ => None,
    }
}

/// Describes the cause of a failed request, with a bounded length.
pub(super) fn reason(error: &ServiceError) -> String {
    match error {
        ServiceError::McpError(error) => format!("{} (error {})", shown(&error.message), error.code.0),
        ServiceError::TransportSend(error) => match of_transport(error) {
            Some(error) => details(error).to_owned(),
            None => "cannot write to the server".to_owned(),
        },
        ServiceError::TransportClosed => "the server closed the connection".to_owned(),
        ServiceError::UnexpectedResponse => "the server returned an unexpected response".to_owned(),
        _ => "the server did not respond".to_owned(),
    }
}
