//! Tool calls.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, JsonObject, RequestMetaObject, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::Value as Json;
use tympan_core::Error;
use tympan_core::spec::flow::ToolFlow;
use tympan_core::turn::ToolRun;

use crate::net::client::shown;
use crate::net::io;
use crate::tool::mcp::connections::changed;
use crate::tool::mcp::content;
use crate::tool::mcp::declaration::{Approval, Target};
use crate::tool::mcp::http;
use crate::tool::mcp::list::{ListedTool, details, unavailable};
use crate::tool::mcp::session::{Session, reason};
use crate::tool::{Invocation, Tool, ToolError, ToolOutput};

/// The key of the idempotency key in a call's metadata.
const IDEMPOTENCY_KEY: &str = "tympan/idempotencyKey";

/// The time limit for notifying a server that a call was cancelled.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// A tool of a server.
#[derive(Clone)]
pub(super) struct McpTool {
    pub(super) target: Arc<Target>,
    /// The server's name for the tool.
    pub(super) name: String,
    /// The tool's description as it was shown to the model.
    pub(super) shown: ListedTool,
    pub(super) approval: Arc<Approval>,
    pub(super) is_idempotent: bool,
}

impl Tool for McpTool {
    fn call(&self, invocation: Invocation) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        let tool = self.clone();
        // The caller may use any executor, but sessions belong to the driver.
        Box::pin(async move { io::spawn(async move { Ok(tool.perform(&invocation).await) }).await? })
    }

    fn needs_approval(&self, _run: &ToolRun) -> bool {
        self.approval.is_needed(&self.name)
    }

    fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    fn flow(&self) -> ToolFlow {
        self.target.server.flow_of(&self.name)
    }
}

/// Why a call failed.
enum Failure {
    /// The server reported an error.
    Reported(ToolError),
    /// The session can no longer be used.
    Lost {
        /// Whether the server may have started the call.
        may_have_begun: bool,
        why: Error,
    },
}

impl McpTool {
    /// Calls the tool. If the session was lost, tries once more if that is safe.
    async fn perform(&self, invocation: &Invocation) -> Result<ToolOutput, ToolError> {
        self.target.check(&invocation.runtime)?;
        let mut is_repeated = false;
        loop {
            let (connections, options) = (invocation.runtime.mcp(), invocation.runtime.options());
            let session = connections.session(&self.target, options).await?;
            match self.attempt(&session, invocation).await {
                Ok(result) => return content::output(result, &session.known()),
                Err(Failure::Reported(error)) => return Err(error),
                Err(Failure::Lost { may_have_begun, why }) => {
                    connections.forget(&self.target, &session).await;
                    let may_repeat = !may_have_begun || self.is_idempotent;
                    if is_repeated || !may_repeat {
                        return Err(lost(may_have_begun, why).into());
                    }
                    is_repeated = true;
                }
            }
        }
    }

    async fn attempt(&self, session: &Session, invocation: &Invocation) -> Result<CallToolResult, Failure> {
        self.check(session).await?;
        let lost = |may_have_begun, error: &ServiceError| Failure::Lost {
            may_have_begun,
            why: session.explained(unavailable(format_args!("{}: {}", self.target.key, reason(error)))),
        };
        let sent = session.peer.send_cancellable_request(self.request(invocation), options(invocation)).await;
        let mut waiting = Waiting(Some(sent.map_err(|error| lost(false, &error))?));
        match waiting.answer().await {
            Ok(ServerResult::CallToolResult(result)) => Ok(result),
            Ok(_) => Err(Failure::Reported("the MCP server returned an unexpected response".into())),
            Err(ServiceError::McpError(error)) => {
                let message = session.known().known_text(error.message.into_owned());
                Err(Failure::Reported(format!("{} (error {})", shown(&message), error.code.0).into()))
            }
            Err(error @ ServiceError::TransportSend(_)) => Err(lost(may_have_begun(&error), &error)),
            Err(error) => Err(lost(true, &error)),
        }
    }

    /// Checks that the tool is still the one that was shown to the model.
    async fn check(&self, session: &Session) -> Result<(), Failure> {
        let list = session.list().await.map_err(|why| Failure::Lost { may_have_begun: false, why })?;
        let refused = match list.get(&self.name) {
            Some(listed) if !listed.shows_other_than(&self.shown) => return Ok(()),
            Some(_) => "the MCP server changed the description of the tool",
            None => "the MCP server no longer offers the tool",
        };
        Err(Failure::Reported(changed(format_args!("{refused}, so it was not called")).into()))
    }

    fn request(&self, invocation: &Invocation) -> ClientRequest {
        let arguments: JsonObject = (*invocation.run.arguments).clone();
        let params = CallToolRequestParams::new(self.name.clone()).with_arguments(arguments);
        ClientRequest::CallToolRequest(CallToolRequest::new(params))
    }
}

fn options(invocation: &Invocation) -> PeerRequestOptions {
    let mut meta = RequestMetaObject::new();
    meta.insert(IDEMPOTENCY_KEY.to_owned(), Json::from(invocation.idempotency_key.clone()));
    PeerRequestOptions::no_options().with_meta(meta)
}

/// Returns whether a request that could not be sent may still have reached the server.
fn may_have_begun(error: &ServiceError) -> bool {
    let ServiceError::TransportSend(error) = error else { return true };
    // A line that could not be written completely is not a request.
    !error.error.is::<std::io::Error>() && !http::is_not_begun(&*error.error)
}

fn lost(may_have_begun: bool, why: Error) -> Error {
    let may = if may_have_begun { "; the tool may or may not have run" } else { "" };
    unavailable(format_args!("{}{may}", details(&why)))
}

/// A pending call. If it is dropped, the server is notified that the call was cancelled.
struct Waiting(Option<RequestHandle<RoleClient>>);

impl Waiting {
    async fn answer(&mut self) -> Result<ServerResult, ServiceError> {
        let Some(handle) = &mut self.0 else { return Err(ServiceError::TransportClosed) };
        let answer = (&mut handle.rx).await;
        self.0 = None;
        answer.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(handle) = self.0.take() {
            io::detached(async move {
                let _ = tokio::time::timeout(CANCEL_LIMIT, handle.cancel(None)).await;
            });
        }
    }
}
