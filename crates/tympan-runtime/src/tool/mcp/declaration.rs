//! A prompt's declaration of a server and its tools.

use std::sync::Arc;

use serde_json::Value as Json;
use tympan_core::spec::{Connection, ConnectionKind, Tool, ToolKind};
use tympan_core::text::hash::sha256_hex;
use tympan_core::{Error, Kind, Prompt, Result};

use crate::host::runtime::Runtime;
use crate::model::credentials::check_token_destination;
use crate::model::token::{TokenRequest, TokenSource};
use crate::net::reach::ToolReach;
use crate::tool::mcp::connections::Key;
use crate::tool::mcp::server::{Address, McpServer, Reach};

/// The declaration of a tool of the kind `mcp`.
pub(super) struct Declaration<'a> {
    prompt: &'a Prompt,
    tool: &'a Tool,
    connection: Option<&'a Connection>,
    server_name: Option<&'a str>,
    approval_mode: Option<&'a Json>,
    /// The names of the server's tools that may be called.
    pub(super) allowed: Option<&'a [String]>,
}

/// The server that a declaration refers to.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) key: Key,
    pub(super) server: McpServer,
    /// What requests carry, unless the host itself configured the address.
    pub(super) reach: Option<ToolReach>,
}

impl Target {
    /// Checks that what a request carries may be sent to the server.
    ///
    /// # Errors
    /// Returns an error if [`ToolReach::check`] does.
    pub(super) fn check(&self, runtime: &Runtime) -> Result<()> {
        self.reach.as_ref().map_or(Ok(()), |reach| reach.check(runtime))
    }
}

impl<'a> Declaration<'a> {
    /// Reads a declaration. Returns `None` for a tool of another kind.
    pub(super) fn of(prompt: &'a Prompt, tool: &'a Tool) -> Option<Self> {
        let ToolKind::Mcp { connection, server_name, approval_mode, allowed_tools } = &tool.kind else { return None };
        Some(Self {
            prompt,
            tool,
            connection: connection.as_ref(),
            server_name: server_name.as_deref(),
            approval_mode: approval_mode.as_ref(),
            allowed: allowed_tools.as_deref(),
        })
    }

    /// Returns the server that the declaration refers to: one that the host registered as a server or as a connection,
    /// or else the address in the declaration itself.
    ///
    /// # Errors
    /// Returns an error if there is no such server, or if the address in the declaration is not allowed.
    pub(super) fn target(&self, runtime: &Runtime) -> Result<Target> {
        let name = self.name();
        if let Some(server) = runtime.mcp().server(name) {
            return Ok(Target { key: Key::Server(name.to_owned()), server: (*server).clone(), reach: None });
        }
        let is_reference = self.connection.is_some_and(|connection| connection.kind == ConnectionKind::Reference);
        let registered = if is_reference { runtime.get_connection(name) } else { None };
        let (connection, is_of_prompt) = match &registered {
            Some(registered) => (Some(&**registered), false),
            None => (self.connection.filter(|_| !is_reference), true),
        };
        let found = connection.and_then(|connection| Some((connection.endpoint.clone()?, connection.api_key.clone())));
        let (url, key) = found.ok_or_else(|| self.missing(name))?;
        let reach = match is_of_prompt {
            true => {
                let url = runtime.options().tool_addresses.check(&url).map_err(|error| self.located(error))?;
                Some(ToolReach::new(self.prompt, self.tool, &url, key.as_ref()))
            }
            false => None,
        };
        let token = match connection.filter(|_| key.is_none()) {
            Some(connection) => self.token_source(runtime, connection, &url, reach.as_ref())?,
            None => None,
        };
        let credential = key.as_ref().map(|key| sha256_hex(key.expose()));
        let credential = credential.or_else(|| token.as_ref().map(|source| sha256_hex(source.id())));
        let address = Address { url, headers: Vec::new(), key, token, is_of_prompt };
        let key = Key::Endpoint { url: address.url.clone(), credential, is_of_prompt };
        Ok(Target { key, server: McpServer::new(Reach::Address(address)), reach })
    }

    /// Returns where the access token of a connection without a key comes from, if the host registered a credential
    /// provider for it.
    ///
    /// # Errors
    /// Returns an error if a token may not be sent to the address.
    fn token_source(
        &self,
        runtime: &Runtime,
        connection: &Connection,
        url: &str,
        reach: Option<&ToolReach>,
    ) -> Result<Option<Arc<TokenSource>>> {
        let Some(provider) = runtime.credential_provider_of(connection) else { return Ok(None) };
        if let Some(reach) = reach {
            let allowed = &runtime.options().allow_endpoints;
            check_token_destination(reach.address(), Some(&connection.kind), allowed)
                .map_err(|error| self.located(error))?;
        }
        let request = TokenRequest::new(connection, &self.tool.name, Some(url));
        Ok(Some(Arc::new(TokenSource::new(runtime, provider, request))))
    }

    fn missing(&self, name: &str) -> Error {
        let error = Error::new(Kind::ToolUnavailable, format_args!("MCP server `{name}` is not registered"));
        self.located(error.with_help(
            "register it with Runtime::register_mcp_server or in the `--tools` file; a prompt file can set the URL \
                of a server as `connection.endpoint`, but not a command",
        ))
    }

