//! The roles of messages.

use serde::{Deserialize, Serialize, Serializer};

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions from the application.
    System,
    /// Instructions from the developer (the newer name for `System` at some providers).
    Developer,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call. Only in threads.
    Tool,
}

impl Role {
    /// The roles that a marker line in a prompt file can name.
    pub const IN_MARKERS: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Developer];

    /// Returns the role's name in lowercase.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }

    /// Returns the role with exactly this name.
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
