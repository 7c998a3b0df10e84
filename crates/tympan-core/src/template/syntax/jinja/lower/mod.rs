//! Lowering of minijinja's syntax tree to ours.

mod expr;

use std::collections::HashMap;

use minijinja::machinery::{Span as MjSpan, ast};

use crate::error::{Error, Kind, Result};
use crate::template::Notable;
use crate::template::syntax::jinja::Options;
use crate::template::syntax::jinja::newlines::{Newlines, start_of};
use crate::template::syntax::jinja::scope::{Frames, assigned_names, target_names};
use crate::template::tree::{
    Block, Capture, Expr, ExprKind, For, Literal, MacroDef, Name, Node, Param, Place, SizeHint, Target, Tree, With,
};

pub(super) fn lower(template: &ast::Stmt<'_>, source: &str, options: Options<'_>) -> Result<Tree> {
    let mut lowering = Lowering {
        source,
        frames: Frames::new(),
        inputs: InputNames::new(options.declared),
        newlines: Newlines::new(source, options.protected),
        protected: options.protected,
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
        inputs: lowering.inputs.names,
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

/// Up to this many names, a linear search is used; above it, an index.
const MAX_SEARCHED: usize = 16;

/// The inputs and their indexes.
struct InputNames {
    names: Vec<Name>,
    /// Empty while there are only a few names.
    indexes: HashMap<Box<str>, usize>,
    /// The number of inputs that the caller declared.
    declared: usize,
}

impl InputNames {
    fn new(declared: &[&str]) -> Self {
        let names = declared.iter().map(|name| Name { name: (*name).into(), span: Place::default() }).collect();
        let mut inputs = Self { names, indexes: HashMap::new(), declared: declared.len() };
        inputs.update();
        inputs
    }

    /// Adds new names to the index, once there are many.
    fn update(&mut self) {
        if self.names.len() <= MAX_SEARCHED {
            return;
        }
        let known = if self.indexes.is_empty() { 0 } else { self.names.len() - 1 };
        for (index, name) in self.names.iter().enumerate().skip(known) {
            self.indexes.entry(name.name.clone()).or_insert(index);
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        if self.names.len() <= MAX_SEARCHED {
            return self.names.iter().position(|input| *input.name == *name);
        }
        self.indexes.get(name).copied()
    }

    /// Returns the index of an input that the template mentions at `place`.
    fn index(&mut self, name: &str, place: Place) -> usize {
        let Some(index) = self.find(name) else {
            self.names.push(Name { name: name.into(), span: place });
            self.update();
            return self.names.len() - 1;
        };
        if self.names[index].span == Place::default() {
            self.names[index].span = place;
        }
        index
    }

    fn is_declared(&self, name: &str) -> bool {
        self.find(name).is_some_and(|index| index < self.declared)
    }
}

struct Lowering<'s> {
    source: &'s str,
    frames: Frames,
    inputs: InputNames,
    newlines: Newlines<'s>,
    /// The lines of the source in which an interpolation is written as one piece.
    protected: &'s [std::ops::Range<usize>],
    literal_bytes: usize,
    plain_inputs: Vec<usize>,
    interpolations: usize,
    notable: Option<Notable>,
    notes: usize,
    /// The stack that running the current place of the template may take up, and the maximum of the current body.
    stack: usize,
    deepest: usize,
}

/// The stack that one level takes up. See [`Tree::stack`].
const STACK_OF_EXPR: usize = 4;
const STACK_OF_ARGS: usize = 1;
const STACK_OF_CALL: usize = 7;

impl<'s> Lowering<'s> {
    /// Lowers the body of a scope. Names that it assigns anywhere get their slots first, so that a macro can refer to a
    /// name that is only set further down.
    fn scope_body(&mut self, statements: &[ast::Stmt<'s>]) -> Result<Block> {
        let mut names = Vec::new();
        assigned_names(statements, &mut names);
        for name in names {
            self.frames.declare(name, false);
        }
        self.block(statements)
    }

    /// Enters a level.
    fn enter(&mut self, stack: usize) {
        self.stack += stack;
        self.deepest = self.deepest.max(self.stack);
    }

    fn leave(&mut self, stack: usize) {
        self.stack -= stack;
    }

    /// Starts measuring a body that is called.
    fn begin_body(&mut self) -> (usize, usize) {
        let around = (self.stack, self.deepest);
        (self.stack, self.deepest) = (STACK_OF_CALL, STACK_OF_CALL);
        around
    }

    /// Ends the measurement and returns the stack that the body takes up.
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

    /// Lowers a statement. Each kind has its own function, for the same reason as in [`Lowering::expr`].
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
            return push(Node::Emit(expr), block);
        }
        let at = expr.place.start as usize;
        let line = self.protected.partition_point(|line| line.end < at);
        let is_protected = self.protected.get(line).is_some_and(|line| line.contains(&at));
        push(if is_protected { Node::EmitWhole(expr) } else { Node::Emit(expr) }, block)
    }

    /// Lowers an `if` with its `elif` branches, which the parser nests, to one list. An `if` that is the only statement
    /// in an `else` has the same meaning.
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

    /// Lowers the body of a loop. Also returns the stack that the body takes up if the loop is recursive.
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
}

fn place(span: MjSpan) -> Place {
    // The parser's span of something empty ends before it starts.
    Place { start: span.start_offset, end: span.end_offset.max(span.start_offset) }
}

/// Returns the stack that a statement takes up, not counting its contents.
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

/// Builds the error for a statement that is not allowed.
fn refused(statement: &ast::Stmt<'_>) -> Error {
    match statement {
        ast::Stmt::Block(node) => excluded("block", node.span()),
        ast::Stmt::Import(node) => excluded("import", node.span()),
        ast::Stmt::FromImport(node) => excluded("import", node.span()),
        ast::Stmt::Extends(node) => excluded("extends", node.span()),
        ast::Stmt::Include(node) => excluded("include", node.span()),
        _ => Error::new(Kind::TemplateSyntax, "unexpected template inside a template"),
    }
}

fn excluded(feature: &str, span: MjSpan) -> Error {
    let details = format!("`{feature}`");
    Error::new(Kind::ExcludedFeature, details)
        .at(place(span).into())
        .with_help("put the text into this file, or pass it as an input that is declared trusted")
}
