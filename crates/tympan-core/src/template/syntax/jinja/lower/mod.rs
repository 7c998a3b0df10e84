//! Lowering of the syntax tree to the tree that the evaluator runs.

mod expr;

use std::collections::HashMap;

use crate::error::{Error, Kind, Result};
use crate::template::Notable;
use crate::template::syntax::jinja::Options;
use crate::template::syntax::jinja::ast::{
    AutoEscape, Body, CallBlock, Do, Else, Expression, FilterBlock, For as ForStatement, If, Macro, Parameter, Set,
    SetBlock, Statement, StatementKind, Target as AssignTarget, TargetKind, With as WithStatement,
};
use crate::template::syntax::jinja::newlines::Newlines;
use crate::template::syntax::jinja::scope::{Frames, assigned_names, target_names};
use crate::template::tree::{
    Block, Capture, Expr, ExprKind, For, Literal, MacroDef, Name, Node, Param, Place, SizeHint, Target, Tree, With,
};
use crate::text::source::Span;

pub(super) fn lower(statements: &[Statement], source: &str, options: Options<'_>) -> Result<Tree> {
    let mut lowering = Lowering {
        source,
        text_end: if options.drop_last_newline { without_last_newline(source) } else { source.len() },
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
    let body = lowering.scope_body(statements)?;
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
    /// The offset at which text ends. A last newline that is dropped comes after it.
    text_end: usize,
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
    fn text(&self, span: Span) -> &'s str {
        &self.source[span.range()]
    }

    /// Lowers the body of a scope. Names that it assigns anywhere get their slots first, so that a macro can refer to a
    /// name that is only set further down.
    fn scope_body(&mut self, statements: &[Statement]) -> Result<Block> {
        self.declare_assigned(statements, Vec::new());
        self.block(statements)
    }

    /// Declares names, and those that statements assign.
    fn declare_assigned(&mut self, statements: &[Statement], mut names: Vec<&'s str>) {
        assigned_names(statements, self.source, &mut names);
        for name in names {
            self.frames.declare(name, false);
        }
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

    fn block(&mut self, statements: &[Statement]) -> Result<Block> {
        let mut block = Block::with_capacity(statements.len());
        for statement in statements {
            self.statement(statement, &mut block)?;
        }
        Ok(block)
    }

    fn else_block(&mut self, branch: Option<&Else>) -> Result<Block> {
        branch.map_or(Ok(Block::new()), |branch| self.block(&branch.statements))
    }

    /// Lowers a statement. Each kind has its own function, for the same reason as in [`Lowering::expr`].
    fn statement(&mut self, statement: &Statement, block: &mut Block) -> Result<()> {
        let start = match &statement.kind {
            StatementKind::Text(kept) if kept.start == kept.end => return Ok(()),
            StatementKind::Comment => return Ok(()),
            StatementKind::Text(kept) | StatementKind::Raw(kept) => {
                self.literal(*kept, block);
                return Ok(());
            }
            StatementKind::Output(_) => statement.span.start,
            _ => self.keyword_start(statement),
        };
        let lost = self.newlines.before(start);
        self.push_text(&lost, block);
        let stack = stack_of(statement);
        self.enter(stack);
        let result = self.sort_of_statement(statement, block);
        self.leave(stack);
        result
    }

    /// Returns the offset of the first keyword of a statement.
    fn keyword_start(&self, statement: &Statement) -> usize {
        let tag = &self.source.as_bytes()[statement.span.range()];
        let length = tag.iter().position(u8::is_ascii_alphabetic).unwrap_or_default();
        statement.span.start + length
    }

    fn literal(&mut self, kept: Span, block: &mut Block) {
        let end = kept.end.min(self.text_end).max(kept.start);
        // Without its last newline, the text may be empty. It is not a statement then.
        if end == kept.start && end < kept.end {
            return;
        }
        let text = self.newlines.restore(Span::new(kept.start, end));
        self.push_text(&text, block);
    }

    fn sort_of_statement(&mut self, statement: &Statement, block: &mut Block) -> Result<()> {
        match &statement.kind {
            StatementKind::Output(expression) => self.emit(expression, block),
            StatementKind::For(node) => self.for_loop(node, block),
            StatementKind::If(node) => self.if_chain(node, block),
            StatementKind::With(node) => self.with(node, block),
            StatementKind::Set(node) => self.set(node, block),
            StatementKind::SetBlock(node) => self.set_block(node, statement.span, block),
            StatementKind::Filter(node) => self.filter_block(node, block),
            StatementKind::AutoEscape(node) => self.auto_escape(node, block),
            StatementKind::Macro(node) => self.macro_node(node, block),
            StatementKind::Call(node) => self.call_block(node, statement.span, block),
            StatementKind::Do(node) => self.do_call(node, block),
            StatementKind::Continue(_) => push(Node::Continue, block),
            StatementKind::Break(_) => push(Node::Break, block),
            StatementKind::Excluded(node) => Err(excluded(self.text(node.tag.keyword), node.tag.keyword)),
            StatementKind::Text(_) | StatementKind::Raw(_) | StatementKind::Comment | StatementKind::Error => {
                Err(Error::new(Kind::TemplateSyntax, "unexpected statement").at(statement.span))
            }
        }
    }

    fn set(&mut self, node: &Set, block: &mut Block) -> Result<()> {
        let value = self.expr(&node.value)?;
        push(Node::Set(self.target(&node.target, false)?, value), block)
    }

    fn set_block(&mut self, node: &SetBlock, span: Span, block: &mut Block) -> Result<()> {
        let body = self.block(&node.body.statements)?;
        let filter = match &node.filter {
            Some(filter) => self.expr(filter)?,
            None => Expr::new(ExprKind::Captured, span.into()),
        };
        let target = Some(self.target(&node.target, false)?);
        push(Node::SetBlock(Box::new(Capture { body, filter, target })), block)
    }

    fn filter_block(&mut self, node: &FilterBlock, block: &mut Block) -> Result<()> {
        let body = self.block(&node.body.statements)?;
        let filter = self.expr(&node.filter)?;
        push(Node::FilterBlock(Box::new(Capture { body, filter, target: None })), block)
    }

    fn auto_escape(&mut self, node: &AutoEscape, block: &mut Block) -> Result<()> {
        push(Node::AutoEscape(self.expr(&node.enabled)?, self.block(&node.body.statements)?), block)
    }

    fn macro_node(&mut self, node: &Macro, block: &mut Block) -> Result<()> {
        let name = self.text(node.name);
        let slot = self.frames.declare(name, false);
        push(Node::Macro(slot, Box::new(self.macro_def(name, &node.params, &node.body)?)), block)
    }

    fn call_block(&mut self, node: &CallBlock, span: Span, block: &mut Block) -> Result<()> {
        let caller = self.macro_def("caller", &node.params, &node.body)?;
        let caller = Expr::new(ExprKind::Caller(Box::new(caller)), span.into());
        push(Node::Emit(self.call_of(&node.call, Some(caller))?), block)
    }

    fn do_call(&mut self, node: &Do, block: &mut Block) -> Result<()> {
        push(Node::Do(self.call_of(&node.call, None)?), block)
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

    fn emit(&mut self, expr: &Expression, block: &mut Block) -> Result<()> {
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

    /// Lowers an `if` with its `elif` branches. An `if` that is the only statement in an `else` continues the list.
    fn if_chain(&mut self, first: &If, block: &mut Block) -> Result<()> {
        let mut branches = Vec::new();
        let mut current = first;
        loop {
            for branch in &current.branches {
                branches.push((self.expr(&branch.condition)?, self.block(&branch.statements)?));
            }
            match current.otherwise.as_ref().and_then(only_if) {
                Some(next) => current = next,
                None => {
                    let otherwise = self.else_block(current.otherwise.as_ref())?;
                    return push(Node::If(branches, otherwise), block);
                }
            }
        }
    }

    fn for_loop(&mut self, node: &ForStatement, block: &mut Block) -> Result<()> {
        let iter = self.expr(&node.iter)?;
        self.frames.push_scope();
        let target = self.target(&node.target, true)?;
        let filter = node.filter.as_ref().map(|filter| self.expr(filter)).transpose()?;
        self.frames.set_loop(true);
        let first_own = self.frames.next_slot();
        self.declare_assigned(&node.body.statements, Vec::new());
        let own = first_own..self.frames.next_slot();
        let (body, stack) = self.loop_body(node)?;
        let loop_slot = self.frames.loop_slot();
        let all = self.frames.pop_scope();
        let or_else = self.else_block(node.otherwise.as_ref())?;
        let recursive = node.recursive.is_some();
        push(
            Node::For(Box::new(For { target, iter, filter, body, or_else, recursive, loop_slot, own, all, stack })),
            block,
        )
    }

    /// Lowers the body of a loop. Also returns the stack that the body takes up if the loop is recursive.
    fn loop_body(&mut self, node: &ForStatement) -> Result<(Block, usize)> {
        let statements = &node.body.statements;
        if node.recursive.is_none() {
            return Ok((self.block(statements)?, 0));
        }
        let around = self.begin_body();
        let body = self.block(statements)?;
        let stack = self.end_body(around);
        self.deepest = self.deepest.max(self.stack + stack);
        Ok((body, stack))
    }

    fn with(&mut self, node: &WithStatement, block: &mut Block) -> Result<()> {
        self.frames.push_scope();
        let first_own = self.frames.next_slot();
        let mut names = Vec::new();
        for (target, _) in &node.assignments {
            target_names(target, self.source, &mut names);
        }
        self.declare_assigned(&node.body.statements, names);
        let own = first_own..self.frames.next_slot();
        let mut assignments = Vec::with_capacity(node.assignments.len());
        for (target, value) in &node.assignments {
            let value = self.expr(value)?;
            assignments.push((self.target(target, false)?, value));
        }
        let body = self.block(&node.body.statements)?;
        self.frames.pop_scope();
        push(Node::With(Box::new(With { assignments, body, own })), block)
    }

    fn macro_def(&mut self, name: &str, parameters: &[Parameter], body: &Body) -> Result<MacroDef> {
        self.frames.push_frame();
        let around = self.begin_body();
        for param in parameters {
            self.frames.declare_param(self.text(param.name));
        }
        let caller_slot = self.frames.declare("caller", true);
        let mut params = Vec::with_capacity(parameters.len());
        for param in parameters {
            let default = param.default.as_ref().map(|default| self.expr(default)).transpose()?;
            params.push(Param { name: self.text(param.name).into(), default });
        }
        let body = self.scope_body(&body.statements)?;
        let stack = self.end_body(around);
        let (frame_size, captures) = self.frames.pop_frame();
        Ok(MacroDef { name: name.into(), params, caller_slot, captures, body, frame_size, stack })
    }

    fn target(&mut self, target: &AssignTarget, always_set: bool) -> Result<Target> {
        match &target.kind {
            TargetKind::Name => Ok(Target::Slot(self.frames.declare(self.text(target.span), always_set))),
            TargetKind::Tuple(items) => {
                let items = items.iter().map(|item| self.target(item, always_set)).collect::<Result<_>>()?;
                Ok(Target::Unpack(items, target.span.into()))
            }
            TargetKind::Attribute(attribute) => {
                let namespace = self.expr(&attribute.value)?;
                Ok(Target::Attr(Box::new(namespace), self.text(attribute.name).into()))
            }
            TargetKind::Error => Err(Error::new(Kind::TemplateSyntax, "cannot assign to this").at(target.span)),
        }
    }
}

/// Returns the `if` that is the only statement of a branch.
fn only_if(branch: &Else) -> Option<&If> {
    let is_statement = |statement: &&Statement| match &statement.kind {
        StatementKind::Text(kept) => kept.start < kept.end,
        StatementKind::Comment => false,
        _ => true,
    };
    let mut statements = branch.statements.iter().filter(is_statement);
    match (statements.next().map(|statement| &statement.kind), statements.next()) {
        (Some(StatementKind::If(node)), None) => Some(node),
        _ => None,
    }
}

/// Returns the length of a source without a single newline at its end.
fn without_last_newline(source: &str) -> usize {
    let source = source.strip_suffix('\n').unwrap_or(source);
    source.strip_suffix('\r').unwrap_or(source).len()
}

/// Returns the stack that a statement takes up, not counting its contents.
fn stack_of(statement: &Statement) -> usize {
    match &statement.kind {
        StatementKind::For(_) => 5,
        StatementKind::With(_) | StatementKind::AutoEscape(_) => 4,
        StatementKind::SetBlock(_) | StatementKind::Filter(_) => 6,
        _ => 2,
    }
}

fn push(node: Node, block: &mut Block) -> Result<()> {
    block.push(node);
    Ok(())
}

/// Builds the error for a statement that is not allowed.
pub(super) fn excluded(keyword: &str, span: Span) -> Error {
    let feature = if keyword == "from" { "import" } else { keyword };
    Error::new(Kind::ExcludedFeature, format!("`{feature}`"))
        .at(span)
        .with_help("put the text into this file, or pass it as an input that is declared trusted")
}
