//! Compiles the templates of a prompt.

use std::sync::Arc;

use super::Prompt;
use super::directive_inputs as directive;
use crate::chat::marker;
use crate::chat::rendered::{InputInfo, InputTable};
use crate::diagnostic::guess_name;
use crate::error::{Error, Result};
use crate::spec::{DIRECTIVE, PromptKind};
use crate::template::syntax::SyntaxTree;
use crate::template::{CompileOptions, Syntax, Template};
use crate::text::source::Span;

#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) template: Template,
    pub(super) table: Arc<InputTable>,
    /// Whether any declared input has a kind that is never rendered as text.
    pub(super) has_rich: bool,
}

impl Prompt {
    /// Returns the compiled default template.
    ///
    /// # Errors
    /// Returns an error if the template does not parse, or if the engine does not have its syntax.
    pub fn template(&self) -> Result<&Template> {
        self.compiled(0).map(|compiled| &compiled.template)
    }

    /// Returns the compiled template of a variant.
    ///
    /// # Errors
    /// Returns an error if there is no such variant, if the template does not parse, or if the engine does not have its
    /// syntax.
    pub fn variant_template(&self, variant: Option<&str>) -> Result<&Template> {
        let index = self.arm_index(variant)?;
        self.arm_template(index)
    }

    /// Returns the names of the inputs that the default template reads, declared or not. Without a template that
    /// compiles, there are none.
    pub fn input_names(&self) -> impl Iterator<Item = &str> {
        self.compiled(0).into_iter().flat_map(|compiled| compiled.template.inputs().map(|(name, _)| name))
    }

    pub(crate) fn arm_template(&self, index: usize) -> Result<&Template> {
        self.compiled(index).map(|compiled| &compiled.template)
    }

    pub(super) fn compiled(&self, index: usize) -> Result<&Compiled> {
        self.compiled_from(index, None)
    }

    /// Compiles a template, unless it is already compiled. `tree` is its syntax tree, if it was parsed before.
    pub(super) fn compiled_from(&self, index: usize, tree: Option<&SyntaxTree>) -> Result<&Compiled> {
        self.arms[index].compiled.get_or_init(|| self.compile(index, tree)).as_ref().map_err(Clone::clone)
    }

    /// Returns the syntax of the templates.
    pub(super) fn syntax(&self) -> Result<Syntax> {
        Ok(match self.spec.template.format.as_str() {
            // Nunjucks is Jinja for JavaScript, and `*` means any engine.
            "jinja2" | "jinja" | "nunjucks" | "*" => Syntax::Jinja,
            "mustache" => Syntax::Mustache,
            DIRECTIVE => Syntax::Directive(directive::steps(&self.spec)),
            other => return Err(unknown_renderer(other)),
        })
    }

    fn compile(&self, index: usize, tree: Option<&SyntaxTree>) -> Result<Compiled> {
        let (spec, source) = (&self.spec, self.arm_source(index));
        let syntax = self.syntax()?;
        let declared: Vec<&str> = spec.inputs.iter().map(|input| input.name.as_str()).collect();
        let is_split = spec.template.is_split();
        let lines = if is_split { marker::source_lines(source) } else { Vec::new() };
        let protected: Vec<_> = lines.into_iter().map(|(range, _)| range).collect();
        let notable = is_split.then_some(marker::NOTABLE);
        let drop_last_newline = self.is_definition();
        let options = CompileOptions { syntax, declared: &declared, protected: &protected, drop_last_newline, notable };
        let template = Template::compile_parsed(source, tree, options).map_err(|error| self.locate(index, error))?;
        let infos = template.inputs().enumerate().map(|(index, (name, _))| {
            let declaration = spec.inputs.get(index);
            InputInfo {
                name: name.to_owned(),
                trusted: declaration.is_some_and(|input| input.trusted),
                strict: declaration.is_some_and(|input| input.strict),
            }
        });
        let table = Arc::new(InputTable::new(infos.collect()).with_arm(self.info(index)));
        let has_rich = spec.inputs.iter().any(|input| input.kind.is_rich());
        Ok(Compiled { template, table, has_rich })
    }

    /// Returns whether the prompt was built from a definition. Such a prompt has one role, and its templates see only
    /// declared variables.
    pub(crate) fn is_definition(&self) -> bool {
        self.spec.kind() == PromptKind::Definition
    }

    pub(crate) fn is_directive(&self) -> bool {
        self.spec.kind() == PromptKind::Directive
    }

    /// Converts the position of a template error to a position in the file.
    pub(super) fn locate(&self, index: usize, error: Error) -> Error {
        error.moved(|span| self.locate_span(index, span)).in_source(&self.source, 0)
    }

    /// Converts a span in a template to a span in the file.
    pub(crate) fn locate_span(&self, index: usize, span: Span) -> Span {
        self.arms[index].placement.locate(&self.source, self.arm_source(index), span)
    }
}

fn unknown_renderer(format: &str) -> Error {
    let known = ["jinja2", "jinja", "nunjucks", "mustache"];
    Error::not_registered("renderer", format).with_help(match guess_name(format, known) {
        Some(near) => format!("unknown template format `{format}`; did you mean `{near}`?"),
        None => format!(
            "unknown template format `{format}`: write jinja2 or mustache, or register a renderer for it in the host"
        ),
    })
}
