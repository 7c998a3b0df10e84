//! What the names in a Jinja template mean: which statement sets them, who reads them, and what is known about their
//! values.
//!
//! Scopes are those of the evaluator: a template, the body of a loop or of `with`, and a macro. A name that is set in a scope
//! may be read before it is set, and then means what it means outside of the scope.

mod known;
mod mustache;
mod uses;

use std::collections::{HashMap, HashSet};

use tympan_core::spec::schema::{Property, PropertyKind};
use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::jinja::ast::{
    Argument, Else, Expression, ExpressionKind, For, If, Literal, Macro, Parameter, Set, SetBlock, Statement,
    StatementKind, Target, TargetKind, With,
};
use tympan_core::text::source::Span;

use known::{Known, filtered, is_closed, is_scalar, is_text, item_of, known_property};
pub(crate) use mustache::scan_mustache;

/// The names of a template. In a Mustache template, only the attributes are known.
#[derive(Default)]
pub(crate) struct Names<'p> {
    pub(crate) bindings: Vec<Binding<'p>>,
    /// Filters, tests, and calls of functions and macros.
    pub(crate) calls: Vec<NamedCall<'p>>,
    /// Reads of attributes that a declaration does not have.
    pub(crate) unknown_attributes: Vec<UnknownAttribute<'p>>,
    /// Loops over inputs that are not lists.
    pub(crate) scalar_loops: Vec<(Span, PropertyKind)>,
    /// Comparisons of an input with a text that is not among its values.
    pub(crate) unknown_values: Vec<(Span, &'p str, &'p Property)>,
    /// Statements that give the name of an input to another value.
    pub(crate) shadowed_inputs: Vec<(Span, &'p str, BindingKind)>,
    /// Attributes that the template allows to be missing.
    pub(crate) optional: HashSet<&'p str>,
}

/// A name that a template gives to a value.
#[derive(Clone, Debug)]
pub(crate) struct Binding<'p> {
    pub(crate) name: &'p str,
    pub(crate) span: Span,
    pub(crate) kind: BindingKind,
    pub(crate) is_read: bool,
    /// Whether it is set inside of a loop, so that its value is lost after each round.
    pub(crate) in_loop: bool,
    /// Whether the name has this value wherever it can be read.
    is_sure: bool,
    /// Whether only one statement of its scope sets the name.
    is_only: bool,
    known: Known<'p>,
    /// The parameters of a macro. `None` if it is not the only meaning of the name in its scope.
    params: Option<Vec<&'p str>>,
    /// The number of scopes around it.
    depth: usize,
}

/// How a name is bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BindingKind {
    Set,
    /// One of several names that a list is assigned to.
    Unpacked,
    With,
    For,
    Macro,
    Param,
    /// `loop` and `caller`.
    Special,
}

impl BindingKind {
    /// Returns the keyword of the statement.
    pub(crate) const fn keyword(self) -> &'static str {
        match self {
            Self::Set | Self::Unpacked => "set",
            Self::With => "with",
            Self::For => "for",
            Self::Macro | Self::Param | Self::Special => "macro",
        }
    }
}

/// What is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Callee<'p> {
    Name(NameKind),
    /// A macro of the template, with its parameters.
    Macro(Vec<&'p str>),
    /// The recursive loop around the call.
    Loop,
}

/// A filter, a test or a call, with the number of its arguments.
#[derive(Clone, Debug)]
pub(crate) struct NamedCall<'p> {
    pub(crate) callee: Callee<'p>,
    pub(crate) name: &'p str,
    /// The position of the name.
    pub(crate) span: Span,
    pub(crate) positional: usize,
    pub(crate) named: Vec<(&'p str, Span)>,
    /// Whether a list or a map provides more arguments.
    pub(crate) has_spread: bool,
}

/// An attribute that its owner does not declare.
#[derive(Clone, Debug)]
pub(crate) struct UnknownAttribute<'p> {
    /// The position of the name.
    pub(crate) span: Span,
    pub(crate) name: &'p str,
    /// The expression whose attribute it is.
    pub(crate) owner: &'p str,
    /// Whether it is an attribute of an item of that list.
    pub(crate) of_item: bool,
    /// The whole expression.
    pub(crate) text: &'p str,
    pub(crate) declaration: &'p Property,
}

