//! Document symbols: inputs, variants and messages.

use gen_lsp_types::{DocumentSymbol, Location, SymbolKind};
use serde_json::{Value as Json, json};
use tympan_core::prompt::analysis::WrittenMessage;
use tympan_core::spec::PromptKind;
use tympan_core::text::source::Span;

use crate::failure::Answer;
use crate::features::to_json;
use crate::template::Template;
use crate::view::View;

/// Returns the symbols as a tree, or as a list for clients that do not show trees.
pub(crate) fn symbols(view: &View<'_>, as_tree: bool) -> Answer<Json> {
    let mut symbols = inputs(view);
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
    if as_tree {
        return to_json(symbols);
    }
    let mut flat = Vec::new();
    symbols.into_iter().for_each(|symbol| flatten(view, symbol, None, &mut flat));
    to_json(flat)
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
        children.push(symbol(view, name, None, SymbolKind::String, Span::new(heading.start, end), *heading));
    }
    let name = view.prompt.name().unwrap_or("directive").to_owned();
    let whole = Span::new(0, text.len());
    let mut symbol = symbol(view, name, None, SymbolKind::Module, whole, view.document.line_at(0));
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
        symbol(view, name.to_owned(), detail, SymbolKind::Variable, span, span)
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
    let detail = line.map(|line| line.chars().take(60).collect());
    Some(symbol(view, message.role.as_str().to_owned(), detail, SymbolKind::String, whole, selection))
}

fn variant(view: &View<'_>, template: &Template<'_>, children: Vec<DocumentSymbol>) -> Option<DocumentSymbol> {
    let whole = template.analysis.locate(Span::new(0, template.source().len()));
    let first = Span::new(whole.start, whole.start);
    let name = template.analysis.name().to_owned();
    let mut symbol = symbol(view, name, None, SymbolKind::Class, whole, first);
    symbol.children = Some(children);
    Some(symbol)
}

fn symbol(
    view: &View<'_>,
    name: String,
    detail: Option<String>,
    kind: SymbolKind,
    span: Span,
    selection: Span,
) -> DocumentSymbol {
    let (range, selection_range) = (view.document.range(span), view.document.range(selection));
    #[expect(deprecated, reason = "the field is part of the type")]
    let symbol =
        DocumentSymbol { name, detail, kind, tags: None, deprecated: None, range, selection_range, children: None };
    symbol
}

fn flatten(view: &View<'_>, symbol: DocumentSymbol, container: Option<&str>, flat: &mut Vec<Json>) {
    let location = Location::new(view.document.uri.clone(), symbol.range);
    flat.push(json!({"name": symbol.name, "kind": symbol.kind, "location": location, "containerName": container}));
    for child in symbol.children.into_iter().flatten() {
        flatten(view, child, Some(&symbol.name), flat);
    }
}
