//! The recordings of a run: cases that ask the same question share one answer.
//!
//! A recording is found by its request. If two cases with the same request each called the model, the second answer would
//! replace the first, and a replay would give the first case an answer that it was not checked with.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};
use tympan_core::json::canonical_json;
use tympan_core::text::hash::sha256_hex;

use super::Question;

/// What a run has recorded. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Recordings(Arc<Mutex<HashMap<String, Arc<AsyncMutex<bool>>>>>);

/// A question whose answer is being recorded. Others with the same question wait until it is dropped.
pub(super) struct Turn(OwnedMutexGuard<bool>);

impl Recordings {
    /// Waits until nobody else records the answer to a question.
    pub(super) async fn turn(
        &self,
        question: &Question<'_>,
        selection: (&str, Option<&str>),
        directory: &Path,
    ) -> Turn {
        let key = key(question, selection, directory);
        let state = {
            let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(states.entry(key).or_default())
        };
        Turn(state.lock_owned().await)
    }
}

impl fmt::Debug for Recordings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recordings").finish_non_exhaustive()
    }
}

impl Turn {
    /// Returns whether the answer is recorded already.
    pub(super) fn is_recorded(&self) -> bool {
        *self.0
    }

    /// Notes that the answer is recorded.
    pub(super) fn set_recorded(&mut self) {
        *self.0 = true;
    }
}

/// Returns a hash of everything that decides about the requests of a question.
fn key(question: &Question<'_>, (provider, model): (&str, Option<&str>), directory: &Path) -> String {
    let key = json!({
        "prompt": question.prompt.definition_hash(),
        "messages": question.messages,
        "provider": provider,
        "model": model,
        "tools": question.settings.tools,
        "guard": question.guard.is_some(),
        "directory": directory.to_string_lossy(),
    });
    sha256_hex(canonical_json(key))
}
