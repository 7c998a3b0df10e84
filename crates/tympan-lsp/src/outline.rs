//! Document symbols: inputs, variants and messages.

use gen_lsp_types::{DocumentSymbol, Location, SymbolKind};
use serde_json::{Value as Json, json};
use tympan_core::prompt::analysis::WrittenMessage;
use tympan_core::spec::PromptKind;
use tympan_core::text::source::Span;

use crate::document::Document;
use crate::failure::Answer;
use crate::features::to_json;
use crate::suite::Suite;
use crate::suite::outline::embedded_symbol;
use crate::template::Template;
use crate::view::View;

/// Returns the symbols as a tree, or as a list for clients that do not show trees.
pub(crate) fn symbols(view: &View<'_>, as_tree: bool) -> Answer<Json> {
    let mut symbols = inputs(view);
    symbols.extend(Suite::new(view.document, &view.outline).map(embedded_symbol));
    let is_directive = view.prompt.kind() == PromptKind::Directive;
    symbols.extend(is_directive.then(|| directive(view)));
    for template in view.templates.iter().filter(|_| !is_directive) {
        let messages = messages(view, template);
        if view.templates.len() == 1 {
            symbols.extend(messages);
        } else {
            symbols.extend(variant(view, template, messages));
        }
    }
    if as_tree { to_json(symbols) } else { to_json(flattened(view.document, symbols)) }
}

/// Converts a tree to a list.
pub(crate) fn flattened(document: &Document, symbols: Vec<DocumentSymbol>) -> Vec<Json> {
    let mut flat = Vec::new();
    symbols.into_iter().for_each(|symbol| flatten(document, symbol, None, &mut flat));
    flat
}

/// Returns the beginning of a text.
pub(crate) fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// Returns the symbol of a directive, with its headings. Its template is assembled from parts of the file.
fn directive(view: &View<'_>) -> DocumentSymbol {
    let text = view.document.text();
    let (mut children, mut start, mut in_fence) = (Vec::new(), 0, false);
    let mut headings: Vec<Span> = Vec::new();
    for line in text.split_inclusive('\n') {
        let content = line.trim_end();
        in_fence ^= content.trim_start().starts_with("```");
        if !in_fence && content.trim_start_matches('#').starts_with(' ') && content.starts_with('#') {
            headings.push(Span::new(start, start + content.len()));
        }
        start += line.len();
    }
    for (index, heading) in headings.iter().enumerate() {
        let end = headings.get(index + 1).map_or(text.len(), |next| next.start);
        let name = view.document.source().slice(*heading).trim_start_matches('#').trim().to_owned();
        children.push(symbol(view.document, name, None, SymbolKind::String, Span::new(heading.start, end), *heading));
    }
    let name = view.prompt.name().unwrap_or("directive").to_owned();
    let whole = Span::new(0, text.len());
    let mut symbol = symbol(view.document, name, None, SymbolKind::Module, whole, view.document.line_at(0));
    symbol.children = Some(children);
    symbol
}

fn inputs(view: &View<'_>) -> Vec<DocumentSymbol> {
    let declared = view.declared_names().into_iter();
    let symbol = |(name, span): (&str, Span)| {
        let detail = view.input(name).map(|input| {
            let trust = if input.trusted { ", trusted" } else { "" };
            format!("{}{trust}", input.kind.as_str())
        });
        symbol(view.document, name.to_owned(), detail, SymbolKind::Variable, span, span)
    };
    declared.map(symbol).collect()
}

fn messages(view: &View<'_>, template: &Template<'_>) -> Vec<DocumentSymbol> {
    let messages = template.analysis.messages();
    let shown =
        messages.iter().filter(|message| !template.text(message.content).trim().is_empty() || message.marker.is_some());
    shown.filter_map(|message| self::message(view, template, message)).collect()
}

fn message(view: &View<'_>, template: &Template<'_>, message: &WrittenMessage) -> Option<DocumentSymbol> {
    let whole = template.analysis.locate(Span::new(message.start(), message.content.end));
    let first = message.marker.unwrap_or(Span::new(message.content.start, message.content.start));
    let selection = template.analysis.locate(first);
    // Positions in strings with escapes are not exact. A selection has to be inside of its symbol.
    let selection = Span::new(selection.start.max(whole.start), selection.end.min(whole.end));
    (selection.start <= selection.end).then_some(())?;
    let text = template.text(message.content);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let detail = line.map(short);
    Some(symbol(view.document, message.role.as_str().to_owned(), detail, SymbolKind::String, whole, selection))
}

fn variant(view: &View<'_>, template: &Template<'_>, children: Vec<DocumentSymbol>) -> Option<DocumentSymbol> {
    let whole = template.analysis.locate(Span::new(0, template.source().len()));
    let first = Span::new(whole.start, whole.start);
    let name = template.analysis.name().to_owned();
    let mut symbol = symbol(view.document, name, None, SymbolKind::Class, whole, first);
    symbol.children = Some(children);
    Some(symbol)
}

pub(crate) fn symbol(
    document: &Document,
    name: String,
    detail: Option<String>,
    kind: SymbolKind,
    span: Span,
    selection: Span,
) -> DocumentSymbol {
    let (range, selection_range) = (document.range(span), document.range(selection));
    #[expect(deprecated, reason = "the field is part of the type")]
    let symbol =
        DocumentSymbol { name, detail, kind, tags: None, deprecated: None, range, selection_range, children: None };
    symbol
}

fn flatten(document: &Document, symbol: DocumentSymbol, container: Option<&str>, flat: &mut Vec<Json>) {
    let location = Location::new(document.uri.clone(), symbol.range);
    flat.push(json!({"name": symbol.name, "kind": symbol.kind, "location": location, "containerName": container}));
    for child in symbol.children.into_iter().flatten() {
        flatten(document, child, Some(&symbol.name), flat);
    }
}
