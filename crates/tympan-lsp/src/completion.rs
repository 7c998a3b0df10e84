//! Completion in templates.

use gen_lsp_types::{CompletionItem, CompletionItemKind, MarkupContent, MarkupKind, TextEdit};
use tympan_core::spec::role::Role;
use tympan_core::spec::schema::Property;
use tympan_core::template::name_use::NameKind;
use tympan_core::template::syntax::SyntaxTree;
use tympan_core::template::syntax::jinja::ast::Statement;
use tympan_core::template::syntax::mustache::ast::Node;
use tympan_core::template::syntax::{Parsed, Token, TokenKind};
use tympan_core::text::source::Span;

use crate::catalog::{self, Entry};
use crate::document::Document;
use crate::hover::about_role;
use crate::mustache::{self, Read};
use crate::names::{DefinitionKind, Names};
use crate::template::Template;
use crate::view::View;

/// The characters that make editors ask for completions.
pub(crate) const TRIGGERS: [&str; 7] = [".", "|", "{", "%", " ", ":", "/"];

/// A suggestion.
pub(crate) struct Suggestion {
    pub(crate) label: String,
    pub(crate) kind: CompletionItemKind,
    /// A short remark next to the label.
    pub(crate) detail: Option<String>,
    pub(crate) about: Option<String>,
    /// The text to insert, if it is not the label.
    pub(crate) insert: Option<String>,
}

impl Suggestion {
    pub(crate) fn new(label: impl Into<String>, kind: CompletionItemKind) -> Self {
        Self { label: label.into(), kind, detail: None, about: None, insert: None }
    }

    pub(crate) fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    pub(crate) fn with_about(mut self, about: impl Into<String>) -> Self {
        self.about = Some(about.into());
        self
    }

    fn of_entry(entry: &Entry, kind: CompletionItemKind) -> Self {
        Self::new(entry.name, kind).with_detail(entry.usage).with_about(entry.about)
    }

    fn of_property(property: &Property, kind: CompletionItemKind) -> Self {
        let suggestion = Self::new(&property.name, kind).with_detail(property.kind.as_str());
        match &property.description {
            Some(description) => suggestion.with_about(description),
            None => suggestion,
        }
    }

    /// Converts the suggestion to an item that replaces a span.
    pub(crate) fn into_item(self, document: &Document, span: Span, rank: usize) -> CompletionItem {
        let new_text = self.insert.unwrap_or_else(|| self.label.clone());
        let about = self.about.map(|value| MarkupContent { kind: MarkupKind::Markdown, value });
        CompletionItem {
            label: self.label,
            kind: Some(self.kind),
            detail: self.detail,
            documentation: about.map(Into::into),
            sort_text: Some(format!("{rank:04}")),
            text_edit: Some(TextEdit::new(document.range(span), new_text).into()),
            ..CompletionItem::default()
        }
    }
}

/// Suggestions, and the span that they replace.
pub(crate) type Suggestions = (Vec<Suggestion>, Span);

/// Returns the suggestions at an offset of the file that is in a template. The span is in the file.
pub(crate) fn in_template(view: &View<'_>, file_offset: usize) -> Option<Suggestions> {
    let (template, offset) = view.template_at(file_offset)?;
    let found = match &template.tree {
        Some(SyntaxTree::Jinja(parsed)) => jinja(view, template, parsed, offset),
        Some(SyntaxTree::Mustache(parsed)) => in_mustache(view, template, parsed, offset),
        _ => None,
    };
    let (suggestions, start) = found.or_else(|| roles(view, template, offset))?;
    // What is between the start and the cursor is one word, so it is the same in the file.
    let length = offset - start;
    Some((suggestions, Span::new(file_offset - length, file_offset)))
}

