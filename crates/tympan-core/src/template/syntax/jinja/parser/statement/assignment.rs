//! Parses `set`, `with` and what they assign to.

use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::ast::{
    Attribute, Expression, ExpressionKind, Set, SetBlock, StatementKind, Target, TargetKind, With,
};
use crate::template::syntax::jinja::parser::statement::Opening;
use crate::template::syntax::jinja::parser::{Parse, Parser};
use crate::template::syntax::token::TokenKind;

/// Names that cannot be assigned to.
const RESERVED: &[&str] = &["true", "True", "false", "False", "none", "None", "loop", "self"];

impl Parser<'_> {
    pub(super) fn set(&mut self, opening: Opening) -> StatementKind {
        let start = self.here();
        let target = self.assignment(true).unwrap_or_else(|_| self.skipped_target(start));
        let is_block = matches!(self.kind(), Some(TokenKind::BlockEnd | TokenKind::Pipe)) && !self.has_failed;
        if is_block {
            return self.set_block(opening, target);
        }
        let value = self.after(|parser| {
            parser.expect_assign()?;
            parser.set_value()
        });
        let tag = self.end_block(opening);
        StatementKind::Set(Box::new(Set { tag, target, value }))
    }

    fn set_block(&mut self, opening: Opening, target: Target) -> StatementKind {
        let mut filter = None;
        if self.kind() == Some(TokenKind::Pipe) {
            filter = Some(self.after(|parser| {
                parser.bump()?;
                parser.filter_chain()
            }));
        }
        let tag = self.end_block(opening);
        self.depth.open_statement();
        if self.depth.is_exceeded() {
            return self.stop(tag.keyword);
        }
        let body = self.body(tag, &["endset"]);
        self.depth.close_statement();
        StatementKind::SetBlock(Box::new(SetBlock { tag, target, filter, body }))
    }

    /// Parses the value of an assignment: an expression, or several that form a tuple.
    fn set_value(&mut self) -> Parse<Expression> {
        let start = self.here();
        let first = self.expression()?;
        if self.kind() != Some(TokenKind::Comma) {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.eat(TokenKind::Comma)? && self.kind() != Some(TokenKind::BlockEnd) {
            items.push(self.expression()?);
        }
        Ok(self.node(start, ExpressionKind::Tuple(items)))
    }

    pub(super) fn with(&mut self, opening: Opening) -> StatementKind {
        let mut assignments = Vec::new();
        let _ = self.assignments(&mut assignments);
        self.skip_after_failure();
        let tag = self.end_block(opening);
        let body = self.body(tag, &["endwith"]);
        StatementKind::With(Box::new(With { tag, assignments, body }))
    }

    fn assignments(&mut self, assignments: &mut Vec<(Target, Expression)>) -> Parse<()> {
        while self.kind() != Some(TokenKind::BlockEnd) {
            if !assignments.is_empty() {
                self.expect(TokenKind::Comma)?;
            }
            let target = if self.kind() == Some(TokenKind::ParenOpen) {
                self.paren_target(false)?
            } else {
                self.target_name(false)?
            };
            self.expect_assign()?;
            assignments.push((target, self.expression()?));
        }
        Ok(())
    }

    fn expect_assign(&mut self) -> Parse<()> {
        if self.eat(TokenKind::Assign)? { Ok(()) } else { self.unexpected("assignment operator") }
    }

    /// Parses what is assigned to: a name, or several that a list is unpacked to.
    pub(super) fn assignment(&mut self, dotted: bool) -> Parse<Target> {
        let start = self.here();
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect(TokenKind::Comma)?;
            }
            let is_end = matches!(self.kind(), Some(TokenKind::ParenClose | TokenKind::BlockEnd));
            if is_end || self.is_word("in") {
                break;
            }
            let is_nested = self.kind() == Some(TokenKind::ParenOpen);
            items.push(if is_nested { self.paren_target(dotted)? } else { self.target_name(dotted)? });
            if self.kind() != Some(TokenKind::Comma) {
                break;
            }
            is_tuple = true;
        }
        match (is_tuple, items.pop()) {
            (false, Some(target)) => Ok(target),
            (_, last) => {
                items.extend(last);
                let start = if items.is_empty() { self.last.end } else { start };
                Ok(Target { kind: TargetKind::Tuple(items), span: self.span_from(start) })
            }
        }
    }

    fn paren_target(&mut self, dotted: bool) -> Parse<Target> {
        self.bump()?;
        let target = self.assignment(dotted)?;
        self.expect(TokenKind::ParenClose)?;
        Ok(target)
    }

    pub(super) fn target_name(&mut self, dotted: bool) -> Parse<Target> {
        let name = self.expect(TokenKind::Name)?;
        let word = self.text(name);
        if RESERVED.contains(&word) {
            let message = format!("cannot assign to reserved variable name {word}");
            return self.fail(SyntaxError::new(name, message));
        }
        let mut target = Target { kind: TargetKind::Name, span: name };
        while dotted && self.eat(TokenKind::Dot)? {
            let attribute = self.expect(TokenKind::Name)?;
            let kind = match target.kind {
                TargetKind::Attribute(inner) => ExpressionKind::Attribute(inner),
                _ => ExpressionKind::Name,
            };
            let value = Expression { kind, span: target.span };
            let kind = TargetKind::Attribute(Box::new(Attribute { value, name: attribute }));
            target = Target { kind, span: self.span_from(name.start) };
        }
        Ok(target)
    }

    pub(super) fn skipped_target(&mut self, start: usize) -> Target {
        self.skip_to_tag_end();
        Target::error(self.span_from(start))
    }
}
