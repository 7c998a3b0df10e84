//! Templates that are compiled once and rendered with the origin of every byte.
//!
//! The syntax is Jinja, Mustache or that of directives. All of them compile to the same
//! tree, which one evaluator runs. This module does not know about prompts and roles.

mod eval;
pub mod flow;
pub mod functions;
mod influence;
pub mod input;
pub mod name_use;
mod names;
pub mod signature;
pub mod syntax;
mod tree;
mod value;
mod walk;

use std::ops::Range;

pub use value::limits::Limits;

pub(crate) use eval::{EvalOptions, InputValue, Output, RichText};

use crate::error::Result;
use crate::json::JsonMap;
use crate::template::syntax::SyntaxTree;
use crate::text::source::Span;
use crate::text::traced::TracedText;

/// The syntax of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Syntax {
    /// Jinja, as minijinja accepts it.
    #[default]
    Jinja,
    /// Mustache, without HTML escaping.
    Mustache,
    /// The input references of directives, inside this span. Everything else is plain text.
    Directive(Span),
}

/// Options for compiling a template.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions<'a> {
    /// The syntax.
    pub syntax: Syntax,
    /// Names that come first in the list of inputs, in this order, whether or not they are used.
    pub declared: &'a [&'a str],
    /// Lines of the source whose line ends must not be removed by white space control.
    pub protected: &'a [Range<usize>],
    /// Whether a single newline at the end of the source is dropped.
    pub drop_last_newline: bool,
    /// Describes which parts of the author's text to record. Their positions in the output are recorded, so that
    /// a search for them can skip the rest of the output.
    pub notable: Option<Notable>,
}

/// Functions that find notable parts of the author's text.
#[derive(Clone, Copy, Debug)]
pub struct Notable {
    /// Finds notable lines in a text, without their line ends, and a partial line at its end that may become one.
    pub lines: fn(&str) -> Vec<Range<usize>>,
    /// Returns whether a text can be part of a notable line, or complete one, whatever surrounds it.
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
    /// Returns an error if the source does not parse, uses an excluded feature, or nests too deeply.
    pub fn compile(source: &str, options: CompileOptions<'_>) -> Result<Self> {
        Self::compile_parsed(source, None, options)
    }

    /// Compiles a template. `parsed` is its syntax tree, if it was parsed before.
    pub(crate) fn compile_parsed(
        source: &str,
        parsed: Option<&SyntaxTree>,
        options: CompileOptions<'_>,
    ) -> Result<Self> {
        let CompileOptions { syntax, declared, protected, drop_last_newline, notable } = options;
        let options = syntax::jinja::Options { declared, protected, drop_last_newline, notable };
        let tree = match syntax {
            Syntax::Jinja if let Some(SyntaxTree::Jinja(parsed)) = parsed => {
                syntax::jinja::compile_parsed(source, &parsed.body, &parsed.errors, options)?
            }
            Syntax::Jinja => syntax::jinja::compile(source, options)?,
            Syntax::Mustache => syntax::mustache::compile(source, options)?,
            Syntax::Directive(steps) => syntax::directive::compile(source, steps.range(), options),
        };
        Ok(Self { tree })
    }

    /// Returns the names that the template reads and does not define itself, in the order of their indexes in an
    /// [`Origin`](crate::text::origin::Origin), and the place where each is first mentioned.
    pub fn inputs(&self) -> impl Iterator<Item = (&str, Span)> {
        self.tree.inputs.iter().map(|input| (&*input.name, input.span.into()))
    }

    /// Returns the names that the template reads before it can have set them, starting with the input at index `from`,
    /// and the place where each is first read.
    pub(crate) fn free_names(&self, from: usize) -> Vec<(&str, Span)> {
        // Every name that could be free is an input, so most templates do not need the analysis.
        if self.tree.inputs.len() <= from {
            return Vec::new();
        }
        let uses = flow::analyse(&self.tree, flow::Detail::Notable).uses;
        uses.range(from..).map(|(index, place)| (&*self.tree.inputs[*index].name, *place)).collect()
    }

