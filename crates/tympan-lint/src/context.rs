//! What rules read: the prompt, its declarations with positions, and its templates with their messages and data flow.

use std::collections::{HashMap, HashSet};

use tympan_core::Prompt;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::prompt::analysis::{TemplateAnalysis, WrittenMessage};
use tympan_core::spec::role::Role;
use tympan_core::spec::schema::Property;
use tympan_core::spec::{PromptKind, ToolKind};
use tympan_core::template::flow::{Flow, How, Sink};
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::template::syntax::jinja::ast::Statement;
use tympan_core::text::source::Span;

use crate::Options;
use crate::lines::fixed_text;
use crate::names::{Declarations, Names, scan, scan_mustache};

/// A prompt, prepared for the rules.
pub(crate) struct Context<'p> {
    pub(crate) prompt: &'p Prompt,
    pub(crate) options: &'p Options,
    /// The declarations as they are written.
    pub(crate) outline: &'p Outline<'p>,
    pub(crate) templates: Vec<TemplateContext<'p>>,
    inputs: HashMap<&'p str, &'p Property>,
    tools: HashMap<&'p str, Field<'p>>,
}

/// A template of the prompt.
pub(crate) struct TemplateContext<'p> {
    pub(crate) analysis: TemplateAnalysis<'p>,
    pub(crate) messages: Vec<WrittenMessage>,
    /// The syntax tree. A directive has none.
    pub(crate) tree: Option<SyntaxTree>,
    /// The names in the template. A directive has none.
    pub(crate) names: Option<Names<'p>>,
    /// What is known only of a template that compiles.
    pub(crate) compiled: Option<Compiled<'p>>,
}

/// What a compiled template does.
pub(crate) struct Compiled<'p> {
    pub(crate) flow: Flow,
    /// The names that it reads and that the prompt does not declare.
    pub(crate) undeclared: Vec<(&'p str, Span)>,
    /// The names of all inputs, by their index.
    inputs: Vec<&'p str>,
    /// The names in `undeclared`.
    undeclared_names: HashSet<&'p str>,
}

/// A list of declared properties.
#[derive(Clone, Copy)]
pub(crate) struct Section<'p> {
    /// The word for one of them.
    pub(crate) noun: &'static str,
    /// The key in the file, and the tool that it belongs to.
    key: &'static str,
    tool: Option<&'p str>,
    pub(crate) properties: &'p [Property],
}

impl<'p> Context<'p> {
    pub(crate) fn new(prompt: &'p Prompt, outline: &'p Outline<'p>, options: &'p Options) -> Self {
        let tools = outline.get(&["tools"]).into_iter().flat_map(Field::declarations);
        let mut inputs = HashMap::new();
        for input in prompt.variables().iter().filter(|input| !input.name.is_empty()) {
            inputs.entry(input.name.as_str()).or_insert(input);
        }
        let strings = declared_strings(prompt, outline);
        let declarations = Declarations { inputs: &inputs, strings: &strings };
        let templates = prompt.templates().map(|analysis| TemplateContext::new(analysis, &declarations)).collect();
        Self { prompt, options, outline, templates, inputs, tools: first_of_each(tools) }
    }

