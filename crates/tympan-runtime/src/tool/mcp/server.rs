//! What a host says about a server.

use std::path::PathBuf;
use std::time::Duration;

use tympan_core::spec::Secret;

/// How long a server may take to be ready, and then to list its tools.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A Model Context Protocol server, as the host knows it: a program that is started, or an address.
///
/// Only the host can say that a program is a server. A prompt file is data, and starts nothing.
#[derive(Clone, Debug)]
pub struct McpServer {
    pub(super) reach: Reach,
    pub(super) connect_timeout: Duration,
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub(super) enum Reach {
    /// A program, which is talked to over its standard input and output.
    Program(Command),
    /// An address, over streamable HTTP.
    Address(Address),
}

/// A program and what it is started with.
#[derive(Clone, Debug, Default)]
pub(super) struct Command {
    pub(super) command: Vec<String>,
    pub(super) variables: Vec<(String, Secret)>,
    pub(super) directory: Option<PathBuf>,
}

/// An address and what is sent along.
#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) url: String,
    pub(super) headers: Vec<(String, Secret)>,
    /// Sent as `Authorization: Bearer …`.
    pub(super) key: Option<Secret>,
    /// Whether a prompt file names it, and not the host: then it must not be a private one.
    pub(super) is_of_prompt: bool,
}

impl McpServer {
    /// A program, with the arguments that it is started with. Of this process's environment it gets what programs cannot
    /// do without, such as `PATH` and `HOME`, and no keys; see [`McpServer::env`].
    pub fn stdio(command: Vec<String>) -> Self {
        Self::new(Reach::Program(Command { command, ..Command::default() }))
    }

    /// An address, over streamable HTTP. It is the host's word, so it may be a private one.
    pub fn http(url: impl Into<String>) -> Self {
        let address = Address { url: url.into(), headers: Vec::new(), key: None, is_of_prompt: false };
        Self::new(Reach::Address(address))
    }

    pub(super) fn new(reach: Reach) -> Self {
        Self { reach, connect_timeout: CONNECT_TIMEOUT }
    }

    /// Sets a variable in the environment of a program. For an address it means nothing.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: Secret) -> Self {
        if let Reach::Program(command) = &mut self.reach {
            command.variables.push((name.into(), value));
        }
        self
    }

    /// Starts a program in this directory. For an address it means nothing.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        if let Reach::Program(command) = &mut self.reach {
            command.directory = Some(directory.into());
        }
        self
    }

    /// Sends a header with every request to an address. For a program it means nothing.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        if let Reach::Address(address) = &mut self.reach {
            address.headers.push((name.into(), value));
        }
        self
    }

    /// How long it may take to be ready, and then to list its tools: 30 seconds unless this says otherwise.
    #[must_use]
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }
}

impl Reach {
    /// What nobody else may see.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &Secret> {
        let (named, key) = match self {
            Self::Program(command) => (&command.variables, None),
            Self::Address(address) => (&address.headers, address.key.as_ref()),
        };
        named.iter().map(|(_, value)| value).chain(key)
    }
}
