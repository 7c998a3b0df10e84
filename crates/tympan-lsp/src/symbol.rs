//! What a cursor points at.

use tympan_core::spec::schema::Property;
use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::Parsed;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::template::syntax::jinja::ast::{Expression, ExpressionKind, Statement};
use tympan_core::template::syntax::jinja::visit::{NodeRef, walk};
use tympan_core::text::source::Span;

use crate::mustache::{self, Meaning};
use crate::names::{MAX_STEPS, Names};
use crate::template::{Template, touches};
use crate::view::View;

/// What a cursor points at.
#[derive(Debug)]
pub(crate) enum Symbol<'d> {
    /// An input, declared or not.
    Input(String),
    /// A variable or macro of a template, by its position in the list of definitions.
    Local {
        template: usize,
        definition: usize,
    },
    Builtin(NameKind, String),
    /// A member of a declared object.
    Member(&'d Property),
}

impl<'d> View<'d> {
    /// Returns what is at an offset of the file, and its span.
    pub(crate) fn symbol_at(&self, offset: usize) -> Option<(Symbol<'d>, Span)> {
        let mut named = self.declared_names().into_iter().chain(self.mentioned_names());
        if let Some((name, span)) = named.find(|(_, span)| touches(*span, offset)) {
            return Some((Symbol::Input(name.to_owned()), span));
        }
        let (index, template, offset) = self
            .templates
            .iter()
            .enumerate()
            .find_map(|(index, template)| Some((index, template, template.offset(offset)?)))?;
        let (symbol, span) = match &template.tree {
            Some(SyntaxTree::Jinja(parsed)) => self.jinja_symbol(index, template, parsed, offset),
            Some(SyntaxTree::Mustache(parsed)) => {
                let mut reads = mustache::reads(template.source(), &parsed.body).into_iter();
                let read = reads.find(|read| touches(read.span, offset))?;
                let is_member = read.meaning(self.inputs()) == Meaning::Member;
                (!is_member).then(|| (Symbol::Input(read.name.to_owned()), read.span))
            }
            _ => None,
        }?;
        Some((symbol, template.file_span(span)?))
    }

    fn jinja_symbol(
        &self,
        index: usize,
        template: &Template<'d>,
        parsed: &Parsed<Statement>,
        offset: usize,
    ) -> Option<(Symbol<'d>, Span)> {
        let names = Names::new(template.source(), &parsed.body);
        if let Some(at) = names.definitions.iter().position(|found| touches(found.span, offset)) {
            return Some((Symbol::Local { template: index, definition: at }, names.definitions[at].span));
        }
        if let Some(span) = names.reads.iter().copied().find(|span| touches(*span, offset)) {
            let name = template.text(span);
            let definition = names.resolve(name, span.start).map(|found| found.span);
            let definition = definition.and_then(|span| names.definitions.iter().position(|found| found.span == span));
            let symbol = match definition {
                Some(definition) => Symbol::Local { template: index, definition },
                None if self.input(name).is_none() && is_builtin(NameKind::Function, name) => {
                    Symbol::Builtin(NameKind::Function, name.to_owned())
                }
                None => Symbol::Input(name.to_owned()),
            };
            return Some((symbol, span));
        }
        let mut found = None;
        walk(&parsed.body, &mut |node| {
            if let NodeRef::Expression(expression) = node {
                found = found.take().or_else(|| self.part_of_expression(template, &names, expression, offset));
            }
            found.is_none() && node.span().start <= offset
        });
        found
    }

    /// Returns the name of a filter, a test or a member.
    fn part_of_expression(
        &self,
        template: &Template<'d>,
        names: &Names<'_>,
        expression: &Expression,
        offset: usize,
    ) -> Option<(Symbol<'d>, Span)> {
        let builtin = |kind, span: Span| {
            touches(span, offset).then(|| (Symbol::Builtin(kind, template.text(span).to_owned()), span))
        };
        match &expression.kind {
            ExpressionKind::Filter(node) => builtin(NameKind::Filter, node.name),
            ExpressionKind::Test(node) => builtin(NameKind::Test, node.name),
            ExpressionKind::Attribute(node) if touches(node.name, offset) => {
                let property = names.expression_declaration(expression, self.inputs(), MAX_STEPS)?;
                Some((Symbol::Member(property), node.name))
            }
            _ => None,
        }
    }
}

pub(crate) fn is_builtin(kind: NameKind, name: &str) -> bool {
    kind.builtin().contains(&name)
}
