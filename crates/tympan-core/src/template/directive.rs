//! The syntax of directives: text with references to inputs, and nothing else.
//!
//! It compiles to the same tree as the other syntaxes, so that every byte has its origin. There is one pass: what an
//! input brings in is never looked at again.

use std::collections::HashMap;
use std::ops::Range;

use super::jinja::Options;
use super::tree::{Arg, Args, Block, Const, Expr, ExprKind, Literal, Name, Named, Node, Place, Shortcut, Tree};
use crate::interpolation::{Part, Reference, parts};

/// Compiles a template. References count only inside `steps`.
pub(crate) fn compile(source: &str, steps: Range<usize>, options: Options<'_>) -> Tree {
    let mut builder = Builder::new(options);
    let steps = if source.get(steps.clone()).is_some() { steps } else { 0..source.len() };
    builder.text(&source[..steps.start]);
    let mut at = steps.start;
    for part in parts(&source[steps.clone()]) {
        match part {
            Part::Text(text) => {
                builder.text(text);
                at += text.len();
            }
            Part::Reference(reference) => {
                let length = reference.range.len();
                builder.reference(&reference, place(at..at + length));
                at += length;
            }
        }
    }
    builder.text(&source[steps.end..]);
    builder.finish()
}

struct Builder<'s> {
    tree: Tree,
    indexes: HashMap<&'s str, usize>,
    block: Block,
    text: String,
}

impl<'s> Builder<'s> {
    fn new(options: Options<'s>) -> Self {
        let Options { declared, notable, .. } = options;
        let inputs = declared.iter().map(|name| Name { name: (*name).into(), span: Place::default() }).collect();
        let mut indexes = HashMap::with_capacity(declared.len());
        for (index, name) in declared.iter().enumerate() {
            indexes.entry(*name).or_insert(index);
        }
        Self { tree: Tree { inputs, notable, ..Tree::default() }, indexes, block: Block::new(), text: String::new() }
    }

    fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn reference<'t: 's>(&mut self, reference: &Reference<'t>, place: Place) {
        let index = self.input(reference.name, place);
        let input = Expr::new(ExprKind::Input(index), place);
        self.tree.interpolations += 1;
        let expr = match reference.fallback {
            None => {
                self.tree.plain_inputs.push(index);
                input
            }
            Some(fallback) => {
                let fallback = Expr::new(ExprKind::Const(Const::Str(fallback.into())), place);
                let args = Args { positional: vec![Arg::One(fallback)], named: Vec::new() };
                let shortcut = Some(Shortcut::Default);
                let named = Named { name: "default".into(), shortcut, value: input, args };
                Expr::new(ExprKind::Filter(Box::new(named)), place)
            }
        };
        self.end_text();
        self.block.push(Node::Emit(expr));
    }

    /// The index of an input, which the template mentions here.
    fn input(&mut self, name: &'s str, place: Place) -> usize {
        let inputs = &mut self.tree.inputs;
        let index = *self.indexes.entry(name).or_insert_with(|| {
            inputs.push(Name { name: name.into(), span: place });
            inputs.len() - 1
        });
        if inputs[index].span == Place::default() {
            inputs[index].span = place;
        }
        index
    }

    fn end_text(&mut self) {
        if !self.text.is_empty() {
            self.tree.literal_bytes += self.text.len();
            let literal = Literal::new(&self.text, self.tree.notable);
            self.tree.notes += literal.notable.len();
            self.block.push(Node::Text(literal));
            self.text.clear();
        }
    }

    fn finish(mut self) -> Tree {
        self.end_text();
        Tree { body: self.block, ..self.tree }
    }
}

/// A range in the tree's own form.
fn place(range: Range<usize>) -> Place {
    let narrow = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
    Place { start: narrow(range.start), end: narrow(range.end) }
}
