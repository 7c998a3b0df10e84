//! Lowering of expressions.

use crate::error::{Error, Kind, Result};
use crate::template::syntax::jinja::ast::{
    Argument, ArgumentKind, Attribute, Binary, BinaryOperator, Call, Compare, CompareOperator, Expression,
    ExpressionKind, Filter, Item, Literal, Slice, Ternary, Test, UnaryOperator,
};
use crate::template::syntax::jinja::lower::{Lowering, STACK_OF_ARGS, STACK_OF_EXPR};
use crate::template::syntax::jinja::number::{self, Number};
use crate::template::syntax::jinja::string;
use crate::template::syntax::token::TokenKind;
use crate::template::tree::{
    Arg, Args, BinaryOp, CallExpr, Callee, Const, Expr, ExprKind, Function, Named, NamedArg, Place, Shortcut,
    SliceExpr, TernaryExpr,
};
use crate::text::source::Span;

impl Lowering<'_> {
    fn exprs(&mut self, exprs: &[Expression]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &Expression) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(expr)?))
    }

    fn optional(&mut self, expr: Option<&Expression>) -> Result<Option<Expr>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    /// Lowers an expression. Each kind has its own function: in unoptimized builds, a single function would use stack
    /// space for every kind at each level.
    pub(super) fn expr(&mut self, expr: &Expression) -> Result<Expr> {
        let expr = expr.unparenthesized();
        self.enter(STACK_OF_EXPR);
        let result = self.expr_kind(expr).map(|kind| Expr::new(kind, place_of(expr)));
        self.leave(STACK_OF_EXPR);
        result
    }

    fn expr_kind(&mut self, expr: &Expression) -> Result<ExprKind> {
        match &expr.kind {
            ExpressionKind::Name => Ok(self.variable(self.text(expr.span), expr.span.into())),
            ExpressionKind::Literal(literal) => Ok(ExprKind::Const(self.literal_value(*literal, expr.span))),
            ExpressionKind::Slice(slice) => self.slice(slice),
            ExpressionKind::Unary(operator, operand) => self.unary(*operator, operand),
            ExpressionKind::Binary(binary) => self.binary(binary),
            ExpressionKind::Compare(compare) => self.comparison(compare, expr.span.into()),
            ExpressionKind::Ternary(ternary) => self.ternary(ternary),
            ExpressionKind::Filter(filter) => self.filter(filter, place_of(expr)),
            ExpressionKind::Test(test) => self.test(test, place_of(expr)),
            ExpressionKind::Attribute(attribute) => self.attribute(attribute),
            ExpressionKind::Item(item) => self.item(item),
            ExpressionKind::Call(call) => self.call(call, None),
            ExpressionKind::List(items) => Ok(ExprKind::List(self.exprs(items)?)),
            ExpressionKind::Tuple(items) => Ok(ExprKind::Tuple(self.exprs(items)?)),
            ExpressionKind::Dict(pairs) => self.dict(pairs),
            ExpressionKind::Paren(inner) => self.expr_kind(inner),
            ExpressionKind::Error => Err(Error::new(Kind::TemplateSyntax, "expected an expression").at(expr.span)),
        }
    }

    /// Returns the value of a literal, which the parser has checked.
    fn literal_value(&self, literal: Literal, span: Span) -> Const {
        match literal {
            Literal::None => Const::None,
            Literal::Bool(flag) => Const::Bool(flag),
            Literal::Int(int) => i64::try_from(int).map_or(Const::Big(int.into()), Const::Int),
            Literal::BigInt => match number::value(self.text(span), TokenKind::Integer) {
                Ok(Number::Big(int)) => i128::try_from(int).map_or(Const::Float(f64::INFINITY), Const::Big),
                _ => Const::Float(f64::INFINITY),
            },
            Literal::Float(float) => Const::Float(float),
            Literal::String => Const::Str(string::value(self.text(span)).unwrap_or_default().into()),
        }
    }

    fn slice(&mut self, slice: &Slice) -> Result<ExprKind> {
        Ok(ExprKind::Slice(Box::new(SliceExpr {
            value: self.expr(&slice.value)?,
            start: self.optional(slice.start.as_ref())?,
            stop: self.optional(slice.stop.as_ref())?,
            step: self.optional(slice.step.as_ref())?,
        })))
    }

    fn unary(&mut self, operator: UnaryOperator, operand: &Expression) -> Result<ExprKind> {
        let operand = self.boxed(operand)?;
        Ok(match operator {
            UnaryOperator::Not => ExprKind::Not(operand),
            UnaryOperator::Negate => ExprKind::Neg(operand),
        })
    }

    fn comparison(&mut self, compare: &Compare, at: Place) -> Result<ExprKind> {
        if let [(operator, right)] = compare.rest.as_slice() {
            return self.single_comparison(&compare.first, *operator, right, at);
        }
        let first = self.boxed(&compare.first)?;
        let mut rest = Vec::with_capacity(compare.rest.len());
        for (operator, expr) in &compare.rest {
            rest.push((compare_op(*operator), self.expr(expr)?));
        }
        Ok(ExprKind::Chain(first, rest))
    }

    fn single_comparison(
        &mut self,
        left: &Expression,
        operator: CompareOperator,
        right: &Expression,
        at: Place,
    ) -> Result<ExprKind> {
        if operator != CompareOperator::NotIn {
            return Ok(ExprKind::Binary(compare_op(operator), self.boxed(left)?, self.boxed(right)?));
        }
        self.enter(STACK_OF_EXPR);
        let contains = ExprKind::Binary(BinaryOp::In, self.boxed(left)?, self.boxed(right)?);
        self.leave(STACK_OF_EXPR);
        Ok(ExprKind::Not(Box::new(Expr::new(contains, at))))
    }

    fn ternary(&mut self, ternary: &Ternary) -> Result<ExprKind> {
        Ok(ExprKind::Ternary(Box::new(TernaryExpr {
            condition: self.expr(&ternary.condition)?,
            then: self.expr(&ternary.then)?,
            or_else: self.optional(ternary.otherwise.as_ref())?,
        })))
    }

    fn filter(&mut self, filter: &Filter, at: Place) -> Result<ExprKind> {
        let value = match &filter.value {
            Some(value) => self.expr(value)?,
            None => Expr::new(ExprKind::Captured, at),
        };
        let args = self.args(&filter.args)?;
        let name = self.dotted_name(filter.name);
        let shortcut = Shortcut::of(&name, &args, self.notable);
        Ok(ExprKind::Filter(Box::new(Named { name, shortcut, value, args })))
    }

    fn test(&mut self, test: &Test, at: Place) -> Result<ExprKind> {
        if !test.negated {
            return self.plain_test(test);
        }
        self.enter(STACK_OF_EXPR);
        let plain = self.plain_test(test)?;
        self.leave(STACK_OF_EXPR);
        Ok(ExprKind::Not(Box::new(Expr::new(plain, at))))
    }

    fn plain_test(&mut self, test: &Test) -> Result<ExprKind> {
        let value = self.expr(&test.value)?;
        let args = self.args(&test.args)?;
        Ok(ExprKind::Test(Box::new(Named { name: self.dotted_name(test.name), shortcut: None, value, args })))
    }

    /// Returns the name of a filter or a test. The white space around its dots is not part of it.
    fn dotted_name(&self, span: Span) -> Box<str> {
        let written = self.text(span);
        if written.contains(char::is_whitespace) { written.split_whitespace().collect() } else { written.into() }
    }

    fn attribute(&mut self, attribute: &Attribute) -> Result<ExprKind> {
        let value = self.boxed(&attribute.value)?;
        Ok(ExprKind::Attr(value, self.text(attribute.name).into()))
    }

    fn item(&mut self, item: &Item) -> Result<ExprKind> {
        let value = self.boxed(&item.value)?;
        Ok(ExprKind::Item(value, self.boxed(&item.index)?))
    }

    fn dict(&mut self, pairs: &[(Expression, Expression)]) -> Result<ExprKind> {
        let mut lowered = Vec::with_capacity(pairs.len());
        for (key, value) in pairs {
            lowered.push((self.expr(key)?, self.expr(value)?));
        }
        Ok(ExprKind::Dict(lowered))
    }

    fn variable(&mut self, name: &str, at: Place) -> ExprKind {
        let builtin = Function::from_name(name).filter(|_| !self.inputs.is_declared(name));
        if let Some(function) = builtin.filter(|_| !self.frames.knows(name)) {
            return ExprKind::Function(function);
        }
        let (inputs, frames) = (&mut self.inputs, &mut self.frames);
        frames.read(name, at, || match builtin {
            Some(function) => ExprKind::Function(function),
            None => ExprKind::Input(inputs.index(name, at)),
        })
    }

    /// Returns the expression for the name of a call. Values of inputs cannot be called, so a name that the template
    /// does not define is not an input, unless it is declared as one.
    fn callee(&mut self, name: &str, at: Place) -> ExprKind {
        if Function::from_name(name).is_some() || self.inputs.is_declared(name) {
            return self.variable(name, at);
        }
        self.frames.read(name, at, || ExprKind::HostFunction)
    }

    fn binary(&mut self, binary: &Binary) -> Result<ExprKind> {
        let op = match binary.operator {
            BinaryOperator::Concat => return self.concat(binary),
            BinaryOperator::And => return Ok(ExprKind::And(self.boxed(&binary.left)?, self.boxed(&binary.right)?)),
            BinaryOperator::Or => return Ok(ExprKind::Or(self.boxed(&binary.left)?, self.boxed(&binary.right)?)),
            BinaryOperator::Add => BinaryOp::Add,
            BinaryOperator::Subtract => BinaryOp::Sub,
            BinaryOperator::Multiply => BinaryOp::Mul,
            BinaryOperator::Divide => BinaryOp::Div,
            BinaryOperator::FloorDivide => BinaryOp::FloorDiv,
            BinaryOperator::Remainder => BinaryOp::Rem,
            BinaryOperator::Power => BinaryOp::Pow,
        };
        Ok(ExprKind::Binary(op, self.boxed(&binary.left)?, self.boxed(&binary.right)?))
    }

    fn concat(&mut self, binary: &Binary) -> Result<ExprKind> {
        let left = self.expr(&binary.left)?;
        let right = self.expr(&binary.right)?;
        Ok(ExprKind::Concat(match left.kind {
            ExprKind::Concat(mut parts) => {
                parts.push(right);
                parts
            }
            _ => vec![left, right],
        }))
    }

    /// Lowers the call of a `do` or `call` statement.
    pub(super) fn call_of(&mut self, expr: &Expression, caller: Option<Expr>) -> Result<Expr> {
        let expr = expr.unparenthesized();
        match &expr.kind {
            ExpressionKind::Call(call) => Ok(Expr::new(self.call(call, caller)?, place_of(expr))),
            _ => self.expr(expr),
        }
    }

    fn call(&mut self, call: &Call, caller: Option<Expr>) -> Result<ExprKind> {
        let callee = call.callee.unparenthesized();
        let callee = match &callee.kind {
            ExpressionKind::Name => {
                let (name, at) = (self.text(callee.span), callee.span.into());
                Callee::Name(Expr::new(self.callee(name, at), at), name.into())
            }
            ExpressionKind::Attribute(attribute) => {
                Callee::Method(self.expr(&attribute.value)?, self.text(attribute.name).into())
            }
            _ => Callee::Value(self.expr(callee)?),
        };
        self.enter(STACK_OF_ARGS);
        let mut args = self.args(&call.args)?;
        self.leave(STACK_OF_ARGS);
        if let Some(caller) = caller {
            args.named.push(NamedArg::One("caller".into(), caller));
        }
        Ok(ExprKind::Call(Box::new(CallExpr { callee, args })))
    }

    fn args(&mut self, args: &[Argument]) -> Result<Args> {
        let mut lowered = Args::default();
        for arg in args {
            let value = self.expr(&arg.value)?;
            match arg.kind {
                ArgumentKind::Positional => lowered.positional.push(Arg::One(value)),
                ArgumentKind::Spread => lowered.positional.push(Arg::All(value)),
                ArgumentKind::Named(name) => lowered.named.push(NamedArg::One(self.text(name).into(), value)),
                ArgumentKind::NamedSpread => lowered.named.push(NamedArg::All(value)),
            }
        }
        Ok(lowered)
    }
}

/// Returns the place that errors point at: the name of an attribute, a filter or a test rather than its value.
fn place_of(expr: &Expression) -> Place {
    match &expr.kind {
        ExpressionKind::Attribute(attribute) => attribute.name.into(),
        ExpressionKind::Filter(filter) => Span::new(filter.name.start, expr.span.end).into(),
        ExpressionKind::Test(test) => Span::new(test.name.start, expr.span.end).into(),
        _ => expr.span.into(),
    }
}

fn compare_op(operator: CompareOperator) -> BinaryOp {
    match operator {
        CompareOperator::Equal => BinaryOp::Eq,
        CompareOperator::NotEqual => BinaryOp::Ne,
        CompareOperator::Less => BinaryOp::Lt,
        CompareOperator::LessEqual => BinaryOp::Le,
        CompareOperator::Greater => BinaryOp::Gt,
        CompareOperator::GreaterEqual => BinaryOp::Ge,
        CompareOperator::In => BinaryOp::In,
        CompareOperator::NotIn => BinaryOp::NotIn,
    }
}
