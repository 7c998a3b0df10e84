//! Tools of Model Context Protocol (MCP) servers.
//!
//! A prompt file is data: it names a server, and the host decides which program or address that is. A prompt can
//! specify only the address of a server, which is then trusted no more than any other address in a prompt.
//!
//! A model acts on the descriptions of a server's tools, so they must not change unnoticed after someone has approved
//! them. A prompt can pin the list of tools by its hash. Otherwise, later lists must match the first one that the
//! process received.

use std::sync::Arc;

use tympan_core::wire::Function;
use tympan_core::{Error, Kind, Result};

use crate::host::runtime::Runtime;
use crate::net::io;
use crate::tool::handler::{OpenTool, Opening};

mod call;
mod connections;
mod content;
mod declaration;
mod http;
mod list;
mod message;
mod server;
mod session;
mod stdio;

pub(crate) use connections::Connections;
pub use server::McpServer;

use call::McpTool;
use declaration::Declaration;
use list::ListedTool;

/// The maximum length of names that providers accept, in characters.
const MAX_NAME: usize = 64;

impl Runtime {
    /// Registers the server that prompts refer to by this name, replacing any existing one. It is not started or called
    /// yet.
    pub fn register_mcp_server(&self, name: impl Into<String>, server: McpServer) {
        self.mcp().register(name.into(), server);
    }

    /// Approves the tools that a server listed last, after an error of kind
    /// [`ToolsChanged`](crate::Kind::ToolsChanged). The name is the one that the server is registered under, or its
    /// address in prompts. Returns whether there is such a server.
    pub fn approve_mcp_tools(&self, name: &str) -> bool {
        self.mcp().approve(name)
    }

    /// Returns the hash of the tools that a server listed last, for `toolsHash` in a prompt with these `allowedTools`.
    /// Returns `None` if the server has not listed its tools yet.
    pub fn mcp_tools_hash(&self, name: &str, allowed: Option<&[String]>) -> Option<String> {
        self.mcp().hash(name, allowed)
    }

    /// Ends all sessions with servers gracefully: each session has two seconds to end, and a program has two more to
    /// exit after its standard input is closed. Sessions are restarted if they are needed again.
    ///
    /// Dropping a runtime also ends them, but without a grace period.
    pub fn close_mcp_servers(&self) {
        io::wait(self.close_mcp_servers_async());
    }

    /// Ends all sessions with servers gracefully: the async variant of [`Runtime::close_mcp_servers`].
    pub async fn close_mcp_servers_async(&self) {
        let runtime = self.clone();
        let ending = io::spawn(async move {
            let ending = runtime.mcp().take().await.into_iter().map(session::Session::end);
            futures_util::future::join_all(ending).await;
            Ok(())
        });
        // This fails only if no thread could be started, and then there are no sessions.
        let _ = ending.await;
    }
}

/// Converts the tools of a server to functions.
///
/// # Errors
/// Returns an error if the server is not available, if it lacks an allowed tool, or if its tools have changed.
pub(super) async fn open(opening: Opening<'_>) -> Result<Vec<OpenTool>> {
    let Some(declaration) = Declaration::of(opening.prompt, opening.tool) else { return Ok(Vec::new()) };
    let (prefix, approval) = (declaration.prefix()?, Arc::new(declaration.approval()?));
    let (pinned, is_idempotent) = (declaration.tools_hash()?, declaration.is_idempotent()?);
    let target = declaration.target(opening.runtime)?;
    target.check(opening.runtime).map_err(|error| declaration.located(error))?;
    let (runtime, wanted) = (opening.runtime.clone(), target.clone());
    let listing = io::spawn(async move { runtime.mcp().list(&wanted, runtime.options()).await });
    let located = |error| declaration.located(error);
    let list = listing.await.map_err(located)?;
    let tools = list.only(declaration.allowed).map_err(located)?;
    list.check_flows(target.server.declared_tools()).map_err(located)?;
    opening.runtime.mcp().agree(&target.key, &list, declaration.allowed, pinned).map_err(located)?;
    let target = Arc::new(target);
    let opened = tools.iter().map(|(name, listed)| {
        let function = function(prefix, name, listed).map_err(located)?;
        let tool = McpTool {
            target: target.clone(),
            name: name.clone(),
            shown: listed.clone(),
            approval: approval.clone(),
            is_idempotent: is_idempotent || listed.is_idempotent,
        };
        let server = Some(opening.tool.name.clone());
        let (tool, flow) = (Arc::new(tool), listed.flow.clone());
        // What a server says about its tools reaches the model like instructions.
        Ok(OpenTool { function, tool, flow, server, untrusted_description: pinned.is_none() })
    });
    opened.collect()
}

/// Builds the function that is described to the model.
fn function(prefix: &str, name: &str, listed: &ListedTool) -> Result<Function> {
    let full = format!("{prefix}{name}");
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if full.is_empty() || full.len() > MAX_NAME || !full.chars().all(is_allowed) {
        let details = format_args!("providers do not accept the tool name `{}`", crate::net::client::shown(&full));
        return Err(Error::new(Kind::ToolUnavailable, details).with_help(format!(
            "a name has up to {MAX_NAME} letters, digits, `_` and `-`; remove this tool from `allowedTools`, or \
                change the `prefix`"
        )));
    }
    let mut parameters = listed.schema.clone();
    // Some providers require both, and servers may omit either.
    parameters.entry("type").or_insert_with(|| "object".into());
    parameters.entry("properties").or_insert_with(|| serde_json::json!({}));
    Ok(Function { name: full, description: listed.description.clone(), parameters: parameters.into(), strict: false })
}
