//! Parses statements.

mod assignment;
mod control;
mod macros;
mod tag;

use crate::diagnostic::{guess, short};
use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::ast::{
    AutoEscape, Body, Excluded, Expression, FilterBlock, Statement, StatementKind,
};
use crate::template::syntax::jinja::depth::too_deep;
use crate::template::syntax::jinja::parser::statement::tag::unclosed;
use crate::template::syntax::jinja::parser::{Parse, Parser};
use crate::template::syntax::jinja::whitespace;
use crate::template::syntax::token::{Token, TokenKind};
use crate::text::source::Span;

/// The keywords that start a statement.
const KEYWORDS: &[&str] =
    &["for", "if", "with", "set", "autoescape", "filter", "macro", "call", "do", "break", "continue", "raw"];

/// The keywords that end a statement or a part of one.
const CLOSERS: &[&str] = &[
    "endfor",
    "endif",
    "endwith",
    "endset",
    "endautoescape",
    "endfilter",
    "endmacro",
    "endcall",
    "endblock",
    "endraw",
    "else",
    "elif",
];

/// The opening tag of a statement while it is parsed.
#[derive(Clone, Copy)]
struct Opening {
    start: usize,
    keyword: Span,
}

impl Parser<'_> {
    /// Parses statements up to the end of the source or a tag that ends an open statement.
    pub(super) fn statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        while let Some(token) = self.token() {
            let statement = match token.kind {
                TokenKind::VariableStart => self.output(),
                TokenKind::BlockStart if self.is_closed_here() => break,
                TokenKind::BlockStart => self.block(),
                TokenKind::RawStart => self.raw(),
                _ => self.leaf(token),
            };
            statements.push(statement);
        }
        statements
    }

    /// Parses a statement that is one token.
    fn leaf(&mut self, token: Token) -> Statement {
        let index = self.at;
        // Not `advance`: outside of tags, no token is white space.
        self.at += 1;
        self.last = token.span();
        let kind = match token.kind {
            TokenKind::Text => StatementKind::Text(whitespace::trimmed(self.source, self.tokens, index)),
            TokenKind::Comment => StatementKind::Comment,
            TokenKind::UnclosedComment => {
                let opening = Span::new(token.start as usize, token.start as usize + 2);
                self.report(SyntaxError::new(opening, "comment is not closed").with_help("close it with `#}`"));
                StatementKind::Error
            }
            _ => StatementKind::Error,
        };
        Statement { kind, span: token.span() }
    }

    fn raw(&mut self) -> Statement {
        let start = self.here();
        let opening = self.here_span();
        let index = self.at;
        self.at += 1;
        self.last = opening;
        let mut kept = Span::new(opening.end, opening.end);
        if self.kind() == Some(TokenKind::RawText) {
            kept = whitespace::trimmed(self.source, self.tokens, index + 1);
            self.last = self.here_span();
            self.at += 1;
        }
        if self.kind() == Some(TokenKind::RawEnd) {
            self.last = self.here_span();
            self.at += 1;
        } else {
            self.report(unclosed("raw", "endraw", opening));
        }
        Statement { kind: StatementKind::Raw(kept), span: self.span_from(start) }
    }

    fn output(&mut self) -> Statement {
        let start = self.start_tag();
        let expression = self.expression_or_error();
        self.end_tag(TokenKind::VariableEnd);
        Statement { kind: StatementKind::Output(expression), span: self.span_from(start) }
    }

    fn block(&mut self) -> Statement {
        let start = self.start_tag();
        if self.kind() != Some(TokenKind::Name) {
            let _ = self.unexpected::<()>("statement");
            self.end_tag(TokenKind::BlockEnd);
            return Statement { kind: StatementKind::Error, span: self.span_from(start) };
        }
        let keyword = self.here_span();
        self.advance();
        let kind = self.statement(Opening { start, keyword });
        Statement { kind, span: self.span_from(start) }
    }

    fn statement(&mut self, opening: Opening) -> StatementKind {
        match self.text(opening.keyword) {
            "for" => self.nested(opening, Self::for_loop),
            "if" => self.nested(opening, Self::if_chain),
            "with" => self.nested(opening, Self::with),
            "set" => self.set(opening),
            "autoescape" => self.nested(opening, Self::auto_escape),
            "filter" => self.nested(opening, Self::filter_block),
            "macro" => self.nested(opening, Self::macro_block),
            "call" => self.nested(opening, Self::call_block),
            "do" => self.do_call(opening),
            "break" => StatementKind::Break(self.loop_control(opening)),
            "continue" => StatementKind::Continue(self.loop_control(opening)),
            "block" => self.nested(opening, Self::excluded_block),
            "extends" | "include" | "import" | "from" => {
                self.skip_to_tag_end();
                let tag = self.end_block(opening);
                StatementKind::Excluded(Box::new(Excluded { tag, body: None }))
            }
            _ => self.unknown(opening),
        }
    }

    /// Parses a statement with a body, if it is not nested too deeply.
    fn nested(&mut self, opening: Opening, parse: fn(&mut Self, Opening) -> StatementKind) -> StatementKind {
        self.depth.open_statement();
        if self.depth.is_exceeded() {
            return self.stop(opening.keyword);
        }
        let kind = parse(self, opening);
        self.depth.close_statement();
        kind
    }

    /// Gives up, because the template is nested too deeply.
    fn stop(&mut self, span: Span) -> StatementKind {
        self.report(too_deep(span));
        self.is_stopped = true;
        self.at = self.tokens.len();
        self.last = Span::new(span.start, self.source.len());
        StatementKind::Error
    }

    fn unknown(&mut self, opening: Opening) -> StatementKind {
        let keyword = self.text(opening.keyword);
        let expected = self.open.last().and_then(|open| open.closers.first()).copied();
        let is_end = CLOSERS.contains(&keyword) || keyword.starts_with("end");
        let error = if CLOSERS.contains(&keyword) {
            match expected {
                Some(expected) => {
                    SyntaxError::new(opening.keyword, format!("unexpected `{keyword}`, expected `{expected}`"))
                }
                None => SyntaxError::new(opening.keyword, format!("unexpected `{keyword}`: no statement is open"))
                    .with_help("remove the tag, or open the statement before it"),
            }
        } else {
            let error = SyntaxError::new(opening.keyword, format!("unknown statement {}", short(keyword)));
            match guess(keyword, KEYWORDS.iter().chain(CLOSERS).copied()) {
                Some(known) => error.with_help(format!("did you mean `{known}`?")),
                None => error,
            }
        };
        let _ = self.fail::<()>(error);
        if let Some(open) = self.open.last_mut().filter(|_| is_end) {
            open.has_wrong_end = true;
        }
        self.end_tag(TokenKind::BlockEnd);
        StatementKind::Error
    }

    fn filter_chain(&mut self) -> Parse<Expression> {
        let start = self.here();
        if self.kind() == Some(TokenKind::BlockEnd) {
            let error = SyntaxError::new(self.here_span(), "expected a filter");
            return self.fail(error.with_help("name a filter, as in `upper`"));
        }
        let mut chain = self.filter(start, None)?;
        while self.eat(TokenKind::Pipe)? {
            chain = self.filter(start, Some(chain))?;
        }
        Ok(chain)
    }

    fn filter_block(&mut self, opening: Opening) -> StatementKind {
        let filter = self.after(Self::filter_chain);
        let tag = self.end_block(opening);
        let body = self.body(tag, &["endfilter"]);
        StatementKind::Filter(Box::new(FilterBlock { tag, filter, body }))
    }

    fn auto_escape(&mut self, opening: Opening) -> StatementKind {
        let enabled = self.expression_or_error();
        let tag = self.end_block(opening);
        let body = self.body(tag, &["endautoescape"]);
        StatementKind::AutoEscape(Box::new(AutoEscape { tag, enabled, body }))
    }

    fn excluded_block(&mut self, opening: Opening) -> StatementKind {
        self.skip_to_tag_end();
        let tag = self.end_block(opening);
        let was_in_loop = std::mem::replace(&mut self.in_loop, false);
        let statements = self.part(&["endblock"]);
        let (is_closed, has_wrong_end) = self.end_part();
        let mut end = None;
        if is_closed {
            let opening = self.keyword_tag();
            self.skip_to_tag_end();
            end = Some(self.end_block(opening));
        } else if !has_wrong_end && !self.is_stopped {
            self.report(unclosed("block", "endblock", tag.span));
        }
        self.in_loop = was_in_loop;
        StatementKind::Excluded(Box::new(Excluded { tag, body: Some(Body { statements, end }) }))
    }
}
