//! Values from the environment in a prompt: whose they are, and where in the prompt they are.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::Secret;

/// Who gave a value: a key, an address, or anything else that a request is made of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueSource {
    /// The host: its process environment, its command line or its code.
    Host,
    /// A file of variables, by its name: a `.env` file in the folder of a project or a prompt.
    EnvFile(Arc<str>),
    /// The prompt file itself, and the files that it refers to.
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

/// The part of a prompt that a value is in. It decides which requests carry the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnvPlace {
    /// The connection of the model.
    ModelConnection,
    /// The model: its name, its options.
    Model,
    /// The connection of the tool with this index.
    ToolConnection(usize),
    /// The document of the OpenAPI tool with this index, or its address.
    Specification(usize),
    /// Anything else about the tool with this index.
    Tool(usize),
    /// Any other part: inputs, outputs, descriptions.
    Elsewhere,
}

impl EnvPlace {
    /// The place of what is under a key of the front matter, at the top level (`depth` 0) or further down.
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

    /// Whether this is about the model: its connection, its name, its options.
    pub fn is_of_model(self) -> bool {
        matches!(self, Self::ModelConnection | Self::Model)
    }

    /// Whether this is about the tool with this index.
    pub fn is_of_tool(self, index: usize) -> bool {
        matches!(self, Self::ToolConnection(tool) | Self::Specification(tool) | Self::Tool(tool) if tool == index)
    }

    /// Whether a model may get to see what is here, so that it may be in the conversation from then on.
    pub fn is_in_conversation(self) -> bool {
        matches!(self, Self::Specification(_) | Self::Tool(_) | Self::Elsewhere)
    }
}

/// A value that `${env:NAME}` stood for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvValue {
    /// The name of the variable.
    pub variable: String,
    /// Who gave the value.
    pub source: ValueSource,
    /// The part of the prompt that it is in.
    pub place: EnvPlace,
    /// The value.
    pub value: Secret,
}

/// The values of a prompt, each variable once for each part that it is in.
#[derive(Default)]
pub(crate) struct EnvValues {
    pub(crate) values: Vec<EnvValue>,
    known: HashSet<(String, EnvPlace)>,
}

impl EnvValues {
    pub(crate) fn add(&mut self, value: EnvValue) {
        if self.known.insert((value.variable.clone(), value.place)) {
            self.values.push(value);
        }
    }
}
