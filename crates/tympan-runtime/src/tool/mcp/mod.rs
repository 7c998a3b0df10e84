//! Tools of Model Context Protocol servers.
//!
//! A prompt file is data: it names a server, and the host says which program or address that is. The one thing that a
//! prompt can say for itself is the address of a server, and then as little is trusted as with any other address.
//!
//! A model acts on how a server describes its tools, so nobody may change that behind the back of whoever has agreed to
//! it: a prompt pins the list by its hash, or else the first list of a process is what later ones must be.

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
use list::Listed;

/// The most characters that providers take in a name.
const MAX_NAME: usize = 64;

impl Runtime {
    /// Registers the server that prompts mean by this name, in place of any other. Nothing is started or called yet.
    pub fn register_mcp_server(&self, name: impl Into<String>, server: McpServer) {
        self.mcp().register(name.into(), server);
    }

    /// Agrees to the tools that a server has offered last, after an error of kind
    /// [`ToolsChanged`](crate::Kind::ToolsChanged). The name is the one that it is registered under, or the address that
    /// prompts have for it. Whether there is such a server.
    pub fn approve_mcp_tools(&self, name: &str) -> bool {
        self.mcp().approve(name)
    }

    /// The hash of the tools that a server has offered last, for `toolsHash` in a prompt with these `allowedTools`. `None`
    /// if it has not been asked yet.
    pub fn mcp_tools_hash(&self, name: &str, allowed: Option<&[String]>) -> Option<String> {
        self.mcp().hash(name, allowed)
    }

    /// Ends all sessions with servers in good order: programs see the end of their input, and have two seconds. Those that
    /// are needed again are begun again.
    ///
    /// A runtime that is dropped ends them, too, but at once.
    pub fn close_mcp_servers(&self) {
        io::wait(self.close_mcp_servers_async());
    }

    /// The async twin of [`Runtime::close_mcp_servers`].
    pub async fn close_mcp_servers_async(&self) {
        let runtime = self.clone();
        let ending = io::spawn(async move {
            let ending = runtime.mcp().take().await.into_iter().map(session::Session::end);
            futures_util::future::join_all(ending).await;
            Ok(())
        });
        // The only error is that there are no threads, and then there are no sessions.
        let _ = ending.await;
    }
}

/// Makes functions of the tools of a server.
///
/// # Errors
/// There is no such server; it has not the tools that it should have; or they are not as they were.
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
        Ok(OpenTool { function, tool: Arc::new(tool) })
    });
    opened.collect()
}

/// What a model gets to know of a tool.
fn function(prefix: &str, name: &str, listed: &Listed) -> Result<Function> {
    let full = format!("{prefix}{name}");
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if full.is_empty() || full.len() > MAX_NAME || !full.chars().all(is_allowed) {
        let details = format_args!("no provider takes the name `{}`", crate::net::client::shown(&full));
        return Err(Error::new(Kind::ToolUnavailable, details).with_help(format!(
            "names are made of up to {MAX_NAME} letters, digits, `_` and `-`: leave this one out of `allowedTools`, or \
             change the `prefix`"
        )));
    }
    let mut parameters = listed.schema.clone();
    // Some providers want both, and servers may leave out either.
    parameters.entry("type").or_insert_with(|| "object".into());
    parameters.entry("properties").or_insert_with(|| serde_json::json!({}));
    Ok(Function { name: full, description: listed.description.clone(), parameters: parameters.into(), strict: false })
}
