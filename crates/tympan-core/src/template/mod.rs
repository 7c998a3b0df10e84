//! Templates: compiled once, rendered with the origin of every byte.
//!
//! The syntax is Jinja's (through minijinja's parser), Mustache's or that of directives; all compile
//! to one tree, and one evaluator runs it. This module knows nothing of prompts and roles.

mod eval;
pub(crate) mod flow;
pub mod input;
mod syntax;
mod touch;
mod tree;
mod value;

use std::ops::Range;

pub use value::limits::Limits;

pub(crate) use eval::{EvalOptions, InputValue, Output, RichText};

use crate::error::Result;
use crate::json::JsonMap;
use crate::text::source::Span;
use crate::text::traced::TracedText;

/// The syntax of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Syntax {
    /// Jinja, as minijinja reads it.
    #[default]
    Jinja,
    /// Mustache, without HTML escaping.
    Mustache,
    /// References to inputs as directives have them, inside these bytes; elsewhere there is only text.
    Directive(Span),
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
    /// Which text of the author's is to be remembered, by the places where it comes to stand:
    /// whoever looks for something in the output need not look anywhere else.
    pub notable: Option<Notable>,
}

/// What is notable in the author's text.
#[derive(Clone, Copy, Debug)]
pub struct Notable {
    /// Finds notable lines in a text, without their line ends, and at its end what may become one.
    pub lines: fn(&str) -> Vec<Range<usize>>,
    /// Returns whether a text can be a part of a notable line, or bring one about, whatever surrounds it.
    pub part: fn(&str) -> bool,
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
        let CompileOptions { syntax, declared, protected, drop_last_newline, notable } = options;
        let options = syntax::jinja::Options { declared, protected, drop_last_newline, notable };
        let tree = match syntax {
            Syntax::Jinja => syntax::jinja::compile(source, options)?,
            Syntax::Mustache => syntax::mustache::compile(source, options)?,
            Syntax::Directive(steps) => syntax::directive::compile(source, steps.range(), options),
        };
        Ok(Self { tree })
    }

    /// The names that the template reads and does not define itself, in the order of their
    /// indexes in an [`Origin`](crate::text::origin::Origin), and where each is first mentioned.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, Span)> {
        self.tree.inputs.iter().map(|input| (&*input.name, input.span.into()))
    }

    /// The names that the template reads before it can have set them, from the input with this index on, and where
    /// each is read first.
    pub(crate) fn free_names(&self, from: usize) -> Vec<(&str, Span)> {
        // Every name that could be free is among the inputs, so that most templates need no second look.
        if self.tree.inputs.len() <= from {
            return Vec::new();
        }
        let uses = flow::analyse(&self.tree).uses;
        uses.range(from..).map(|(index, place)| (&*self.tree.inputs[*index].name, (*place).into())).collect()
    }

    /// How the inputs go through the template.
    pub(crate) fn flow(&self) -> flow::Flow {
        flow::analyse(&self.tree)
    }

    /// Whether the template reads the input with this index at all.
    pub(crate) fn mentions(&self, index: usize) -> bool {
        self.tree.inputs.get(index).is_some_and(|input| input.span != tree::Place::default())
    }

    /// Renders the template with JSON values by name, within the default limits: the simplest way
    /// to use a template alone. Values that the template does not ask for are ignored. `lenient`
    /// renders undefined variables as nothing.
    ///
    /// ```
    /// use tympan::text::origin::Origin;
    /// use tympan::template::{CompileOptions, Template};
    ///
    /// let template = Template::compile("Hello, {{ name }}!", CompileOptions::default())?;
    /// let inputs = serde_json::json!({"name": "Ada"});
    /// let text = template.render_json(inputs.as_object().expect("an object"), false)?;
    /// assert_eq!(text.as_str(), "Hello, Ada!");
    /// assert_eq!(text.pieces().nth(1), Some(("Ada", Origin::input(0))));
    /// # Ok::<(), tympan::Error>(())
    /// ```
    ///
    /// # Errors
    /// A variable is undefined, an operation is impossible, or the render needs more than the
    /// limits allow.
    pub fn render_json(&self, inputs: &JsonMap, lenient: bool) -> Result<TracedText> {
        let value = |name: &str| inputs.get(name).map_or(InputValue::Missing, |value| InputValue::Given(value.into()));
        let values: Vec<_> = self.tree.inputs.iter().map(|input| value(&input.name)).collect();
        let options = EvalOptions { lenient, ..EvalOptions::default() };
        Ok(self.render(&values, options)?.traced)
    }

    /// Renders the template with these values, one for each of [`Template::inputs`].
    pub(crate) fn render<'a>(&'a self, inputs: &'a [InputValue<'a>], options: EvalOptions) -> Result<Output> {
        eval::render(&self.tree, inputs, options)
    }
}