    /// Returns the name under which the host may have registered the server.
    fn name(&self) -> &'a str {
        let reference = self.connection.filter(|connection| connection.kind == ConnectionKind::Reference);
        reference.and_then(|reference| reference.name.as_deref()).or(self.server_name).unwrap_or(&self.tool.name)
    }

    /// Returns the prefix of the tools' names.
    ///
    /// # Errors
    /// Returns an error if the prefix is not a string.
    pub(super) fn prefix(&self) -> Result<&'a str> {
        Ok(self.text("prefix")?.unwrap_or_default())
    }

    /// Returns the hash that the list of tools must have.
    ///
    /// # Errors
    /// Returns an error if the value is not a valid hash.
    pub(super) fn tools_hash(&self) -> Result<Option<&'a str>> {
        let Some(hash) = self.text("toolsHash")? else { return Ok(None) };
        let digits = hash.strip_prefix("sha256:").unwrap_or_default();
        if digits.len() == 64 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Ok(Some(hash));
        }
        Err(self.invalid("`toolsHash`: expected a SHA-256 hash", "write `sha256:` and 64 lowercase hexadecimal digits"))
    }

    /// Returns whether the author declares that the tools can safely be called again.
    ///
    /// # Errors
    /// Returns an error if the value is not a boolean.
    pub(super) fn is_idempotent(&self) -> Result<bool> {
        match self.tool.extra.get("idempotent") {
            None => Ok(false),
            Some(Json::Bool(is_idempotent)) => Ok(*is_idempotent),
            Some(_) => Err(self.invalid("`idempotent`: expected a boolean", "write `true` or `false`")),
        }
    }

    /// Returns which calls require approval.
    ///
    /// # Errors
    /// Returns an error if the mode is invalid.
    pub(super) fn approval(&self) -> Result<Approval> {
        Approval::read(self.approval_mode).map_err(|problem| {
            self.invalid(
                problem,
                "write `always`, `never`, or `{kind: specify}` with `alwaysRequireApprovalTools` and \
                    `neverRequireApprovalTools` as lists of names",
            )
        })
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>> {
        match self.tool.extra.get(key) {
            None => Ok(None),
            Some(Json::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.invalid(&format!("`{key}`: expected a string"), "write a string")),
        }
    }

    fn invalid(&self, problem: &str, help: &str) -> Error {
        let error = Error::new(Kind::InvalidDocument, format_args!("tool `{}`: {problem}", self.tool.name));
        self.located(error.with_help(help))
    }

    /// Adds the location of the declaration to an error.
    pub(super) fn located(&self, error: Error) -> Error {
        match self.tool.span {
            Some(span) => error.at(span).in_source(self.prompt.source(), 0),
            None => error,
        }
    }
}

/// Which calls require approval.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Approval {
    /// All calls.
    Always,
    /// No calls.
    Never,
    /// Calls of the tools in `always`, and of those in neither list.
    Specify {
        /// The tools that require approval.
        always: Vec<String>,
        /// The tools that do not.
        never: Vec<String>,
    },
}

impl Approval {
    /// Reads the mode from a declaration. By default, no approval is required, as for functions of the host.
    fn read(mode: Option<&Json>) -> Result<Self, &'static str> {
        let (kind, lists) = match mode {
            None => return Ok(Self::Never),
            Some(Json::String(kind)) => (kind.as_str(), None),
            Some(Json::Object(map)) => {
                (map.get("kind").and_then(Json::as_str).ok_or("`approvalMode`: missing `kind`")?, Some(map))
            }
            Some(_) => return Err("`approvalMode`: expected a string or a map"),
        };
        let list = |key| match lists.and_then(|lists| lists.get(key)) {
            None => Ok(Vec::new()),
            Some(names) => serde_json::from_value(names.clone()).map_err(|_| "`approvalMode`: expected lists of names"),
        };
        match kind {
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            "specify" => Ok(Self::Specify {
                always: list("alwaysRequireApprovalTools")?,
                never: list("neverRequireApprovalTools")?,
            }),
            _ => Err("`approvalMode`: unknown mode"),
        }
    }

    /// Returns whether a call requires approval. `tool` is the server's name for the tool.
    pub(super) fn is_needed(&self, tool: &str) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Specify { always, never } => {
                let is_in = |names: &[String]| names.iter().any(|name| name == tool);
                is_in(always) || !is_in(never)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn modes_are_read_in_both_forms() {
        let read = |mode: Json| Approval::read(Some(&mode));
        assert_eq!(Approval::read(None), Ok(Approval::Never));
        assert_eq!(read(json!("always")), Ok(Approval::Always));
        assert_eq!(read(json!({ "kind": "never", "alwaysRequireApprovalTools": ["a"] })), Ok(Approval::Never));
        for wrong in
            [json!("sometimes"), json!(true), json!({}), json!({ "kind": "specify", "neverRequireApprovalTools": 1 })]
        {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_is_in_both_lists_or_in_none_needs_consent() {
        let lists = json!({ "kind": "specify", "alwaysRequireApprovalTools": ["a", "c"], "neverRequireApprovalTools": ["b", "c"] });
        let approval = Approval::read(Some(&lists)).expect("it is a mode");
        assert_eq!(["a", "b", "c", "d"].map(|name| approval.is_needed(name)), [true, false, true, true]);
    }
}
