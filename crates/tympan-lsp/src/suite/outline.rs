//! The cases of tests, as symbols and as code lenses.

use gen_lsp_types::{CodeLens, Command, DocumentSymbol, SymbolKind};
use serde_json::{Value as Json, json};
use tympan_core::format::outline::Field;
use tympan_core::text::source::Span;

use crate::outline::{short, symbol};
use crate::suite::Suite;

/// The command that runs tests. Only the client executes it.
const TEST: &str = "tympan.test";

/// Returns the cases as symbols.
pub(crate) fn symbols(suite: Suite<'_>) -> Vec<DocumentSymbol> {
    let cases = suite.cases().enumerate();
    let symbols = cases.map(|(index, case)| {
        let selection = case.get("name").map_or(Span::new(case.span.start, case.span.start), |name| name.span);
        // The position of an empty case is not inside of it.
        let selection = if contains(case.span, selection) { selection } else { case.span };
        symbol(suite.document, name(case, index), Some(detail(case)), SymbolKind::Method, case.span, selection)
    });
    symbols.collect()
}

/// Returns the symbol of the tests in a prompt file.
pub(crate) fn embedded_symbol(suite: Suite<'_>) -> DocumentSymbol {
    let span = suite.root.span;
    let selection = Span::new(span.start, span.start);
    let mut tests = symbol(suite.document, "tests".to_owned(), None, SymbolKind::Class, span, selection);
    tests.children = Some(symbols(suite));
    tests
}

fn contains(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Returns the name of a case. Cases without a name are numbered, as in reports.
fn name(case: Field<'_>, index: usize) -> String {
    let name = case.get("name").and_then(Field::text).filter(|name| !name.is_empty());
    name.map_or_else(|| format!("case {}", index + 1), short)
}

/// Describes a case by its assertions.
fn detail(case: Field<'_>) -> String {
    let assertions = case.get("expect").into_iter().flat_map(Field::items);
    let names: Vec<_> = assertions.filter_map(|assertion| assertion.entries().next()?.key).collect();
    short(&names.join(", "))
}

/// Returns the lenses that run all tests, and each case.
pub(crate) fn lenses(suite: Suite<'_>) -> Vec<CodeLens> {
    let document = suite.document;
    let lens = |title: &str, at: usize, arguments: Vec<Json>| CodeLens {
        range: document.range(Span::new(at, at)),
        command: Some(Command {
            title: title.to_owned(),
            tooltip: None,
            command: TEST.to_owned(),
            arguments: Some(arguments),
        }),
        data: None,
    };
    let start = if document.is_test_file() { 0 } else { suite.root.key_span.start };
    let mut lenses = vec![lens("Run all tests", start, vec![json!(document.uri)])];
    lenses.extend(suite.cases().enumerate().map(|(index, case)| {
        let name = case.get("name").and_then(Field::text).map(str::to_owned);
        let name = name.unwrap_or_else(|| format!("case {}", index + 1));
        lens("Run test", case.span.start, vec![json!(document.uri), json!(name)])
    }));
    lenses
}
