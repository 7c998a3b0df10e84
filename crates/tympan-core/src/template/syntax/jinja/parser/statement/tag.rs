//! Parses tags and the bodies between them.

use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::ast::{Body, Expression, Statement, Tag};
use crate::template::syntax::jinja::parser::statement::Opening;
use crate::template::syntax::jinja::parser::{Open, Parse, Parser};
use crate::template::syntax::token::TokenKind;
use crate::text::source::Span;

impl Parser<'_> {
    /// Consumes an opening delimiter. Returns its offset.
    pub(super) fn start_tag(&mut self) -> usize {
        let start = self.here();
        self.has_failed = false;
        self.depth.start_tag();
        self.advance();
        start
    }

    /// Consumes a closing delimiter. Anything before it is a mistake.
    pub(super) fn end_tag(&mut self, kind: TokenKind) {
        if self.kind() != Some(kind) {
            let _ = self.unexpected::<()>(kind.description());
            self.skip_to_tag_end();
        }
        self.depth.end_tag();
        if self.kind().is_some_and(TokenKind::is_tag_end) {
            // The next token is not inside a tag, so there is no white space to skip.
            self.advance();
        }
    }

    pub(super) fn end_block(&mut self, opening: Opening) -> Tag {
        self.end_tag(TokenKind::BlockEnd);
        Tag { span: self.span_from(opening.start), keyword: opening.keyword }
    }

    /// Consumes the start of a tag and its keyword.
    pub(super) fn keyword_tag(&mut self) -> Opening {
        let start = self.start_tag();
        let keyword = self.here_span();
        self.advance();
        Opening { start, keyword }
    }

    /// Returns the keyword of the block that starts at the current token.
    pub(super) fn peek_keyword(&self) -> &str {
        let next = self.tokens[self.at + 1..].iter().find(|token| token.kind != TokenKind::Whitespace);
        next.filter(|token| token.kind == TokenKind::Name).map_or("", |token| self.text(token.span()))
    }

    /// Returns whether the tag at the current token ends an open statement: the innermost one, or an outer one, so that
    /// those inside it are not closed.
    pub(super) fn is_closed_here(&self) -> bool {
        let keyword = self.peek_keyword();
        !self.open.is_empty() && self.open.iter().rev().any(|open| open.closers.contains(&keyword))
    }

    /// Parses statements up to one of these keywords.
    pub(super) fn part(&mut self, closers: &'static [&'static str]) -> Vec<Statement> {
        self.open.push(Open { closers, has_wrong_end: false });
        self.statements()
    }

    /// Ends the current part. Returns whether one of its closers follows.
    pub(super) fn end_part(&mut self) -> (bool, bool) {
        let Some(open) = self.open.pop() else { return (false, false) };
        let is_closed = self.kind() == Some(TokenKind::BlockStart) && open.closers.contains(&self.peek_keyword());
        (is_closed, open.has_wrong_end)
    }

    /// Parses the end tag of a statement, or reports that it is missing.
    pub(super) fn end_statement(&mut self, tag: Tag, end: &'static str) -> Option<Tag> {
        let (is_closed, has_wrong_end) = self.end_part();
        if is_closed {
            let opening = self.keyword_tag();
            return Some(self.end_block(opening));
        }
        if !has_wrong_end && !self.is_stopped {
            let keyword = self.text(tag.keyword);
            self.report(unclosed(keyword, end, tag.span));
        }
        None
    }

    pub(super) fn body(&mut self, tag: Tag, closers: &'static [&'static str; 1]) -> Body {
        let statements = self.part(closers);
        Body { statements, end: self.end_statement(tag, closers[0]) }
    }

    /// Parses a part of a tag, unless an earlier part has a mistake. After a mistake, skips the rest of the tag.
    pub(super) fn after(&mut self, parse: impl FnOnce(&mut Self) -> Parse<Expression>) -> Expression {
        let start = self.here();
        if !self.has_failed
            && let Ok(expression) = parse(self)
        {
            return expression;
        }
        self.skip_to_tag_end();
        Expression::error(self.span_from(start))
    }

    pub(super) fn skip_after_failure(&mut self) {
        if self.has_failed {
            self.skip_to_tag_end();
        }
    }
}

pub(super) fn unclosed(keyword: &str, end: &str, span: Span) -> SyntaxError {
    SyntaxError::new(span, format!("`{keyword}` is not closed: expected `{end}`"))
        .with_help(format!("close it with `{{% {end} %}}`"))
}
