//! The syntax of directives: text with references to inputs.
//!
//! It compiles to the same tree as the other syntaxes, so that every byte has an origin. There is only one pass: the
//! text of inputs is never expanded again.

use std::ops::Range;

use crate::format::interpolation::{Part, Reference, parts};
use crate::template::syntax::jinja::Options;
use crate::template::syntax::leaves::Leaves;
use crate::template::tree::{Arg, Args, Const, Expr, ExprKind, Named, Node, Place, Shortcut, Tree};
use crate::text::source::Span;

/// Compiles a template. References are only recognized inside `steps`.
pub(crate) fn compile<'s>(source: &'s str, steps: Range<usize>, options: Options<'s>) -> Tree {
    let mut leaves = Leaves::new(options);
    let steps = if source.get(steps.clone()).is_some() { steps } else { 0..source.len() };
    leaves.text(&source[..steps.start]);
    let mut at = steps.start;
    for part in parts(&source[steps.clone()]) {
        match part {
            Part::Text(text) => {
                leaves.text(text);
                at += text.len();
            }
            Part::Reference(reference) => {
                let length = reference.range.len();
                let written = &source[at..at + length];
                self::reference(&mut leaves, &reference, written, Span::new(at, at + length).into());
                at += length;
            }
        }
    }
    leaves.text(&source[steps.end..]);
    leaves.finish()
}

/// Adds a reference, which is `written` in the template. Without a fallback and a value, it stays as it is written.
/// Missing inputs that are required are an error before anything is rendered.
fn reference<'s>(leaves: &mut Leaves<'s>, reference: &Reference<'s>, written: &str, place: Place) {
    let index = leaves.input(reference.name, place);
    let input = Expr::new(ExprKind::Input(index), place);
    leaves.tree.interpolations += 1;
    let (fallback, shortcut) = match reference.fallback {
        None => {
            leaves.tree.plain_inputs.push(index);
            (written, Shortcut::PlainDefault)
        }
        Some(fallback) => (fallback, Shortcut::Default),
    };
    let fallback = Expr::new(ExprKind::Const(Const::Str(fallback.into())), place);
    let args = Args { positional: vec![Arg::One(fallback)], named: Vec::new() };
    let named = Named { name: "default".into(), shortcut: Some(shortcut), value: input, args };
    leaves.push(Node::Emit(Expr::new(ExprKind::Filter(Box::new(named)), place)));
}
