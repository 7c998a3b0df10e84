//! Visits every expression of a tree.

use crate::template::tree::{Arg, Args, Block, Callee, Expr, ExprKind, MacroDef, NamedArg, Node, Target, Tree};

/// Calls `visit` for every expression of a template, each before its parts.
pub(crate) fn each_expr<'t>(tree: &'t Tree, visit: &mut dyn FnMut(&'t Expr)) {
    block(&tree.body, visit);
}

/// Calls `visit` for an expression and its parts.
pub(crate) fn each_part<'t>(whole: &'t Expr, visit: &mut dyn FnMut(&'t Expr)) {
    expr(whole, visit);
}

fn block<'t>(nodes: &'t Block, visit: &mut dyn FnMut(&'t Expr)) {
    for node in nodes {
        statement(node, visit);
    }
}

fn statement<'t>(node: &'t Node, visit: &mut dyn FnMut(&'t Expr)) {
    match node {
        Node::Text(_) | Node::Break | Node::Continue => {}
        Node::Emit(value) | Node::EmitWhole(value) | Node::Do(value) => expr(value, visit),
        Node::If(branches, or_else) => {
            for (condition, body) in branches {
                expr(condition, visit);
                block(body, visit);
            }
            block(or_else, visit);
        }
        Node::For(node) => {
            expr(&node.iter, visit);
            target(&node.target, visit);
            node.filter.iter().for_each(|filter| expr(filter, visit));
            block(&node.body, visit);
            block(&node.or_else, visit);
        }
        Node::With(node) => {
            for (name, value) in &node.assignments {
                expr(value, visit);
                target(name, visit);
            }
            block(&node.body, visit);
        }
        Node::Set(name, value) => {
            expr(value, visit);
            target(name, visit);
        }
        Node::SetBlock(capture) | Node::FilterBlock(capture) => {
            block(&capture.body, visit);
            expr(&capture.filter, visit);
            capture.target.iter().for_each(|name| target(name, visit));
        }
        Node::AutoEscape(value, body) => {
            expr(value, visit);
            block(body, visit);
        }
        Node::Macro(_, definition) => macro_def(definition, visit),
        Node::Section(section) => {
            expr(&section.value, visit);
            block(&section.body, visit);
        }
    }
}

fn target<'t>(name: &'t Target, visit: &mut dyn FnMut(&'t Expr)) {
    match name {
        Target::Slot(_) => {}
        Target::Attr(namespace, _) => expr(namespace, visit),
        Target::Unpack(items, _) => items.iter().for_each(|item| target(item, visit)),
    }
}

fn macro_def<'t>(definition: &'t MacroDef, visit: &mut dyn FnMut(&'t Expr)) {
    definition.params.iter().filter_map(|param| param.default.as_ref()).for_each(|default| expr(default, visit));
    block(&definition.body, visit);
}

fn expr<'t>(value: &'t Expr, visit: &mut dyn FnMut(&'t Expr)) {
    visit(value);
    match &value.kind {
        ExprKind::Const(_) | ExprKind::Input(_) | ExprKind::Captured | ExprKind::Function(_) => {}
        ExprKind::HostFunction | ExprKind::Lookup(_) => {}
        ExprKind::Local(local) | ExprKind::Outer(local) => {
            local.otherwise.iter().for_each(|otherwise| expr(otherwise, visit));
        }
        ExprKind::Attr(inner, _) | ExprKind::Not(inner) | ExprKind::Neg(inner) => expr(inner, visit),
        ExprKind::Item(a, b) | ExprKind::Binary(_, a, b) | ExprKind::And(a, b) | ExprKind::Or(a, b) => {
            expr(a, visit);
            expr(b, visit);
        }
        ExprKind::Slice(slice) => {
            expr(&slice.value, visit);
            [&slice.start, &slice.stop, &slice.step].into_iter().flatten().for_each(|part| expr(part, visit));
        }
        ExprKind::Concat(items) | ExprKind::List(items) | ExprKind::Tuple(items) => {
            items.iter().for_each(|item| expr(item, visit));
        }
        ExprKind::Chain(first, rest) => {
            expr(first, visit);
            rest.iter().for_each(|(_, operand)| expr(operand, visit));
        }
        ExprKind::Ternary(ternary) => {
            expr(&ternary.condition, visit);
            expr(&ternary.then, visit);
            ternary.or_else.iter().for_each(|or_else| expr(or_else, visit));
        }
        ExprKind::Dict(pairs) => pairs.iter().for_each(|(key, item)| {
            expr(key, visit);
            expr(item, visit);
        }),
        ExprKind::Filter(named) | ExprKind::Test(named) => {
            expr(&named.value, visit);
            arguments(&named.args, visit);
        }
        ExprKind::Call(call) => {
            match &call.callee {
                Callee::Name(callee, _) | Callee::Method(callee, _) | Callee::Value(callee) => expr(callee, visit),
            }
            arguments(&call.args, visit);
        }
        ExprKind::Caller(definition) => macro_def(definition, visit),
    }
}

fn arguments<'t>(args: &'t Args, visit: &mut dyn FnMut(&'t Expr)) {
    args.positional.iter().for_each(|(Arg::One(value) | Arg::All(value))| expr(value, visit));
    args.named.iter().for_each(|(NamedArg::One(_, value) | NamedArg::All(value))| expr(value, visit));
}
