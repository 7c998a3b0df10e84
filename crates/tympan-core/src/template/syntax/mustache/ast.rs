//! The syntax tree of Mustache templates.
//!
//! As in Jinja's tree, the text of a node is `source[span]`, and names are spans.

use crate::text::source::Span;

/// A node: text, or a tag, or a section with its tags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// The kind, with the parts.
    pub kind: NodeKind,
    /// From the opening tag to the end tag.
    pub span: Span,
}

/// The kind of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeKind {
    /// Text, including the white space around standalone tags.
    Text,
    /// `{{name}}`, `{{{name}}}` or `{{&name}}`. Holds the name.
    Variable(Span),
    /// `{{#name}}…{{/name}}` or `{{^name}}…{{/name}}`
    Section(Box<Section>),
    /// `{{! … }}`
    Comment,
    /// `{{=<% %>=}}`
    Delimiters,
    /// A tag that prompts do not have, such as a partial.
    Excluded,
    /// A tag with a mistake.
    Error,
}

/// A section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// The opening tag.
    pub tag: Span,
    /// The name in the opening tag.
    pub name: Span,
    /// Whether the opening tag is `{{^name}}`.
    pub inverted: bool,
    /// The nodes inside.
    pub body: Vec<Node>,
    /// The end tag. `None` if the section is not closed.
    pub end: Option<Span>,
}
