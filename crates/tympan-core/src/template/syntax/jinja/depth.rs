//! Bounds how deeply a template nests.
//!
//! Everything that walks a syntax tree is recursive. Long chains of operators, filters or `elif` count as nesting,
//! because they become deep trees. Templates within the bound fit into a stack of 512 KiB with room to spare.

use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::token::TokenKind;
use crate::text::source::Span;

/// The maximum nesting depth of statements and the expressions in them, combined.
const MAX_DEPTH: usize = 100;

/// The depth of the current token.
#[derive(Default)]
pub(super) struct Depth {
    /// The number of open statements and their `elif` branches.
    statements: usize,
    /// The open brackets of the current tag, each with the number of operators since the last comma.
    brackets: Vec<usize>,
    /// The number of open brackets and of these operators.
    nesting: usize,
}

impl Depth {
    pub(super) fn is_exceeded(&self) -> bool {
        self.statements + self.nesting > MAX_DEPTH
    }

    pub(super) fn start_tag(&mut self) {
        self.brackets.clear();
        self.brackets.push(0);
        self.nesting = 1;
    }

    pub(super) fn end_tag(&mut self) {
        self.brackets.clear();
        self.nesting = 0;
    }

    pub(super) fn open_statement(&mut self) {
        self.statements += 1;
    }

    pub(super) fn close_statement(&mut self) {
        self.statements = self.statements.saturating_sub(1);
    }

    /// Counts a token of an expression.
    pub(super) fn count(&mut self, kind: TokenKind, text: &[u8]) {
        match kind {
            TokenKind::ParenOpen | TokenKind::BracketOpen | TokenKind::BraceOpen => {
                self.operator();
                self.brackets.push(0);
                self.nesting += 1;
            }
            TokenKind::ParenClose | TokenKind::BracketClose | TokenKind::BraceClose => self.close_bracket(),
            TokenKind::Comma | TokenKind::Colon => {
                if let Some(operators) = self.brackets.last_mut() {
                    self.nesting -= std::mem::take(operators);
                }
            }
            TokenKind::Name => {
                if matches!(text, b"and" | b"or" | b"not" | b"is" | b"if" | b"else" | b"in") {
                    self.operator();
                }
            }
            TokenKind::String | TokenKind::Integer | TokenKind::Float | TokenKind::Assign => {}
            _ => self.operator(),
        }
    }

    fn operator(&mut self) {
        if let Some(operators) = self.brackets.last_mut() {
            *operators += 1;
            self.nesting += 1;
        }
    }

    fn close_bracket(&mut self) {
        if self.brackets.len() > 1
            && let Some(operators) = self.brackets.pop()
        {
            self.nesting -= 1 + operators;
        }
    }
}

pub(super) fn too_deep(span: Span) -> SyntaxError {
    SyntaxError::limit(span, format!("the template is nested more than {MAX_DEPTH} levels deep"))
        .with_help("split long chains of operators, filters or elif with {% set %}, or use a dict or a list")
}
