//! Parses statements.

use crate::diagnostic::{guess, short};
use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::ast::{
    Attribute, AutoEscape, Body, Branch, CallBlock, Do, Else, Excluded, Expression, ExpressionKind, FilterBlock, For,
    If, Macro, Parameter, Set, SetBlock, Statement, StatementKind, Tag, Target, TargetKind, With,
};
use crate::template::syntax::jinja::depth::too_deep;
use crate::template::syntax::jinja::parser::{Open, Parse, Parser};
use crate::template::syntax::jinja::whitespace;
use crate::template::syntax::token::{Token, TokenKind};
use crate::text::source::Span;

/// Names that cannot be assigned to.
const RESERVED: &[&str] = &["true", "True", "false", "False", "none", "None", "loop", "self"];

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

    /// Consumes an opening delimiter. Returns its offset.
    fn start_tag(&mut self) -> usize {
        let start = self.here();
        self.has_failed = false;
        self.depth.start_tag();
        self.advance();
        start
    }

    /// Consumes a closing delimiter. Anything before it is a mistake.
    fn end_tag(&mut self, kind: TokenKind) {
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

    fn end_block(&mut self, opening: Opening) -> Tag {
        self.end_tag(TokenKind::BlockEnd);
        Tag { span: self.span_from(opening.start), keyword: opening.keyword }
    }

    /// Returns the keyword of the block that starts at the current token.
    fn peek_keyword(&self) -> &str {
        let next = self.tokens[self.at + 1..].iter().find(|token| token.kind != TokenKind::Whitespace);
        next.filter(|token| token.kind == TokenKind::Name).map_or("", |token| self.text(token.span()))
    }

    /// Returns whether the tag at the current token ends an open statement: the innermost one, or an outer one, so that
    /// those inside it are not closed.
    fn is_closed_here(&self) -> bool {
        let keyword = self.peek_keyword();
        !self.open.is_empty() && self.open.iter().rev().any(|open| open.closers.contains(&keyword))
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

    /// Parses statements up to one of these keywords.
    fn part(&mut self, closers: &'static [&'static str]) -> Vec<Statement> {
        self.open.push(Open { closers, has_wrong_end: false });
        self.statements()
    }

    /// Ends the current part. Returns whether one of its closers follows.
    fn end_part(&mut self) -> (bool, bool) {
        let Some(open) = self.open.pop() else { return (false, false) };
        let is_closed = self.kind() == Some(TokenKind::BlockStart) && open.closers.contains(&self.peek_keyword());
        (is_closed, open.has_wrong_end)
    }

    /// Consumes the start of a tag and its keyword.
    fn keyword_tag(&mut self) -> Opening {
        let start = self.start_tag();
        let keyword = self.here_span();
        self.advance();
        Opening { start, keyword }
    }

    /// Parses the end tag of a statement, or reports that it is missing.
    fn end_statement(&mut self, tag: Tag, end: &'static str) -> Option<Tag> {
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

    fn body(&mut self, tag: Tag, closers: &'static [&'static str; 1]) -> Body {
        let statements = self.part(closers);
        Body { statements, end: self.end_statement(tag, closers[0]) }
    }

    fn for_loop(&mut self, opening: Opening) -> StatementKind {
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

    fn if_chain(&mut self, opening: Opening) -> StatementKind {
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

    fn with(&mut self, opening: Opening) -> StatementKind {
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

    fn set(&mut self, opening: Opening) -> StatementKind {
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

    fn macro_block(&mut self, opening: Opening) -> StatementKind {
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

    fn call_block(&mut self, opening: Opening) -> StatementKind {
        let mut params = Vec::new();
        if self.kind() == Some(TokenKind::ParenOpen) {
            let _ = self.params(&mut params);
        }
        let call = self.after(Self::call_expression);
        let tag = self.end_block(opening);
        let body = self.macro_body(tag, &["endcall"]);
        StatementKind::Call(Box::new(CallBlock { tag, params, call, body }))
    }

    fn call_expression(&mut self) -> Parse<Expression> {
        let call = self.expression()?;
        if matches!(call.unparenthesized().kind, ExpressionKind::Call(_)) {
            return Ok(call);
        }
        let message = format!("expected a call, found {}", call.description());
        self.fail(SyntaxError::new(call.span, message).with_help("call a macro or a method, as in `f()`"))
    }

    fn do_call(&mut self, opening: Opening) -> StatementKind {
        let call = self.after(Self::call_expression);
        let tag = self.end_block(opening);
        StatementKind::Do(Box::new(Do { tag, call }))
    }

    fn loop_control(&mut self, opening: Opening) -> Tag {
        if !self.in_loop {
            let keyword = self.text(opening.keyword);
            let error = SyntaxError::new(opening.keyword, format!("'{keyword}' must be placed inside a loop"));
            let _ = self.fail::<()>(error);
        }
        self.end_block(opening)
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

    /// Parses a part of a tag, unless an earlier part has a mistake. After a mistake, skips the rest of the tag.
    fn after(&mut self, parse: impl FnOnce(&mut Self) -> Parse<Expression>) -> Expression {
        let start = self.here();
        if !self.has_failed
            && let Ok(expression) = parse(self)
        {
            return expression;
        }
        self.skip_to_tag_end();
        Expression::error(self.span_from(start))
    }

    fn skip_after_failure(&mut self) {
        if self.has_failed {
            self.skip_to_tag_end();
        }
    }

    fn skipped_target(&mut self, start: usize) -> Target {
        self.skip_to_tag_end();
        Target::error(self.span_from(start))
    }

    /// Parses what is assigned to: a name, or several that a list is unpacked to.
    fn assignment(&mut self, dotted: bool) -> Parse<Target> {
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

    fn target_name(&mut self, dotted: bool) -> Parse<Target> {
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
}

fn unclosed(keyword: &str, end: &str, span: Span) -> SyntaxError {
    SyntaxError::new(span, format!("`{keyword}` is not closed: expected `{end}`"))
        .with_help(format!("close it with `{{% {end} %}}`"))
}