/// The declarations that a template can refer to.
pub(crate) struct Declarations<'c, 'p> {
    pub(crate) inputs: &'c HashMap<&'p str, &'p Property>,
    /// The inputs that are strings because the file says so, and not for lack of a kind.
    pub(crate) strings: &'c HashSet<&'p str>,
}

/// Finds out what the names in a template mean.
pub(crate) fn scan<'p>(statements: &[Statement], source: &'p str, declarations: &Declarations<'_, 'p>) -> Names<'p> {
    let mut scan = Scan {
        source,
        declarations,
        active: HashMap::new(),
        scopes: vec![Vec::new()],
        loops: 0,
        own: None,
        conditions: Vec::new(),
        names: Names::default(),
    };
    scan.declare_assigned(statements);
    scan.block(statements);
    scan.names
}

struct Scan<'c, 'p> {
    source: &'p str,
    declarations: &'c Declarations<'c, 'p>,
    /// The bindings of each name, innermost last.
    active: HashMap<&'p str, Vec<usize>>,
    /// The names of each scope, innermost last.
    scopes: Vec<Vec<&'p str>>,
    /// The number of loops around the current place.
    loops: usize,
    /// The binding whose value is being read, which does not count as a use of itself.
    own: Option<usize>,
    /// The conditions around the current place.
    conditions: Vec<Span>,
    names: Names<'p>,
}

