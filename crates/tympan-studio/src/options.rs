//! The options of a studio.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::host::{DefaultHost, Host};

/// The options of a studio.
#[derive(Clone)]
#[non_exhaustive]
pub struct StudioOptions {
    /// The directory whose files are shown.
    pub root: PathBuf,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// The port. With 0, the system chooses one.
    pub port: u16,
    /// What clients may use.
    pub limits: Limits,
    /// What runs prompts.
    pub host: Arc<dyn Host>,
}

impl StudioOptions {
    /// Creates options for a directory, with defaults for everything else.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), read_only: false, port: 0, limits: Limits::default(), host: Arc::new(DefaultHost) }
    }
}

impl fmt::Debug for StudioOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StudioOptions")
            .field("root", &self.root)
            .field("read_only", &self.read_only)
            .field("port", &self.port)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// What clients may use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum size of the body of a request, in bytes.
    pub body_bytes: usize,
    /// How long a client may take to send the head of a request, and how long to send its body.
    pub request_time: Duration,
    /// How long a client may take to accept the next piece of a response.
    pub send_time: Duration,
    /// The number of open connections.
    pub connections: usize,
    /// The number of sessions of the language server.
    pub lsp_sessions: usize,
    /// The number of runs and tests at a time.
    pub runs: usize,
    /// The number of events that wait for a client that reads slowly. A run whose client reads too slowly is stopped.
    pub queued_events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 24 << 20,
            request_time: Duration::from_secs(20),
            send_time: Duration::from_secs(60),
            connections: 64,
            lsp_sessions: 8,
            runs: 4,
            queued_events: 1024,
        }
    }
}
