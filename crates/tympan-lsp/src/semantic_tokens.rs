//! Semantic tokens: names by what they are, and inputs by whether their text is trusted.
//!
//! The author's text has no token, so that it looks as in any other document.

use gen_lsp_types::{SemanticToken, SemanticTokens, SemanticTokensLegend};
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::template::syntax::jinja::ast::{ExpressionKind, Statement};
use tympan_core::template::syntax::jinja::visit::{NodeRef, walk};
use tympan_core::template::syntax::mustache::ast::Node;
use tympan_core::template::syntax::{Parsed, TokenKind};
use tympan_core::text::source::Span;

use crate::mustache::{self, Meaning};
use crate::names::{Definition, DefinitionKind, Names};
use crate::position::unit;
use crate::template::Template;
use crate::view::View;

/// The types of tokens, in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Keyword,
    Parameter,
    Variable,
    Property,
    Function,
    Macro,
    String,
    Number,
    Comment,
    Operator,
}

const TYPES: [&str; 10] =
    ["keyword", "parameter", "variable", "property", "function", "macro", "string", "number", "comment", "operator"];

const MODIFIERS: [&str; 3] = ["trusted", "untrusted", "declaration"];
const TRUSTED: u32 = 1;
const UNTRUSTED: u32 = 1 << 1;
const DECLARATION: u32 = 1 << 2;

/// The words of statements and expressions.
const KEYWORDS: [&str; 45] = [
    "and",
    "autoescape",
    "break",
    "call",
    "continue",
    "do",
    "elif",
    "else",
    "endautoescape",
    "endcall",
    "endfilter",
    "endfor",
    "endif",
    "endmacro",
    "endset",
    "endwith",
    "false",
    "False",
    "filter",
    "for",
    "if",
    "in",
    "is",
    "macro",
    "none",
    "None",
    "not",
    "or",
    "raw",
    "endraw",
    "recursive",
    "set",
    "true",
    "True",
    "with",
    "include",
    "import",
    "extends",
    "block",
    "endblock",
    "from",
    "as",
    "caller",
    "super",
    "varargs",
];

pub(crate) fn legend() -> SemanticTokensLegend {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    SemanticTokensLegend { token_types: owned(&TYPES), token_modifiers: owned(&MODIFIERS) }
}

/// A token in the file.
struct Found {
    span: Span,
    kind: Type,
    modifiers: u32,
}

/// Returns the tokens of a document, optionally only those that touch a span.
pub(crate) fn tokens(view: &View<'_>, within: Option<Span>) -> SemanticTokens {
    let mut found: Vec<Found> = Vec::new();
    for (name, span) in view.declared_names() {
        found.push(Found { span, kind: Type::Parameter, modifiers: trust(view, name) | DECLARATION });
    }
    for (name, span) in view.mentioned_names() {
        found.push(Found { span, kind: Type::Parameter, modifiers: trust(view, name) });
    }
    for template in &view.templates {
        let mut add = |span: Span, kind: Type, modifiers: u32| {
            let lines = template.lines(span).filter(|line| line.start < line.end);
            found.extend(lines.filter_map(|line| Some(Found { span: template.file_span(line)?, kind, modifiers })));
        };
        for message in template.analysis.messages() {
            if let Some(marker) = message.marker {
                add(marker, Type::Keyword, 0);
            }
        }
        match &template.tree {
            Some(SyntaxTree::Jinja(parsed)) => jinja(view, template, parsed, &mut add),
            Some(SyntaxTree::Mustache(parsed)) => in_mustache(view, template, parsed, &mut add),
            _ => {}
        }
    }
    found.retain(|token| within.is_none_or(|span| token.span.start <= span.end && span.start <= token.span.end));
    found.sort_by_key(|token| token.span.start);
    encode(view, &found)
}

/// Converts tokens to differences of positions. Of tokens that overlap, the first is kept.
fn encode(view: &View<'_>, found: &[Found]) -> SemanticTokens {
    let (mut data, mut line, mut column, mut end) = (Vec::with_capacity(found.len()), 0, 0, 0);
    for token in found.iter().filter(|token| token.span.start < token.span.end) {
        if token.span.start < end {
            continue;
        }
        end = token.span.end;
        let start = view.document.position(token.span.start);
        let length = view.document.encoding.length(view.document.source().slice(token.span));
        data.push(SemanticToken {
            delta_line: start.line - line,
            delta_start: if start.line == line { start.character - column } else { start.character },
            length: unit(length),
            token_type: token.kind as u32,
            token_modifiers_bitset: token.modifiers,
        });
        (line, column) = (start.line, start.character);
    }
    SemanticTokens { result_id: None, data }
}