/// Returns the roles, at the start of a line.
fn roles(view: &View<'_>, template: &Template<'_>, offset: usize) -> Option<(Vec<Suggestion>, usize)> {
    if !view.prompt.spec().template.is_split() || is_in_tag(template.tokens(), offset) {
        return None;
    }
    let before = template.source().get(..offset)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let word = &before[start..];
    let rest = template.source()[offset..].lines().next().unwrap_or_default();
    if !word.bytes().all(|byte| byte.is_ascii_alphabetic()) || !rest.trim().is_empty() {
        return None;
    }
    let role = |role: Role| {
        Suggestion::new(format!("{}:", role.as_str()), CompletionItemKind::Keyword).with_about(about_role(role))
    };
    Some((Role::IN_MARKERS.into_iter().map(role).collect(), start))
}

/// Returns whether an offset is inside a tag.
fn is_in_tag(tokens: &[Token], offset: usize) -> bool {
    tag_before(tokens, offset).is_some()
}

/// Returns the tokens of the tag that contains an offset, up to the offset, without white space. The first is the
/// opening delimiter.
fn tag_before(tokens: &[Token], offset: usize) -> Option<Vec<Token>> {
    let end = tokens.partition_point(|token| (token.start as usize) < offset);
    let mut found = Vec::new();
    for token in tokens[..end].iter().rev() {
        if token.kind.is_tag_end() && token.end as usize > offset {
            // The cursor is inside the closing delimiter.
            return None;
        }
        match token.kind {
            TokenKind::VariableStart | TokenKind::BlockStart if token.end as usize <= offset => {
                found.push(*token);
                found.reverse();
                return Some(found);
            }
            kind if kind.is_outside() || kind.is_tag_end() => return None,
            TokenKind::Whitespace => {}
            _ => found.push(*token),
        }
    }
    None
}

fn jinja(
    view: &View<'_>,
    template: &Template<'_>,
    parsed: &Parsed<Statement>,
    offset: usize,
) -> Option<(Vec<Suggestion>, usize)> {
    let mut tag = tag_before(&parsed.tokens, offset)?;
    let text = |token: &Token| template.text(token.span());
    let mut start = offset;
    if let Some(last) = tag.last().copied().filter(|last| last.end as usize >= offset && last.start as usize != offset)
    {
        match last.kind {
            TokenKind::Name => {
                start = last.start as usize;
                tag.pop();
            }
            TokenKind::String | TokenKind::UnclosedString | TokenKind::Integer | TokenKind::Float => {
                return Some((Vec::new(), offset));
            }
            _ => {}
        }
    }
    let (before, earlier) = tag.split_last()?;
    let names = Names::new(template.source(), &parsed.body);
    let suggestions = match before.kind {
        TokenKind::Pipe => entries(view, NameKind::Filter),
        TokenKind::Dot => members(view, &names, template, earlier, offset),
        TokenKind::BlockStart => {
            catalog::STATEMENTS.iter().map(|entry| Suggestion::of_entry(entry, CompletionItemKind::Keyword)).collect()
        }
        TokenKind::Name
            if text(before) == "is"
                || (text(before) == "not" && earlier.last().is_some_and(|other| text(other) == "is")) =>
        {
            entries(view, NameKind::Test)
        }
        TokenKind::Name if text(before) == "filter" && earlier.len() == 1 => entries(view, NameKind::Filter),
        // These define a name.
        TokenKind::Name if ["for", "set", "macro"].contains(&text(before)) && earlier.len() == 1 => Vec::new(),
        _ => values(view, &names, offset),
    };
    Some((suggestions, start))
}

/// Returns the names of a kind: those of the language that can be written as a word, and those that the application
/// registers.
fn entries(view: &View<'_>, kind: NameKind) -> Vec<Suggestion> {
    let registered = match kind {
        NameKind::Filter => &view.options.filters,
        NameKind::Test => &view.options.tests,
        NameKind::Function => &view.options.functions,
    };
    let registered = registered
        .iter()
        .map(|name| Suggestion::new(name, CompletionItemKind::Function).with_detail("registered by the application"));
    let is_word = |entry: &&Entry| entry.name.starts_with(|char: char| char.is_ascii_alphabetic());
    let builtin = catalog::entries(kind).iter().filter(is_word);
    builtin.map(|entry| Suggestion::of_entry(entry, CompletionItemKind::Function)).chain(registered).collect()
}

