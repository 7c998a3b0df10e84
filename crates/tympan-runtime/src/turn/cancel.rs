//! Stopping a turn, and speaking into it, from any thread.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// Stops what it was given to. Clones are the same token.
#[derive(Clone, Debug)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl Default for CancelToken {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl CancelToken {
    /// Stops it, at once and for good.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Whether it has been stopped.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is stopped.
    pub async fn cancelled(&self) {
        let mut watching = self.0.subscribe();
        // The sender lives as long as this token does.
        let _ = watching.wait_for(|is_cancelled| *is_cancelled).await;
    }
}

/// Messages of the user's for a turn that is under way. Clones are the same queue.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<Mutex<Vec<String>>>);

impl Steering {
    /// Adds a message; the model gets it in the next round.
    pub fn send(&self, message: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.into());
    }

    /// Whether a message waits.
    pub fn has_pending(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes all messages, none twice.
    pub(crate) fn drain(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
