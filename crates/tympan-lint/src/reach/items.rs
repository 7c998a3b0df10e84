//! Templates of all syntaxes as text, tags and blocks.

use std::collections::HashSet;

use tympan_core::template::syntax::jinja::ast::{
    Argument, ArgumentKind, BinaryOperator, Expression, ExpressionKind, Literal, Statement, StatementKind, Target,
    TargetKind,
};
use tympan_core::template::syntax::jinja::string_value;
use tympan_core::template::syntax::jinja::visit::{NodeRef, walk};
use tympan_core::template::syntax::mustache::ast::{Node, NodeKind};
use tympan_core::template::syntax::{parse_jinja, parse_mustache};
use tympan_core::text::source::Span;

use super::marker_text::may_be_part;

/// How often the assignments of a template are read to find out which names hold text of the author's.
const MAX_PASSES: usize = 8;

/// A part of a template.
#[derive(Debug)]
pub(super) enum Item {
    /// Text of the author's.
    Text(Span),
    /// An interpolation.
    Output {
        span: Span,
        /// Whether it writes text of inputs, and no text of the author's that can be part of a role marker.
        is_input: bool,
    },
    /// Conditions: the tags, with a position if they have an expression, and the blocks.
    Branches { branches: Vec<(Option<Span>, Vec<Item>)>, has_else: bool },
    /// A loop.
    Loop { tag: Span, body: Vec<Item>, otherwise: Vec<Item>, is_recursive: bool },
    /// A block whose text is not written where it is: a macro, or text that is captured.
    Aside {
        span: Span,
        body: Vec<Item>,
        /// Whether the text is written after the block, through a filter or a macro.
        is_written: bool,
    },
    /// `break` or `continue`.
    Jump,
}

/// A template as items, and the texts in its expressions.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) items: Vec<Item>,
    pub(super) strings: Vec<Text>,
    /// Whether a block begins or ends in the middle of a line, so that it may contain the line end before a marker.
    pub(super) is_ragged: bool,
}

/// A text in an expression that may be written.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) value: String,
    /// Whether the text of inputs is on both sides of it.
    pub(super) is_between_inputs: bool,
}

impl Outline {
    pub(super) fn jinja(source: &str) -> Self {
        let parsed = parse_jinja(source);
        let mut reader = Reader { source, names: HashSet::new(), is_any_name: false, strings: Vec::new() };
        reader.find_names(&parsed.body);
        let items = reader.block(&parsed.body);
        Self { items, strings: reader.strings, is_ragged: false }
    }

    pub(super) fn mustache(source: &str) -> Self {
        let items = sections(&parse_mustache(source).body);
        Self { items, strings: Vec::new(), is_ragged: source.lines().any(is_ragged) }
    }
}

/// Returns whether a section of a Mustache template begins or ends in this line, next to other text.
fn is_ragged(line: &str) -> bool {
    let count = |tag: &str| line.matches(tag).count();
    let (opened, closed) = (count("{{#") + count("{{^"), count("{{/"));
    let line = line.trim();
    let is_alone = opened + closed == 1 && line.starts_with("{{") && line.find("}}") == Some(line.len() - 2);
    (opened != closed || count("{{=") > 0) && !is_alone
}

fn sections(nodes: &[Node]) -> Vec<Item> {
    let item = |node: &Node| match &node.kind {
        NodeKind::Text => Some(Item::Text(node.span)),
        NodeKind::Variable(_) => Some(Item::Output { span: node.span, is_input: true }),
        NodeKind::Section(section) => {
            let body = sections(&section.body);
            Some(Item::Loop { tag: section.tag, body, otherwise: Vec::new(), is_recursive: false })
        }
        _ => None,
    };
    nodes.iter().filter_map(item).collect()
}

struct Reader<'s> {
    source: &'s str,
    /// The names that may hold text of the author's.
    names: HashSet<&'s str>,
    /// Whether any name may hold such text, because the names are assigned to each other too often.
    is_any_name: bool,
    strings: Vec<Text>,
}

