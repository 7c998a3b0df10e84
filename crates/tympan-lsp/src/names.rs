//! The names of a Jinja template: where its variables and macros are defined, and where each name is read.

use std::ops::Range;

use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::template::syntax::jinja::ast::{
    Body, Else, Expression, ExpressionKind, Literal, Parameter, Statement, StatementKind, Target, TargetKind,
};
use tympan_core::template::syntax::jinja::visit::{NodeRef, walk};
use tympan_core::text::source::Span;

/// The kind of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefinitionKind {
    Loop,
    Set,
    With,
    Macro,
    Parameter,
}

impl DefinitionKind {
    /// Returns the word for people.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Loop => "loop variable",
            Self::Set | Self::With => "variable",
            Self::Macro => "macro",
            Self::Parameter => "parameter",
        }
    }
}

/// A definition of a name in a template.
#[derive(Clone, Debug)]
pub(crate) struct Definition<'t> {
    pub(crate) name: &'t str,
    pub(crate) span: Span,
    pub(crate) kind: DefinitionKind,
    /// The scope that it belongs to. Definitions of the same name in one scope are the same variable.
    pub(crate) scope: usize,
    /// The part of the template that sees it.
    visible: Range<usize>,
    /// The value or, for a loop, the list.
    value: Option<&'t Expression>,
}

/// The names of a template.
#[derive(Debug, Default)]
pub(crate) struct Names<'t> {
    source: &'t str,
    pub(crate) definitions: Vec<Definition<'t>>,
    /// The positions of all names that are read as variables or called.
    pub(crate) reads: Vec<Span>,
    /// The bodies of loops, which have a variable `loop`.
    loops: Vec<Range<usize>>,
    scopes: usize,
}

/// The scope that statements belong to, and the offset at which it ends.
#[derive(Clone, Copy)]
struct Scope {
    id: usize,
    end: usize,
}

impl<'t> Names<'t> {
    pub(crate) fn new(source: &'t str, statements: &'t [Statement]) -> Self {
        let mut names = Self { source, ..Self::default() };
        names.statements(statements, Scope { id: 0, end: source.len() });
        walk(statements, &mut |node| {
            if let NodeRef::Expression(Expression { kind: ExpressionKind::Name, span }) = node {
                names.reads.push(*span);
            }
            true
        });
        names
    }

