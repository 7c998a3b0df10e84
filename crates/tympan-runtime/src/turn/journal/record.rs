//! The records of a journal.

use std::fmt;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use tympan_core::secret::url::redacted_url;
use tympan_core::turn::InputEvent;
use tympan_core::{Inputs, Result};

use crate::model::run::RunOptions;
use crate::turn::journal::compatibility::Fingerprint;
use crate::turn::journal::damaged;

/// The header of a journal, which is its first record.
#[derive(Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// The turn's ID. The idempotency keys of its tools start with it.
    pub turn: String,
    /// The start time, in UTC.
    pub began: String,
    /// The name of the prompt's source, which is the path that it was loaded from.
    pub prompt: String,
    /// The inputs, as provided by the caller.
    pub inputs: Inputs,
    /// The provider that was configured for the turn.
    pub provider: Option<String>,
    /// The model that was configured for the turn.
    pub model: Option<String>,
    /// The API type that was configured for the turn.
    pub api_type: Option<String>,
    /// The base URL that was configured for the turn, unless it contains secrets.
    pub base_url: Option<String>,
    /// The steering messages from before the turn began.
    pub(crate) steering: Vec<String>,
    /// The values that must be the same when the turn is resumed.
    #[serde(rename = "fits")]
    pub(crate) fingerprint: Fingerprint,
    /// Custom data from the host.
    pub host: Json,
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Inputs may be sensitive, so their values are not shown.
        let inputs: Vec<_> = self.inputs.keys().collect();
        let mut header = f.debug_struct("Header");
        header.field("turn", &self.turn).field("began", &self.began).field("prompt", &self.prompt);
        header.field("inputs", &inputs).finish_non_exhaustive()
    }
}

impl Header {
    /// Stores the options of model calls, without secrets.
    pub(crate) fn set_run(&mut self, run: &RunOptions) {
        self.provider.clone_from(&run.provider);
        self.model.clone_from(&run.model);
        self.api_type.clone_from(&run.api_type);
        let is_open = |url: &&String| redacted_url(url) == **url && !url.contains('@');
        self.base_url = run.base_url.as_ref().filter(is_open).cloned();
    }

    /// Returns the options of model calls: the current ones, falling back to those in the journal. The caller must
    /// check whether the journal's address may be used, because the journal may come from someone else.
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

/// Any record but the first. The event is owned when reading and borrowed when writing.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record<E = InputEvent> {
    /// The turn received an event.
    #[serde(rename = "told")]
    Event {
        /// How long the turn had been running, in milliseconds.
        at: u64,
        /// The event.
        #[serde(rename = "what")]
        event: E,
    },
    /// Tools were about to run.
    Started {
        /// The tools.
        tools: Vec<StartedTool>,
    },
    /// The turn was resumed while model calls were failing. The failures before this record do not count.
    CalledAgain,
    /// The turn was resumed, and began before there was a policy for tools. It applies from here on.
    PolicyApplied,
}

impl Record {
    /// Returns how long the turn had been running.
    pub(crate) fn time(&self) -> Option<Duration> {
        match self {
            Self::Event { at, .. } => Some(Duration::from_millis(*at)),
            _ => None,
        }
    }
}

/// A tool that was about to run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct StartedTool {
    pub(crate) round: u32,
    pub(crate) index: usize,
    pub(crate) name: String,
    /// The idempotency key.
    pub(crate) key: String,
}

/// Parses a record. Its checksum has been verified, so if it does not parse, a different version wrote it.
pub(crate) fn parsed<T: DeserializeOwned>(record: &[u8], number: usize) -> Result<T> {
    // The message of a serde error may quote the record, so it is not included.
    let place = |error: serde_json::Error| {
        format!("in record {number}, column {}, or written by another version", error.column())
    };
    serde_json::from_slice(record).map_err(|error| damaged(place(error)))
}
