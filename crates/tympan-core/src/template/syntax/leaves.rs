//! The common part of the builders for flat syntaxes: literals, inputs by name, and the block that they are added to.

use std::collections::HashMap;

use crate::template::syntax::jinja::Options;
use crate::template::tree::{Block, Literal, Name, Node, Place, Tree};

/// A tree whose current block is being built.
pub(crate) struct Leaves<'s> {
    pub(crate) tree: Tree,
    /// The indexes of the inputs, by name.
    indexes: HashMap<&'s str, usize>,
    /// The block that is being built, and the text that will be added to its end.
    block: Block,
    text: String,
}

impl<'s> Leaves<'s> {
    pub(crate) fn new(options: Options<'s>) -> Self {
        let Options { declared, notable, .. } = options;
        let inputs = declared.iter().map(|name| Name { name: (*name).into(), span: Place::default() }).collect();
        let mut indexes = HashMap::with_capacity(declared.len());
        for (index, name) in declared.iter().enumerate() {
            indexes.entry(*name).or_insert(index);
        }
        Self { tree: Tree { inputs, notable, ..Tree::default() }, indexes, block: Block::new(), text: String::new() }
    }

    /// Adds text. Consecutive texts become one literal.
    pub(crate) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    pub(crate) fn push(&mut self, node: Node) {
        self.end_text();
        self.block.push(node);
    }

    /// Returns the index of an input that the template mentions at `place`.
    pub(crate) fn input(&mut self, name: &'s str, place: Place) -> usize {
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

    /// Continues with another block, and returns the one that was being built.
    pub(crate) fn replace_block(&mut self, block: Block) -> Block {
        self.end_text();
        std::mem::replace(&mut self.block, block)
    }

    pub(crate) fn finish(mut self) -> Tree {
        self.end_text();
        Tree { body: self.block, ..self.tree }
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
}
