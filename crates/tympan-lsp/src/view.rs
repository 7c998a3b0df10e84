//! A document with its prompt and templates, prepared for a request.

use std::borrow::Cow;

use tympan_core::Prompt;
use tympan_core::format::outline::{Field, Outline};
use tympan_core::spec::PromptKind;
use tympan_core::spec::schema::Property;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::text::source::Span;
use tympan_lint::Options;

use crate::analysis::Analysis;
use crate::document::Document;
use crate::mustache::{self, Meaning};
use crate::names::Names;
use crate::suite::Suite;
use crate::template::{Template, templates};

pub(crate) struct View<'d> {
    pub(crate) document: &'d Document,
    pub(crate) prompt: &'d Prompt,
    pub(crate) templates: Vec<Template<'d>>,
    pub(crate) outline: Outline<'d>,
    /// The names that the application registers.
    pub(crate) options: &'d Options,
}

/// The places where the name of an input is written, as spans in the file.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    pub(crate) declarations: Vec<Span>,
    pub(crate) uses: Vec<Span>,
    /// Why the list is not complete, if it is not.
    pub(crate) gap: Option<Cow<'static, str>>,
}

impl<'d> View<'d> {
    /// Returns `None` if nothing of the document can be parsed.
    pub(crate) fn new(document: &'d Document, analysis: &'d Analysis) -> Option<Self> {
        let prompt = analysis.prompt.as_ref()?;
        let outline = Outline::new(document.source(), document.format());
        Some(Self { document, prompt, templates: templates(prompt), outline, options: &analysis.options })
    }

    pub(crate) fn inputs(&self) -> &'d [Property] {
        self.prompt.variables()
    }

    pub(crate) fn input(&self, name: &str) -> Option<&'d Property> {
        self.inputs().iter().find(|input| input.name == name)
    }

    /// Returns the word for a declared value: definitions call them variables.
    pub(crate) fn noun(&self) -> &'static str {
        if self.prompt.kind() == PromptKind::Definition { "variable" } else { "input" }
    }

    /// Returns the template that contains an offset of the file, and the offset in it.
    pub(crate) fn template_at(&self, offset: usize) -> Option<(&Template<'d>, usize)> {
        self.templates.iter().find_map(|template| Some((template, template.offset(offset)?)))
    }

    /// Returns the names of the inputs where they are declared.
    pub(crate) fn declared_names(&self) -> Vec<(&str, Span)> {
        let key = if self.prompt.kind() == PromptKind::Definition { "variables" } else { "inputs" };
        let Some(section) = self.outline.get(&[key]) else { return Vec::new() };
        let declared = section.declarations().filter(|(name, _)| self.input(name).is_some());
        let place = |field: Field<'_>| match field.key {
            Some(_) => Some(field.key_span),
            None => Some(field.get("name")?.span),
        };
        declared.filter_map(|(name, field)| Some((name, self.document.exact(place(field)?, name)?))).collect()
    }

    /// Returns the names of inputs in the rest of the front matter: in bindings of tools, in old samples, in lists of
    /// required inputs, and in tests.
    pub(crate) fn mentioned_names(&self) -> Vec<(&str, Span)> {
        let tools = self.outline.get(&["tools"]).into_iter().flat_map(|tools| tools.items().chain(tools.entries()));
        let bindings = tools.filter_map(|tool| tool.get("bindings")).flat_map(Field::declarations);
        let bindings = bindings.filter_map(|(_, binding)| {
            let value = binding.get("input").unwrap_or(binding);
            Some((value.text()?, value.span))
        });
        let sample = self.outline.get(&["sample"]).into_iter().flat_map(Field::entries);
        let sample = sample.filter_map(|entry| Some((entry.key?, entry.key_span)));
        let required = self.outline.get(&["inputs", "required"]).into_iter().flat_map(Field::items);
        let required = required.filter_map(|item| Some((item.text()?, item.span)));
        let all = bindings.chain(sample).chain(required).filter(|(name, _)| self.input(name).is_some());
        let tests = Suite::new(self.document, &self.outline).into_iter().flat_map(Suite::input_names);
        all.filter_map(|(name, span)| Some((name, self.document.exact(span, name)?))).chain(tests).collect()
    }

    /// Returns all places where the name of an input is written.
    pub(crate) fn sites(&self, name: &str) -> Sites {
        let of = |names: Vec<(&str, Span)>| {
            names.into_iter().filter(|(other, _)| *other == name).map(|(_, span)| span).collect::<Vec<_>>()
        };
        let mut sites = Sites { declarations: of(self.declared_names()), uses: of(self.mentioned_names()), gap: None };
        if sites.declarations.is_empty() && self.input(name).is_some() {
            sites.gap = Some("the position of its declaration is not known".into());
        }
        for template in &self.templates {
            let reads = match &template.tree {
                Some(SyntaxTree::Jinja(parsed)) => Names::new(template.source(), &parsed.body).of_input(name),
                Some(SyntaxTree::Mustache(parsed)) => self.mustache_reads(template, &parsed.body, name, &mut sites),
                _ => {
                    sites.gap = Some("the syntax of this template is not supported".into());
                    Vec::new()
                }
            };
            for read in reads {
                match template.file_span(read) {
                    Some(span) => sites.uses.push(span),
                    None => sites.gap = Some("a template is written with escapes".into()),
                }
            }
        }
        sites.uses.sort_by_key(|span| span.start);
        sites.uses.dedup();
        sites
    }

    fn mustache_reads(
        &self,
        template: &Template<'_>,
        nodes: &[tympan_core::template::syntax::mustache::ast::Node],
        name: &str,
        sites: &mut Sites,
    ) -> Vec<Span> {
        let mut found = Vec::new();
        for read in mustache::reads(template.source(), nodes).into_iter().filter(|read| read.name == name) {
            match read.meaning(self.inputs()) {
                Meaning::Input => found.push(read.span),
                Meaning::Member => {}
                Meaning::Either => {
                    found.push(read.span);
                    sites.gap = Some("inside a section, this name may be a member of the section's value".into());
                }
            }
        }
        found
    }
}
