//! Parses tokens into a syntax tree, and reports every mistake.
//!
//! After a mistake in a tag, the parser continues after the tag. A statement keeps its body even if its tag has a
//! mistake, so one mistake does not cause others.

mod expression;
mod statement;

use crate::template::syntax::error::{SyntaxError, report};
use crate::template::syntax::jinja::ast::Statement;
use crate::template::syntax::jinja::depth::{Depth, too_deep};
use crate::template::syntax::token::{Token, TokenKind};
use crate::text::source::Span;

/// The result of parsing a part of a tag.
type Parse<T> = Result<T, Failed>;

/// Parsing failed, and the mistake has been reported.
struct Failed;

/// Parses the tokens of a source.
pub(super) fn parse(source: &str, tokens: &[Token]) -> (Vec<Statement>, Vec<SyntaxError>) {
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        last: Span::default(),
        depth: Depth::default(),
        errors: Vec::new(),
        open: Vec::new(),
        in_loop: false,
        has_failed: false,
        is_stopped: false,
    };
    let statements = parser.statements();
    (statements, parser.errors)
}

struct Parser<'s> {
    source: &'s str,
    tokens: &'s [Token],
    /// The index of the current token, which is never white space.
    at: usize,
    /// The position of the last token that was consumed.
    last: Span,
    depth: Depth,
    errors: Vec<SyntaxError>,
    /// The open statements, outermost first.
    open: Vec<Open>,
    /// Whether `break` and `continue` are allowed.
    in_loop: bool,
    /// Whether a mistake was found in the current tag. There is only one per tag.
    has_failed: bool,
    /// Whether the template is nested too deeply to go on.
    is_stopped: bool,
}

/// An open statement.
struct Open {
    /// The keywords of the tags that end its current part.
    closers: &'static [&'static str],
    /// Whether it contains an end tag that does not match anything. It is probably meant for this statement.
    has_wrong_end: bool,
}

impl<'s> Parser<'s> {
    fn token(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }

    fn kind(&self) -> Option<TokenKind> {
        self.tokens.get(self.at).map(|token| token.kind)
    }

    fn text(&self, span: Span) -> &'s str {
        &self.source[span.range()]
    }

    fn is_word(&self, word: &str) -> bool {
        self.token().is_some_and(|token| token.kind == TokenKind::Name && self.text(token.span()) == word)
    }

    /// Returns the offset of the current token.
    fn here(&self) -> usize {
        self.token().map_or(self.source.len(), |token| token.start as usize)
    }

    fn last_span(&self) -> Span {
        self.last
    }

    /// Returns the span from `start` to the end of the last token that was consumed.
    fn span_from(&self, start: usize) -> Span {
        Span::new(start.min(self.last.end), self.last.end)
    }

    /// Consumes the current token without counting it.
    fn advance(&mut self) {
        if let Some(token) = self.token() {
            self.last = token.span();
        }
        self.at += 1;
        while self.kind() == Some(TokenKind::Whitespace) {
            self.at += 1;
        }
    }

    /// Consumes the current token of an expression.
    fn bump(&mut self) -> Parse<Token> {
        let Some(token) = self.token() else { return self.unexpected("") };
        self.depth.count(token.kind, &self.source.as_bytes()[token.span().range()]);
        if self.depth.is_exceeded() {
            return self.fail(too_deep(token.span()));
        }
        self.advance();
        Ok(token)
    }

    fn eat(&mut self, kind: TokenKind) -> Parse<bool> {
        if self.kind() != Some(kind) {
            return Ok(false);
        }
        self.bump()?;
        Ok(true)
    }

    fn eat_word(&mut self, word: &str) -> Parse<bool> {
        if !self.is_word(word) {
            return Ok(false);
        }
        self.bump()?;
        Ok(true)
    }

    fn expect(&mut self, kind: TokenKind) -> Parse<Span> {
        if self.kind() == Some(kind) { Ok(self.bump()?.span()) } else { self.unexpected(kind.description()) }
    }

    fn expect_word(&mut self, word: &str) -> Parse<Span> {
        if self.is_word(word) { Ok(self.bump()?.span()) } else { self.unexpected(&format!("`{word}`")) }
    }

    /// Reports that the current token is not what was expected.
    fn unexpected<T>(&mut self, expected: &str) -> Parse<T> {
        let (found, span) = match self.token() {
            None => ("end of input", self.last),
            Some(Token { kind: TokenKind::Text, .. }) => ("end of line", self.last),
            Some(token) if token.kind.is_outside() => (token.kind.description(), token.span()),
            Some(Token { kind: TokenKind::UnclosedString, .. }) => ("end of string", self.here_span()),
            Some(token) => (token.kind.description(), token.span()),
        };
        let is_lexical = matches!(self.kind(), Some(TokenKind::UnclosedString | TokenKind::Invalid));
        let message = if expected.is_empty() || is_lexical {
            format!("unexpected {found}")
        } else {
            format!("unexpected {found}, expected {expected}")
        };
        let error = SyntaxError::new(span, message);
        self.fail(match advice(self.source, span.start) {
            Some(help) => error.with_help(help),
            None => error,
        })
    }

    fn here_span(&self) -> Span {
        self.token().map_or(self.last, Token::span)
    }

    /// Reports a mistake in the current tag.
    fn fail<T>(&mut self, error: SyntaxError) -> Parse<T> {
        if !self.has_failed {
            self.report(error);
        }
        self.has_failed = true;
        Err(Failed)
    }

    fn report(&mut self, error: SyntaxError) {
        report(&mut self.errors, || error);
    }

    /// Skips the rest of a tag up to its closing delimiter.
    fn skip_to_tag_end(&mut self) {
        while self.kind().is_some_and(|kind| !kind.is_tag_end() && !kind.is_outside()) {
            self.advance();
        }
    }
}

/// Returns advice on an unexpected character, if it is clear what it comes from.
fn advice(source: &str, at: usize) -> Option<&'static str> {
    const MUSTACHE: &str =
        "this is a tag of Mustache, which a `.prompty` file selects with `template: {format: mustache}`";
    let (before, rest) = source.split_at_checked(at)?;
    let is_mustache =
        before.ends_with("{{") && (rest.starts_with(['#', '/', '^', '!', '>', '&']) || rest.starts_with(".}}"));
    if is_mustache {
        return Some(MUSTACHE);
    }
    let is_name = rest.starts_with(|char: char| !char.is_ascii() && char.is_alphanumeric());
    is_name.then_some("names in templates consist of the letters a to z, digits and underscores")
}
