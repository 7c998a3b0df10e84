//! Lowering of expressions.

use minijinja::Value as MjValue;
use minijinja::machinery::{Span as MjSpan, ast};
use minijinja::value::ValueKind;

use crate::error::Result;
use crate::template::syntax::jinja::lower::{Lowering, STACK_OF_ARGS, STACK_OF_EXPR, place};
use crate::template::tree::{
    Arg, Args, BinaryOp, CallExpr, Callee, Const, Expr, ExprKind, Function, Named, NamedArg, Place, Shortcut,
    SliceExpr, TernaryExpr,
};

impl<'s> Lowering<'s> {
    fn exprs(&mut self, exprs: &[ast::Expr<'s>]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &ast::Expr<'s>) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(expr)?))
    }

    fn optional(&mut self, expr: Option<&ast::Expr<'s>>) -> Result<Option<Expr>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    /// Lowers an expression. Each kind has its own function: in unoptimized builds, a single function would use stack
    /// space for every kind at each level.
    pub(super) fn expr(&mut self, expr: &ast::Expr<'s>) -> Result<Expr> {
        self.enter(STACK_OF_EXPR);
        let result = match expr {
            ast::Expr::GetAttr(attr) => self.attribute(attr),
            ast::Expr::Call(call) => self.call(call, None, call.span()),
            _ => self.expr_kind(expr).map(|kind| Expr::new(kind, place(expr.span()))),
        };
        self.leave(STACK_OF_EXPR);
        result
    }

    fn expr_kind(&mut self, expr: &ast::Expr<'s>) -> Result<ExprKind> {
        match expr {
            ast::Expr::Var(var) => Ok(self.variable(var.id, place(var.span()))),
            ast::Expr::Const(constant) => Ok(ExprKind::Const(constant_of(&constant.value))),
            ast::Expr::Slice(slice) => self.slice(slice),
            ast::Expr::UnaryOp(unary) => self.unary(unary),
            ast::Expr::BinOp(binary) => self.binary(binary),
            ast::Expr::Compare(compare) => self.comparison(compare),
            ast::Expr::IfExpr(ternary) => self.ternary(ternary),
            ast::Expr::Filter(filter) => self.filter(filter),
            ast::Expr::Test(test) => self.test(test),
            ast::Expr::GetItem(item) => self.item(item),
            ast::Expr::List(list) => Ok(ExprKind::List(self.exprs(&list.items)?)),
            ast::Expr::Tuple(tuple) => Ok(ExprKind::Tuple(self.exprs(&tuple.items)?)),
            ast::Expr::Map(map) => self.dict(map),
            ast::Expr::GetAttr(_) | ast::Expr::Call(_) => Ok(self.expr(expr)?.kind),
        }
    }

    fn slice(&mut self, slice: &ast::Slice<'s>) -> Result<ExprKind> {
        Ok(ExprKind::Slice(Box::new(SliceExpr {
            value: self.expr(&slice.expr)?,
            start: self.optional(slice.start.as_ref())?,
            stop: self.optional(slice.stop.as_ref())?,
            step: self.optional(slice.step.as_ref())?,
        })))
    }

    fn unary(&mut self, unary: &ast::UnaryOp<'s>) -> Result<ExprKind> {
        let operand = self.boxed(&unary.expr)?;
        Ok(match unary.op {
            ast::UnaryOpKind::Not => ExprKind::Not(operand),
            ast::UnaryOpKind::Neg => ExprKind::Neg(operand),
        })
    }

    fn comparison(&mut self, compare: &ast::Compare<'s>) -> Result<ExprKind> {
        let first = self.boxed(&compare.expr)?;
        let mut rest = Vec::with_capacity(compare.ops.len());
        for op in &compare.ops {
            rest.push((compare_op(op.op), self.expr(&op.expr)?));
        }
        Ok(ExprKind::Chain(first, rest))
    }

    fn ternary(&mut self, ternary: &ast::IfExpr<'s>) -> Result<ExprKind> {
        Ok(ExprKind::Ternary(Box::new(TernaryExpr {
            condition: self.expr(&ternary.test_expr)?,
            then: self.expr(&ternary.true_expr)?,
            or_else: self.optional(ternary.false_expr.as_ref())?,
        })))
    }

    fn filter(&mut self, filter: &ast::Spanned<ast::Filter<'s>>) -> Result<ExprKind> {
        let value = match &filter.expr {
            Some(value) => self.expr(value)?,
            None => Expr::new(ExprKind::Captured, place(filter.span())),
        };
        let args = self.args(&filter.args)?;
        let shortcut = Shortcut::of(filter.name, &args, self.notable);
        Ok(ExprKind::Filter(Box::new(Named { name: filter.name.into(), shortcut, value, args })))
    }

    fn test(&mut self, test: &ast::Test<'s>) -> Result<ExprKind> {
        let value = self.expr(&test.expr)?;
        let args = self.args(&test.args)?;
        Ok(ExprKind::Test(Box::new(Named { name: test.name.into(), shortcut: None, value, args })))
    }

    fn attribute(&mut self, attr: &ast::Spanned<ast::GetAttr<'s>>) -> Result<Expr> {
        let value = self.boxed(&attr.expr)?;
        let at = self.place_of_name(attr.name, place(attr.span()));
        Ok(Expr::new(ExprKind::Attr(value, attr.name.into()), at))
    }

    fn item(&mut self, item: &ast::GetItem<'s>) -> Result<ExprKind> {
        let value = self.boxed(&item.expr)?;
        Ok(ExprKind::Item(value, self.boxed(&item.subscript_expr)?))
    }

    fn dict(&mut self, map: &ast::Map<'s>) -> Result<ExprKind> {
        let mut pairs = Vec::with_capacity(map.keys.len());
        for (key, value) in map.keys.iter().zip(&map.values) {
            pairs.push((self.expr(key)?, self.expr(value)?));
        }
        Ok(ExprKind::Dict(pairs))
    }

    /// Returns the span of an attribute's name. The parser's span starts too early or too late, but it ends with the
    /// name.
    fn place_of_name(&self, name: &str, at: Place) -> Place {
        let start = (at.end as usize).saturating_sub(name.len());
        if self.source.get(start..at.end as usize) == Some(name) { Place { start: start as u32, ..at } } else { at }
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

    fn binary(&mut self, binary: &ast::BinOp<'s>) -> Result<ExprKind> {
        let op = match binary.op {
            ast::BinOpKind::ScAnd => return Ok(ExprKind::And(self.boxed(&binary.left)?, self.boxed(&binary.right)?)),
            ast::BinOpKind::ScOr => return Ok(ExprKind::Or(self.boxed(&binary.left)?, self.boxed(&binary.right)?)),
            ast::BinOpKind::Concat => return self.concat(binary),
            ast::BinOpKind::Eq => BinaryOp::Eq,
            ast::BinOpKind::Ne => BinaryOp::Ne,
            ast::BinOpKind::Lt => BinaryOp::Lt,
            ast::BinOpKind::Lte => BinaryOp::Le,
            ast::BinOpKind::Gt => BinaryOp::Gt,
            ast::BinOpKind::Gte => BinaryOp::Ge,
            ast::BinOpKind::Add => BinaryOp::Add,
            ast::BinOpKind::Sub => BinaryOp::Sub,
            ast::BinOpKind::Mul => BinaryOp::Mul,
            ast::BinOpKind::Div => BinaryOp::Div,
            ast::BinOpKind::FloorDiv => BinaryOp::FloorDiv,
            ast::BinOpKind::Rem => BinaryOp::Rem,
            ast::BinOpKind::Pow => BinaryOp::Pow,
            ast::BinOpKind::In => BinaryOp::In,
        };
        Ok(ExprKind::Binary(op, self.boxed(&binary.left)?, self.boxed(&binary.right)?))
    }

    fn concat(&mut self, binary: &ast::BinOp<'s>) -> Result<ExprKind> {
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

    pub(super) fn call(&mut self, call: &ast::Call<'s>, caller: Option<Expr>, span: MjSpan) -> Result<Expr> {
        let at = place(span);
        let callee = match &call.expr {
            ast::Expr::Var(var) => {
                let at = place(var.span());
                Callee::Name(Expr::new(self.callee(var.id, at), at), var.id.into())
            }
            ast::Expr::GetAttr(attr) => Callee::Method(self.expr(&attr.expr)?, attr.name.into()),
            other => Callee::Value(self.expr(other)?),
        };
        self.enter(STACK_OF_ARGS);
        let mut args = self.args(&call.args)?;
        self.leave(STACK_OF_ARGS);
        if let Some(caller) = caller {
            args.named.push(NamedArg::One("caller".into(), caller));
        }
        Ok(Expr::new(ExprKind::Call(Box::new(CallExpr { callee, args })), at))
    }

    fn args(&mut self, args: &[ast::CallArg<'s>]) -> Result<Args> {
        let mut lowered = Args::default();
        for arg in args {
            match arg {
                ast::CallArg::Pos(value) => lowered.positional.push(Arg::One(self.expr(value)?)),
                ast::CallArg::PosSplat(value) => lowered.positional.push(Arg::All(self.expr(value)?)),
                ast::CallArg::Kwarg(name, value) => {
                    lowered.named.push(NamedArg::One((*name).into(), self.expr(value)?));
                }
                ast::CallArg::KwargSplat(value) => lowered.named.push(NamedArg::All(self.expr(value)?)),
            }
        }
        Ok(lowered)
    }
}

fn compare_op(op: ast::CompareOpKind) -> BinaryOp {
    match op {
        ast::CompareOpKind::Eq => BinaryOp::Eq,
        ast::CompareOpKind::Ne => BinaryOp::Ne,
        ast::CompareOpKind::Lt => BinaryOp::Lt,
        ast::CompareOpKind::Lte => BinaryOp::Le,
        ast::CompareOpKind::Gt => BinaryOp::Gt,
        ast::CompareOpKind::Gte => BinaryOp::Ge,
        ast::CompareOpKind::In => BinaryOp::In,
        ast::CompareOpKind::NotIn => BinaryOp::NotIn,
    }
}

/// Converts a constant. The parser only creates constants of these kinds.
fn constant_of(value: &MjValue) -> Const {
    match value.kind() {
        ValueKind::Bool => Const::Bool(value.is_true()),
        ValueKind::String => Const::Str(value.as_str().unwrap_or_default().into()),
        ValueKind::Number if value.is_integer() => match value.as_i64() {
            Some(int) => Const::Int(int),
            None => i128::try_from(value.clone()).map_or(Const::Float(f64::INFINITY), Const::Big),
        },
        ValueKind::Number => f64::try_from(value.clone()).map_or(Const::None, Const::Float),
        _ => Const::None,
    }
}