/// Returns the variables, inputs and functions that an expression can use.
fn values(view: &View<'_>, names: &Names<'_>, offset: usize) -> Vec<Suggestion> {
    let mut found = Vec::new();
    for definition in names.visible_at(offset) {
        let kind = match definition.kind {
            DefinitionKind::Macro => CompletionItemKind::Function,
            _ => CompletionItemKind::Variable,
        };
        let suggestion = Suggestion::new(definition.name, kind).with_detail(definition.kind.as_str());
        found.push(match names.declaration(&[definition.name], offset, view.inputs()) {
            Some(property) => {
                suggestion.with_detail(format!("{}, {}", definition.kind.as_str(), property.kind.as_str()))
            }
            None => suggestion,
        });
    }
    if names.is_in_loop(offset) {
        found.push(Suggestion::new("loop", CompletionItemKind::Variable).with_detail("the state of the loop"));
    }
    let is_hidden = |name: &str| names.resolve(name, offset).is_some();
    found.extend(input_suggestions(view).filter(|input| !is_hidden(&input.label)));
    found.extend(entries(view, NameKind::Function));
    found
}

/// Returns the inputs of a prompt.
pub(crate) fn input_suggestions<'d>(view: &View<'d>) -> impl Iterator<Item = Suggestion> + use<'d> {
    let inputs = view.inputs().iter().filter(|input| !input.name.is_empty());
    inputs.map(|input| {
        let trust = if input.trusted { "trusted" } else { "untrusted" };
        Suggestion::of_property(input, CompletionItemKind::Variable)
            .with_detail(format!("{}, {trust}", input.kind.as_str()))
    })
}

/// Returns the members of the value before a dot.
fn members(
    view: &View<'_>,
    names: &Names<'_>,
    template: &Template<'_>,
    before: &[Token],
    offset: usize,
) -> Vec<Suggestion> {
    let mut path = Vec::new();
    let mut expects_name = true;
    for token in before.iter().rev() {
        match token.kind {
            TokenKind::Name if expects_name => path.push(template.text(token.span())),
            TokenKind::Dot if !expects_name => {}
            _ => break,
        }
        expects_name = !expects_name;
    }
    path.reverse();
    if path == ["loop"] && names.is_in_loop(offset) && names.resolve("loop", offset).is_none() {
        return catalog::LOOP.iter().map(|entry| Suggestion::of_entry(entry, CompletionItemKind::Property)).collect();
    }
    let declared = names.declaration(&path, offset, view.inputs());
    let members = declared.into_iter().flat_map(|property| &property.properties);
    members.map(|member| Suggestion::of_property(member, CompletionItemKind::Property)).collect()
}

fn in_mustache(
    view: &View<'_>,
    template: &Template<'_>,
    parsed: &Parsed<Node>,
    offset: usize,
) -> Option<(Vec<Suggestion>, usize)> {
    tag_before(&parsed.tokens, offset)?;
    let before = &template.source()[..offset];
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '.' | '-');
    let word = &before[before.trim_end_matches(is_part).len()..];
    let sections = mustache::sections_at(template.source(), &parsed.body, offset);
    let (path, name) = word.rsplit_once('.').unwrap_or(("", word));
    let start = offset - name.len();
    if word.contains('.') {
        let value = mustache::value(path, view.inputs());
        let members = value.into_iter().flat_map(|property| &property.properties);
        return Some((
            members.map(|member| Suggestion::of_property(member, CompletionItemKind::Property)).collect(),
            start,
        ));
    }
    let members = Read::members(&sections, view.inputs()).into_iter();
    let members = members.map(|member| Suggestion::of_property(member, CompletionItemKind::Property));
    Some((members.chain(input_suggestions(view)).collect(), start))
}