    /// Returns the names, starting with the input at index `from`, that a Mustache template reads outside of sections,
    /// and the place where each is first read. Inside a section, a name may be a key of the section's value.
    pub(crate) fn names_outside_sections(&self, from: usize) -> Vec<(&str, Span)> {
        let mut found = std::collections::BTreeMap::new();
        walk::each_expr(&self.tree, &mut |expr| {
            if let tree::ExprKind::Lookup(lookup) = &expr.kind
                && let Some(index) = lookup.input.filter(|index| lookup.contexts == 0 && *index >= from)
            {
                found.entry(index).or_insert(expr.place);
            }
        });
        found.into_iter().map(|(index, place)| (&*self.tree.inputs[index].name, place.into())).collect()
    }

    /// Analyzes how the inputs flow through the template, without rendering it.
    ///
    /// ```
    /// use tympan::template::flow::How;
    /// use tympan::template::{CompileOptions, Template};
    ///
    /// let template = Template::compile("{% for d in docs %}{{ d.text }}{% endfor %}", CompileOptions::default())?;
    /// let flow = template.flow();
    /// assert_eq!((flow.sinks[0].how, &*flow.sinks[0].path[0].name), (How::Text, "for d"));
    /// # Ok::<(), tympan::Error>(())
    /// ```
    pub fn flow(&self) -> flow::Flow {
        flow::analyse(&self.tree, flow::Detail::Notable)
    }

    /// Analyzes how the inputs flow through the template, with every sink. [`Template::flow`] leaves out decisions that
    /// are not about words of the author's. What is computed from an input, such as its length, counts as its text
    /// after a filter here.
    pub fn full_flow(&self) -> flow::Flow {
        flow::analyse(&self.tree, flow::Detail::Every)
    }

    /// Returns the filters, tests and functions that the template uses, sorted by position. `source` is the text that it
    /// was compiled from.
    pub fn names_used(&self, source: &str) -> Vec<name_use::NameUse> {
        name_use::names_used(&self.tree, source)
    }

    /// Returns whether two templates render alike: they differ at most in the positions of their parts, in comments, and
    /// in the white space and the quotes inside of tags.
    ///
    /// ```
    /// use tympan::template::{CompileOptions, Template};
    ///
    /// let compile = |source| Template::compile(source, CompileOptions::default());
    /// assert!(compile("Hi {{name}}!")?.is_equivalent(&compile("Hi {{ name }}!")?));
    /// assert!(!compile("Hi {{name}}!")?.is_equivalent(&compile("Hi  {{name}}!")?));
    /// # Ok::<(), tympan::Error>(())
    /// ```
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.tree == other.tree
    }

    /// Returns whether the template reads the input with this index.
    pub(crate) fn mentions(&self, index: usize) -> bool {
        self.tree.inputs.get(index).is_some_and(|input| input.span != tree::Place::default())
    }

    /// Renders the template with JSON values by name, within the default limits. This is the simplest way to use a
    /// template on its own. Values that the template does not use are ignored. With `lenient`, undefined variables
    /// render as an empty string.
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
    /// Returns an error if a variable is undefined, an operation is not possible, or the render exceeds the limits.
    pub fn render_json(&self, inputs: &JsonMap, lenient: bool) -> Result<TracedText> {
        let value =
            |name: &str| inputs.get(name).map_or(InputValue::Missing, |value| InputValue::Present(value.into()));
        let values: Vec<_> = self.tree.inputs.iter().map(|input| value(&input.name)).collect();
        let options = EvalOptions { lenient, ..EvalOptions::default() };
        Ok(self.render(&values, options)?.traced)
    }

    /// Renders the template with one value for each of [`Template::inputs`].
    pub(crate) fn render<'a>(&'a self, inputs: &'a [InputValue<'a>], options: EvalOptions<'a>) -> Result<Output> {
        eval::render(&self.tree, inputs, options)
    }
}
