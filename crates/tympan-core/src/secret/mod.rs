//! Credentials: detecting them by name, and keeping them out of output.

pub mod credential;
pub mod env_value;
pub mod redact;
pub mod url;

use std::fmt;

/// The text that replaces a secret in output.
pub const REDACTED: &str = "[REDACTED]";

/// A credential. It is never printed; [`Secret::expose`] is the only way to read it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a credential.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// Returns the credential in plain text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}
