//! Parses macros and the statements that call them.

use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::ast::{
    Body, CallBlock, Do, Expression, ExpressionKind, Macro, Parameter, StatementKind, Tag,
};
use crate::template::syntax::jinja::parser::statement::Opening;
use crate::template::syntax::jinja::parser::{Parse, Parser};
use crate::template::syntax::token::TokenKind;
use crate::text::source::Span;

impl Parser<'_> {
    pub(super) fn macro_block(&mut self, opening: Opening) -> StatementKind {
        let (mut name, mut params) = (opening.keyword, Vec::new());
        let _ = self.signature(&mut name, &mut params);
        self.skip_after_failure();
        let tag = self.end_block(opening);
        let body = self.macro_body(tag, &["endmacro"]);
        StatementKind::Macro(Box::new(Macro { tag, name, params, body }))
    }

    fn signature(&mut self, name: &mut Span, params: &mut Vec<Parameter>) -> Parse<()> {
        *name = self.expect(TokenKind::Name)?;
        self.params(params)
    }

    fn params(&mut self, params: &mut Vec<Parameter>) -> Parse<()> {
        self.expect(TokenKind::ParenOpen)?;
        let mut has_default = false;
        while self.has_next_item(TokenKind::ParenClose, !params.is_empty())? {
            let name = self.target_name(false)?.span;
            has_default |= self.kind() == Some(TokenKind::Assign);
            let default = if has_default {
                self.expect(TokenKind::Assign)?;
                Some(self.expression()?)
            } else {
                None
            };
            params.push(Parameter { name, default });
        }
        Ok(())
    }

    /// Parses the body of a macro, in which an outer loop cannot be left.
    fn macro_body(&mut self, tag: Tag, closers: &'static [&'static str; 1]) -> Body {
        let was_in_loop = std::mem::replace(&mut self.in_loop, false);
        let body = self.body(tag, closers);
        self.in_loop = was_in_loop;
        body
    }

    pub(super) fn call_block(&mut self, opening: Opening) -> StatementKind {
        let mut params = Vec::new();
        if self.kind() == Some(TokenKind::ParenOpen) {
            let _ = self.params(&mut params);
        }
        let call = self.after(Self::call_expression);
        let tag = self.end_block(opening);
        let body = self.macro_body(tag, &["endcall"]);
        StatementKind::Call(Box::new(CallBlock { tag, params, call, body }))
    }

    pub(super) fn do_call(&mut self, opening: Opening) -> StatementKind {
        let call = self.after(Self::call_expression);
        let tag = self.end_block(opening);
        StatementKind::Do(Box::new(Do { tag, call }))
    }

    fn call_expression(&mut self) -> Parse<Expression> {
        let call = self.expression()?;
        if matches!(call.unparenthesized().kind, ExpressionKind::Call(_)) {
            return Ok(call);
        }
        let message = format!("expected a call, found {}", call.description());
        self.fail(SyntaxError::new(call.span, message).with_help("call a macro or a method, as in `f()`"))
    }
}
