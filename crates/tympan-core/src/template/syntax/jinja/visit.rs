//! Walks a syntax tree.

use crate::template::syntax::jinja::ast::{
    Argument, Body, Else, Expression, ExpressionKind, Parameter, Statement, StatementKind, Target, TargetKind,
};
use crate::text::source::Span;

/// A node of a syntax tree.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum NodeRef<'t> {
    /// A statement.
    Statement(&'t Statement),
    /// An expression.
    Expression(&'t Expression),
    /// What is assigned to.
    Target(&'t Target),
}

impl NodeRef<'_> {
    /// Returns the position of the node.
    pub fn span(&self) -> Span {
        match self {
            Self::Statement(node) => node.span,
            Self::Expression(node) => node.span,
            Self::Target(node) => node.span,
        }
    }
}

/// Calls a function for every node below some statements. A node comes before its parts. The parts of a node for which
/// the function returns `false` are skipped.
pub fn walk<'t>(statements: &'t [Statement], visit: &mut dyn FnMut(NodeRef<'t>) -> bool) {
    for statement in statements {
        if visit(NodeRef::Statement(statement)) {
            walk_statement(statement, visit);
        }
    }
}

/// Returns the innermost node that contains an offset.
pub(crate) fn node_at(statements: &[Statement], offset: usize) -> Option<NodeRef<'_>> {
    let mut innermost = None;
    walk(statements, &mut |node| {
        let contains = node.span().range().contains(&offset);
        if contains {
            innermost = Some(node);
        }
        contains
    });
    innermost
}

type Visit<'v, 't> = &'v mut dyn FnMut(NodeRef<'t>) -> bool;

fn walk_statement<'t>(statement: &'t Statement, visit: Visit<'_, 't>) {
    match &statement.kind {
        StatementKind::Output(expression) => walk_expression(expression, visit),
        StatementKind::For(node) => {
            walk_target(&node.target, visit);
            walk_expression(&node.iter, visit);
            walk_all(node.filter.iter(), visit);
            walk_body(&node.body, visit);
            walk_else(node.otherwise.as_ref(), visit);
        }
        StatementKind::If(node) => {
            for branch in &node.branches {
                walk_expression(&branch.condition, visit);
                walk(&branch.statements, visit);
            }
            walk_else(node.otherwise.as_ref(), visit);
        }
        StatementKind::With(node) => {
            for (target, value) in &node.assignments {
                walk_target(target, visit);
                walk_expression(value, visit);
            }
            walk_body(&node.body, visit);
        }
        StatementKind::Set(node) => {
            walk_target(&node.target, visit);
            walk_expression(&node.value, visit);
        }
        StatementKind::SetBlock(node) => {
            walk_target(&node.target, visit);
            walk_all(node.filter.iter(), visit);
            walk_body(&node.body, visit);
        }
        StatementKind::Filter(node) => {
            walk_expression(&node.filter, visit);
            walk_body(&node.body, visit);
        }
        StatementKind::AutoEscape(node) => {
            walk_expression(&node.enabled, visit);
            walk_body(&node.body, visit);
        }
        StatementKind::Macro(node) => {
            walk_params(&node.params, visit);
            walk_body(&node.body, visit);
        }
        StatementKind::Call(node) => {
            walk_params(&node.params, visit);
            walk_expression(&node.call, visit);
            walk_body(&node.body, visit);
        }
        StatementKind::Do(node) => walk_expression(&node.call, visit),
        StatementKind::Excluded(node) => {
            if let Some(body) = &node.body {
                walk_body(body, visit);
            }
        }
        StatementKind::Text(_)
        | StatementKind::Raw(_)
        | StatementKind::Comment
        | StatementKind::Break(_)
        | StatementKind::Continue(_)
        | StatementKind::Error => {}
    }
}

fn walk_body<'t>(body: &'t Body, visit: Visit<'_, 't>) {
    walk(&body.statements, visit);
}

fn walk_else<'t>(branch: Option<&'t Else>, visit: Visit<'_, 't>) {
    if let Some(branch) = branch {
        walk(&branch.statements, visit);
    }
}

fn walk_params<'t>(params: &'t [Parameter], visit: Visit<'_, 't>) {
    walk_all(params.iter().filter_map(|param| param.default.as_ref()), visit);
}

fn walk_all<'t>(expressions: impl Iterator<Item = &'t Expression>, visit: Visit<'_, 't>) {
    for expression in expressions {
        walk_expression(expression, visit);
    }
}

fn walk_target<'t>(target: &'t Target, visit: Visit<'_, 't>) {
    if !visit(NodeRef::Target(target)) {
        return;
    }
    match &target.kind {
        TargetKind::Attribute(attribute) => walk_expression(&attribute.value, visit),
        TargetKind::Tuple(items) => items.iter().for_each(|item| walk_target(item, visit)),
        TargetKind::Name | TargetKind::Error => {}
    }
}

fn walk_args<'t>(args: &'t [Argument], visit: Visit<'_, 't>) {
    walk_all(args.iter().map(|arg| &arg.value), visit);
}

fn walk_expression<'t>(expression: &'t Expression, visit: Visit<'_, 't>) {
    if !visit(NodeRef::Expression(expression)) {
        return;
    }
    match &expression.kind {
        ExpressionKind::List(items) | ExpressionKind::Tuple(items) => walk_all(items.iter(), visit),
        ExpressionKind::Dict(pairs) => walk_all(pairs.iter().flat_map(|(key, value)| [key, value]), visit),
        ExpressionKind::Paren(inner) | ExpressionKind::Unary(_, inner) => walk_expression(inner, visit),
        ExpressionKind::Attribute(node) => walk_expression(&node.value, visit),
        ExpressionKind::Item(node) => walk_all([&node.value, &node.index].into_iter(), visit),
        ExpressionKind::Slice(node) => {
            walk_expression(&node.value, visit);
            walk_all([&node.start, &node.stop, &node.step].into_iter().flatten(), visit);
        }
        ExpressionKind::Call(node) => {
            walk_expression(&node.callee, visit);
            walk_args(&node.args, visit);
        }
        ExpressionKind::Filter(node) => {
            walk_all(node.value.iter(), visit);
            walk_args(&node.args, visit);
        }
        ExpressionKind::Test(node) => {
            walk_expression(&node.value, visit);
            walk_args(&node.args, visit);
        }
        ExpressionKind::Binary(node) => walk_all([&node.left, &node.right].into_iter(), visit),
        ExpressionKind::Compare(node) => {
            walk_expression(&node.first, visit);
            walk_all(node.rest.iter().map(|(_, value)| value), visit);
        }
        ExpressionKind::Ternary(node) => {
            walk_all([&node.then, &node.condition].into_iter().chain(&node.otherwise), visit);
        }
        ExpressionKind::Name | ExpressionKind::Literal(_) | ExpressionKind::Error => {}
    }
}