/// Returns the modifier of an input. Those that are not declared are untrusted.
fn trust(view: &View<'_>, name: &str) -> u32 {
    if view.input(name).is_some_and(|input| input.trusted) { TRUSTED } else { UNTRUSTED }
}

/// Returns the modifier of a variable: untrusted if any input that it is computed from is.
fn origin(view: &View<'_>, names: &Names<'_>, definition: &Definition<'_>) -> u32 {
    let sources = names.sources(definition);
    let origins = sources.iter().filter(|name| view.input(name).is_some()).map(|name| trust(view, name));
    origins.reduce(|a, b| if a == UNTRUSTED { a } else { b }).unwrap_or_default()
}

type Add<'a> = &'a mut dyn FnMut(Span, Type, u32);

fn jinja(view: &View<'_>, template: &Template<'_>, parsed: &Parsed<Statement>, add: Add<'_>) {
    let names = Names::new(template.source(), &parsed.body);
    for definition in &names.definitions {
        let kind = match definition.kind {
            DefinitionKind::Macro => Type::Macro,
            _ => Type::Variable,
        };
        add(definition.span, kind, origin(view, &names, definition) | DECLARATION);
    }
    let mut callees = Vec::new();
    walk(&parsed.body, &mut |node| {
        if let NodeRef::Expression(expression) = node {
            match &expression.kind {
                ExpressionKind::Filter(node) => add(node.name, Type::Function, 0),
                ExpressionKind::Test(node) => add(node.name, Type::Function, 0),
                ExpressionKind::Attribute(node) => add(node.name, Type::Property, 0),
                ExpressionKind::Call(node) => callees.push(node.callee.span),
                _ => {}
            }
        }
        true
    });
    for read in &names.reads {
        let name = template.text(*read);
        let is_called = callees.contains(read);
        match names.resolve(name, read.start) {
            Some(definition) if definition.kind == DefinitionKind::Macro => add(*read, Type::Macro, 0),
            Some(definition) => add(*read, Type::Variable, origin(view, &names, definition)),
            None if view.input(name).is_none() && is_called => add(*read, Type::Function, 0),
            None if name == "loop" && names.is_in_loop(read.start) => add(*read, Type::Variable, 0),
            None => add(*read, Type::Parameter, trust(view, name)),
        }
    }
    // Names that are read or defined have a token already, and the first of two is kept.
    for token in &parsed.tokens {
        let kind = match token.kind {
            TokenKind::Name if KEYWORDS.contains(&template.text(token.span())) => Type::Keyword,
            TokenKind::String | TokenKind::UnclosedString => Type::String,
            TokenKind::Integer | TokenKind::Float => Type::Number,
            TokenKind::Comment | TokenKind::UnclosedComment => Type::Comment,
            TokenKind::RawStart | TokenKind::RawEnd => Type::Keyword,
            TokenKind::VariableStart | TokenKind::VariableEnd | TokenKind::BlockStart | TokenKind::BlockEnd => {
                Type::Operator
            }
            _ => continue,
        };
        add(token.span(), kind, 0);
    }
}

fn in_mustache(view: &View<'_>, template: &Template<'_>, parsed: &Parsed<Node>, add: Add<'_>) {
    for read in mustache::reads(template.source(), &parsed.body) {
        match read.meaning(view.inputs()) {
            Meaning::Member => add(read.span, Type::Property, 0),
            Meaning::Input | Meaning::Either => add(read.span, Type::Parameter, trust(view, read.name)),
        }
    }
    for token in &parsed.tokens {
        let kind = match token.kind {
            TokenKind::Comment | TokenKind::UnclosedComment => Type::Comment,
            TokenKind::VariableStart | TokenKind::VariableEnd | TokenKind::Delimiters => Type::Operator,
            _ => continue,
        };
        add(token.span(), kind, 0);
    }
}
