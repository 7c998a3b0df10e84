//! What the templates of a prompt do, without rendering them: for linters and editors.
//!
//! Positions are offsets in the template. [`TemplateAnalysis::locate`] converts them to positions in the file.

use super::Prompt;
use crate::chat::marker;
use crate::error::{Error, Result};
use crate::format::outline::Outline;
use crate::format::{Format, definition};
use crate::spec::PromptKind;
use crate::spec::role::Role;
use crate::template::flow::Flow;
use crate::template::name_use::NameUse;
use crate::template::syntax::jinja::excluded_statements;
use crate::template::syntax::{SyntaxTree, parse_jinja, parse_mustache};
use crate::template::{Syntax, Template};
use crate::text::source::Span;

/// One template of a prompt: the default one, or that of a variant.
#[derive(Clone, Copy, Debug)]
pub struct TemplateAnalysis<'p> {
    pub(super) prompt: &'p Prompt,
    pub(super) index: usize,
}

/// A message as a template writes it. At run time, conditions and loops may leave it out or repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenMessage {
    /// The role.
    pub role: Role,
    /// The line of the role marker. `None` for text before the first marker, and for prompts that have one role.
    pub marker: Option<Span>,
    /// The text between this marker and the next one.
    pub content: Span,
}

impl WrittenMessage {
    /// Returns the offset at which the message starts: its marker or, without one, its content.
    pub fn start(&self) -> usize {
        self.marker.map_or(self.content.start, |marker| marker.start)
    }

    /// Returns whether a position is in the marker or in the content of the message.
    pub fn contains(&self, offset: usize) -> bool {
        (self.start()..=self.content.end).contains(&offset)
    }
}

impl Prompt {
    /// Returns the templates of the prompt, in the order of [`Prompt::arms`].
    ///
    /// ```
    /// use tympan::{Prompt, Role};
    ///
    /// let prompt = Prompt::from_prompty("system:\nBe brief.\n\nuser:\n{{ question }}")?;
    /// let template = prompt.templates().next().expect("there is one");
    /// let flow = template.flow()?;
    /// let mut messages = template.messages().into_iter();
    /// let message = messages.find(|message| message.contains(flow.sinks[0].span.start)).expect("it is in one");
    /// assert_eq!(message.role, Role::User);
    /// # Ok::<(), tympan::Error>(())
    /// ```
    pub fn templates(&self) -> impl Iterator<Item = TemplateAnalysis<'_>> {
        (0..self.arms.len()).map(|index| TemplateAnalysis { prompt: self, index })
    }

    /// Returns the declarations of the prompt as they are written, with their positions.
    pub fn outline(&self) -> Outline<'_> {
        let source = self.source();
        let format = match self.kind() {
            PromptKind::Prompty => Format::Prompty,
            PromptKind::Directive => Format::Directive,
            // A definition that was built in code is shown as JSON, which is also YAML.
            PromptKind::Definition => match Format::from_name(source.name()) {
                Some(format @ Format::Definition(_)) => format,
                _ => Format::of_content(source.text()).unwrap_or(Format::Definition(definition::Syntax::Yaml)),
            },
        };
        Outline::new(source, format)
    }
}

