//! The Jinja syntax.
//!
//! The lexer splits a source into tokens, the parser builds a syntax tree from them, and `lower` converts it to the
//! tree that the evaluator runs.

pub mod ast;
mod depth;
mod lexer;
mod lower;
mod newlines;
mod number;
mod parser;
mod scope;
mod string;
pub mod visit;
mod whitespace;

use std::ops::Range;

use crate::error::Result;
use crate::template::Notable;
use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::token::Token;
use crate::template::tree::Tree;
use crate::text::source::Span;

/// Options for compiling a template.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Options<'a> {
    /// The names that the caller declares. They come first in the list of inputs, and they shadow built-in functions of
    /// the same name.
    pub(crate) declared: &'a [&'a str],
    /// Lines of the source whose line ends must not be removed by white space control.
    pub(crate) protected: &'a [Range<usize>],
    /// Whether a single newline at the end is dropped.
    pub(crate) drop_last_newline: bool,
    /// Describes which parts of the author's text to record.
    pub(crate) notable: Option<Notable>,
}

/// Compiles a template.
pub(crate) fn compile(source: &str, options: Options<'_>) -> Result<Tree> {
    let (_, statements, errors) = parse(source);
    compile_parsed(source, &statements, &errors, options)
}

/// Compiles a template that is already parsed.
pub(crate) fn compile_parsed(
    source: &str,
    statements: &[ast::Statement],
    errors: &[SyntaxError],
    options: Options<'_>,
) -> Result<Tree> {
    match errors.first() {
        Some(error) => Err(error.clone().into()),
        None => lower::lower(statements, source, options),
    }
}

/// Returns an error for each statement that prompts do not have.
pub(crate) fn excluded_statements(statements: &[ast::Statement], source: &str) -> Vec<crate::error::Error> {
    let mut found = Vec::new();
    visit::walk(statements, &mut |node| {
        if let visit::NodeRef::Statement(ast::Statement { kind: ast::StatementKind::Excluded(node), .. }) = node {
            found.push(lower::excluded(&source[node.tag.keyword.range()], node.tag.keyword));
        }
        true
    });
    found
}

/// Returns the text of a string in a template, without its quotes and escapes. Returns `None` if an escape is invalid.
pub fn string_value(written: &str) -> Option<String> {
    string::value(written).ok().map(std::borrow::Cow::into_owned)
}

/// Parses a template.
pub(super) fn parse(source: &str) -> (Vec<Token>, Vec<ast::Statement>, Vec<SyntaxError>) {
    if u32::try_from(source.len()).is_err() {
        let error = SyntaxError::limit(Span::default(), "the template is longer than 4 GiB");
        return (Vec::new(), Vec::new(), vec![error]);
    }
    let tokens = lexer::tokenize(source);
    let (statements, errors) = parser::parse(source, &tokens);
    (tokens, statements, errors)
}
