//! From minijinja's syntax tree to ours.

use minijinja::Value as MjValue;
use minijinja::machinery::{Span as MjSpan, ast};
use minijinja::value::ValueKind;

use super::super::Notable;
use super::super::tree::{
    Arg, Args, BinaryOp, Block, CallExpr, Callee, Capture, Const, Expr, ExprKind, For, Function, Literal, MacroDef,
    Name, Named, NamedArg, Node, Param, Place, Shortcut, SizeHint, SliceExpr, Target, TernaryExpr, Tree, With,
};
use super::Options;
use super::newlines::{Newlines, start_of};
use super::scope::{Frames, assigned_names, target_names};
use crate::error::{Error, Kind, Result};

pub(super) fn lower(template: &ast::Stmt<'_>, source: &str, options: Options<'_>) -> Result<Tree> {
    let mut lowering = Lowering {
        source,
        frames: Frames::new(),
        inputs: options.declared.iter().map(|name| Name { name: (*name).into(), span: Place::default() }).collect(),
        declared: options.declared.len(),
        newlines: Newlines::new(source, options.protected),
        literal_bytes: 0,
        plain_inputs: Vec::new(),
        interpolations: 0,
        notable: options.notable,
        notes: 0,
        stack: 0,
        deepest: 0,
    };
    let ast::Stmt::Template(template) = template else {
        return Err(Error::new(Kind::TemplateSyntax, "expected a template"));
    };
    let body = lowering.scope_body(&template.children)?;
    Ok(Tree {
        body,
        inputs: lowering.inputs,
        frame_size: lowering.frames.root_size(),
        stack: lowering.deepest,
        literal_bytes: lowering.literal_bytes,
        plain_inputs: lowering.plain_inputs,
        interpolations: lowering.interpolations,
        hint: SizeHint::default(),
        notable: options.notable,
        notes: lowering.notes,
    })
}

struct Lowering<'s> {
    source: &'s str,
    frames: Frames,
    inputs: Vec<Name>,
    declared: usize,
    newlines: Newlines<'s>,
    literal_bytes: usize,
    plain_inputs: Vec<usize>,
    interpolations: usize,
    notable: Option<Notable>,
    notes: usize,
    /// What running this place of the template may take up of the stack, and the most that any
    /// place of the current body does.
    stack: usize,
    deepest: usize,
}

/// What running one level takes up of the stack: see [`Tree::stack`].
const STACK_OF_EXPR: usize = 4;
const STACK_OF_ARGS: usize = 1;
const STACK_OF_CALL: usize = 7;