    /// Returns the templates with their names. They may contain mistakes.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&TemplateContext<'p>, &Names<'p>)> {
        self.templates.iter().filter_map(|template| Some((template, template.names.as_ref()?)))
    }

    /// Returns the templates that compile, with their names.
    pub(crate) fn compiled_names(&self) -> impl Iterator<Item = (&TemplateContext<'p>, &Names<'p>)> {
        self.names().filter(|(template, _)| template.compiled.is_some())
    }

    /// Returns the templates that compile.
    pub(crate) fn compiled(&self) -> impl Iterator<Item = (&TemplateContext<'p>, &Compiled<'p>)> {
        self.templates.iter().filter_map(|template| Some((template, template.compiled.as_ref()?)))
    }

    pub(crate) fn is_definition(&self) -> bool {
        self.prompt.kind() == PromptKind::Definition
    }

    /// Returns the word for a declared value: definitions call them variables.
    pub(crate) fn noun(&self) -> &'static str {
        if self.is_definition() { "variable" } else { "input" }
    }

    /// Returns the names of the declared inputs.
    pub(crate) fn input_names(&self) -> impl Iterator<Item = &'p str> + Clone {
        self.prompt.variables().iter().map(|input| input.name.as_str()).filter(|name| !name.is_empty())
    }

    /// Returns whether the prompt declares any inputs.
    pub(crate) fn has_inputs(&self) -> bool {
        !self.inputs.is_empty()
    }

    /// Returns whether an input is declared.
    pub(crate) fn is_input(&self, name: &str) -> bool {
        self.inputs.contains_key(name)
    }

    /// Returns the declaration of an input, by its index in a template.
    pub(crate) fn declaration(&self, input: usize) -> Option<&'p Property> {
        self.prompt.variables().get(input)
    }

    /// Returns whether the text of an input counts as the author's. Inputs that are not declared are untrusted.
    pub(crate) fn is_trusted(&self, input: usize) -> bool {
        self.declaration(input).is_some_and(|input| input.trusted)
    }

    /// Returns the inputs, the outputs and the parameters of tools.
    pub(crate) fn sections(&self) -> Vec<Section<'p>> {
        let spec = self.prompt.spec();
        let key = if self.is_definition() { "variables" } else { "inputs" };
        let inputs = Section { noun: self.noun(), key, tool: None, properties: &spec.inputs };
        let outputs = Section { noun: "output", key: "outputs", tool: None, properties: &spec.outputs };
        let tools = spec.tools.iter().filter_map(|tool| match &tool.kind {
            ToolKind::Function { parameters, .. } => {
                Some(Section { noun: "parameter", key: "parameters", tool: Some(&tool.name), properties: parameters })
            }
            _ => None,
        });
        [inputs, outputs].into_iter().chain(tools).collect()
    }

    /// Returns the declarations of a section as they are written, by name.
    pub(crate) fn written(&self, section: Section<'_>) -> HashMap<&'p str, Field<'p>> {
        let field = match section.tool {
            None => self.outline.get(&[section.key]),
            Some(tool) => self.tool(tool).and_then(|tool| tool.get(section.key)),
        };
        first_of_each(field.into_iter().flat_map(Field::declarations))
    }

    /// Returns the declaration of a tool as it is written.
    pub(crate) fn tool(&self, name: &str) -> Option<Field<'p>> {
        self.tools.get(name).copied()
    }

    /// Returns all tools as they are written.
    pub(crate) fn written_tools(&self) -> impl Iterator<Item = Field<'p>> + use<'p> {
        let tools = self.outline.get(&["tools"]);
        tools.into_iter().flat_map(|tools| tools.items().chain(tools.entries()))
    }

    /// Returns the connections of the model and of the tools as they are written.
    pub(crate) fn connections(&self) -> impl Iterator<Item = Field<'p>> {
        let owners = self.outline.get(&["model"]).into_iter().chain(self.written_tools());
        owners.flat_map(|owner| ["connection", "configuration"].into_iter().filter_map(move |key| owner.get(key)))
    }
}

impl<'p> TemplateContext<'p> {
    fn new(analysis: TemplateAnalysis<'p>, declarations: &Declarations<'_, 'p>) -> Self {
        // This also compiles the template.
        let tree = analysis.syntax_tree();
        let compiled = analysis.template().ok().and_then(|template| {
            let flow = template.flow();
            let undeclared = analysis.undeclared_names(&flow).ok()?;
            Some(Compiled {
                undeclared_names: undeclared.iter().map(|(name, _)| *name).collect(),
                undeclared,
                flow,
                inputs: template.inputs().map(|(name, _)| name).collect(),
            })
        });
        let names = match &tree {
            Some(SyntaxTree::Jinja(parsed)) => Some(scan(&parsed.body, analysis.source(), declarations)),
            Some(SyntaxTree::Mustache(parsed)) => Some(scan_mustache(&parsed.body, analysis.source(), declarations)),
            _ => None,
        };
        let mut messages = analysis.messages();
        messages.iter_mut().for_each(|message| trim_line_end(message, analysis.source()));
        Self { analysis, messages, tree, names, compiled }
    }

    /// Returns the statements of a Jinja template. They may contain mistakes.
    pub(crate) fn statements(&self) -> &[Statement] {
        match &self.tree {
            Some(SyntaxTree::Jinja(parsed)) => &parsed.body,
            _ => &[],
        }
    }

