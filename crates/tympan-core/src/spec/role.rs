//! The roles of messages.

use serde::{Serialize, Serializer};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions of the application.
    System,
    /// Instructions of the developer (newer name for `System` with some providers).
    Developer,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call; only in threads.
    Tool,
}

impl Role {
    /// Roles that a marker line in a prompt file can name.
    pub const IN_MARKERS: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Developer];

    /// The role's name in lower case.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// The role with exactly this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::System, Self::Developer, Self::User, Self::Assistant, Self::Tool]
            .into_iter()
            .find(|role| role.as_str() == name)
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
