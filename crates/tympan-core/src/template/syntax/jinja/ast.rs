//! The syntax tree of Jinja templates.
//!
//! Every node has a [`Span`] that starts with its first token and ends with its last one. The text of a node is
//! `source[span]`, so names are only spans. The tree is at most about a hundred levels deep: what nests deeper is an
//! error node.

use crate::text::source::Span;

/// A statement: text, an interpolation, or a block with its tags.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The kind, with the parts.
    pub kind: StatementKind,
    /// From the opening tag to the end tag.
    pub span: Span,
}

/// The kind of a statement.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StatementKind {
    /// Text. Holds the part that is left after white space control.
    Text(Span),
    /// `{% raw %}…{% endraw %}`. Holds the part of the text that is left after white space control.
    Raw(Span),
    /// `{# … #}`
    Comment,
    /// `{{ … }}`
    Output(Expression),
    /// `{% for … %}`
    For(Box<For>),
    /// `{% if … %}`
    If(Box<If>),
    /// `{% with … %}`
    With(Box<With>),
    /// `{% set x = … %}`
    Set(Box<Set>),
    /// `{% set x %}…{% endset %}`
    SetBlock(Box<SetBlock>),
    /// `{% filter … %}`
    Filter(Box<FilterBlock>),
    /// `{% autoescape … %}`
    AutoEscape(Box<AutoEscape>),
    /// `{% macro … %}`
    Macro(Box<Macro>),
    /// `{% call … %}`
    Call(Box<CallBlock>),
    /// `{% do … %}`
    Do(Box<Do>),
    /// `{% break %}`
    Break(Tag),
    /// `{% continue %}`
    Continue(Tag),
    /// A statement of Jinja that prompts do not have, such as `{% include … %}`.
    Excluded(Box<Excluded>),
    /// A tag that is not a statement.
    Error,
}

/// A tag of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag {
    /// From the opening delimiter to the closing one.
    pub span: Span,
    /// The keyword.
    pub keyword: Span,
}

/// The body of a statement, and the tag that ends it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Body {
    /// The statements.
    pub statements: Vec<Statement>,
    /// The end tag. `None` if the statement is not closed.
    pub end: Option<Tag>,
}

/// An `{% else %}` branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Else {
    /// The `else` tag.
    pub tag: Tag,
    /// The statements.
    pub statements: Vec<Statement>,
}

/// A loop.
#[derive(Debug, Clone, PartialEq)]
pub struct For {
    /// The opening tag.
    pub tag: Tag,
    /// The names that each item is assigned to.
    pub target: Target,
    /// The items.
    pub iter: Expression,
    /// The condition after `if`.
    pub filter: Option<Expression>,
    /// The word `recursive`.
    pub recursive: Option<Span>,
    /// The body, with the end tag.
    pub body: Body,
    /// The branch for a loop without items.
    pub otherwise: Option<Else>,
}

/// A condition with its branches.
#[derive(Debug, Clone, PartialEq)]
pub struct If {
    /// The `if` branch and the `elif` branches.
    pub branches: Vec<Branch>,
    /// The `else` branch.
    pub otherwise: Option<Else>,
    /// The end tag.
    pub end: Option<Tag>,
}

/// An `if` or `elif` branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    /// The `if` or `elif` tag.
    pub tag: Tag,
    /// The condition.
    pub condition: Expression,
    /// The statements.
    pub statements: Vec<Statement>,
}

/// A block with its own variables.
#[derive(Debug, Clone, PartialEq)]
pub struct With {
    /// The opening tag.
    pub tag: Tag,
    /// The variables.
    pub assignments: Vec<(Target, Expression)>,
    /// The body.
    pub body: Body,
}

/// An assignment.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// The tag.
    pub tag: Tag,
    /// What is assigned to.
    pub target: Target,
    /// The value.
    pub value: Expression,
}

/// An assignment of the text of a block.
#[derive(Debug, Clone, PartialEq)]
pub struct SetBlock {
    /// The opening tag.
    pub tag: Tag,
    /// What is assigned to.
    pub target: Target,
    /// The filters that the text passes through. The innermost has no value.
    pub filter: Option<Expression>,
    /// The body.
    pub body: Body,
}

/// A block whose text passes through filters.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterBlock {
    /// The opening tag.
    pub tag: Tag,
    /// The filters. The innermost has no value.
    pub filter: Expression,
    /// The body.
    pub body: Body,
}

/// A block that sets how values are escaped.
#[derive(Debug, Clone, PartialEq)]
pub struct AutoEscape {
    /// The opening tag.
    pub tag: Tag,
    /// The mode.
    pub enabled: Expression,
    /// The body.
    pub body: Body,
}

/// A macro.
#[derive(Debug, Clone, PartialEq)]
pub struct Macro {
    /// The opening tag.
    pub tag: Tag,
    /// The name.
    pub name: Span,
    /// The parameters.
    pub params: Vec<Parameter>,
    /// The body.
    pub body: Body,
}

/// A parameter of a macro.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameter {
    /// The name.
    pub name: Span,
    /// The default value.
    pub default: Option<Expression>,
}

/// A call with a body, which the macro that is called sees as `caller`.
#[derive(Debug, Clone, PartialEq)]
pub struct CallBlock {
    /// The opening tag.
    pub tag: Tag,
    /// The parameters of `caller`.
    pub params: Vec<Parameter>,
    /// The call.
    pub call: Expression,
    /// The body.
    pub body: Body,
}

/// A call whose result is not used.
#[derive(Debug, Clone, PartialEq)]
pub struct Do {
    /// The tag.
    pub tag: Tag,
    /// The call.
    pub call: Expression,
}