impl<'p> TemplateAnalysis<'p> {
    /// Returns the name of the template: `default`, or that of the variant.
    pub fn name(&self) -> &'p str {
        self.prompt.arm_name(self.index)
    }

    /// Returns the source of the template.
    pub fn source(&self) -> &'p str {
        self.prompt.arm_source(self.index)
    }

    /// Converts a span in the template to a span in the file.
    pub fn locate(&self, span: Span) -> Span {
        self.prompt.locate_span(self.index, span)
    }

    /// Returns the compiled template.
    ///
    /// # Errors
    /// Returns an error if the template does not compile.
    pub fn template(&self) -> Result<&'p Template> {
        self.prompt.arm_template(self.index)
    }

    /// Parses the template. Returns `None` for a directive, and for a format that the engine does not have.
    ///
    /// A Jinja template that is not compiled yet is compiled from the result, so that it is parsed once.
    pub fn syntax_tree(&self) -> Option<SyntaxTree> {
        match self.prompt.syntax().ok()? {
            Syntax::Jinja => {
                let tree = SyntaxTree::Jinja(parse_jinja(self.source()));
                // Whether it compiles is for `template` to report.
                let _ = self.prompt.compiled_from(self.index, Some(&tree));
                Some(tree)
            }
            Syntax::Mustache => Some(SyntaxTree::Mustache(parse_mustache(self.source()))),
            Syntax::Directive(_) => None,
        }
    }

    /// Returns all mistakes in the template, with their positions in the file. `tree` is the result of
    /// [`TemplateAnalysis::syntax_tree`].
    pub fn mistakes(&self, tree: Option<&SyntaxTree>) -> Vec<Error> {
        let Err(first) = self.template() else { return Vec::new() };
        let mut errors: Vec<Error> =
            tree.map(SyntaxTree::errors).unwrap_or_default().iter().cloned().map(Error::from).collect();
        if let Some(SyntaxTree::Jinja(parsed)) = tree {
            errors.extend(excluded_statements(&parsed.body, self.source()));
        }
        if errors.is_empty() {
            return vec![first];
        }
        errors.into_iter().map(|error| self.prompt.locate(self.index, error)).collect()
    }

    /// Returns how the inputs flow through the template. The inputs of [`Prompt::variables`] come first, in order.
    ///
    /// # Errors
    /// Returns an error if the template does not compile.
    pub fn flow(&self) -> Result<Flow> {
        self.template().map(Template::flow)
    }

    /// Returns the filters, tests and functions that the template uses.
    ///
    /// # Errors
    /// Returns an error if the template does not compile.
    pub fn names_used(&self) -> Result<Vec<NameUse>> {
        self.template().map(|template| template.names_used(self.source()))
    }

    /// Returns the names that the template reads and that the prompt does not declare, and the place where each is
    /// first read. `flow` is the result of [`TemplateAnalysis::flow`]. Names whose meaning depends on the values of inputs
    /// are left out.
    ///
    /// # Errors
    /// Returns an error if the template does not compile.
    pub fn undeclared_names(&self, flow: &Flow) -> Result<Vec<(&'p str, Span)>> {
        let (template, declared) = (self.template()?, self.prompt.variables().len());
        if self.prompt.spec().template.format == "mustache" {
            return Ok(template.names_outside_sections(declared));
        }
        let names = template.inputs().enumerate().skip(declared);
        Ok(names.filter_map(|(index, (name, _))| Some((name, *flow.uses.get(&index)?))).collect())
    }

    /// Returns the messages that the template writes, in order.
    pub fn messages(&self) -> Vec<WrittenMessage> {
        let (source, spec) = (self.source(), self.prompt.spec());
        let whole = Span::new(0, source.len());
        if !spec.template.is_split() {
            let role = self.prompt.only_role().ok().flatten().unwrap_or(Role::User);
            return vec![WrittenMessage { role, marker: None, content: whole }];
        }
        // Text before the first marker is a system message.
        let mut messages = vec![WrittenMessage { role: Role::System, marker: None, content: whole }];
        for (line, marker) in marker::source_lines(source) {
            let before = messages.len() - 1;
            messages[before].content.end = line.start;
            let content = Span::new((line.end + 1).min(source.len()), source.len());
            messages.push(WrittenMessage { role: marker.role, marker: Some(line.into()), content });
        }
        if messages.len() > 1 && source[messages[0].content.range()].trim().is_empty() {
            messages.remove(0);
        }
        messages
    }
}

/// Returns the role of a line that starts a message, such as `system:`.
pub fn marker_role(line: &str) -> Option<Role> {
    marker::match_line(line).map(|marker| marker.role)
}
