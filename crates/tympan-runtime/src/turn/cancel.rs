//! Cancelling and steering a turn from any thread.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

/// A token that cancels a turn. Clones share the same state.
#[derive(Clone, Debug)]
pub struct CancelToken(Arc<watch::Sender<bool>>);

impl Default for CancelToken {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }
}

impl CancelToken {
    /// Cancels the turn immediately. This cannot be undone.
    pub fn cancel(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether the token has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the token is cancelled.
    pub async fn cancelled(&self) {
        let mut watching = self.0.subscribe();
        // The sender lives as long as this token, so this cannot fail.
        let _ = watching.wait_for(|is_cancelled| *is_cancelled).await;
    }
}

/// A queue of user messages for a running turn. Clones share the same queue.
#[derive(Clone, Debug, Default)]
pub struct Steering(Arc<Mutex<Vec<String>>>);

impl Steering {
    /// Adds a message, which the model receives in the next round.
    pub fn send(&self, message: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message.into());
    }

    /// Returns whether messages are pending.
    pub fn has_pending(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Removes and returns all messages.
    pub(crate) fn drain(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