impl<'s> Reader<'s> {
    fn name(&self, span: Span) -> &'s str {
        self.source.get(span.range()).unwrap_or_default()
    }

    /// Collects the names that may hold text of the author's.
    fn find_names(&mut self, statements: &[Statement]) {
        for _ in 0..MAX_PASSES {
            let before = self.names.len();
            walk(statements, &mut |node| {
                if let NodeRef::Statement(statement) = node {
                    self.assignment(statement);
                }
                true
            });
            if self.names.len() == before {
                return;
            }
        }
        self.is_any_name = true;
    }

    fn assignment(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::For(node) if !self.is_input(&node.iter) => self.assign(&node.target),
            StatementKind::Set(node) if !self.is_input(&node.value) => self.assign(&node.target),
            StatementKind::With(node) => {
                let written: Vec<_> = node.assignments.iter().filter(|(_, value)| !self.is_input(value)).collect();
                written.into_iter().for_each(|(target, _)| self.assign(target));
            }
            StatementKind::SetBlock(node) => self.assign(&node.target),
            StatementKind::Macro(node) => {
                self.names.insert(self.name(node.name));
                self.names.insert("caller");
                let params = node.params.iter().map(|param| self.name(param.name));
                self.names.extend(params.collect::<Vec<_>>());
            }
            StatementKind::Call(node) => {
                let params = node.params.iter().map(|param| self.name(param.name));
                self.names.extend(params.collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    fn assign(&mut self, target: &Target) {
        match &target.kind {
            TargetKind::Name => drop(self.names.insert(self.name(target.span))),
            TargetKind::Attribute(attribute) => {
                self.names.insert(self.name(attribute.value.span));
            }
            TargetKind::Tuple(targets) => targets.iter().for_each(|target| self.assign(target)),
            _ => {}
        }
    }

    fn block(&mut self, statements: &[Statement]) -> Vec<Item> {
        let mut items = Vec::new();
        statements.iter().for_each(|statement| self.statement(statement, &mut items));
        items
    }

    fn statement(&mut self, statement: &Statement, items: &mut Vec<Item>) {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Text(text) | StatementKind::Raw(text) => items.push(Item::Text(*text)),
            StatementKind::Output(value) => {
                self.texts(value, false);
                items.push(Item::Output { span, is_input: self.is_input(value) });
            }
            StatementKind::If(node) => {
                let mut branches: Vec<_> = node
                    .branches
                    .iter()
                    .map(|branch| (Some(branch.tag.span), self.block(&branch.statements)))
                    .collect();
                branches.extend(node.otherwise.iter().map(|other| (None, self.block(&other.statements))));
                items.push(Item::Branches { branches, has_else: node.otherwise.is_some() });
            }
            StatementKind::For(node) => {
                self.texts(&node.iter, false);
                let body = self.block(&node.body.statements);
                let otherwise = node.otherwise.as_ref().map(|other| self.block(&other.statements)).unwrap_or_default();
                items.push(Item::Loop { tag: node.tag.span, body, otherwise, is_recursive: node.recursive.is_some() });
            }
            StatementKind::With(node) => {
                node.assignments.iter().for_each(|(_, value)| self.texts(value, false));
                items.extend(self.block(&node.body.statements));
            }
            StatementKind::AutoEscape(node) => items.extend(self.block(&node.body.statements)),
            StatementKind::Set(node) => self.texts(&node.value, false),
            StatementKind::Do(node) => self.texts(&node.call, false),
            StatementKind::SetBlock(node) => {
                node.filter.iter().for_each(|filter| self.texts(filter, false));
                let body = self.block(&node.body.statements);
                items.push(Item::Aside { span: node.tag.span, body, is_written: false });
            }
            StatementKind::Macro(node) => {
                node.params.iter().filter_map(|param| param.default.as_ref()).for_each(|it| self.texts(it, false));
                let body = self.block(&node.body.statements);
                items.push(Item::Aside { span: node.tag.span, body, is_written: false });
            }
            StatementKind::Filter(node) => {
                self.texts(&node.filter, false);
                let body = self.block(&node.body.statements);
                items.push(Item::Aside { span: node.tag.span, body, is_written: true });
            }
            StatementKind::Call(node) => {
                self.texts(&node.call, false);
                let body = self.block(&node.body.statements);
                items.push(Item::Aside { span: node.tag.span, body, is_written: true });
            }
            StatementKind::Break(_) | StatementKind::Continue(_) => items.push(Item::Jump),
            _ => {}
        }
    }

    /// Returns whether a value is computed from inputs, without text of the author's that can be part of a role marker.
    fn is_input(&self, value: &Expression) -> bool {
        match &value.kind {
            ExpressionKind::Name => !self.is_any_name && !self.names.contains(self.name(value.span)),
            ExpressionKind::Literal(Literal::String) => !may_be_part(&self.string(value.span)),
            ExpressionKind::Literal(_) | ExpressionKind::Test(_) | ExpressionKind::Compare(_) => true,
            ExpressionKind::Paren(inner) | ExpressionKind::Unary(_, inner) => self.is_input(inner),
            ExpressionKind::Attribute(node) => self.is_input(&node.value),
            ExpressionKind::Item(node) => self.is_input(&node.value),
            ExpressionKind::Slice(node) => self.is_input(&node.value),
            ExpressionKind::Filter(node) => {
                node.value.as_ref().is_some_and(|value| self.is_input(value)) && self.are_inputs(&node.args)
            }
            ExpressionKind::Binary(node) => self.is_input(&node.left) && self.is_input(&node.right),
            ExpressionKind::Ternary(node) => {
                let otherwise = node.otherwise.as_ref();
                self.is_input(&node.then) && otherwise.is_some_and(|otherwise| self.is_input(otherwise))
            }
            ExpressionKind::Call(node) => {
                let is_known = match &node.callee.kind {
                    ExpressionKind::Attribute(method) => self.is_input(&method.value),
                    ExpressionKind::Name => self.name(node.callee.span) == "range",
                    _ => false,
                };
                is_known && self.are_inputs(&node.args)
            }
            _ => false,
        }
    }

    fn are_inputs(&self, args: &[Argument]) -> bool {
        args.iter().all(|arg| self.is_input(&arg.value) && !matches!(arg.kind, ArgumentKind::NamedSpread))
    }

    /// Collects the texts of an expression that may be written. `is_between` says whether the text of inputs is on both
    /// sides.
    fn texts(&mut self, value: &Expression, is_between: bool) {
        match &value.kind {
            ExpressionKind::Literal(Literal::String) => {
                let value = self.string(value.span);
                self.strings.push(Text { value, is_between_inputs: is_between });
            }
            ExpressionKind::Paren(inner) | ExpressionKind::Unary(_, inner) => self.texts(inner, is_between),
            ExpressionKind::Attribute(node) => self.texts(&node.value, false),
            ExpressionKind::Item(node) => self.texts(&node.value, false),
            ExpressionKind::Slice(node) => self.texts(&node.value, false),
            ExpressionKind::List(items) | ExpressionKind::Tuple(items) => {
                items.iter().for_each(|item| self.texts(item, false));
            }
            ExpressionKind::Dict(pairs) => pairs.iter().for_each(|(key, value)| {
                self.texts(key, false);
                self.texts(value, false);
            }),
            ExpressionKind::Filter(node) => {
                node.value.iter().for_each(|value| self.texts(value, false));
                let is_between = node.value.as_ref().is_some_and(|value| self.is_input(value));
                node.args.iter().for_each(|arg| self.texts(&arg.value, is_between));
            }
            ExpressionKind::Call(node) => {
                self.texts(&node.callee, false);
                node.args.iter().for_each(|arg| self.texts(&arg.value, false));
            }
            ExpressionKind::Binary(node) if node.operator == BinaryOperator::Concat => self.concatenation(value),
            ExpressionKind::Binary(node) => {
                self.texts(&node.left, false);
                self.texts(&node.right, false);
            }
            ExpressionKind::Ternary(node) => {
                self.texts(&node.then, false);
                node.otherwise.iter().for_each(|otherwise| self.texts(otherwise, false));
            }
            _ => {}
        }
    }

    fn concatenation(&mut self, value: &Expression) {
        let mut operands = Vec::new();
        let mut rest = vec![value];
        while let Some(value) = rest.pop() {
            match &value.unparenthesized().kind {
                ExpressionKind::Binary(node) if node.operator == BinaryOperator::Concat => {
                    rest.extend([&node.right, &node.left]);
                }
                _ => operands.push(value.unparenthesized()),
            }
        }
        for (index, operand) in operands.iter().enumerate() {
            let is_input = |index: Option<usize>| {
                let other = index.and_then(|index| operands.get(index));
                other.is_some_and(|other| !matches!(other.kind, ExpressionKind::Literal(_)) && self.is_input(other))
            };
            let is_between = is_input(index.checked_sub(1)) && is_input(Some(index + 1));
            self.texts(operand, is_between);
        }
    }

    /// Returns the text of a string in the source.
    fn string(&self, span: Span) -> String {
        let written = self.name(span);
        string_value(written).unwrap_or_else(|| written.to_owned())
    }
}