    fn text(&self, span: Span) -> &'t str {
        self.source.get(span.range()).unwrap_or_default()
    }

    /// Returns the definition that a name has at an offset. `None` if it is not the template's own.
    pub(crate) fn resolve(&self, name: &str, offset: usize) -> Option<&Definition<'t>> {
        let visible = self.definitions.iter().filter(|found| found.name == name && found.visible.contains(&offset));
        // Inner scopes start later than outer ones.
        visible.max_by_key(|found| found.visible.start)
    }

    /// Returns the definitions that are visible at an offset, without those that others hide.
    pub(crate) fn visible_at(&self, offset: usize) -> Vec<&Definition<'t>> {
        let mut found: Vec<&Definition<'t>> = Vec::new();
        for definition in self.definitions.iter().filter(|found| found.visible.contains(&offset)) {
            found.retain(|other| other.name != definition.name);
            found.push(definition);
        }
        found
    }

    /// Returns whether an offset is inside a loop.
    pub(crate) fn is_in_loop(&self, offset: usize) -> bool {
        self.loops.iter().any(|body| body.contains(&offset))
    }

    /// Returns the positions of a variable's definitions, and those where it is read.
    pub(crate) fn of_variable(&self, wanted: &Definition<'_>) -> (Vec<Span>, Vec<Span>) {
        let is_same = |found: &Definition<'_>| found.name == wanted.name && found.scope == wanted.scope;
        let definitions = self.definitions.iter().filter(|found| is_same(found)).map(|found| found.span).collect();
        let reads = self.reads.iter().copied().filter(|span| {
            self.text(*span) == wanted.name && self.resolve(wanted.name, span.start).is_some_and(is_same)
        });
        (definitions, reads.collect())
    }

    /// Returns the positions where a name is read that the template does not define there: those of an input.
    pub(crate) fn of_input(&self, name: &str) -> Vec<Span> {
        let reads = self.reads.iter().copied();
        reads.filter(|span| self.text(*span) == name && self.resolve(name, span.start).is_none()).collect()
    }

    /// Returns the declaration of the value that a path of names has, such as `order.lines`, at an offset.
    pub(crate) fn declaration<'p>(&self, path: &[&str], offset: usize, inputs: &'p [Property]) -> Option<&'p Property> {
        let (first, rest) = path.split_first()?;
        let start = self.name_declaration(first, offset, inputs, MAX_STEPS)?;
        rest.iter().try_fold(start, |property, name| member(property, name))
    }

    fn name_declaration<'p>(
        &self,
        name: &str,
        offset: usize,
        inputs: &'p [Property],
        steps: usize,
    ) -> Option<&'p Property> {
        let steps = steps.checked_sub(1)?;
        let Some(definition) = self.resolve(name, offset) else {
            return inputs.iter().find(|input| input.name == name);
        };
        let value = self.expression_declaration(definition.value?, inputs, steps)?;
        match definition.kind {
            DefinitionKind::Loop => value.items.as_deref(),
            DefinitionKind::Set | DefinitionKind::With => Some(value),
            DefinitionKind::Macro | DefinitionKind::Parameter => None,
        }
    }

    /// Returns the declaration of the value of an expression.
    pub(crate) fn expression_declaration<'p>(
        &self,
        expression: &Expression,
        inputs: &'p [Property],
        steps: usize,
    ) -> Option<&'p Property> {
        let of = |value: &Expression| self.expression_declaration(value, inputs, steps);
        match &expression.kind {
            ExpressionKind::Name => {
                self.name_declaration(self.text(expression.span), expression.span.start, inputs, steps)
            }
            ExpressionKind::Paren(inner) => of(inner),
            ExpressionKind::Attribute(node) => member(of(&node.value)?, self.text(node.name)),
            ExpressionKind::Item(node) => match &node.index.kind {
                ExpressionKind::Literal(Literal::String) => {
                    member(of(&node.value)?, self.text(node.index.span).trim_matches(['"', '\'']))
                }
                _ => of(&node.value)?.items.as_deref(),
            },
            ExpressionKind::Slice(node) => of(&node.value),
            ExpressionKind::Filter(node) => {
                let value = of(node.value.as_ref()?)?;
                match self.text(node.name) {
                    "first" | "last" | "random" => value.items.as_deref(),
                    "list" | "reverse" | "sort" | "unique" | "select" | "reject" | "selectattr" | "rejectattr"
                    | "default" | "d" => Some(value),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the names of the inputs that a definition's value is computed from, through other variables.
    pub(crate) fn sources(&self, definition: &Definition<'t>) -> Vec<&'t str> {
        let (mut found, mut seen) = (Vec::new(), vec![definition.span]);
        let mut left = vec![definition.value];
        while let Some(value) = left.pop() {
            let within = value.map(|value| value.span.range()).unwrap_or_default();
            for read in self.reads.iter().filter(|span| within.contains(&span.start)) {
                let name = self.text(*read);
                match self.resolve(name, read.start) {
                    None if !found.contains(&name) => found.push(name),
                    Some(other) if !seen.contains(&other.span) => {
                        seen.push(other.span);
                        left.push(other.value);
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn new_scope(&mut self, end: usize) -> Scope {
        self.scopes += 1;
        Scope { id: self.scopes, end }
    }

    fn define(&mut self, span: Span, kind: DefinitionKind, scope: Scope, from: usize, value: Option<&'t Expression>) {
        let (name, visible) = (self.text(span), from..scope.end.saturating_add(1));
        self.definitions.push(Definition { name, span, kind, scope: scope.id, visible, value });
    }

    fn define_target(
        &mut self,
        target: &'t Target,
        kind: DefinitionKind,
        scope: Scope,
        from: usize,
        value: Option<&'t Expression>,
    ) {
        match &target.kind {
            TargetKind::Name => self.define(target.span, kind, scope, from, value),
            TargetKind::Tuple(items) => {
                // What each of several targets gets is not known.
                items.iter().for_each(|item| self.define_target(item, kind, scope, from, None));
            }
            _ => {}
        }
    }

    fn define_parameters(&mut self, parameters: &'t [Parameter], scope: Scope, from: usize) {
        for parameter in parameters {
            self.define(parameter.name, DefinitionKind::Parameter, scope, from, None);
        }
    }

    fn statements(&mut self, statements: &'t [Statement], scope: Scope) {
        for statement in statements {
            self.statement(statement, scope);
        }
    }

    fn otherwise(&mut self, branch: Option<&'t Else>, scope: Scope) {
        if let Some(branch) = branch {
            self.statements(&branch.statements, scope);
        }
    }

    fn statement(&mut self, statement: &'t Statement, scope: Scope) {
        let end = statement.span.end;
        let body_end = |body: &Body| body.end.map_or(end, |tag| tag.span.start);
        match &statement.kind {
            StatementKind::For(node) => {
                let otherwise = node.otherwise.as_ref().map(|branch| branch.tag.span.start);
                let inner = self.new_scope(otherwise.unwrap_or_else(|| body_end(&node.body)));
                // The condition after `if` sees the loop variable too.
                let from = node.filter.as_ref().map_or(node.tag.span.end, |filter| filter.span.start);
                self.loops.push(node.tag.span.end..inner.end);
                self.define_target(&node.target, DefinitionKind::Loop, inner, from, Some(&node.iter));
                self.statements(&node.body.statements, inner);
                self.otherwise(node.otherwise.as_ref(), scope);
            }
            StatementKind::If(node) => {
                node.branches.iter().for_each(|branch| self.statements(&branch.statements, scope));
                self.otherwise(node.otherwise.as_ref(), scope);
            }
            StatementKind::With(node) => {
                let inner = self.new_scope(body_end(&node.body));
                for (target, value) in &node.assignments {
                    self.define_target(target, DefinitionKind::With, inner, value.span.end, Some(value));
                }
                self.statements(&node.body.statements, inner);
            }
            StatementKind::Set(node) => {
                self.define_target(&node.target, DefinitionKind::Set, scope, end, Some(&node.value));
            }
            StatementKind::SetBlock(node) => {
                self.statements(&node.body.statements, scope);
                self.define_target(&node.target, DefinitionKind::Set, scope, end, None);
            }
            StatementKind::Filter(node) => self.statements(&node.body.statements, scope),
            StatementKind::AutoEscape(node) => self.statements(&node.body.statements, scope),
            StatementKind::Macro(node) => {
                // A macro can call itself.
                self.define(node.name, DefinitionKind::Macro, scope, node.tag.span.end, None);
                let inner = self.new_scope(body_end(&node.body));
                self.define_parameters(&node.params, inner, node.tag.span.end);
                self.statements(&node.body.statements, inner);
            }
            StatementKind::Call(node) => {
                let inner = self.new_scope(body_end(&node.body));
                self.define_parameters(&node.params, inner, node.tag.span.end);
                self.statements(&node.body.statements, inner);
            }
            StatementKind::Excluded(node) => {
                if let Some(body) = &node.body {
                    self.statements(&body.statements, scope);
                }
            }
            _ => {}
        }
    }
}

/// How many variables are followed to the declaration of an input.
pub(crate) const MAX_STEPS: usize = 20;

/// Returns the declaration of a member of an object, or of each object in a list.
fn member<'p>(property: &'p Property, name: &str) -> Option<&'p Property> {
    if let Some(index) = property.items.as_deref().filter(|_| name.bytes().all(|byte| byte.is_ascii_digit())) {
        return Some(index);
    }
    property.properties.iter().find(|member| member.name == name).filter(|_| property.kind == PropertyKind::Object)
}
