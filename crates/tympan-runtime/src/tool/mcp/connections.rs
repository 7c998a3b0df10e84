//! The servers that a runtime knows, the sessions that it has with them, and the tools that somebody has agreed to.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tympan_core::{Error, Kind, Result};

use crate::host::runtime::RuntimeOptions;
use crate::net::io::PerProcess;
use crate::tool::mcp::declaration::Target;
use crate::tool::mcp::list::ToolList;
use crate::tool::mcp::server::McpServer;
use crate::tool::mcp::session::Session;

/// The most sessions, if some are with addresses that prompts name. When there are more, those that nobody uses are ended.
const MAX_ENDPOINTS: usize = 64;

/// Which server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// One that the host has registered under a name.
    Server(String),
    /// One at an address. With another key it is another session.
    Endpoint {
        /// The address.
        url: String,
        /// The hash of the key.
        credential: Option<String>,
        /// Whether a prompt names it. It must not get a session that only the host may have.
        is_of_prompt: bool,
    },
}

impl Key {
    /// The name that a host calls it by.
    fn name(&self) -> &str {
        match self {
            Self::Server(name) => name,
            Self::Endpoint { url, .. } => url,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(name) => write!(f, "the MCP server `{name}`"),
            Self::Endpoint { url, .. } => {
                write!(f, "the MCP server at {}", tympan_core::secret::url::redacted_url(url))
            }
        }
    }
}

/// A place for a session. Who finds none makes one, and the others wait.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Session>>>>;

/// All that a runtime knows about servers.
pub(crate) struct Connections {
    servers: RwLock<HashMap<String, Arc<McpServer>>>,
    seen: Mutex<HashMap<Key, Seen>>,
    /// A child process must not talk to the servers of its parent.
    slots: PerProcess<Mutex<HashMap<Key, Slot>>>,
}

/// What was seen of the tools of a server.
struct Seen {
    /// The first list, or the one that the host has agreed to since.
    agreed: ToolList,
    latest: ToolList,
}

impl Default for Connections {
    fn default() -> Self {
        Self { servers: RwLock::default(), seen: Mutex::default(), slots: PerProcess::new() }
    }
}

impl Connections {
    /// The server that the host has registered under a name.
    pub(super) fn server(&self, name: &str) -> Option<Arc<McpServer>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Registers a server. One of the same name that was there before is forgotten, with its session and its tools.
    pub(super) fn register(&self, name: String, server: McpServer) {
        let key = Key::Server(name.clone());
        self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(server));
        self.seen().remove(&key);
        self.slots().remove(&key);
    }

    /// The session with a server, begun if there is none.
    ///
    /// # Errors
    /// The server cannot be had.
    pub(super) async fn session(&self, target: &Target, options: &RuntimeOptions) -> Result<Arc<Session>> {
        let slot = self.slot(&target.key);
        let mut slot = slot.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.is_over()) {
            return Ok(session.clone());
        }
        // What is over goes first: a server may not want to run twice.
        *slot = None;
        let session = Arc::new(Session::begin(target, options).await?);
        *slot = Some(session.clone());
        Ok(session)
    }

    /// The tools of a server as it lists them now.
    ///
    /// # Errors
    /// The server cannot be had, or cannot list them.
    pub(super) async fn list(&self, target: &Target, options: &RuntimeOptions) -> Result<Arc<ToolList>> {
        let session = self.session(target, options).await?;
        match session.fresh_list().await {
            // It may be gone since the last turn, which is noticed only now.
            Err(_) if session.has_listed() => {
                self.forget(target, &session).await;
                self.session(target, options).await?.fresh_list().await
            }
            listed => listed,
        }
    }

    /// Ends a session that turned out to be of no more use.
    pub(super) async fn forget(&self, target: &Target, session: &Arc<Session>) {
        let slot = self.slot(&target.key);
        let mut slot = slot.lock().await;
        if slot.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, session)) {
            *slot = None;
        }
    }

    /// Takes all sessions, to end them.
    pub(super) async fn take(&self) -> Vec<Arc<Session>> {
        let slots: Vec<_> = self.slots().drain().map(|(_, slot)| slot).collect();
        let mut sessions = Vec::new();
        for slot in slots {
            sessions.extend(slot.lock().await.take());
        }
        sessions
    }

    fn slot(&self, key: &Key) -> Slot {
        let mut slots = self.slots();
        if matches!(key, Key::Endpoint { .. }) && slots.len() >= MAX_ENDPOINTS {
            slots.retain(|key, slot| matches!(key, Key::Server(_)) || Arc::strong_count(slot) > 1);
        }
        slots.entry(key.clone()).or_default().clone()
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<Key, Slot>> {
        self.slots.get(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<Key, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a list of tools: against the hash that the prompt pins, or else against the first list of the same server.
    ///
    /// # Errors
    /// Those that may be called are not as they were.
    pub(super) fn agree(
        &self,
        key: &Key,
        list: &ToolList,
        allowed: Option<&[String]>,
        pinned: Option<&str>,
    ) -> Result<()> {
        let mut seen = self.seen();
        let seen =
            seen.entry(key.clone()).or_insert_with(|| Seen { agreed: list.clone(), latest: ToolList::default() });
        seen.latest = list.clone();
        let found = list.restricted(allowed);
        let hash = found.hash();
        match pinned {
            Some(pinned) if pinned == hash => Ok(()),
            Some(_) => Err(changed(format_args!("{key}: their hash is {hash}, and the prompt pins another one"))
                .with_help("look at what the server offers now; if you agree to it, write this hash as `toolsHash`")),
            None => match seen.agreed.restricted(allowed).difference(&found) {
                None => Ok(()),
                Some(difference) => Err(changed(format_args!("{key}: {difference}")).with_help(
                    "look at what the server offers now; if you agree to it, let the host say so \
                     (Runtime::approve_mcp_tools), or begin anew",
                )),
            },
        }
    }

    /// Agrees to the latest list of a server; whether there was any.
    pub(super) fn approve(&self, name: &str) -> bool {
        let mut seen = self.seen();
        let of_name = seen.iter_mut().filter(|(key, _)| key.name() == name);
        of_name.map(|(_, seen)| seen.agreed = seen.latest.clone()).count() > 0
    }

    /// The hash of the latest list of a server, as far as it may be called.
    pub(super) fn hash(&self, name: &str, allowed: Option<&[String]>) -> Option<String> {
        let seen = self.seen();
        let (_, seen) = seen.iter().find(|(key, _)| key.name() == name)?;
        Some(seen.latest.restricted(allowed).hash())
    }
}

/// The tools of a server are not those that somebody has agreed to.
pub(super) fn changed(details: impl fmt::Display) -> Error {
    Error::new(Kind::ToolsChanged, details)
}
