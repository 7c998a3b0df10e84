//! The template syntaxes. Each compiles to the tree that the evaluator runs.
//!
//! [`parse_jinja`] and [`parse_mustache`] return the syntax tree of a template for tools such as linters, formatters and
//! editors. They accept every text and report all mistakes. These invariants hold:
//!
//! - The tokens cover the source: each starts where the one before it ends.
//! - Every node has a span that starts and ends with a token. The text of a node is `source[span]`.
//! - A template without errors compiles, unless it uses an excluded feature.

pub(super) mod directive;
pub mod error;
pub mod jinja;
mod leaves;
pub mod mustache;
pub mod token;

pub use error::SyntaxError;
pub use token::{Token, TokenKind};

use jinja::ast::Statement;
use jinja::visit::{NodeRef, node_at};
use mustache::ast::{Node, NodeKind};

/// A parsed template.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Parsed<N> {
    /// The tokens, which cover every byte of the source.
    pub tokens: Vec<Token>,
    /// The nodes at the top of the syntax tree.
    pub body: Vec<N>,
    /// The mistakes, in the order in which they were found, up to [`error::MAX_ERRORS`].
    pub errors: Vec<SyntaxError>,
}

/// The syntax tree of a template.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SyntaxTree {
    /// Of a Jinja template.
    Jinja(Parsed<Statement>),
    /// Of a Mustache template.
    Mustache(Parsed<Node>),
}

impl SyntaxTree {
    /// Returns the mistakes, in the order in which they were found.
    pub fn errors(&self) -> &[SyntaxError] {
        match self {
            Self::Jinja(parsed) => &parsed.errors,
            Self::Mustache(parsed) => &parsed.errors,
        }
    }
}

/// Parses a Jinja template.
///
/// ```
/// use tympan::template::syntax::parse_jinja;
///
/// let parsed = parse_jinja("{% if a %}{{ b + }}");
/// let messages: Vec<_> = parsed.errors.iter().map(|error| error.message.as_str()).collect();
/// assert_eq!(messages, ["unexpected end of variable block", "`if` is not closed: expected `endif`"]);
/// ```
pub fn parse_jinja(source: &str) -> Parsed<Statement> {
    let (tokens, body, errors) = jinja::parse(source);
    Parsed { tokens, body, errors }
}

/// Parses a Mustache template.
pub fn parse_mustache(source: &str) -> Parsed<Node> {
    let (tokens, body, errors) = mustache::parse(source);
    Parsed { tokens, body, errors }
}

impl<N> Parsed<N> {
    /// Returns the token that contains an offset.
    pub fn token_at(&self, offset: usize) -> Option<Token> {
        let index = self.tokens.partition_point(|token| token.end as usize <= offset);
        self.tokens.get(index).copied()
    }
}

impl Parsed<Statement> {
    /// Returns the innermost statement, expression or target that contains an offset.
    pub fn node_at(&self, offset: usize) -> Option<NodeRef<'_>> {
        node_at(&self.body, offset)
    }
}

impl Parsed<Node> {
    /// Returns the innermost node that contains an offset.
    pub fn node_at(&self, offset: usize) -> Option<&Node> {
        let (mut nodes, mut innermost) = (&self.body, None);
        while let Some(node) = nodes.iter().find(|node| node.span.range().contains(&offset)) {
            innermost = Some(node);
            let NodeKind::Section(section) = &node.kind else { break };
            nodes = &section.body;
        }
        innermost
    }
}
