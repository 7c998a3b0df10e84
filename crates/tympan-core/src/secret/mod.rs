//! Credentials: which names mean one, and how to keep them from being printed.

pub mod credential;
pub mod env_value;
pub mod redact;
pub mod url;

use std::fmt;

/// What stands in the place of a secret wherever people look.
pub const REDACTED: &str = "[REDACTED]";

/// A credential. It is never printed: what needs it asks by name.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a credential.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The credential itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}
