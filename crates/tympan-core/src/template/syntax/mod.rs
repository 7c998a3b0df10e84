//! The template syntaxes. Each compiles to the tree that the evaluator runs.
//!
//! [`parse_jinja`] returns the syntax tree of a template for tools such as linters, formatters and editors. It accepts every
//! text and reports all mistakes. These invariants hold:
//!
//! - The tokens cover the source: each starts where the one before it ends.
//! - Every node has a span that starts and ends with a token. The text of a node is `source[span]`.
//! - A template without errors compiles, unless it uses an excluded feature.

pub(super) mod directive;
pub mod error;
pub mod jinja;
mod leaves;
pub(super) mod mustache;
pub mod token;

pub use error::SyntaxError;
pub use token::{Token, TokenKind};

use jinja::ast::Statement;
use jinja::visit::{NodeRef, node_at};

/// A parsed Jinja template.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Parsed {
    /// The tokens, which cover every byte of the source.
    pub tokens: Vec<Token>,
    /// The statements.
    pub body: Vec<Statement>,
    /// The mistakes, in the order in which they were found, up to [`error::MAX_ERRORS`].
    pub errors: Vec<SyntaxError>,
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
pub fn parse_jinja(source: &str) -> Parsed {
    let (tokens, body, errors) = jinja::parse(source);
    Parsed { tokens, body, errors }
}

impl Parsed {
    /// Returns the token that contains an offset.
    pub fn token_at(&self, offset: usize) -> Option<Token> {
        let index = self.tokens.partition_point(|token| token.end as usize <= offset);
        self.tokens.get(index).copied()
    }

    /// Returns the innermost statement or expression that contains an offset.
    pub fn node_at(&self, offset: usize) -> Option<NodeRef<'_>> {
        node_at(&self.body, offset)
    }
}
