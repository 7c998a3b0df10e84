//! Environment values in a prompt: where they come from, and which part of the prompt uses them.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::Secret;
use crate::text::source::Span;

/// The source of a value in a request, such as a key or an address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueSource {
    /// The host: its process environment, command line or code.
    Host,
    /// A `.env` file in the directory of a project or a prompt, with its name.
    EnvFile(Arc<str>),
    /// The prompt file itself, or a file that it references.
    Prompt,
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("the environment"),
            Self::EnvFile(name) => write!(f, "`{name}`"),
            Self::Prompt => f.write_str("the prompt file"),
        }
    }
}

/// The part of a prompt that contains a value. It decides which requests carry the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnvPlace {
    /// The model's connection.
    ModelConnection,
    /// Any other part of the model, such as its name or its options.
    Model,
    /// The connection of the tool with this index.
    ToolConnection(usize),
    /// The specification of the OpenAPI tool with this index, or its address.
    Specification(usize),
    /// Any other part of the tool with this index.
    Tool(usize),
    /// Any other part: inputs, outputs, descriptions.
    Elsewhere,
}

impl EnvPlace {
    /// Returns the place for the value of a front matter key at this depth; the top level is 0.
    pub(crate) fn below(self, depth: usize, key: &str, index: usize, parent: Option<&str>) -> Self {
        match (depth, parent, key, self) {
            (0, _, "model", _) => Self::Model,
            (1, Some("model"), "connection" | "configuration", _) => Self::ModelConnection,
            (1, Some("tools"), _, _) => Self::Tool(index),
            (2, _, "connection", Self::Tool(tool)) => Self::ToolConnection(tool),
            (2, _, "specification", Self::Tool(tool)) => Self::Specification(tool),
            _ => self,
        }
    }

    /// Returns whether this is a part of the model: its connection, its name or its options.
    pub fn is_of_model(self) -> bool {
        matches!(self, Self::ModelConnection | Self::Model)
    }

    /// Returns whether this is a part of the tool with this index.
    pub fn is_of_tool(self, index: usize) -> bool {
        matches!(self, Self::ToolConnection(tool) | Self::Specification(tool) | Self::Tool(tool) if tool == index)
    }

    /// Returns whether a model may see values in this place. Once it has, they may be part of the conversation.
    pub fn is_in_conversation(self) -> bool {
        matches!(self, Self::Specification(_) | Self::Tool(_) | Self::Elsewhere)
    }
}

/// The value of an `${env:NAME}` reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvValue {
    /// The name of the variable.
    pub variable: String,
    /// The source of the value.
    pub source: ValueSource,
    /// The part of the prompt that contains the value.
    pub place: EnvPlace,
    /// The value.
    pub value: Secret,
}

/// An `${env:NAME}` reference that was left unresolved when the prompt was loaded, because the variable was not set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnresolvedEnv {
    /// The name of the variable.
    pub variable: String,
    /// The part of the prompt that contains the reference.
    pub place: EnvPlace,
    /// The top-level key of the prompt file that contains the reference.
    pub section: String,
    /// The position of the reference.
    pub span: Span,
}

/// The environment values in a prompt. Each variable is listed once per place.
#[derive(Default)]
pub(crate) struct EnvValues {
    pub(crate) values: Vec<EnvValue>,
    pub(crate) unresolved: Vec<UnresolvedEnv>,
    known: HashSet<(String, EnvPlace)>,
}

impl EnvValues {
    pub(crate) fn add(&mut self, value: EnvValue) {
        if self.known.insert((value.variable.clone(), value.place)) {
            self.values.push(value);
        }
    }
}
