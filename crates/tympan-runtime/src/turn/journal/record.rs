//! What journals hold.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tympan_core::secret::url::redacted_url;
use tympan_core::turn::Fed;
use tympan_core::{Inputs, Result};

use crate::model::run::RunOptions;
use crate::turn::journal::compatibility::Fits;
use crate::turn::journal::damaged;

/// What a journal is about: its first record.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// The turn: the keys of its tools begin with it.
    pub turn: String,
    /// When it began, in UTC.
    pub began: String,
    /// The name of the prompt's source: the path that it was loaded from.
    pub prompt: String,
    /// The inputs, as they were given.
    pub inputs: Inputs,
    /// The provider that was named for the turn.
    pub provider: Option<String>,
    /// The model that was named for it.
    pub model: Option<String>,
    /// The interface that was named for it.
    pub api_type: Option<String>,
    /// The address that was named for it, if there is nothing secret in it.
    pub base_url: Option<String>,
    /// What the user had said before it began.
    pub(crate) steering: Vec<String>,
    /// What must be the same when it goes on.
    pub(crate) fits: Fits,
    /// Whatever the host wants to find again.
    pub host: Json,
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Inputs may be anything, and are not shown.
        let inputs: Vec<_> = self.inputs.keys().collect();
        let mut header = f.debug_struct("Header");
        header.field("turn", &self.turn).field("began", &self.began).field("prompt", &self.prompt);
        header.field("inputs", &inputs).finish_non_exhaustive()
    }
}

impl Header {
    /// Keeps how the model is called, without what is secret.
    pub(crate) fn set_run(&mut self, run: &RunOptions) {
        self.provider.clone_from(&run.provider);
        self.model.clone_from(&run.model);
        self.api_type.clone_from(&run.api_type);
        let is_open = |url: &&String| redacted_url(url) == **url && !url.contains('@');
        self.base_url = run.base_url.as_ref().filter(is_open).cloned();
    }

    /// How the model is called: as somebody wants it now, and else as it was. Whether the address of then may be called
    /// is for the caller to check: the journal may be somebody else's.
    pub(crate) fn run(&self, now: &RunOptions) -> RunOptions {
        let either = |now: &Option<String>, then: &Option<String>| now.clone().or_else(|| then.clone());
        RunOptions {
            provider: either(&now.provider, &self.provider),
            model: either(&now.model, &self.model),
            api_type: either(&now.api_type, &self.api_type),
            base_url: either(&now.base_url, &self.base_url),
            ..now.clone()
        }
    }
}

/// All records but the first. What the turn was told is owned when it is read, and borrowed when it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record<F = Fed> {
    /// The turn was told something.
    Told {
        /// How long it had been under way, in milliseconds.
        at: u64,
        /// What.
        what: F,
    },
    /// Tools were about to run.
    Started {
        /// Which.
        tools: Vec<Started>,
    },
    /// The turn was taken up again while the model could not be called: the failures before this do not count.
    CalledAgain,
}

impl Record {
    /// How long the turn had been under way.
    pub(crate) fn time(&self) -> Option<Duration> {
        match self {
            Self::Told { at, .. } => Some(Duration::from_millis(*at)),
            _ => None,
        }
    }
}

/// A tool that was about to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Started {
    pub(crate) round: u32,
    pub(crate) index: usize,
    pub(crate) name: String,
    /// Its idempotency key.
    pub(crate) key: String,
}

/// A record of a journal. Its bytes are those that were written, so if it cannot be read, another version wrote it.
pub(crate) fn parsed<T: DeserializeOwned>(record: &[u8], number: usize) -> Result<T> {
    // What the reader says may quote what is there.
    let place =
        |error: serde_json::Error| format!("in its record {number}, column {}, or of another version", error.column());
    serde_json::from_slice(record).map_err(|error| damaged(place(error)))
}
