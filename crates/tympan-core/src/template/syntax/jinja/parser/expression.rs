//! Parses expressions.

use crate::template::syntax::error::SyntaxError;
use crate::template::syntax::jinja::ast::{
    Argument, ArgumentKind, Attribute, Binary, BinaryOperator, Call, Compare, CompareOperator, Expression,
    ExpressionKind, Filter, Item, Literal, Slice, Ternary, Test, UnaryOperator,
};
use crate::template::syntax::jinja::number::{self, Number};
use crate::template::syntax::jinja::parser::{Parse, Parser};
use crate::template::syntax::jinja::string;
use crate::template::syntax::token::{Token, TokenKind};
use crate::text::source::Span;

/// The maximum number of arguments of a call.
const MAX_ARGS: usize = 2000;

/// The binding power of `+` and `-`, the loosest operators in an operand of a comparison.
const SUM: u8 = 1;

impl Parser<'_> {
    /// Parses an expression, and skips the rest of the tag if it is not one.
    pub(super) fn expression_or_error(&mut self) -> Expression {
        let start = self.here();
        self.expression().unwrap_or_else(|_| {
            self.skip_to_tag_end();
            Expression::error(self.span_from(start))
        })
    }

    pub(super) fn expression(&mut self) -> Parse<Expression> {
        let start = self.here();
        let mut expression = self.disjunction()?;
        while self.eat_word("if")? {
            let condition = self.disjunction()?;
            let otherwise = if self.eat_word("else")? { Some(self.expression()?) } else { None };
            let ternary = Ternary { then: expression, condition, otherwise };
            expression = self.node(start, ExpressionKind::Ternary(Box::new(ternary)));
        }
        Ok(expression)
    }

    /// Parses an expression without a ternary at its top.
    pub(super) fn disjunction(&mut self) -> Parse<Expression> {
        let start = self.here();
        let mut left = self.conjunction()?;
        while self.eat_word("or")? {
            let right = self.conjunction()?;
            left = self.binary(start, left, BinaryOperator::Or, right);
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Parse<Expression> {
        let start = self.here();
        let mut left = self.negation()?;
        while self.eat_word("and")? {
            let right = self.negation()?;
            left = self.binary(start, left, BinaryOperator::And, right);
        }
        Ok(left)
    }

    fn negation(&mut self) -> Parse<Expression> {
        let start = self.here();
        if self.eat_word("not")? {
            let operand = self.negation()?;
            return Ok(self.node(start, ExpressionKind::Unary(UnaryOperator::Not, Box::new(operand))));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Parse<Expression> {
        let start = self.here();
        let first = self.arithmetic(SUM)?;
        let mut rest = Vec::new();
        while let Some(operator) = self.compare_operator()? {
            rest.push((operator, self.arithmetic(SUM)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(self.node(start, ExpressionKind::Compare(Box::new(Compare { first, rest }))))
    }

    fn compare_operator(&mut self) -> Parse<Option<CompareOperator>> {
        let operator = match self.kind() {
            Some(TokenKind::Equal) => CompareOperator::Equal,
            Some(TokenKind::NotEqual) => CompareOperator::NotEqual,
            Some(TokenKind::Less) => CompareOperator::Less,
            Some(TokenKind::LessEqual) => CompareOperator::LessEqual,
            Some(TokenKind::Greater) => CompareOperator::Greater,
            Some(TokenKind::GreaterEqual) => CompareOperator::GreaterEqual,
            Some(TokenKind::Name) if self.is_word("in") => CompareOperator::In,
            Some(TokenKind::Name) if self.is_word("not") => {
                self.bump()?;
                self.expect_word("in")?;
                return Ok(Some(CompareOperator::NotIn));
            }
            _ => return Ok(None),
        };
        self.bump()?;
        Ok(Some(operator))
    }

    /// Parses a chain of operators that bind at least as tightly as `least`. All of them are left-associative.
    fn arithmetic(&mut self, least: u8) -> Parse<Expression> {
        let start = self.here();
        let mut left = self.unary()?;
        while let Some((operator, power)) =
            self.kind().and_then(arithmetic_operator).filter(|(_, power)| *power >= least)
        {
            self.bump()?;
            let right = self.arithmetic(power + 1)?;
            left = self.binary(start, left, operator, right);
        }
        Ok(left)
    }

    /// Parses an operand with its filters and tests.
    fn unary(&mut self) -> Parse<Expression> {
        let start = self.here();
        let mut expression = self.operand()?;
        loop {
            expression = match self.kind() {
                Some(TokenKind::Pipe) => {
                    self.bump()?;
                    self.filter(start, Some(expression))?
                }
                Some(TokenKind::Name) if self.is_word("is") => self.test(start, expression)?,
                _ => return Ok(expression),
            };
        }
    }

    /// Parses an operand without filters and tests. A minus applies to everything else: `-a.b` is `-(a.b)`.
    fn operand(&mut self) -> Parse<Expression> {
        let start = self.here();
        if self.kind() == Some(TokenKind::Minus) {
            self.bump()?;
            let operand = self.operand()?;
            return Ok(self.node(start, ExpressionKind::Unary(UnaryOperator::Negate, Box::new(operand))));
        }
        let primary = self.primary()?;
        self.postfix(start, primary)
    }

    fn postfix(&mut self, start: usize, mut value: Expression) -> Parse<Expression> {
        loop {
            let kind = match self.kind() {
                Some(TokenKind::Dot) => self.attribute(value)?,
                Some(TokenKind::BracketOpen) => self.subscript(value)?,
                Some(TokenKind::ParenOpen) => {
                    let args = self.args()?;
                    ExpressionKind::Call(Box::new(Call { callee: value, args }))
                }
                _ => return Ok(value),
            };
            value = self.node(start, kind);
        }
    }

    fn attribute(&mut self, value: Expression) -> Parse<ExpressionKind> {
        self.bump()?;
        match self.kind() {
            Some(TokenKind::Name) => {
                let name = self.bump()?.span();
                Ok(ExpressionKind::Attribute(Box::new(Attribute { value, name })))
            }
            Some(TokenKind::Integer) => {
                let index = self.primary()?;
                Ok(ExpressionKind::Item(Box::new(Item { value, index })))
            }
            _ => self.unexpected("identifier or integer"),
        }
    }

    fn subscript(&mut self, value: Expression) -> Parse<ExpressionKind> {
        self.bump()?;
        let start = if self.kind() == Some(TokenKind::Colon) { None } else { Some(self.expression()?) };
        let (mut stop, mut step, mut is_slice) = (None, None, false);
        if self.eat(TokenKind::Colon)? {
            is_slice = true;
            if !matches!(self.kind(), Some(TokenKind::BracketClose | TokenKind::Colon)) {
                stop = Some(self.expression()?);
            }
            if self.eat(TokenKind::Colon)? && self.kind() != Some(TokenKind::BracketClose) {
                step = Some(self.expression()?);
            }
        }
        self.expect(TokenKind::BracketClose)?;
        Ok(match start {
            Some(index) if !is_slice => ExpressionKind::Item(Box::new(Item { value, index })),
            start => ExpressionKind::Slice(Box::new(Slice { value, start, stop, step })),
        })
    }

    /// Parses a filter whose `|` has been consumed. `start` is where its value starts.
    pub(super) fn filter(&mut self, start: usize, value: Option<Expression>) -> Parse<Expression> {
        let name = self.dotted_name()?;
        let args = if self.kind() == Some(TokenKind::ParenOpen) { self.args()? } else { Vec::new() };
        Ok(self.node(start, ExpressionKind::Filter(Box::new(Filter { value, name, args }))))
    }

    fn test(&mut self, start: usize, value: Expression) -> Parse<Expression> {
        self.bump()?;
        let negated = self.eat_word("not")?;
        let name = self.dotted_name()?;
        let args = match self.kind() {
            Some(TokenKind::ParenOpen) => self.args()?,
            Some(kind) if self.starts_test_argument(kind) => {
                vec![Argument { kind: ArgumentKind::Positional, value: self.operand()? }]
            }
            _ => Vec::new(),
        };
        Ok(self.node(start, ExpressionKind::Test(Box::new(Test { value, negated, name, args }))))
    }

    /// Returns whether the current token starts an argument without parentheses, as in `x is divisibleby 3`.
    fn starts_test_argument(&self, kind: TokenKind) -> bool {
        match kind {
            TokenKind::Name => !["and", "or", "else", "is"].iter().any(|word| self.is_word(word)),
            TokenKind::String
            | TokenKind::Integer
            | TokenKind::Float
            | TokenKind::Plus
            | TokenKind::Minus
            | TokenKind::BracketOpen
            | TokenKind::BraceOpen => true,
            _ => false,
        }
    }

    /// Parses the name of a filter or a test, which may contain dots.
    fn dotted_name(&mut self) -> Parse<Span> {
        let start = self.here();
        self.expect(TokenKind::Name)?;
        while self.eat(TokenKind::Dot)? {
            self.expect(TokenKind::Name)?;
        }
        Ok(self.span_from(start))
    }

    fn args(&mut self) -> Parse<Vec<Argument>> {
        self.expect(TokenKind::ParenOpen)?;
        let mut args = Vec::new();
        let mut has_named = false;
        while self.has_next_item(TokenKind::ParenClose, !args.is_empty())? {
            let arg = self.argument()?;
            match arg.kind {
                ArgumentKind::Named(_) | ArgumentKind::NamedSpread => has_named = true,
                ArgumentKind::Positional if has_named => {
                    let error = SyntaxError::new(arg.value.span, "non-keyword arg after keyword arg")
                        .with_help("put arguments without a name first");
                    return self.fail(error);
                }
                _ => {}
            }
            args.push(arg);
            if args.len() > MAX_ARGS {
                return self.fail(SyntaxError::new(self.last_span(), "Too many arguments in function call"));
            }
        }
        Ok(args)
    }

    /// Consumes the comma before the next item of a list, or its closing bracket. Returns whether there is an item.
    pub(super) fn has_next_item(&mut self, close: TokenKind, needs_comma: bool) -> Parse<bool> {
        if self.eat(close)? {
            return Ok(false);
        }
        if needs_comma {
            self.expect(TokenKind::Comma)?;
            return Ok(!self.eat(close)?);
        }
        Ok(true)
    }

    fn argument(&mut self) -> Parse<Argument> {
        let kind = match self.kind() {
            Some(TokenKind::Star) => ArgumentKind::Spread,
            Some(TokenKind::StarStar) => ArgumentKind::NamedSpread,
            _ => ArgumentKind::Positional,
        };
        if kind != ArgumentKind::Positional {
            self.bump()?;
            return Ok(Argument { kind, value: self.expression()? });
        }
        let value = self.expression()?;
        let name = value.unparenthesized();
        if name.kind == ExpressionKind::Name && self.kind() == Some(TokenKind::Assign) {
            let kind = ArgumentKind::Named(name.span);
            self.bump()?;
            return Ok(Argument { kind, value: self.expression()? });
        }
        Ok(Argument { kind, value })
    }

    fn primary(&mut self) -> Parse<Expression> {
        let start = self.here();
        let Some(kind) = self.kind() else { return self.unexpected("expression") };
        let kind = match kind {
            TokenKind::Name => {
                let token = self.bump()?;
                literal_word(self.text(token.span())).map_or(ExpressionKind::Name, ExpressionKind::Literal)
            }
            TokenKind::String => self.string()?,
            TokenKind::Integer | TokenKind::Float => {
                let token = self.bump()?;
                ExpressionKind::Literal(self.number(token)?)
            }
            TokenKind::ParenOpen => self.tuple_or_paren()?,
            TokenKind::BracketOpen => self.list()?,
            TokenKind::BraceOpen => self.dict()?,
            _ => return self.unexpected(""),
        };
        Ok(self.node(start, kind))
    }

    fn string(&mut self) -> Parse<ExpressionKind> {
        while self.kind() == Some(TokenKind::String) {
            let span = self.bump()?.span();
            if string::value(self.text(span)).is_err() {
                let error = SyntaxError::new(span, "string has an invalid escape")
                    .with_help("write a backslash as `\\\\`, and a character as `\\xhh` or `\\uhhhh`");
                return self.fail(error);
            }
        }
        Ok(ExpressionKind::Literal(Literal::String))
    }

    fn number(&mut self, token: Token) -> Parse<Literal> {
        match number::value(self.text(token.span()), token.kind) {
            Ok(Number::Int(int)) => Ok(Literal::Int(int)),
            Ok(Number::Big(_)) => Ok(Literal::BigInt),
            Ok(Number::Float(float)) => Ok(Literal::Float(float)),
            Err(message) => self.fail(SyntaxError::new(token.span(), message)),
        }
    }

    fn tuple_or_paren(&mut self) -> Parse<ExpressionKind> {
        self.bump()?;
        if self.eat(TokenKind::ParenClose)? {
            return Ok(ExpressionKind::Tuple(Vec::new()));
        }
        let first = self.expression()?;
        if self.kind() != Some(TokenKind::Comma) {
            self.expect(TokenKind::ParenClose)?;
            return Ok(ExpressionKind::Paren(Box::new(first)));
        }
        let mut items = vec![first];
        while self.has_next_item(TokenKind::ParenClose, true)? {
            items.push(self.expression()?);
        }
        Ok(ExpressionKind::Tuple(items))
    }

    fn list(&mut self) -> Parse<ExpressionKind> {
        self.bump()?;
        let mut items = Vec::new();
        while self.has_next_item(TokenKind::BracketClose, !items.is_empty())? {
            items.push(self.expression()?);
        }
        Ok(ExpressionKind::List(items))
    }

    fn dict(&mut self) -> Parse<ExpressionKind> {
        self.bump()?;
        let mut pairs = Vec::new();
        while self.has_next_item(TokenKind::BraceClose, !pairs.is_empty())? {
            let key = self.expression()?;
            self.expect(TokenKind::Colon)?;
            pairs.push((key, self.expression()?));
        }
        Ok(ExpressionKind::Dict(pairs))
    }

    /// Returns the node that starts at `start` and ends with the last token that was consumed.
    pub(super) fn node(&self, start: usize, kind: ExpressionKind) -> Expression {
        Expression { kind, span: self.span_from(start) }
    }

    fn binary(&self, start: usize, left: Expression, operator: BinaryOperator, right: Expression) -> Expression {
        self.node(start, ExpressionKind::Binary(Box::new(Binary { left, operator, right })))
    }
}

/// Returns the operator of a token and how tightly it binds.
fn arithmetic_operator(kind: TokenKind) -> Option<(BinaryOperator, u8)> {
    Some(match kind {
        TokenKind::Plus => (BinaryOperator::Add, SUM),
        TokenKind::Minus => (BinaryOperator::Subtract, SUM),
        TokenKind::Tilde => (BinaryOperator::Concat, SUM + 1),
        TokenKind::Star => (BinaryOperator::Multiply, SUM + 2),
        TokenKind::Slash => (BinaryOperator::Divide, SUM + 2),
        TokenKind::SlashSlash => (BinaryOperator::FloorDivide, SUM + 2),
        TokenKind::Percent => (BinaryOperator::Remainder, SUM + 2),
        TokenKind::StarStar => (BinaryOperator::Power, SUM + 3),
        _ => return None,
    })
}

fn literal_word(word: &str) -> Option<Literal> {
    match word {
        "true" | "True" => Some(Literal::Bool(true)),
        "false" | "False" => Some(Literal::Bool(false)),
        "none" | "None" => Some(Literal::None),
        _ => None,
    }
}
