//! Declarations of inputs, outputs and tool parameters.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::json::JsonMap;
use crate::spec::flow::{ParameterFlow, Speaker};
use crate::text::source::Span;

/// The kind of value that a property holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PropertyKind {
    /// Text.
    #[default]
    String,
    /// An integer.
    Integer,
    /// A number.
    Float,
    /// A boolean.
    Boolean,
    /// A list.
    Array,
    /// A map.
    Object,
    /// A conversation, as a list of messages.
    Thread,
    /// An image.
    Image,
    /// A file.
    File,
    /// An audio recording.
    Audio,
}

impl PropertyKind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::String,
        Self::Integer,
        Self::Float,
        Self::Boolean,
        Self::Array,
        Self::Object,
        Self::Thread,
        Self::Image,
        Self::File,
        Self::Audio,
    ];

    /// Returns the name that prompt files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Float => "float",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Thread => "thread",
            Self::Image => "image",
            Self::File => "file",
            Self::Audio => "audio",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Returns the kind that other formats call by this name.
    pub(crate) fn from_alias(name: &str) -> Option<Self> {
        KIND_ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, kind)| *kind)
    }

    /// Infers the kind from a value.
    pub(crate) fn of_value(value: &Json) -> Self {
        match value {
            Json::Number(number) if number.is_f64() => Self::Float,
            Json::Number(_) => Self::Integer,
            Json::Bool(_) => Self::Boolean,
            Json::Array(_) => Self::Array,
            Json::Object(_) => Self::Object,
            Json::Null | Json::String(_) => Self::String,
        }
    }

    /// Returns whether values of this kind are structured data that never becomes text. In a rendered prompt, a
    /// placeholder marks their position.
    pub const fn is_rich(self) -> bool {
        matches!(self, Self::Thread | Self::Image | Self::File | Self::Audio)
    }
}

/// The names that other formats use for our kinds.
const KIND_ALIASES: [(&str, PropertyKind); 14] = [
    ("str", PropertyKind::String),
    ("text", PropertyKind::String),
    ("int", PropertyKind::Integer),
    ("long", PropertyKind::Integer),
    ("number", PropertyKind::Float),
    ("double", PropertyKind::Float),
    ("decimal", PropertyKind::Float),
    ("bool", PropertyKind::Boolean),
    ("list", PropertyKind::Array),
    ("tuple", PropertyKind::Array),
    ("dict", PropertyKind::Object),
    ("map", PropertyKind::Object),
    ("dictionary", PropertyKind::Object),
    ("json", PropertyKind::Object),
];

/// A declared input, output, or tool parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Property {
    /// The name; empty for the items of an array.
    pub name: String,
    /// The kind of value.
    pub kind: PropertyKind,
    /// All allowed kinds, [`Property::kind`] first, if there is more than one.
    pub kinds: Vec<PropertyKind>,
    /// The description.
    pub description: Option<String>,
    /// Whether a value is required. `None` if the file does not say, which means no.
    pub required: Option<bool>,
    /// The value to use if none is provided.
    pub default: Option<Json>,
    /// An example, for documentation and tools. It is never used as a value at run time.
    pub example: Option<Json>,
    /// The allowed values, if they are restricted.
    pub enum_values: Option<Vec<Json>>,
    /// The declaration of an array's items.
    pub items: Option<Box<Property>>,
    /// The declarations of an object's properties.
    pub properties: Vec<Property>,
    /// Whether null is a valid value.
    pub nullable: bool,
    /// Whether the text counts as written by the author. Only an explicit `trusted: true` sets this.
    pub trusted: bool,
    /// Whether the value is confidential. The policy for tools decides where it may go.
    pub confidential: bool,
    /// Who speaks through the input. The policy for tools trusts what the user says.
    pub speaker: Option<Speaker>,
    /// What the policy for tools checks, for a parameter of a tool.
    pub flow: ParameterFlow,
    /// Whether text in the value that looks like a role marker is an error.
    pub strict: bool,
    /// Whether callers have to validate the value before rendering. Plain rendering does not enforce this.
    pub validation_required: bool,
    /// The JSON Schema of the object that this property and its siblings belong to, if the declaration says more than
    /// the other fields can express. Siblings share it, and requests and checks then use it instead of the other fields.
    ///
    /// A property without a name holds the schema of an object that declares no properties.
    pub schema: Option<Arc<Json>>,
    /// Unknown keys, unchanged.
    pub extra: JsonMap,
    /// The position of the declaration.
    pub span: Option<Span>,
}

impl Property {
    /// Creates an optional, untrusted property without a default.
    pub fn new(name: impl Into<String>, kind: PropertyKind) -> Self {
        Self { name: name.into(), kind, ..Self::default() }
    }
}

/// Returns the JSON Schema that declares these properties, if it says more than their other fields.
pub(crate) fn written_schema(properties: &[Property]) -> Option<&Json> {
    properties.iter().find_map(|property| property.schema.as_deref())
}