    pub(crate) fn locate(&self, span: Span) -> Span {
        self.analysis.locate(span)
    }

    /// Returns the message that a position belongs to, by its index.
    pub(crate) fn message_at(&self, offset: usize) -> Option<(usize, &WrittenMessage)> {
        let index = self.messages.partition_point(|message| message.start() <= offset).checked_sub(1)?;
        Some((index, &self.messages[index]))
    }

    /// Returns whether a message has text or expressions. Definitions of macros have neither.
    pub(crate) fn has_content(&self, message: &WrittenMessage) -> bool {
        let mut rest = self.analysis.source().get(message.content.range()).unwrap_or_default();
        let is_content = |text: &str| has_expression(text) || fixed_text(text).any(|text| !text.trim().is_empty());
        while let Some((before, after)) = rest.split_once(" macro ") {
            let end = after.find("endmacro").unwrap_or(after.len());
            if is_content(before) {
                return true;
            }
            rest = after[end..].split_once("%}").map_or("", |(_, rest)| rest);
        }
        is_content(rest)
    }

    /// Returns the path of a value for people, with positions in the file: the steps, the expression, and the role
    /// marker of its message.
    pub(crate) fn path(&self, sink: &Sink) -> Vec<(Span, String)> {
        let steps = sink.path.iter().map(|step| (self.locate(step.span), format!("goes through `{}`", step.name)));
        let mut path: Vec<_> = steps.collect();
        let Some((_, message)) = self.message_at(sink.span.start) else { return path };
        if sink.how == How::Decides && !is_instruction(message.role) {
            path.push((self.locate(sink.span), "decides about a message".to_owned()));
            return path;
        }
        let (role, verb) =
            (message.role.as_str(), if sink.how == How::Decides { "decides in" } else { "is written to" });
        path.push((self.locate(sink.span), format!("{verb} the {role} message")));
        let marker = message.marker.filter(|marker| !marker.range().contains(&sink.span.start));
        path.extend(marker.map(|marker| (self.locate(marker), format!("starts the {role} message"))));
        path
    }
}

impl<'p> Compiled<'p> {
    pub(crate) fn input_name(&self, index: usize) -> &'p str {
        self.inputs.get(index).copied().unwrap_or_default()
    }

    /// Returns whether a name is certainly that of an input which the prompt does not declare.
    pub(crate) fn is_undeclared(&self, name: &str) -> bool {
        self.undeclared_names.contains(name)
    }
}

/// Returns the inputs that are declared as strings. Those without a kind count as strings as well, but may be anything.
fn declared_strings<'p>(prompt: &Prompt, outline: &'p Outline<'p>) -> HashSet<&'p str> {
    let key = if prompt.kind() == PromptKind::Definition { "variables" } else { "inputs" };
    let declarations = outline.get(&[key]).into_iter().flat_map(Field::declarations);
    let has_kind = |field: &Field<'_>| field.get("kind").or_else(|| field.get("type")).is_some();
    declarations.filter(|(_, field)| has_kind(field)).map(|(name, _)| name).collect()
}

/// Collects declarations by name. The first one of a name counts.
fn first_of_each<'p>(declarations: impl Iterator<Item = (&'p str, Field<'p>)>) -> HashMap<&'p str, Field<'p>> {
    let mut found = HashMap::new();
    for (name, field) in declarations {
        found.entry(name).or_insert(field);
    }
    found
}

/// Removes the carriage return of a line end from the position of a marker.
fn trim_line_end(message: &mut WrittenMessage, source: &str) {
    if let Some(marker) = &mut message.marker {
        marker.end -= usize::from(source.get(marker.range()).is_some_and(|text| text.ends_with('\r')));
    }
}

/// Returns whether a text has tags that write something. Comments of Mustache write nothing.
fn has_expression(text: &str) -> bool {
    text.match_indices("{{").any(|(at, _)| !text[at + 2..].starts_with('!'))
}

/// Returns whether a model takes messages of this role for instructions of the application.
pub(crate) fn is_instruction(role: Role) -> bool {
    matches!(role, Role::System | Role::Developer)
}

/// Returns whether a value in a file is a reference such as `${env:NAME}`, which is not known here.
pub(crate) fn is_reference(text: &str) -> bool {
    text.trim_start().starts_with("${")
}
