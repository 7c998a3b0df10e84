//! Conditions whose result does not depend on any input.

use tympan_core::template::syntax::jinja::ast::{
    BinaryOperator, CompareOperator, Expression, ExpressionKind, Literal, UnaryOperator,
};

use crate::names::text_literal;

/// Returns whether a condition is true, if that does not depend on any name.
pub(crate) fn constant(expression: &Expression, source: &str) -> Option<bool> {
    match &expression.kind {
        ExpressionKind::Paren(inner) => constant(inner, source),
        ExpressionKind::Literal(literal) => literal_truth(expression, *literal, source),
        ExpressionKind::List(items) | ExpressionKind::Tuple(items) => Some(!items.is_empty()),
        ExpressionKind::Dict(pairs) => Some(!pairs.is_empty()),
        ExpressionKind::Unary(UnaryOperator::Not, inner) => constant(inner, source).map(|truth| !truth),
        ExpressionKind::Binary(node) => {
            let sides = || (constant(&node.left, source), constant(&node.right, source));
            // One side can decide about the result on its own.
            match node.operator {
                BinaryOperator::And => match sides() {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (Some(true), Some(true)) => Some(true),
                    _ => None,
                },
                BinaryOperator::Or => match sides() {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (Some(false), Some(false)) => Some(false),
                    _ => None,
                },
                _ => None,
            }
        }
        ExpressionKind::Compare(node) => match node.rest.as_slice() {
            [(operator @ (CompareOperator::Equal | CompareOperator::NotEqual), other)] => {
                let is_equal = match (integer(&node.first), integer(other)) {
                    (Some(left), Some(right)) => left == right,
                    _ => text_literal(&node.first, source)? == text_literal(other, source)?,
                };
                Some(is_equal == (*operator == CompareOperator::Equal))
            }
            _ => None,
        },
        _ => None,
    }
}

fn integer(expression: &Expression) -> Option<u64> {
    match expression.unparenthesized().kind {
        ExpressionKind::Literal(Literal::Int(value)) => Some(value),
        _ => None,
    }
}

fn literal_truth(expression: &Expression, literal: Literal, source: &str) -> Option<bool> {
    Some(match literal {
        Literal::None => false,
        Literal::Bool(value) => value,
        Literal::Int(value) => value != 0,
        Literal::BigInt => true,
        Literal::Float(value) => value != 0.0,
        Literal::String => !text_literal(expression, source)?.is_empty(),
        _ => return None,
    })
}

/// Returns whether two conditions are written alike. White space counts only inside of strings.
pub(crate) fn same(a: &Expression, b: &Expression, source: &str) -> bool {
    let (a, b) = (&source[a.span.range()], &source[b.span.range()]);
    a == b || (!a.contains(['"', '\'']) && a.split_whitespace().eq(b.split_whitespace()))
}
