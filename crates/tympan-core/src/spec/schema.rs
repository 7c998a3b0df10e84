//! Declared inputs and outputs.

use serde_json::Value as Json;

use crate::json::JsonMap;
use crate::text::source::Span;

/// What a property holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum PropertyKind {
    /// Text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// True or false.
    Boolean,
    /// A list.
    Array,
    /// A map.
    Object,
    /// A conversation: a list of messages.
    Thread,
    /// A picture.
    Image,
    /// A document.
    File,
    /// Sound.
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

    /// The name that prompt files use.
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

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// Whether the value is structured data that never becomes text: it stands in a rendered
    /// prompt as a place of its own.
    pub const fn is_rich(self) -> bool {
        matches!(self, Self::Thread | Self::Image | Self::File | Self::Audio)
    }
}

/// A declared input, output, or tool parameter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Property {
    /// Its name; empty for the items of an array.
    pub name: String,
    /// What it holds.
    pub kind: PropertyKind,
    /// All that it may hold, [`Property::kind`] first, if that is more than one kind.
    pub kinds: Vec<PropertyKind>,
    /// For people.
    pub description: Option<String>,
    /// Whether it must be given; `None` where the file does not say, which means no.
    pub required: Option<bool>,
    /// Its value when none is given.
    pub default: Option<Json>,
    /// An example, for documentation and tools; never a value at run time.
    pub example: Option<Json>,
    /// The only values allowed, if there are any such.
    pub enum_values: Option<Vec<Json>>,
    /// What an array's items are.
    pub items: Option<Box<Property>>,
    /// What an object holds.
    pub properties: Vec<Property>,
    /// Whether its text counts as the author's own. Only an explicit `trusted: true` makes it so.
    pub trusted: bool,
    /// Whether text that looks like a role marker in it is an error.
    pub strict: bool,
    /// Whether callers have to validate it before they render. The engine keeps this and does not look at it.
    pub validation_required: bool,
    /// Keys that Tympan does not know, kept as they were written.
    pub extra: JsonMap,
    /// Where it is declared.
    pub span: Option<Span>,
}

impl Property {
    /// An optional, untrusted property without a default.
    pub fn new(name: impl Into<String>, kind: PropertyKind) -> Self {
        Self { name: name.into(), kind, ..Self::default() }
    }
}