impl<'p> Scan<'_, 'p> {
    fn text(&self, span: Span) -> &'p str {
        &self.source[span.range()]
    }

    fn block(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn otherwise(&mut self, branch: Option<&Else>) {
        if let Some(branch) = branch {
            self.block(&branch.statements);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Output(expression) => self.expressions([expression]),
            StatementKind::For(node) => self.for_loop(node),
            StatementKind::If(node) => self.if_chain(node),
            StatementKind::With(node) => self.with(node),
            StatementKind::Set(node) => self.set(node),
            StatementKind::SetBlock(node) => self.set_block(node),
            StatementKind::Filter(node) => {
                self.block(&node.body.statements);
                self.expression(&node.filter);
            }
            StatementKind::AutoEscape(node) => {
                self.expression(&node.enabled);
                self.block(&node.body.statements);
            }
            StatementKind::Macro(node) => self.macro_definition(node),
            StatementKind::Call(node) => {
                self.expression(&node.call);
                self.macro_body(&node.params, &node.body.statements);
            }
            StatementKind::Do(node) => self.expressions([&node.call]),
            StatementKind::Excluded(node) => {
                if let Some(body) = &node.body {
                    self.block(&body.statements);
                }
            }
            _ => {}
        }
    }

    fn if_chain(&mut self, node: &If) {
        let before = self.conditions.len();
        for branch in &node.branches {
            self.expression(&branch.condition);
            self.conditions.push(branch.condition.span);
            self.block(&branch.statements);
        }
        self.otherwise(node.otherwise.as_ref());
        self.conditions.truncate(before);
    }

    fn for_loop(&mut self, node: &For) {
        let items = self.expression(&node.iter);
        if let Known::Declared(declared) = items
            && is_scalar(declared)
        {
            self.names.scalar_loops.push((node.iter.span, declared.kind));
        }
        let item = match items {
            Known::Declared(list) => item_of(list),
            Known::Nothing => Known::Nothing,
        };
        self.push_scope();
        self.for_target(&node.target, item);
        self.loops += 1;
        self.expressions(node.filter.as_ref());
        self.declare_special("loop", node.tag.keyword);
        self.declare_assigned(&node.body.statements);
        self.block(&node.body.statements);
        self.loops -= 1;
        self.pop_scope();
        self.conditions.push(node.iter.span);
        self.otherwise(node.otherwise.as_ref());
        self.conditions.pop();
    }

    fn for_target(&mut self, target: &Target, known: Known<'p>) {
        match &target.kind {
            TargetKind::Name => {
                let index = self.declare(self.text(target.span), target.span, BindingKind::For);
                (self.names.bindings[index].is_sure, self.names.bindings[index].known) = (true, known);
                self.shadow(target.span, BindingKind::For, None);
            }
            TargetKind::Tuple(items) => items.iter().for_each(|item| self.for_target(item, Known::Nothing)),
            _ => {}
        }
    }

    fn with(&mut self, node: &With) {
        self.push_scope();
        for (target, _) in &node.assignments {
            self.declare_target(target, BindingKind::With);
        }
        self.declare_assigned(&node.body.statements);
        for (target, value) in &node.assignments {
            let known = self.assignment(target, value.span, BindingKind::With, |scan| scan.expression(value));
            self.alias(target, known);
        }
        self.block(&node.body.statements);
        self.pop_scope();
    }

    fn set(&mut self, node: &Set) {
        let known =
            self.assignment(&node.target, node.value.span, BindingKind::Set, |scan| scan.expression(&node.value));
        self.alias(&node.target, known);
    }

    /// Records that a name refers to a declared value, if this is the only statement that sets it.
    fn alias(&mut self, target: &Target, known: Known<'p>) {
        let bindings = self.active.get(self.text(target.span)).filter(|_| target.kind == TargetKind::Name);
        let Some(index) = bindings.and_then(|bindings| bindings.last()).copied() else { return };
        let binding = &mut self.names.bindings[index];
        // Inside of a condition, the name may keep its old meaning.
        let is_certain = binding.is_only && binding.span == target.span && self.conditions.is_empty();
        if let Known::Declared(_) = known
            && is_certain
        {
            (binding.is_sure, binding.known) = (true, known);
        }
    }

    fn set_block(&mut self, node: &SetBlock) {
        let end = node.body.end.map_or(node.tag.span.end, |end| end.span.end);
        let whole = Span::new(node.tag.span.end, end);
        self.assignment(&node.target, whole, BindingKind::Set, |scan| {
            scan.block(&node.body.statements);
            scan.expressions(node.filter.as_ref());
        });
    }

    /// Reads the value of an assignment, which is in `value`.
    fn assignment<T>(
        &mut self,
        target: &Target,
        value: Span,
        kind: BindingKind,
        read: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let name = self.text(target.span);
        let own = self.active.get(name).and_then(|bindings| bindings.last()).copied();
        let outer = std::mem::replace(&mut self.own, own.filter(|_| target.kind == TargetKind::Name));
        let result = read(self);
        self.own = outer;
        match &target.kind {
            TargetKind::Name => self.shadow(target.span, kind, Some(value)),
            TargetKind::Attribute(attribute) => self.expressions([&attribute.value]),
            _ => {}
        }
        result
    }

    /// Records a name of an input that gets another value, unless the value is computed from the input or replaces a
    /// missing one.
    fn shadow(&mut self, span: Span, kind: BindingKind, value: Option<Span>) {
        let name = self.text(span);
        if !self.declarations.inputs.contains_key(name) {
            return;
        }
        let mentions = |place: &Span| mentions(&self.source[place.range()], name);
        if !value.iter().chain(&self.conditions).any(mentions) {
            self.names.shadowed_inputs.push((span, name, kind));
        }
    }

    fn macro_definition(&mut self, node: &Macro) {
        for param in &node.params {
            self.shadow(param.name, BindingKind::Param, None);
        }
        self.macro_body(&node.params, &node.body.statements);
    }

    fn macro_body(&mut self, params: &[Parameter], body: &[Statement]) {
        let (loops, conditions) = (std::mem::take(&mut self.loops), std::mem::take(&mut self.conditions));
        self.push_scope();
        for param in params {
            let index = self.declare(self.text(param.name), param.name, BindingKind::Param);
            self.names.bindings[index].is_sure = true;
        }
        self.declare_special("caller", Span::default());
        for default in params.iter().filter_map(|param| param.default.as_ref()) {
            self.expression(default);
        }
        self.declare_assigned(body);
        self.block(body);
        self.pop_scope();
        (self.loops, self.conditions) = (loops, conditions);
    }

    fn push_scope(&mut self) {
        self.scopes.push(Vec::new());
    }

    fn pop_scope(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            if let Some(bindings) = self.active.get_mut(name) {
                bindings.pop();
            }
        }
    }

    /// Returns the binding of a name in the current scope.
    fn declare(&mut self, name: &'p str, span: Span, kind: BindingKind) -> usize {
        let bindings = self.active.entry(name).or_default();
        let depth = self.scopes.len();
        if let Some(index) = bindings.last().filter(|index| self.names.bindings[**index].depth == depth) {
            self.names.bindings[*index].is_only = false;
            return *index;
        }
        let index = self.names.bindings.len();
        self.names.bindings.push(Binding {
            name,
            span,
            kind,
            is_read: false,
            in_loop: self.loops > 0,
            is_sure: false,
            is_only: true,
            known: Known::Nothing,
            params: None,
            depth,
        });
        bindings.push(index);
        self.scopes[depth - 1].push(name);
        index
    }

    fn declare_special(&mut self, name: &'static str, span: Span) {
        let index = self.declare(name, span, BindingKind::Special);
        self.names.bindings[index].is_sure = true;
    }

    fn declare_target(&mut self, target: &Target, kind: BindingKind) {
        match &target.kind {
            TargetKind::Name => {
                self.declare(self.text(target.span), target.span, kind);
            }
            TargetKind::Tuple(items) => {
                items.iter().for_each(|item| self.declare_target(item, BindingKind::Unpacked));
            }
            _ => {}
        }
    }

    /// Declares the names that statements set in the current scope.
    fn declare_assigned(&mut self, statements: &[Statement]) {
        for statement in statements {
            match &statement.kind {
                StatementKind::Set(node) => self.declare_target(&node.target, BindingKind::Set),
                StatementKind::SetBlock(node) => {
                    self.declare_target(&node.target, BindingKind::Set);
                    self.declare_assigned(&node.body.statements);
                }
                StatementKind::Macro(node) => {
                    let known = self.names.bindings.len();
                    let index = self.declare(self.text(node.name), node.name, BindingKind::Macro);
                    let params = node.params.iter().map(|param| self.text(param.name)).collect();
                    self.names.bindings[index].params = Some(params).filter(|_| index == known);
                }
                StatementKind::If(node) => {
                    for branch in &node.branches {
                        self.declare_assigned(&branch.statements);
                    }
                    self.declare_otherwise(node.otherwise.as_ref());
                }
                StatementKind::Filter(node) => self.declare_assigned(&node.body.statements),
                StatementKind::AutoEscape(node) => self.declare_assigned(&node.body.statements),
                StatementKind::For(node) => self.declare_otherwise(node.otherwise.as_ref()),
                _ => {}
            }
        }
    }

    fn declare_otherwise(&mut self, branch: Option<&Else>) {
        if let Some(branch) = branch {
            self.declare_assigned(&branch.statements);
        }
    }

    /// Marks what a name may refer to as read, and returns what is known about its value.
    fn read(&mut self, name: &str) -> Known<'p> {
        let bindings = self.active.get(name).map(Vec::as_slice).unwrap_or_default();
        for index in bindings.iter().rev() {
            let binding = &mut self.names.bindings[*index];
            binding.is_read |= self.own != Some(*index);
            if binding.is_sure {
                return if bindings.last() == Some(index) { binding.known } else { Known::Nothing };
            }
        }
        match self.declarations.inputs.get(name) {
            Some(input) if bindings.is_empty() && (!is_text(input) || self.declarations.strings.contains(name)) => {
                Known::Declared(input)
            }
            _ => Known::Nothing,
        }
    }

    fn expressions<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expression>) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    fn arguments(&mut self, args: &[Argument]) {
        self.expressions(args.iter().map(|arg| &arg.value));
    }

    /// Reads an expression, and returns what is known about its value.
    fn expression(&mut self, expression: &Expression) -> Known<'p> {
        match &expression.kind {
            ExpressionKind::Name => return self.read(self.text(expression.span)),
            ExpressionKind::Paren(inner) => return self.expression(inner),
            ExpressionKind::Attribute(node) => {
                let owner = self.expression(&node.value);
                return self.attribute(owner, node.value.span, self.text(node.name), node.name, expression.span);
            }
            ExpressionKind::Item(node) => {
                let owner = self.expression(&node.value);
                self.expression(&node.index);
                return match (owner, text_literal(&node.index, self.source)) {
                    (_, Some(name)) => {
                        let inside = Span::new(node.index.span.start + 1, node.index.span.end - 1);
                        self.attribute(owner, node.value.span, name, inside, expression.span)
                    }
                    (Known::Declared(owner), None) => item_of(owner),
                    _ => Known::Nothing,
                };
            }
            ExpressionKind::Filter(node) => {
                let value = node.value.as_ref().map_or(Known::Nothing, |value| self.expression(value));
                self.arguments(&node.args);
                let name = self.text(node.name);
                if let Some(value) = node.value.as_ref().filter(|_| matches!(name, "default" | "d")) {
                    self.names.optional.insert(self.text(value.span));
                }
                self.call(Callee::Name(NameKind::Filter), name, node.name, &node.args);
                if let Some(list) = &node.value {
                    self.attribute_of_items(name, value, list, &node.args);
                }
                return filtered(name, value);
            }
            ExpressionKind::Test(node) => {
                self.expression(&node.value);
                self.arguments(&node.args);
                let name = self.text(node.name);
                if matches!(name, "defined" | "undefined") {
                    self.names.optional.insert(self.text(node.value.span));
                }
                self.call(Callee::Name(NameKind::Test), name, node.name, &node.args);
            }
            ExpressionKind::Call(node) => self.function_call(node),
            ExpressionKind::Compare(node) => {
                let mut left = (self.expression(&node.first), &node.first);
                for (operator, right) in &node.rest {
                    let known = self.expression(right);
                    self.comparison(left, *operator, (known, right));
                    left = (known, right);
                }
            }
            ExpressionKind::List(items) | ExpressionKind::Tuple(items) => self.expressions(items),
            ExpressionKind::Dict(pairs) => self.expressions(pairs.iter().flat_map(|(key, value)| [key, value])),
            ExpressionKind::Unary(_, inner) => self.expressions([&**inner]),
            ExpressionKind::Slice(node) => {
                let value = self.expression(&node.value);
                self.expressions([&node.start, &node.stop, &node.step].into_iter().flatten());
                return value;
            }
            ExpressionKind::Binary(node) => self.expressions([&node.left, &node.right]),
            ExpressionKind::Ternary(node) => {
                self.expressions([&node.then, &node.condition].into_iter().chain(&node.otherwise));
            }
            _ => {}
        }
        Known::Nothing
    }

    /// Returns what is known about an attribute of a value. `span` is the position of its name, and `whole` that of the
    /// expression.
    fn attribute(&mut self, owner: Known<'p>, of: Span, name: &'p str, span: Span, whole: Span) -> Known<'p> {
        let Known::Declared(declaration) = owner else { return Known::Nothing };
        if let Some(found) = known_property(declaration, name) {
            return found;
        }
        if is_closed(declaration) {
            let (owner, text) = (self.text(of), self.text(whole));
            self.names.unknown_attributes.push(UnknownAttribute {
                span,
                name,
                owner,
                of_item: false,
                text,
                declaration,
            });
        }
        Known::Nothing
    }
}

/// Returns the text of a string literal without escapes.
pub(crate) fn text_literal<'s>(expression: &Expression, source: &'s str) -> Option<&'s str> {
    let ExpressionKind::Literal(Literal::String) = expression.kind else { return None };
    let text = &source[expression.span.range()];
    let quote = text.chars().next()?;
    let inside = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inside.contains(['\\', quote])).then_some(inside)
}

/// Returns whether a text contains a name as a whole word.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |char: Option<char>| char.is_some_and(|char| char.is_alphanumeric() || char == '_');
    text.match_indices(name)
        .any(|(at, _)| !is_part(text[..at].chars().next_back()) && !is_part(text[at + name.len()..].chars().next()))
}
