//! Parses `if` and `for`, and the statements that leave a loop.

use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::ast::{Body, Branch, Else, For, If, StatementKind, Tag};
use crate::template::syntax::jinja::parser::Parser;
use crate::template::syntax::jinja::parser::statement::Opening;
use crate::template::syntax::token::TokenKind;

impl Parser<'_> {
    pub(super) fn for_loop(&mut self, opening: Opening) -> StatementKind {
        let was_in_loop = std::mem::replace(&mut self.in_loop, true);
        let start = self.here();
        let target = self.assignment(false).unwrap_or_else(|_| self.skipped_target(start));
        let iter = self.after(|parser| {
            parser.expect_word("in")?;
            parser.disjunction()
        });
        let filter = if self.is_word("if") {
            Some(self.after(|parser| {
                parser.bump()?;
                parser.expression()
            }))
        } else {
            None
        };
        let recursive = self.is_word("recursive").then(|| self.here_span());
        if recursive.is_some() {
            self.advance();
        }
        let tag = self.end_block(opening);
        let mut statements = self.part(&["endfor", "else"]);
        let mut otherwise = None;
        if self.is_else() {
            let branch = self.else_tag(&["endfor"]);
            otherwise = Some(Else { tag: branch, statements: self.statements() });
        }
        let body = Body { statements: std::mem::take(&mut statements), end: self.end_statement(tag, "endfor") };
        self.in_loop = was_in_loop;
        StatementKind::For(Box::new(For { tag, target, iter, filter, recursive, body, otherwise }))
    }

    pub(super) fn if_chain(&mut self, opening: Opening) -> StatementKind {
        let mut branches = Vec::new();
        let (mut opening, mut first_tag) = (opening, None);
        loop {
            let condition = self.after(Self::disjunction);
            let tag = self.end_block(opening);
            let statements = self.part(&["endif", "elif", "else"]);
            let first_tag = *first_tag.get_or_insert(tag);
            branches.push(Branch { tag, condition, statements });
            let is_elif = self.kind() == Some(TokenKind::BlockStart) && self.peek_keyword() == "elif";
            if !is_elif || !self.open.last().is_some_and(|open| open.closers.contains(&"elif")) {
                return self.end_if(branches, first_tag);
            }
            self.open.pop();
            opening = self.keyword_tag();
            self.depth.open_statement();
            if self.depth.is_exceeded() {
                return self.stop(opening.keyword);
            }
        }
    }

    fn end_if(&mut self, branches: Vec<Branch>, tag: Tag) -> StatementKind {
        let mut otherwise = None;
        if self.is_else() {
            let tag = self.else_tag(&["endif"]);
            otherwise = Some(Else { tag, statements: self.statements() });
        }
        let end = self.end_statement(tag, "endif");
        for _ in 1..branches.len() {
            self.depth.close_statement();
        }
        StatementKind::If(Box::new(If { branches, otherwise, end }))
    }

    /// Returns whether the `else` of the innermost statement follows.
    fn is_else(&self) -> bool {
        self.kind() == Some(TokenKind::BlockStart)
            && self.peek_keyword() == "else"
            && self.open.last().is_some_and(|open| open.closers.contains(&"else"))
    }

    /// Parses an `else` tag. From here on, the innermost statement has other closers.
    fn else_tag(&mut self, closers: &'static [&'static str]) -> Tag {
        if let Some(open) = self.open.last_mut() {
            open.closers = closers;
        }
        let opening = self.keyword_tag();
        self.end_block(opening)
    }

    pub(super) fn loop_control(&mut self, opening: Opening) -> Tag {
        if !self.in_loop {
            let keyword = self.text(opening.keyword);
            let error = SyntaxError::new(opening.keyword, format!("'{keyword}' must be placed inside a loop"));
            let _ = self.fail::<()>(error);
        }
        self.end_block(opening)
    }
}
