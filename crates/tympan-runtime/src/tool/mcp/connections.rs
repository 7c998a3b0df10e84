//! The servers of a runtime, its sessions with them, and the tools that were approved.

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

/// The maximum number of sessions when connecting to an address. Beyond that, idle sessions with addresses are ended.
const MAX_ENDPOINTS: usize = 64;

/// Identifies a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A server that the host registered under a name.
    Server(String),
    /// A server at an address. A different key means a different session.
    Endpoint {
        /// The URL.
        url: String,
        /// The hash of the key.
        credential: Option<String>,
        /// Whether the address comes from a prompt, which must not share a session that is reserved for the host.
        is_of_prompt: bool,
    },
}

impl Key {
    /// Returns the name that the host uses for the server.
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
            Self::Server(name) => write!(f, "MCP server `{name}`"),
            Self::Endpoint { url, .. } => {
                write!(f, "MCP server at {}", tympan_core::secret::url::redacted_url(url))
            }
        }
    }
}

/// The place of a session. The first task that finds it empty starts the session, and the others wait.
type Slot = Arc<tokio::sync::Mutex<Option<Arc<Session>>>>;

/// The state of a runtime's servers.
pub(crate) struct Connections {
    servers: RwLock<HashMap<String, Arc<McpServer>>>,
    seen: Mutex<HashMap<Key, Seen>>,
    /// The sessions. A child process must not use the sessions of its parent.
    slots: PerProcess<Mutex<HashMap<Key, Slot>>>,
}

/// The known tools of a server.
struct Seen {
    /// The first list, or the one that the host has approved since.
    agreed: ToolList,
    latest: ToolList,
}

impl Default for Connections {
    fn default() -> Self {
        Self { servers: RwLock::default(), seen: Mutex::default(), slots: PerProcess::new() }
    }
}

impl Connections {
    /// Returns the server that the host registered under a name.
    pub(super) fn server(&self, name: &str) -> Option<Arc<McpServer>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// Registers a server. An existing server with the same name is removed, together with its session and its tools.
    pub(super) fn register(&self, name: String, server: McpServer) {
        let key = Key::Server(name.clone());
        self.servers.write().unwrap_or_else(PoisonError::into_inner).insert(name, Arc::new(server));
        self.seen().remove(&key);
        self.slots().remove(&key);
    }

    /// Returns the session with a server. Starts one if necessary.
    ///
    /// # Errors
    /// Returns an error if the session cannot be started.
    pub(super) async fn session(&self, target: &Target, options: &RuntimeOptions) -> Result<Arc<Session>> {
        let slot = self.slot(&target.key);
        let mut slot = slot.lock().await;
        if let Some(session) = slot.as_ref().filter(|session| !session.is_over()) {
            return Ok(session.clone());
        }
        // Drop the previous session first, because a server may not support running twice.
        *slot = None;
        let session = Arc::new(Session::begin(target, options).await?);
        *slot = Some(session.clone());
        Ok(session)
    }

    /// Returns the tools that a server currently lists.
    ///
    /// # Errors
    /// Returns an error if the session cannot be started, or if the server cannot list its tools.
    pub(super) async fn list(&self, target: &Target, options: &RuntimeOptions) -> Result<Arc<ToolList>> {
        let session = self.session(target, options).await?;
        match session.fresh_list().await {
            // The server may have ended since the last turn, which becomes apparent only now. Try a new session.
            Err(_) if session.has_listed() => {
                self.forget(target, &session).await;
                self.session(target, options).await?.fresh_list().await
            }
            listed => listed,
        }
    }

    /// Removes a session that can no longer be used.
    pub(super) async fn forget(&self, target: &Target, session: &Arc<Session>) {
        let slot = self.slot(&target.key);
        let mut slot = slot.lock().await;
        if slot.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, session)) {
            *slot = None;
        }
    }

    /// Removes and returns all sessions, so that they can be ended.
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

    /// Checks a list of tools against the hash that the prompt pins, or else against the first list of the same server.
    ///
    /// # Errors
    /// Returns an error if the allowed tools have changed.
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
            Some(pinned) if found.has_hash(pinned) => Ok(()),
            Some(_) => Err(changed(format_args!(
                "{key}: the tools have the hash {hash}, but the prompt pins another \
                one"
            ))
            .with_help("review the tools that the server offers now; to accept them, set `toolsHash` to this hash")),
            None => match seen.agreed.restricted(allowed).difference(&found) {
                None => Ok(()),
                Some(difference) => Err(changed(format_args!("{key}: {difference}")).with_help(
                    "review the tools that the server offers now; to accept them, call Runtime::approve_mcp_tools, \
                        or start a new turn",
                )),
            },
        }
    }

    /// Approves the latest list of a server. Returns whether there is one.
    pub(super) fn approve(&self, name: &str) -> bool {
        let mut seen = self.seen();
        let of_name = seen.iter_mut().filter(|(key, _)| key.name() == name);
        of_name.map(|(_, seen)| seen.agreed = seen.latest.clone()).count() > 0
    }

    /// Returns the hash of the allowed tools in the latest list of a server.
    pub(super) fn hash(&self, name: &str, allowed: Option<&[String]>) -> Option<String> {
        let seen = self.seen();
        let (_, seen) = seen.iter().find(|(key, _)| key.name() == name)?;
        Some(seen.latest.restricted(allowed).hash())
    }
}

/// Returns an error for tools that do not match those that were approved.
pub(super) fn changed(details: impl fmt::Display) -> Error {
    Error::new(Kind::ToolsChanged, details)
}