impl<'s> Lowering<'s> {
    /// The body of a scope: names that it assigns anywhere get their slots first, so that a macro
    /// can refer to what is only set further down.
    fn scope_body(&mut self, statements: &[ast::Stmt<'s>]) -> Result<Block> {
        let mut names = Vec::new();
        assigned_names(statements, &mut names);
        for name in names {
            self.frames.declare(name, false);
        }
        self.block(statements)
    }

    /// Goes a level deeper.
    fn enter(&mut self, stack: usize) {
        self.stack += stack;
        self.deepest = self.deepest.max(self.stack);
    }

    fn leave(&mut self, stack: usize) {
        self.stack -= stack;
    }

    /// Begins to measure a body that is called.
    fn begin_body(&mut self) -> (usize, usize) {
        let around = (self.stack, self.deepest);
        (self.stack, self.deepest) = (STACK_OF_CALL, STACK_OF_CALL);
        around
    }

    /// Ends it: what running it takes up.
    fn end_body(&mut self, around: (usize, usize)) -> usize {
        let stack = self.deepest;
        (self.stack, self.deepest) = around;
        stack
    }

    fn block(&mut self, statements: &[ast::Stmt<'s>]) -> Result<Block> {
        let mut block = Block::with_capacity(statements.len());
        for statement in statements {
            self.statement(statement, &mut block)?;
        }
        Ok(block)
    }

    /// A statement. Each sort has a function of its own, as with [`Lowering::expr`].
    fn statement(&mut self, statement: &ast::Stmt<'s>, block: &mut Block) -> Result<()> {
        if let ast::Stmt::EmitRaw(text) = statement {
            let text = self.newlines.restore(text.raw);
            self.push_text(&text, block);
            return Ok(());
        }
        let lost = self.newlines.before(start_of(statement));
        self.push_text(&lost, block);
        let stack = stack_of(statement);
        self.enter(stack);
        let result = self.sort_of_statement(statement, block);
        self.leave(stack);
        result
    }

    fn sort_of_statement(&mut self, statement: &ast::Stmt<'s>, block: &mut Block) -> Result<()> {
        match statement {
            ast::Stmt::EmitExpr(emit) => self.emit(&emit.expr, block),
            ast::Stmt::ForLoop(node) => self.for_loop(node, block),
            ast::Stmt::IfCond(node) => self.if_chain(node, block),
            ast::Stmt::WithBlock(node) => self.with(node, block),
            ast::Stmt::Set(node) => self.set(node, block),
            ast::Stmt::SetBlock(node) => self.set_block(node, block),
            ast::Stmt::FilterBlock(node) => self.filter_block(node, block),
            ast::Stmt::AutoEscape(node) => self.auto_escape(node, block),
            ast::Stmt::Macro(node) => self.macro_node(node, block),
            ast::Stmt::CallBlock(node) => self.call_block(node, block),
            ast::Stmt::Do(node) => self.do_call(node, block),
            ast::Stmt::Continue(_) => push(Node::Continue, block),
            ast::Stmt::Break(_) => push(Node::Break, block),
            other => Err(refused(other)),
        }
    }

    fn set(&mut self, node: &ast::Set<'s>, block: &mut Block) -> Result<()> {
        let value = self.expr(&node.expr)?;
        push(Node::Set(self.target(&node.target, false)?, value), block)
    }

    fn set_block(&mut self, node: &ast::Spanned<ast::SetBlock<'s>>, block: &mut Block) -> Result<()> {
        let body = self.block(&node.body)?;
        let filter = self.capture_filter(node.filter.as_ref(), node.span())?;
        let target = Some(self.target(&node.target, false)?);
        push(Node::SetBlock(Box::new(Capture { body, filter, target })), block)
    }

    fn filter_block(&mut self, node: &ast::Spanned<ast::FilterBlock<'s>>, block: &mut Block) -> Result<()> {
        let body = self.block(&node.body)?;
        let filter = self.capture_filter(Some(&node.filter), node.span())?;
        push(Node::FilterBlock(Box::new(Capture { body, filter, target: None })), block)
    }

    fn auto_escape(&mut self, node: &ast::AutoEscape<'s>, block: &mut Block) -> Result<()> {
        push(Node::AutoEscape(self.expr(&node.enabled)?, self.block(&node.body)?), block)
    }

    fn macro_node(&mut self, node: &ast::Macro<'s>, block: &mut Block) -> Result<()> {
        let slot = self.frames.declare(node.name, false);
        push(Node::Macro(slot, Box::new(self.macro_def(node)?)), block)
    }

    fn call_block(&mut self, node: &ast::Spanned<ast::CallBlock<'s>>, block: &mut Block) -> Result<()> {
        let caller = self.macro_def(&node.macro_decl)?;
        let caller = Expr::new(ExprKind::Caller(Box::new(caller)), place(node.span()));
        push(Node::Emit(self.call(&node.call, Some(caller), node.call.span())?), block)
    }

    fn do_call(&mut self, node: &ast::Do<'s>, block: &mut Block) -> Result<()> {
        push(Node::Do(self.call(&node.call, None, node.call.span())?), block)
    }

    fn push_text(&mut self, text: &str, block: &mut Block) {
        if text.is_empty() {
            return;
        }
        self.literal_bytes += text.len();
        let literal = Literal::new(text, self.notable);
        self.notes += literal.notable.len();
        block.push(Node::Text(literal));
    }

    fn emit(&mut self, expr: &ast::Expr<'s>, block: &mut Block) -> Result<()> {
        let expr = self.expr(expr)?;
        self.interpolations += 1;
        if let ExprKind::Input(index) = expr.kind {
            self.plain_inputs.push(index);
        }
        push(Node::Emit(expr), block)
    }

    /// An `if` with its `elif`s, which the parser nests, as one list. (An `if` that is all there is
    /// in an `else` means the same.)
    fn if_chain(&mut self, first: &ast::IfCond<'s>, block: &mut Block) -> Result<()> {
        let mut branches = Vec::new();
        let mut current = first;
        loop {
            branches.push((self.expr(&current.expr)?, self.block(&current.true_body)?));
            match current.false_body.as_slice() {
                [ast::Stmt::IfCond(next)] => current = next,
                otherwise => return push(Node::If(branches, self.block(otherwise)?), block),
            }
        }
    }

    fn for_loop(&mut self, node: &ast::Spanned<ast::ForLoop<'s>>, block: &mut Block) -> Result<()> {
        let iter = self.expr(&node.iter)?;
        self.frames.push_scope();
        let target = self.target(&node.target, true)?;
        let filter = node.filter_expr.as_ref().map(|filter| self.expr(filter)).transpose()?;
        self.frames.set_loop(true);
        let first_own = self.frames.next_slot();
        let mut names = Vec::new();
        assigned_names(&node.body, &mut names);
        for name in names {
            self.frames.declare(name, false);
        }
        let own = first_own..self.frames.next_slot();
        let (body, stack) = self.loop_body(node)?;
        let loop_slot = self.frames.loop_slot();
        let all = self.frames.pop_scope();
        let or_else = self.block(&node.else_body)?;
        let recursive = node.recursive;
        push(
            Node::For(Box::new(For { target, iter, filter, body, or_else, recursive, loop_slot, own, all, stack })),
            block,
        )
    }

    /// The body of a loop, and what running it takes up of the stack if the loop can be called.
    fn loop_body(&mut self, node: &ast::ForLoop<'s>) -> Result<(Block, usize)> {
        if !node.recursive {
            return Ok((self.block(&node.body)?, 0));
        }
        let around = self.begin_body();
        let body = self.block(&node.body)?;
        let stack = self.end_body(around);
        self.deepest = self.deepest.max(self.stack + stack);
        Ok((body, stack))
    }

    fn with(&mut self, node: &ast::WithBlock<'s>, block: &mut Block) -> Result<()> {
        self.frames.push_scope();
        let first_own = self.frames.next_slot();
        let mut names = Vec::new();
        for (target, _) in &node.assignments {
            target_names(target, &mut names);
        }
        assigned_names(&node.body, &mut names);
        for name in names {
            self.frames.declare(name, false);
        }
        let own = first_own..self.frames.next_slot();
        let mut assignments = Vec::with_capacity(node.assignments.len());
        for (target, value) in &node.assignments {
            let value = self.expr(value)?;
            assignments.push((self.target(target, false)?, value));
        }
        let body = self.block(&node.body)?;
        self.frames.pop_scope();
        push(Node::With(Box::new(With { assignments, body, own })), block)
    }

    fn capture_filter(&mut self, filter: Option<&ast::Expr<'s>>, span: MjSpan) -> Result<Expr> {
        match filter {
            Some(filter) => self.expr(filter),
            None => Ok(Expr::new(ExprKind::Captured, place(span))),
        }
    }

    fn macro_def(&mut self, node: &ast::Macro<'s>) -> Result<MacroDef> {
        self.frames.push_frame();
        let around = self.begin_body();
        for param in &node.args {
            self.frames.declare_param(if let ast::Expr::Var(var) = param { var.id } else { "" });
        }
        let caller_slot = self.frames.declare("caller", true);
        let first_default = node.args.len() - node.defaults.len().min(node.args.len());
        let mut params = Vec::with_capacity(node.args.len());
        for (index, param) in node.args.iter().enumerate() {
            let name = if let ast::Expr::Var(var) = param { var.id } else { "" };
            let default = index.checked_sub(first_default).and_then(|index| node.defaults.get(index));
            let default = default.map(|default| self.expr(default)).transpose()?;
            params.push(Param { name: name.into(), default });
        }
        let body = self.scope_body(&node.body)?;
        let stack = self.end_body(around);
        let (frame_size, captures) = self.frames.pop_frame();
        Ok(MacroDef { name: node.name.into(), params, caller_slot, captures, body, frame_size, stack })
    }

    fn target(&mut self, target: &ast::Expr<'s>, always_set: bool) -> Result<Target> {
        match target {
            ast::Expr::Var(var) => Ok(Target::Slot(self.frames.declare(var.id, always_set))),
            ast::Expr::List(list) => self.unpack(&list.items, list.span(), always_set),
            ast::Expr::Tuple(tuple) => self.unpack(&tuple.items, tuple.span(), always_set),
            ast::Expr::GetAttr(attr) => {
                let namespace = self.expr(&attr.expr)?;
                Ok(Target::Attr(Box::new(namespace), attr.name.into()))
            }
            other => {
                let details = format!("cannot assign to a {}", other.description());
                Err(Error::new(Kind::TemplateSyntax, details).at(place(other.span()).into()))
            }
        }
    }

    fn unpack(&mut self, items: &[ast::Expr<'s>], span: MjSpan, always_set: bool) -> Result<Target> {
        let items = items.iter().map(|item| self.target(item, always_set)).collect::<Result<_>>()?;
        Ok(Target::Unpack(items, place(span)))
    }

    fn exprs(&mut self, exprs: &[ast::Expr<'s>]) -> Result<Vec<Expr>> {
        exprs.iter().map(|expr| self.expr(expr)).collect()
    }

    fn boxed(&mut self, expr: &ast::Expr<'s>) -> Result<Box<Expr>> {
        Ok(Box::new(self.expr(expr)?))
    }

    fn optional(&mut self, expr: Option<&ast::Expr<'s>>) -> Result<Option<Expr>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    /// An expression. Each sort has a function of its own: where nothing is optimised, one for all
    /// would take up room on the stack for every sort at each level.
    fn expr(&mut self, expr: &ast::Expr<'s>) -> Result<Expr> {
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
        let shortcut = Shortcut::of(filter.name, &args);
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

    /// The span of an attribute's name: the parser's span of the whole begins too early or too
    /// late, but it ends with the name.
    fn place_of_name(&self, name: &str, at: Place) -> Place {
        let start = (at.end as usize).saturating_sub(name.len());
        if self.source.get(start..at.end as usize) == Some(name) { Place { start: start as u32, ..at } } else { at }
    }

    fn variable(&mut self, name: &str, at: Place) -> ExprKind {
        let builtin = Function::from_name(name).filter(|_| !self.is_declared(name));
        if let Some(function) = builtin.filter(|_| !self.frames.knows(name)) {
            return ExprKind::Function(function);
        }
        let (inputs, frames) = (&mut self.inputs, &mut self.frames);
        frames.read(name, at, || match builtin {
            Some(function) => ExprKind::Function(function),
            None => ExprKind::Input(input_index(inputs, name, at)),
        })
    }

    fn is_declared(&self, name: &str) -> bool {
        self.inputs[..self.declared].iter().any(|input| &*input.name == name)
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

    fn call(&mut self, call: &ast::Call<'s>, caller: Option<Expr>, span: MjSpan) -> Result<Expr> {
        let at = place(span);
        let callee = match &call.expr {
            ast::Expr::Var(var) => {
                let at = place(var.span());
                Callee::Name(Expr::new(self.variable(var.id, at), at), var.id.into())
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

fn place(span: MjSpan) -> Place {
    // What is empty ends, in the parser's view, before it begins.
    Place { start: span.start_offset, end: span.end_offset.max(span.start_offset) }
}

/// What running a statement takes up of the stack, apart from what is in it.
fn stack_of(statement: &ast::Stmt<'_>) -> usize {
    match statement {
        ast::Stmt::ForLoop(_) => 5,
        ast::Stmt::WithBlock(_) | ast::Stmt::AutoEscape(_) => 4,
        ast::Stmt::SetBlock(_) | ast::Stmt::FilterBlock(_) => 6,
        _ => 2,
    }
}

fn push(node: Node, block: &mut Block) -> Result<()> {
    block.push(node);
    Ok(())
}

/// Why a statement is refused.
fn refused(statement: &ast::Stmt<'_>) -> Error {
    match statement {
        ast::Stmt::Block(node) => excluded("block", node.span()),
        ast::Stmt::Import(node) => excluded("import", node.span()),
        ast::Stmt::FromImport(node) => excluded("import", node.span()),
        ast::Stmt::Extends(node) => excluded("extends", node.span()),
        ast::Stmt::Include(node) => excluded("include", node.span()),
        _ => Error::new(Kind::TemplateSyntax, "a template inside a template"),
    }
}

fn excluded(feature: &str, span: MjSpan) -> Error {
    let details = format!("`{feature}`");
    Error::new(Kind::ExcludedFeature, details)
        .at(place(span).into())
        .with_help("a prompt is one file: write the text here, or hand it in as an input that is declared trusted")
}

fn input_index(inputs: &mut Vec<Name>, name: &str, span: Place) -> usize {
    if let Some(index) = inputs.iter().position(|input| &*input.name == name) {
        if inputs[index].span == Place::default() {
            inputs[index].span = span;
        }
        return index;
    }
    inputs.push(Name { name: name.into(), span });
    inputs.len() - 1
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

/// The parser only makes constants of these kinds.
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