/// A statement of Jinja that prompts do not have. The content of its tag is not parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct Excluded {
    /// The tag.
    pub tag: Tag,
    /// The body, for `{% block … %}`.
    pub body: Option<Body>,
}

/// What is assigned to.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The kind, with the parts.
    pub kind: TargetKind,
    /// The position.
    pub span: Span,
}

/// The kind of a target.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TargetKind {
    /// A variable.
    Name,
    /// An attribute of a namespace.
    Attribute(Box<Attribute>),
    /// Several targets, which the items of a list are assigned to.
    Tuple(Vec<Target>),
    /// A mistake.
    Error,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    /// The kind, with the parts.
    pub kind: ExpressionKind,
    /// The position of the whole expression.
    pub span: Span,
}

/// The kind of an expression.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ExpressionKind {
    /// A variable.
    Name,
    /// A literal.
    Literal(Literal),
    /// `[a, b]`
    List(Vec<Expression>),
    /// `(a, b)`, or `a, b` on the right of an assignment.
    Tuple(Vec<Expression>),
    /// `{a: b}`
    Dict(Vec<(Expression, Expression)>),
    /// `(a)`
    Paren(Box<Expression>),
    /// `a.b`
    Attribute(Box<Attribute>),
    /// `a[b]` or `a.0`
    Item(Box<Item>),
    /// `a[b:c:d]`
    Slice(Box<Slice>),
    /// `a(b)`
    Call(Box<Call>),
    /// `a|b`
    Filter(Box<Filter>),
    /// `a is b`
    Test(Box<Test>),
    /// `not a` or `-a`
    Unary(UnaryOperator, Box<Expression>),
    /// `a + b`
    Binary(Box<Binary>),
    /// `a < b <= c`
    Compare(Box<Compare>),
    /// `a if b else c`
    Ternary(Box<Ternary>),
    /// A mistake.
    Error,
}

/// A literal.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Literal {
    /// `none`
    None,
    /// `true` or `false`
    Bool(bool),
    /// An integer.
    Int(u64),
    /// An integer that needs more than 64 bits. Its value is parsed from its text.
    BigInt,
    /// A number with a fraction or an exponent.
    Float(f64),
    /// One or more strings in a row, which are joined.
    String,
}

/// An attribute of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Attribute {
    /// The value.
    pub value: Expression,
    /// The name.
    pub name: Span,
}

/// An item of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    /// The value.
    pub value: Expression,
    /// The key or the index.
    pub index: Expression,
}

/// A slice of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Slice {
    /// The value.
    pub value: Expression,
    /// The first index.
    pub start: Option<Expression>,
    /// The index after the last one.
    pub stop: Option<Expression>,
    /// The distance between two indexes.
    pub step: Option<Expression>,
}

/// A call.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What is called.
    pub callee: Expression,
    /// The arguments.
    pub args: Vec<Argument>,
}

/// A filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// The value. `None` for the text of a block.
    pub value: Option<Expression>,
    /// The name.
    pub name: Span,
    /// The arguments.
    pub args: Vec<Argument>,
}

/// A test.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The value.
    pub value: Expression,
    /// Whether it is `is not`.
    pub negated: bool,
    /// The name.
    pub name: Span,
    /// The arguments.
    pub args: Vec<Argument>,
}

/// An argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument {
    /// The kind.
    pub kind: ArgumentKind,
    /// The value.
    pub value: Expression,
}

/// The kind of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentKind {
    /// `a`
    Positional,
    /// `*a`
    Spread,
    /// `name=a`
    Named(Span),
    /// `**a`
    NamedSpread,
}

/// An operator with one operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnaryOperator {
    /// `not`
    Not,
    /// `-`
    Negate,
}

/// An operation with two operands.
#[derive(Debug, Clone, PartialEq)]
pub struct Binary {
    /// The left operand.
    pub left: Expression,
    /// The operator.
    pub operator: BinaryOperator,
    /// The right operand.
    pub right: Expression,
}

/// An operator with two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BinaryOperator {
    /// `or`
    Or,
    /// `and`
    And,
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `~`
    Concat,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `//`
    FloorDivide,
    /// `%`
    Remainder,
    /// `**`
    Power,
}

/// A comparison of two or more values.
#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    /// The first value.
    pub first: Expression,
    /// The other values, each with the operator before it.
    pub rest: Vec<(CompareOperator, Expression)>,
}

/// An operator of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompareOperator {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
    /// `in`
    In,
    /// `not in`
    NotIn,
}

/// A choice between two values.
#[derive(Debug, Clone, PartialEq)]
pub struct Ternary {
    /// The value if the condition is true.
    pub then: Expression,
    /// The condition.
    pub condition: Expression,
    /// The value if it is false.
    pub otherwise: Option<Expression>,
}

impl Expression {
    /// Returns the expression inside any parentheses.
    pub fn unparenthesized(&self) -> &Self {
        let mut expression = self;
        while let ExpressionKind::Paren(inner) = &expression.kind {
            expression = inner;
        }
        expression
    }

    pub(super) fn error(span: Span) -> Self {
        Self { kind: ExpressionKind::Error, span }
    }

    /// Returns the name of the kind for messages.
    pub(super) fn description(&self) -> &'static str {
        match &self.unparenthesized().kind {
            ExpressionKind::Name => "a variable",
            ExpressionKind::Literal(_) => "a constant",
            ExpressionKind::List(_) => "a list",
            ExpressionKind::Tuple(_) => "a tuple",
            ExpressionKind::Dict(_) => "a dict",
            ExpressionKind::Call(_) => "a call",
            ExpressionKind::Filter(_) => "a filter",
            ExpressionKind::Test(_) => "a test",
            _ => "an expression",
        }
    }
}

impl Target {
    pub(super) fn error(span: Span) -> Self {
        Self { kind: TargetKind::Error, span }
    }
}
