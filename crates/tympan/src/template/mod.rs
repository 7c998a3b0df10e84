//! Templates: compiled once, rendered with the origin of every byte.
//!
//! The syntax is Jinja's (through minijinja's parser) or Mustache's; both compile to one tree,
//! and one evaluator runs it. This module knows nothing of prompts and roles.

mod eval;
mod filters;
mod jinja;
mod limits;
mod methods;
mod ops;
mod predicates;
mod print;
mod tree;
mod value;

use std::ops::Range;

pub use limits::Limits;

pub(crate) use eval::{EvalOptions, InputValue, Output};
pub(crate) use value::json_get;

use crate::error::Result;
use crate::source::Span;

/// The syntax of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Syntax {
    /// Jinja, as minijinja reads it.
    #[default]
    Jinja,
    /// Mustache, without HTML escaping.
    Mustache,
}

/// What the compiler has to know besides the source.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions<'a> {
    /// The syntax.
    pub syntax: Syntax,
    /// Names that come first in the list of inputs, in this order, whether they are used or not.
    pub declared: &'a [&'a str],
    /// Lines of the source whose line ends white space control must leave alone.
    pub protected: &'a [Range<usize>],
    /// Whether one newline at the very end of the source is dropped.
    pub drop_last_newline: bool,
}

/// A compiled template.
#[derive(Debug)]
pub struct Template {
    tree: tree::Tree,
}

impl Template {
    /// Compiles a template.
    ///
    /// # Errors
    /// The source does not parse, uses an excluded feature, or nests too deeply.
    pub fn compile(source: &str, options: CompileOptions<'_>) -> Result<Self> {
        let tree = match options.syntax {
            Syntax::Jinja | Syntax::Mustache => {
                let CompileOptions { declared, protected, drop_last_newline, .. } = options;
                jinja::compile(source, jinja::Options { declared, protected, drop_last_newline })?
            }
        };
        Ok(Self { tree })
    }

    /// The names that the template reads and does not define itself, in the order of their
    /// indexes in an [`Origin`](crate::origin::Origin), and where each is first mentioned.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, Span)> {
        self.tree.inputs.iter().map(|input| (&*input.name, input.span.into()))
    }

    /// Whether the template reads the input with this index at all.
    pub(crate) fn mentions(&self, index: usize) -> bool {
        self.tree.inputs.get(index).is_some_and(|input| input.span != tree::Place::default())
    }

    /// Renders the template with these values, one for each of [`Template::inputs`].
    pub(crate) fn render<'a>(&'a self, inputs: &'a [InputValue<'a>], options: EvalOptions) -> Result<Output> {
        eval::render(&self.tree, inputs, options)
    }
}
