//! What a prompt file says, as plain data: the one shape that all formats become.

use crate::message::JsonMap;
use crate::schema::Property;

/// The declarations and the template of a prompt.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PromptSpec {
    /// The prompt's name.
    pub name: Option<String>,
    /// Its name for people.
    pub display_name: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// Whatever the author wants to keep with it.
    pub metadata: JsonMap,
    /// Declared inputs, in order.
    pub inputs: Vec<Property>,
    /// Declared outputs, in order.
    pub outputs: Vec<Property>,
    /// How the template is rendered and split.
    pub template: TemplateSpec,
    /// The template itself.
    pub instructions: String,
    /// Top-level keys that Tympan does not know, kept as they were written.
    pub extra: JsonMap,
}

/// Which renderer and which parser a prompt wants.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateSpec {
    /// The renderer's name: `jinja2`, `mustache`, or one that the host has registered.
    pub format: String,
    /// The parser's name: `prompty`, or one that the host has registered.
    pub parser: String,
    /// Whether text that looks like a role marker in any untrusted input is an error.
    pub strict: bool,
    /// Whether an undefined variable renders as nothing instead of being an error.
    pub lenient: bool,
    /// Further options of the format, for renderers that the host has registered.
    pub format_options: JsonMap,
    /// Further options of the parser, for parsers that the host has registered.
    pub parser_options: JsonMap,
}

impl Default for TemplateSpec {
    fn default() -> Self {
        Self {
            format: "jinja2".into(),
            parser: "prompty".into(),
            strict: false,
            lenient: false,
            format_options: JsonMap::new(),
            parser_options: JsonMap::new(),
        }
    }
}
