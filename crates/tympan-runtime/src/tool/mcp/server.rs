//! The host's configuration of a server.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tympan_core::Redactor;
use tympan_core::spec::Secret;
use tympan_core::spec::flow::ToolFlow;

use crate::model::token::TokenSource;

/// The default time limit for starting a server, and for listing its tools.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A Model Context Protocol server, as configured by the host: a program to start, or an address.
///
/// Only the host can configure a program as a server. A prompt file is data and cannot start programs.
#[derive(Clone, Debug)]
pub struct McpServer {
    pub(super) reach: Reach,
    pub(super) connect_timeout: Duration,
    /// What the host declares about all tools of the server.
    flow: ToolFlow,
    /// What the host declares about single tools, by the server's names for them.
    tool_flows: BTreeMap<String, ToolFlow>,
}

/// How to connect to a server.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    /// A program, over its standard input and output.
    Program(Command),
    /// An address, over streamable HTTP.
    Address(Address),
}

/// A program and its environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Command {
    pub(super) command: Vec<String>,
    pub(super) variables: Vec<(String, Secret)>,
    pub(super) directory: Option<PathBuf>,
}

/// An address and its headers.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) url: String,
    pub(super) headers: Vec<(String, Secret)>,
    /// The key, sent as `Authorization: Bearer …`.
    pub(super) key: Option<Secret>,
    /// Where the access token comes from that is sent instead of a key.
    pub(super) token: Option<Arc<TokenSource>>,
    /// Whether the address comes from a prompt file instead of the host. If so, it must not be private.
    pub(super) is_of_prompt: bool,
}

impl McpServer {
    /// Creates a server that is a program with command-line arguments. It inherits only essential environment
    /// variables, such as `PATH` and `HOME`, and no keys; see [`McpServer::env`].
    pub fn stdio(command: Vec<String>) -> Self {
        Self::new(Reach::Program(Command { command, ..Command::default() }))
    }

    /// Creates a server at an address, over streamable HTTP. The address comes from the host, so it may be private.
    pub fn http(url: impl Into<String>) -> Self {
        let address = Address { url: url.into(), headers: Vec::new(), key: None, token: None, is_of_prompt: false };
        Self::new(Reach::Address(address))
    }

    pub(super) fn new(reach: Reach) -> Self {
        Self { reach, connect_timeout: CONNECT_TIMEOUT, flow: ToolFlow::default(), tool_flows: BTreeMap::new() }
    }

    /// Sets an environment variable for a program. Has no effect for an address.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: Secret) -> Self {
        if let Reach::Program(command) = &mut self.reach {
            command.variables.push((name.into(), value));
        }
        self
    }

    /// Sets the working directory of a program. Has no effect for an address.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        if let Reach::Program(command) = &mut self.reach {
            command.directory = Some(directory.into());
        }
        self
    }

    /// Adds a header to every request to an address. Has no effect for a program.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        if let Reach::Address(address) = &mut self.reach {
            address.headers.push((name.into(), value));
        }
        self
    }

    /// Sets the time limit for starting the server, and for listing its tools. The default is 30 seconds.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// Declares the effect of all tools of the server, and how their parameters and results are treated. Parameters
    /// that a tool does not have are ignored.
    #[must_use]
    pub fn flow(mut self, flow: ToolFlow) -> Self {
        self.flow = flow;
        self
    }

    /// Declares the effect of one tool, and how its parameters and results are treated. What the declaration does not
    /// say comes from [`McpServer::flow`]. The name is the server's name for the tool, without a prefix.
    ///
    /// ```
    /// use tympan_runtime::McpServer;
    /// use tympan_core::spec::flow::{Effect, ToolFlow};
    ///
    /// let mail = McpServer::http("https://mail.example.com/mcp")
    ///     .flow(ToolFlow::new(Effect::Read).confidential())
    ///     .tool_flow("send", ToolFlow::new(Effect::External).trusted_only("to").destination("to"));
    /// # let _ = mail;
    /// ```
    #[must_use]
    pub fn tool_flow(mut self, tool: impl Into<String>, flow: ToolFlow) -> Self {
        self.tool_flows.insert(tool.into(), flow);
        self
    }

    /// Returns what the host declares about a tool.
    pub(super) fn flow_of(&self, tool: &str) -> ToolFlow {
        let Some(own) = self.tool_flows.get(tool) else { return self.flow.clone() };
        ToolFlow { trusted: own.trusted.or(self.flow.trusted), ..own.over(&self.flow) }
    }

    /// Returns the tools about which the host declares something, by the server's names for them.
    pub(super) fn declared_tools(&self) -> impl Iterator<Item = (&String, &ToolFlow)> {
        self.tool_flows.iter()
    }
}

impl Reach {
    /// Returns the secrets that the server is given.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let (named, key) = match self {
            Self::Program(command) => (&command.variables, None),
            Self::Address(address) => (&address.headers, address.key.as_ref()),
        };
        named.iter().map(|(_, value)| value).chain(key)
    }

    /// Returns the redactor with the access tokens that have been issued since it was created.
    pub(super) fn with_tokens<'r>(&self, redactor: &'r Redactor) -> Cow<'r, Redactor> {
        let Self::Address(Address { token: Some(source), .. }) = self else { return Cow::Borrowed(redactor) };
        let mut redactor = redactor.clone();
        redactor.register_all(&source.issued());
        Cow::Owned(redactor)
    }
}
